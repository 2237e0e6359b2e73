// The list of passes, and the short ones.
#include "dsl/passes.hpp"

#include "dsl/rebuild.hpp"

namespace tigon::dsl {

Graph erase_attach(const Graph& graph) {
  return rebuild(graph, [&](Builder&, NodeId id, std::span<const NodeId> operands) {
    return graph.node(id).kind == NodeKind::attach ? operands[0] : no_node;
  });
}

Graph simplify(const Graph& graph) {
  const RebuildRule plain = [](Builder&, NodeId, std::span<const NodeId>) { return no_node; };
  // What a fold makes unneeded is dropped by the second round.
  return rebuild(rebuild(graph, plain), plain);
}

Graph prepare(const Graph& graph, const Extents& extents, const RoundingOptions& options) {
  return simplify(round_contractions(simplify(push_views(refine_splits(erase_attach(graph)))), extents, options));
}

}  // namespace tigon::dsl
