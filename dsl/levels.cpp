// Levels of nodes along an axis, and when the axis may be chunked at all.
#include "dsl/levels.hpp"

#include <algorithm>

#include "dsl/levels_cone.hpp"

namespace tigon::dsl {
namespace {

bool is_leaf(NodeKind kind) {
  return kind == NodeKind::input || kind == NodeKind::scalar || kind == NodeKind::constant || kind == NodeKind::iota ||
         kind == NodeKind::extent;
}

}  // namespace

AxisCone::AxisCone(const Graph& graph, std::span<const NodeId> targets, AxisId axis, const std::vector<bool>& known)
    : graph_(graph),
      axis_(axis),
      in_cone_(graph.nodes.size()),
      resident_(graph.nodes.size()),
      folds_(graph.nodes.size()),
      distant_(graph.nodes.size()),
      level_(graph.nodes.size(), -1) {
  for (const NodeId target : targets) in_cone_[target] = 1;
  for (NodeId id = static_cast<NodeId>(graph.nodes.size()); id-- > 0;) {
    resident_[id] = (id < known.size() && known[id]) || is_leaf(graph.node(id).kind) ? 1 : 0;
    if (in_cone_[id] == 0 || resident_[id] != 0) continue;
    for (const NodeId operand : graph.operands(id)) in_cone_[operand] = 1;
  }
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    if (in_cone_[id] != 0) classify(id);
}

void AxisCone::classify(NodeId id) {
  const Node& n = graph_.node(id);
  level_[id] = 0;
  if (resident_[id] != 0) return;
  const auto operands = graph_.operands(id);
  if (n.kind == NodeKind::view && resident_[operands[0]] != 0) {
    resident_[id] = 1;
    return;
  }
  switch (n.kind) {
    case NodeKind::fold:
    case NodeKind::scan:
    case NodeKind::scatter:
      folds_[id] = graph_.folded_axes(id).contains(axis_) ? 1 : 0;
      break;
    case NodeKind::gather:
      if (graph_.gathers[n.payload].axis == axis_ && resident_[operands[0]] == 0)
        (carries(operands[1]) ? distant_ : folds_)[id] = 1;
      break;
    case NodeKind::view:
      for (const ViewTerm& term : graph_.views[n.payload].terms)
        if (term.operand_axis == axis_) distant_[id] = 1;
      break;
    default:
      break;
  }
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const int later = folds_[operands[k]] != 0 || distant(id, k) ? 1 : 0;
    level_[id] = std::max(level_[id], level_[operands[k]] + later);
  }
}

std::optional<std::string> AxisCone::illegal() const {
  const std::string axis_name = "`" + graph_.axes[axis_].name + "`";
  for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
    if (in_cone_[id] == 0 || resident_[id] != 0) continue;
    const Node& n = graph_.node(id);
    const std::string what = graph_.name_of(id);
    if (n.kind == NodeKind::scatter && folds_[id] != 0 && carries(id))
      return "the scatter " + what + " sums over " + axis_name + " into the same axis: rename the axis that it makes";
    if (n.kind == NodeKind::fold && folds_[id] != 0) {
      const FoldInfo& fold = graph_.fold(id);
      const Monoid& law = graph_.monoids[fold.monoid];
      if (!law.commutative && fold.axes.size() > 1 && fold.axes.front() != axis_)
        return "the fold " + what + " by `" + law.name + "` keeps the order of its elements, and " + axis_name +
               " is not its outermost axis";
    }
    const auto operands = graph_.operands(id);
    const bool touches =
        carries(id) || std::any_of(operands.begin(), operands.end(), [&](NodeId operand) { return carries(operand); });
    if (n.kind == NodeKind::scan && folds_[id] != 0) return "the scan " + what + " runs along " + axis_name;
    if (n.kind == NodeKind::loop && touches) return axis_name + " is in the body of the loop " + what;
    if (n.kind == NodeKind::attach) return "the surrogate at " + what + " has not been erased";
  }
  return std::nullopt;
}

bool is_contraction_fold(const Graph& graph, NodeId id) {
  if (graph.node(id).kind != NodeKind::fold || graph.fold(id).of_states) return false;
  if (graph.monoid_of(id).name != builtin_monoid(BuiltinMonoid::sum).name) return false;
  const NodeId product = graph.operands(id)[0];
  if (graph.node(product).kind != NodeKind::map || graph.op(product) != ScalarOp::mul) return false;
  const AxisSet a = graph.node(graph.operands(product)[0]).axes;
  const AxisSet b = graph.node(graph.operands(product)[1]).axes;
  const AxisSet folded = graph.folded_axes(id);
  return !folded.empty() && (a & b).contains(folded) && !(a - b).empty() && !(b - a).empty();
}

std::vector<int> levels(const Graph& graph, std::span<const NodeId> targets, AxisId axis,
                        const std::vector<bool>& known) {
  return AxisCone(graph, targets, axis, known).levels();
}

}  // namespace tigon::dsl
