// What compile and launch need of a device: a program that can be bound, and a bind that can be run.
#pragma once
#include <memory>

#include "runtime/prepared.hpp"
#include "tigon/device.hpp"

namespace tigon::runtime {

// A program at fixed extents and layouts. Immutable; any number of threads run it, each with a workspace of its own.
class DeviceBound {
 public:
  virtual ~DeviceBound() = default;
  [[nodiscard]] virtual std::int64_t workspace_bytes() const = 0;
  [[nodiscard]] virtual std::int64_t launches() const = 0;  // of kernels and matmuls, in one run
  // Allocates nothing, takes no lock. False if a checked index was found out of range, as far as that is known when it
  // returns; the outputs are then unspecified.
  [[nodiscard]] virtual bool try_run(const Stream& stream, const LaunchArguments& arguments) const = 0;
};

// A plan with its kernels compiled and loaded for one device.
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  [[nodiscard]] virtual const plan::Plan& plan() const = 0;
  [[nodiscard]] virtual Device device() const = 0;
  [[nodiscard]] virtual std::unique_ptr<const DeviceBound> bind(dsl::Extents extents,
                                                                const std::vector<Strides>& input_strides,
                                                                const std::vector<Strides>& output_strides) const = 0;
  // Memory for results and workspace of one launch, given back in the stream's order.
  [[nodiscard]] virtual std::shared_ptr<void> allocate(const Stream& stream, std::size_t bytes) const = 0;
  // Writes plan, nests and texts below `folder` for people to read.
  virtual void dump(const std::string& folder) const = 0;
};

}  // namespace tigon::runtime
