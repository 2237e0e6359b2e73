// The common frame of passes.
#include "dsl/rebuild.hpp"

namespace tigon::dsl {

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  for (const OutputInfo& output : graph.outputs) live[output.node] = true;
  for (NodeId id = static_cast<NodeId>(graph.nodes.size()); id-- > 0;) {
    if (!live[id]) continue;
    for (const NodeId operand : graph.operands(id)) live[operand] = true;
  }
  return live;
}

Graph rebuild(const Graph& graph, const RebuildRule& rule, const OutputRule& of_output) {
  Builder builder = Builder::rebuilding(graph);
  std::vector<bool> live = live_nodes(graph);
  for (const InputInfo& input : graph.inputs) live[input.node] = true;
  for (const ScalarInfo& scalar : graph.scalars) live[scalar.node] = true;
  std::vector<NodeId> renewed(graph.nodes.size(), no_node);
  // The argument list keeps its order whatever order the nodes were made in.
  for (const InputInfo& input : graph.inputs) renewed[input.node] = builder.remake(graph, input.node, {});
  for (const ScalarInfo& scalar : graph.scalars) renewed[scalar.node] = builder.remake(graph, scalar.node, {});
  std::size_t next_name = 0;
  std::vector<NodeId> operands;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    while (next_name < graph.names.size() && graph.names[next_name].node < id) ++next_name;
    if (!live[id]) continue;
    if (renewed[id] == no_node) {
      const SourceLocation& location = graph.locations[graph.node(id).location];
      builder.set_location(location.file, location.line);
      operands.clear();
      for (const NodeId operand : graph.operands(id)) operands.push_back(renewed[operand]);
      renewed[id] = rule(builder, id, operands);
      if (renewed[id] == no_node) renewed[id] = builder.remake(graph, id, operands);
    }
    const bool named = next_name < graph.names.size() && graph.names[next_name].node == id;
    if (named) builder.name(renewed[id], graph.names[next_name].name);
  }
  for (OutputInfo output : graph.outputs) {
    output.node = renewed[output.node];
    if (of_output) of_output(builder, output);
    builder.output(std::move(output));
  }
  return std::move(builder).finish();
}

}  // namespace tigon::dsl
