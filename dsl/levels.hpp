// Levels, the one law of chunking: which passes over an axis a graph needs, what each evaluates, and what is kept.
#pragma once
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dsl/graph.hpp"

namespace tigon::dsl {

// One sweep over the chunks of the axis C. All lists ascend.
struct AxisPass {
  // What the pass produces: folds (also scatters and gathers) over C, targets that carry C, stored values, tables of
  // distant reads. A fold is finished, and a stored value readable at any element, only once the pass has ended; a
  // target or stored value that is also read in this pass is read where it is made.
  std::vector<NodeId> sinks;
  // Nodes lacking C that must be in memory, at full extent of `rest`, before the pass starts; each is computed once
  // and listed by every pass that reads it, so that the last one that lists it frees it. Sinks of earlier passes and
  // `known` nodes are not listed.
  std::vector<NodeId> hoisted;
  std::vector<NodeId> demanded;  // nodes carrying C that each chunk evaluates (leaves and views of leaves are read)
  bool heavy = false;            // a contraction is among demanded or sinks
};

struct AxisPlan {
  std::vector<AxisPass> passes;
  std::vector<NodeId> stored;  // kept at full extent of C for later passes; a fold among them is kept as its state
  std::vector<NodeId> after;   // targets lacking C that no pass delivers: finished after the last pass
  double work = 0;             // of all passes: multiplications of contractions, elements of everything else
};

struct AxisRefusal {
  std::string reason;
};

struct AxisOptions {
  bool store_large = false;  // whether large values may be stored where that saves work; small ones always may
  AxisSet rest{};            // further axes chunked inside
  Extents extents{};         // by AxisId; one that is missing or negative is unknown
};

// By node: the earliest pass over `axis` that can evaluate it; -1 outside the cone of the targets. `known`: by node,
// whether it is in memory at full extent of the axis (inputs are in any case).
std::vector<int> levels(const Graph& graph, std::span<const NodeId> targets, AxisId axis,
                        const std::vector<bool>& known);

// Places the sinks on passes so that the least work is demanded. A target that is a fold over the axis is delivered as
// its state. Deterministic.
std::variant<AxisPlan, AxisRefusal> plan_axis(const Graph& graph, std::span<const NodeId> targets, AxisId axis,
                                              const std::vector<bool>& known, const AxisOptions& options);

}  // namespace tigon::dsl
