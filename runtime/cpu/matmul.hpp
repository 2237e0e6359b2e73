// Matrix products on the CPU through oneDNN: what is supported, preparation, and execution on caller's memory.
#pragma once
#include <memory>
#include <string>

#include "runtime/matmul_layout.hpp"

namespace tigon::runtime {

// Whether a matmul can be prepared; if not, why, as one sentence.
struct MatmulSupport {
  std::string refusal{};
  explicit operator bool() const { return refusal.empty(); }
};

MatmulSupport supports_matmul(const MatmulSpec& spec);

// Immutable and safe to execute from several threads at once. Equal bits for any number of threads: the pieces are
// fixed when it is prepared and each runs sequentially.
class PreparedMatmul {
 public:
  ~PreparedMatmul();
  PreparedMatmul(const PreparedMatmul&) = delete;
  PreparedMatmul& operator=(const PreparedMatmul&) = delete;

  // `scratch` holds scratch_bytes() bytes aligned to 64 and belongs to this call until it returns; it may be null if
  // that is 0. max_threads <= 0 stands for OpenMP's limit. Once as many calls have run at a time as run now, nothing is
  // allocated here; oneDNN allocates a few small blocks per piece.
  void execute(const void* a, const void* b, void* c, void* scratch, int max_threads = 0) const;

  [[nodiscard]] std::size_t scratch_bytes() const noexcept;
  [[nodiscard]] i64 partitions() const noexcept;  // pieces that may run at once; 0 if there is nothing to multiply
  [[nodiscard]] std::string description() const;  // the library's kernel, the matrix product, batch, loops, pieces
  [[nodiscard]] double work_nanoseconds() const noexcept;  // a rough guess, on one core

  struct Parts;

 private:
  friend std::shared_ptr<const PreparedMatmul> prepare_matmul(const MatmulSpec&, int);
  explicit PreparedMatmul(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Creates the library's kernels (0.1 to 10 ms each). `cores` decides into how many pieces the work is cut and thereby
// the result's last bits; 0 stands for the machine's processors. Throws Error with the refusal's sentence.
std::shared_ptr<const PreparedMatmul> prepare_matmul(const MatmulSpec& spec, int cores = 0);

}  // namespace tigon::runtime
