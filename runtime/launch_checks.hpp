// What a launch's buffers must be: dtype, extents, strides, alignment, device, and memory that nobody else uses.
#pragma once
#include <string>
#include <vector>

#include "dsl/graph.hpp"
#include "tigon/detail/compiled.hpp"

namespace tigon::runtime {

// Elements from the first to the last of a buffer; more cannot be addressed.
inline constexpr std::int64_t largest_span = std::int64_t{1} << 48;

// Throws Error{usage}; empty parts are left out.
[[noreturn]] void refuse_launch(const std::string& function, const std::string& argument, const std::string& axis,
                                const std::string& found, const std::string& expected, const std::string& cure,
                                const std::string& sentence);

// A buffer of a function, as errors name it.
struct BufferName {
  const std::string& function;
  const std::string& argument;
  const std::vector<dsl::AxisInfo>& axes;      // of the plan
  const std::vector<dsl::AxisId>& dimensions;  // the buffer's, outermost first
};
[[noreturn]] void refuse_null(const BufferName& name);
void check_buffer(const detail::RawBuffer& buffer, DType dtype, Device device, const BufferName& name);
// A buffer that is written: no two elements may have one address.
void check_written(const detail::RawBuffer& buffer, const BufferName& name);

// First and one-past-last byte that a buffer spans.
struct Bytes {
  std::uintptr_t begin = 0, end = 0;
  [[nodiscard]] bool meets(const Bytes& other) const { return begin < other.end && other.begin < end; }
};
Bytes bytes_of(const detail::RawBuffer& buffer);
// Whether two buffers may have a byte in common. Columns of one matrix, whose spans interleave, do not.
bool overlap(const detail::RawBuffer& a, const detail::RawBuffer& b);

// The axes of a result's buffer as its caller knows them.
inline const std::vector<dsl::AxisId>& caller_axes(const dsl::OutputInfo& info) {
  return info.declared.empty() ? info.axes : info.declared;
}

// A launch's spans have the lengths of the request's lists, and no argument or result has more axes than a buffer
// holds; values in between may.
void check_counts(const detail::CompiledCore& core, std::span<const detail::RawBuffer> inputs,
                  std::span<const detail::RawScalar> scalars, std::span<const detail::RawBuffer> outputs);
void check_ranks(const dsl::Graph& graph);

}  // namespace tigon::runtime
