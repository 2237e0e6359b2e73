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

Graph name_states(Graph graph) {
  std::vector<NamedNode> states;
  for (const NamedNode& named : graph.names) {
    if (graph.node(named.node).kind != NodeKind::finish) continue;
    const NodeId state = graph.operands(named.node)[0];
    const auto same = [&](const NamedNode& other) { return other.node == state; };
    if (graph.node(state).kind != NodeKind::fold || std::any_of(states.begin(), states.end(), same) ||
        std::any_of(graph.names.begin(), graph.names.end(), same)) {
      continue;
    }
    states.push_back({state, named.name});
  }
  graph.names.insert(graph.names.end(), states.begin(), states.end());
  std::sort(graph.names.begin(), graph.names.end(),
            [](const NamedNode& a, const NamedNode& b) { return a.node < b.node; });
  return graph;
}

Graph prepare(const Graph& graph, const Extents& extents, const RoundingOptions& options) {
  const Graph simple = simplify(push_views(refine_splits(erase_attach(name_states(graph)))));
  return simplify(round_contractions(simple, extents, options));
}

}  // namespace tigon::dsl
