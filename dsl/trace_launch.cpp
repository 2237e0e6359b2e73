// The refusals of a launch, and the memory in which a thread packs more arguments than its stack holds.
#include "tigon/detail/compiled.hpp"
#include "tigon/error.hpp"

#include "dsl/graph.hpp"

namespace tigon::detail {

void check_extents(const dsl::Graph& graph, std::span<const GivenExtent> extents) {
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const AxisRef& axis = extents[i].axis;
    for (std::size_t other = 0; other < i; ++other) {
      if (extents[other].axis.tag != axis.tag) continue;
      throw Error({.function = graph.name,
                   .axis = std::string(axis.name),
                   .found = std::to_string(extents[i].high),
                   .expected = std::to_string(extents[other].high),
                   .cure = "Give it once"},
                  "the axis is given two extents");
    }
    std::string names;
    bool known = false;
    for (const dsl::AxisInfo& info : graph.axes) {
      known |= info.tag == axis.tag;
      names += (names.empty() ? "" : ", ") + info.name;
    }
    if (known) continue;
    throw Error({.function = graph.name,
                 .axis = std::string(axis.name),
                 .expected = names.empty() ? "no axis" : "one of " + names,
                 .cure = "Leave it out of extents<...>; axes are told apart by type, not by name"},
                "the function does not have this axis");
  }
}

void refuse_scalar(const CompiledCore& core, std::size_t number) {
  throw Error({.function = core.request().graph->name, .argument = core.request().scalars.at(number)},
              "a scalar argument was not given");
}

void refuse_count(const CompiledCore& core, std::string_view what, std::size_t found, std::size_t expected) {
  throw Error({.function = core.request().graph->name,
               .found = std::to_string(found),
               .expected = std::to_string(expected),
               .cure = "Give the vectors the lengths that the shape given to compile had"},
              fmt::format("the arguments hold another number of {} than the function was compiled for", what));
}

void check_gradient(const RawBuffer& gradient, DType wanted) {
  if (gradient.pointer == nullptr) {
    throw Error({.cure = "Name the argument in wrt<...>"}, "this gradient was not asked for");
  }
  if (gradient.dtype != wanted) {
    throw Error({.found = std::string(name(gradient.dtype)),
                 .expected = std::string(name(wanted)),
                 .cure = "Read it with buffer<D>(), D being the dtype that grad_dtype asked for"},
                "the gradient has another dtype");
  }
}

std::span<RawBuffer> spare_buffers(int which, std::size_t count) {
  thread_local std::array<std::vector<RawBuffer>, 2> spare;
  std::vector<RawBuffer>& buffers = spare.at(which);
  if (buffers.size() < count) buffers.resize(count);
  return std::span(buffers).first(count);
}

std::span<RawScalar> spare_scalars(std::size_t count) {
  thread_local std::vector<RawScalar> spare;
  if (spare.size() < count) spare.resize(count);
  return std::span(spare).first(count);
}

}  // namespace tigon::detail
