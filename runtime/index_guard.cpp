// Counts over each checked lookup's index; an index that is looked up itself is checked by its own kernel as well.
#include "runtime/index_guard.hpp"

#include "dsl/rebuild.hpp"

namespace tigon::runtime {
using dsl::NodeId;

std::optional<dsl::Graph> index_guard(const dsl::Graph& graph) {
  const bool keeps = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                                 [](const dsl::OutputInfo& output) { return output.mode != dsl::OutputMode::write; });
  if (!keeps) return std::nullopt;
  const std::vector<bool> live = dsl::live_nodes(graph);
  dsl::Builder builder{dsl::Graph(graph)};
  NodeId total = dsl::no_node;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const dsl::Node& node = graph.node(id);
    if (!live[id] || node.kind != dsl::NodeKind::gather) continue;
    const dsl::GatherInfo& gather = graph.gathers[node.payload];
    if (gather.policy != dsl::IndexPolicy::checked) continue;
    const NodeId index = builder.cast(DType::i64, graph.operands(id)[1]);
    const NodeId below = builder.map(ScalarOp::less, {index, builder.integer(DType::i64, 0)});
    const NodeId above = builder.map(ScalarOp::less_equal, {builder.extent(gather.axis), index});
    const NodeId wrong = builder.cast(DType::i32, builder.map(ScalarOp::logical_or, {below, above}));
    std::vector<dsl::AxisId> axes;
    for (const dsl::AxisId axis : builder.node(wrong).axes) axes.push_back(axis);
    const NodeId count = axes.empty() ? wrong : builder.sum(wrong, axes);
    total = total == dsl::no_node ? count : builder.map(ScalarOp::add, {total, count});
  }
  if (total == dsl::no_node) return std::nullopt;
  builder.output({.name = guard_output, .node = total, .dtype = DType::i32, .axes = {}});
  return dsl::rebuild(std::move(builder).finish(),
                      [](dsl::Builder&, NodeId, std::span<const NodeId>) { return dsl::no_node; });
}

}  // namespace tigon::runtime
