// What a function is bound to: the extents and layouts of one set of buffers, and the device's program for them.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "runtime/device_program.hpp"
#include "tigon/detail/compiled.hpp"

namespace tigon::runtime {

// Extents and layouts that a bind was made for; a launch compares its buffers against it.
struct Binding {
  std::vector<detail::RawBuffer> inputs, outputs;  // by graph input and output; pointers unused
  std::unique_ptr<const DeviceBound> bound;
  mutable std::atomic<std::uint64_t> checked_pointers{0};  // of the last launch whose ranges were found apart

  Binding(std::vector<detail::RawBuffer> in, std::vector<detail::RawBuffer> out,
          std::unique_ptr<const DeviceBound> program)
      : inputs(std::move(in)), outputs(std::move(out)), bound(std::move(program)) {}
};

// Appends the strides of an axis' parts, as far as the plan has split it, given the stride of the whole.
void append_strides(const plan::Plan& plan, const dsl::Extents& extents, const std::vector<dsl::AxisId>& axes,
                    dsl::AxisId axis, std::int64_t stride, Strides& strides);

bool same_shape(const detail::RawBuffer& a, const detail::RawBuffer& b);

}  // namespace tigon::runtime
