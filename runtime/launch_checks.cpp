// Refuses buffers that a kernel must not be given, naming argument, axis, both values and the cure.
#include "runtime/launch_checks.hpp"

#include <numeric>

#include "tigon/error.hpp"

namespace tigon::runtime {
using detail::RawBuffer;

namespace {

// Offsets within a row are 32-bit numbers on some targets, so no axis is longer.
constexpr std::int64_t largest_extent = (std::int64_t{1} << 31) - 1;

// Dimensions that have more than one element, by the size of their strides; repetitions (a stride of 0) last.
std::vector<std::size_t> by_stride(const RawBuffer& buffer) {
  std::vector<std::size_t> dimensions;
  for (std::size_t d = 0; d < buffer.rank; ++d) {
    if (buffer.extents[d] > 1) dimensions.push_back(d);
  }
  std::stable_sort(dimensions.begin(), dimensions.end(), [&](std::size_t a, std::size_t b) {
    const std::int64_t first = std::abs(buffer.strides[a]), second = std::abs(buffer.strides[b]);
    return first != 0 && (second == 0 || first < second);
  });
  return dimensions;
}

}  // namespace

void refuse_launch(const std::string& function, const std::string& argument, const std::string& axis,
                   const std::string& found, const std::string& expected, const std::string& cure,
                   const std::string& sentence) {
  ErrorDetails details{.kind = ErrorKind::usage, .function = function, .argument = argument, .axis = axis};
  if (!found.empty()) details.found = found;
  if (!expected.empty()) details.expected = expected;
  details.cure = cure;
  throw Error(std::move(details), sentence);
}

void refuse_null(const BufferName& name) {
  std::string axes;
  for (const dsl::AxisId axis : name.dimensions) axes += (axes.empty() ? "" : ", ") + name.axes[axis].name;
  refuse_launch(name.function, name.argument, "", "no memory", axes.empty() ? "one element" : "a buffer over " + axes,
                "Give it a buffer", fmt::format("argument `{}` is null", name.argument));
}

void check_buffer(const RawBuffer& buffer, DType dtype, Device device, const BufferName& name) {
  const std::size_t rank = name.dimensions.size();
  const auto refuse = [&](std::size_t dimension, const std::string& found, const std::string& expected,
                          const std::string& cure, const std::string& sentence) {
    const std::string axis = dimension < rank ? name.axes[name.dimensions[dimension]].name : "";
    refuse_launch(name.function, name.argument, axis, found, expected, cure, sentence);
  };
  const std::size_t whole = rank;
  if (buffer.dtype != dtype) {
    refuse(whole, std::string(tigon::name(buffer.dtype)), std::string(tigon::name(dtype)), "",
           "the buffer has another dtype");
  }
  if (buffer.rank != rank) {
    refuse(whole, std::to_string(buffer.rank), std::to_string(rank), "", "the buffer has another number of axes");
  }
  std::int64_t count = 1, span = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t extent = buffer.extents[d];
    if (extent < 0 || extent > largest_extent) {
      refuse(d, fmt::format("{} along dimension {}", extent, d), fmt::format("0 to {}", largest_extent), "",
             "the buffer has an extent that no buffer can have");
    }
    if (__builtin_mul_overflow(count, extent, &count) || count > largest_span) {
      refuse(whole, "", fmt::format("at most {} elements", largest_span), "", "the buffer's extents overflow");
    }
    std::int64_t reach = 0;
    if (extent > 1 && (__builtin_mul_overflow(extent - 1, buffer.strides[d], &reach) || reach > largest_span ||
                       reach < -largest_span || (span += std::abs(reach)) > largest_span)) {
      refuse(d, fmt::format("a stride of {} for {} elements", buffer.strides[d], extent),
             fmt::format("at most {} elements from first to last", largest_span), "", "the buffer's strides overflow");
    }
  }
  // A default buffer has extents of 0, as an empty one may have; along two axes at once nobody means it.
  const bool is_default = rank > 1 && std::all_of(buffer.extents.begin(), buffer.extents.begin() + rank,
                                                  [](std::int64_t extent) { return extent == 0; });
  if (buffer.pointer == nullptr && (count > 0 || is_default)) refuse_null(name);
  if (reinterpret_cast<std::uintptr_t>(buffer.pointer) % static_cast<std::uintptr_t>(size_of(dtype)) != 0) {
    refuse(whole, fmt::format("{}", buffer.pointer), fmt::format("a multiple of {} bytes", size_of(dtype)), "",
           "the buffer's address is not aligned to its elements");
  }
  if (!(buffer.device == device)) {
    refuse(whole, buffer.device.name(), device.name(),
           "Copy the buffer to the device that the function was compiled for", "the buffer lies on another device");
  }
  if (rank > 0 && buffer.strides[rank - 1] != 1 && buffer.extents[rank - 1] > 1) {
    refuse(rank - 1, std::to_string(buffer.strides[rank - 1]), "1", "Copy it to a buffer whose last axis is contiguous",
           "the last axis has a stride");
  }
}

void check_written(const RawBuffer& buffer, const BufferName& name) {
  for (std::size_t d = 0; d < buffer.rank; ++d) {
    if (buffer.extents[d] == 0) return;
  }
  std::int64_t inner = 0;  // from the first to the last element along the dimensions so far
  for (const std::size_t d : by_stride(buffer)) {
    const std::int64_t stride = std::abs(buffer.strides[d]);
    if (stride <= inner) {
      refuse_launch(name.function, name.argument, name.axes[name.dimensions[d]].name,
                    fmt::format("a stride of {}", buffer.strides[d]), fmt::format("{} or more", inner + 1),
                    "Give the result a buffer of its own, without broadcast or overlapping rows",
                    "the result's buffer overlaps itself");
    }
    inner += (buffer.extents[d] - 1) * stride;
  }
}

Bytes bytes_of(const RawBuffer& buffer) {
  std::int64_t first = 0, last = 0;
  for (std::size_t d = 0; d < buffer.rank; ++d) {
    if (buffer.extents[d] == 0) return {};
    const std::int64_t reach = (buffer.extents[d] - 1) * buffer.strides[d];
    (reach < 0 ? first : last) += reach;
  }
  const auto base = reinterpret_cast<std::intptr_t>(buffer.pointer);
  const std::int64_t size = size_of(buffer.dtype);
  return {static_cast<std::uintptr_t>(base + first * size), static_cast<std::uintptr_t>(base + (last + 1) * size)};
}

bool overlap(const RawBuffer& a, const RawBuffer& b) {
  const Bytes whole_a = bytes_of(a), whole_b = bytes_of(b);
  if (!whole_a.meets(whole_b)) return false;
  const std::vector<std::size_t> order_a = by_stride(a), order_b = by_stride(b);
  if (order_a.empty() || order_b.empty()) return true;
  // Rows of one pitch: apart where, within a pitch, the row of one ends before the row of the other begins.
  const auto pitch_of = [](const RawBuffer& buffer, std::size_t d) {
    return buffer.strides[d] * size_of(buffer.dtype);
  };
  const std::int64_t pitch = pitch_of(a, order_a.back());
  if (pitch <= 0 || pitch != pitch_of(b, order_b.back())) return true;
  const auto row_of = [](RawBuffer buffer, std::size_t rows) {
    buffer.extents[rows] = 1;
    return bytes_of(buffer);
  };
  const Bytes row_a = row_of(a, order_a.back()), row_b = row_of(b, order_b.back());
  const auto width_a = static_cast<std::int64_t>(row_a.end - row_a.begin);
  const auto width_b = static_cast<std::int64_t>(row_b.end - row_b.begin);
  std::int64_t offset = static_cast<std::int64_t>(row_b.begin - row_a.begin) % pitch;
  if (offset < 0) offset += pitch;
  return offset < width_a || offset + width_b > pitch;
}

void check_counts(const detail::CompiledCore& core, std::span<const RawBuffer> inputs,
                  std::span<const detail::RawScalar> scalars, std::span<const RawBuffer> outputs) {
  const detail::CompileRequest& asked = core.request();
  if (inputs.size() != asked.inputs.size()) detail::refuse_count(core, "buffers", inputs.size(), asked.inputs.size());
  if (scalars.size() != asked.scalars.size())
    detail::refuse_count(core, "scalars", scalars.size(), asked.scalars.size());
  if (outputs.size() != asked.outputs.size())
    detail::refuse_count(core, "results", outputs.size(), asked.outputs.size());
}

void check_ranks(const dsl::Graph& graph) {
  const auto check = [&](const std::string& name, const std::vector<dsl::AxisId>& axes) {
    if (axes.size() <= static_cast<std::size_t>(detail::max_rank)) return;
    throw Error({.kind = ErrorKind::usage,
                 .function = graph.name,
                 .argument = name,
                 .found = fmt::format("{} axes", axes.size()),
                 .expected = fmt::format("at most {}", detail::max_rank),
                 .cure = "Merge some of them; a gradient that saves such a value for later is had with vjp instead"},
                "a tensor that memory holds has too many axes");
  };
  for (const dsl::InputInfo& input : graph.inputs) check(input.name, input.axes);
  for (const dsl::OutputInfo& output : graph.outputs) check(output.name, caller_axes(output));
}

}  // namespace tigon::runtime
