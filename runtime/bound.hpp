// A program bound to extents and layouts: an immutable list of prepared steps, and the hot path that runs it.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/prepared.hpp"
#include "runtime/program.hpp"

namespace tigon::runtime {

struct BoundOptions {
  int max_threads = 0;  // 0: the pool's limit at the time of the launch
};

class Bound {
 public:
  // `extents` are complete (plan::bind_extents). Prepares matmuls, so it is not for the hot path.
  Bound(std::shared_ptr<const Program> program, dsl::Extents extents, const std::vector<Strides>& input_strides,
        const std::vector<Strides>& output_strides);
  ~Bound();
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  [[nodiscard]] std::int64_t workspace_bytes() const;        // values, scratch and parameter blocks together
  [[nodiscard]] std::int64_t workspace_value_bytes() const;  // of it, values that steps pass on
  [[nodiscard]] const dsl::Extents& extents() const;
  [[nodiscard]] std::int64_t launches() const;  // kernel launches of one run
  [[nodiscard]] std::int64_t matmuls() const;

  // Runs every step. Allocates nothing of its own, takes no lock. False if a checked index was out of range; the
  // outputs are then unspecified.
  [[nodiscard]] bool try_run(const LaunchArguments& arguments, const BoundOptions& options = {}) const;
  // The same, throwing Error{usage} instead.
  void run(const LaunchArguments& arguments, const BoundOptions& options = {}) const;

  struct Parts;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace tigon::runtime
