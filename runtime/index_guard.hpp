// A function's lookups checked before it runs, for functions that write over or add to what their caller holds.
#pragma once
#include <memory>
#include <optional>

#include "dsl/graph.hpp"

namespace tigon::runtime {

inline constexpr const char* guard_output = "indices out of range";

// The number of checked indices of `graph` that are out of range, as a graph of the same arguments; nothing where no
// index is checked or no result lies in memory whose old content matters.
std::optional<dsl::Graph> index_guard(const dsl::Graph& graph);

}  // namespace tigon::runtime
