// Extents by axis name and random arguments for an op's graph, for tests, checks and benchmarks.
#pragma once
#include <map>

#include "dsl/reference/evaluate.hpp"
#include "ops/registry.hpp"

namespace tigon::ops {

using NamedExtents = std::map<std::string, std::int64_t, std::less<>>;

// The graph's extents: those asked for, the entry's defaults for the others. Throws Error naming the op's axes where
// another axis is asked for.
dsl::Extents extents_of(const OpEntry& entry, const dsl::Graph& graph, const NamedExtents& asked);

// Arguments drawn as the entry's hints say, exact in their dtypes; the same for the same seed everywhere.
dsl::EvaluateInputs draw_inputs(const OpEntry& entry, const OpChoice& choice, const dsl::Graph& graph,
                                const dsl::Extents& extents, std::uint64_t seed);

}  // namespace tigon::ops
