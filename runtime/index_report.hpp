// Finds the index that a checked lookup met out of range, once a launch has said that there is one.
#pragma once
#include <span>

#include "dsl/graph.hpp"
#include "tigon/detail/compiled.hpp"

namespace tigon::runtime {

struct IndexArguments {
  dsl::Extents extents;                              // of the graph's axes
  std::span<const detail::RawBuffer* const> inputs;  // by graph input; null: the launch has none
  std::span<const detail::RawScalar> scalars;        // by graph scalar
};

// Evaluates the indices of the graph's checked lookups and throws Error{usage} for the first that is out of range,
// naming the argument, the value, its place, the axis and its extent. Where the index is a reduction's result, or was
// overwritten since, it names the lookups instead.
[[noreturn]] void refuse_index(const dsl::Graph& graph, const IndexArguments& arguments);

}  // namespace tigon::runtime
