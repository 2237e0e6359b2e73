// One basis for each axis: where an axis is split, its parts take its place in the whole graph.
#include "dsl/passes.hpp"
#include "dsl/rebuild.hpp"

namespace tigon::dsl {
namespace {

// Whether lifting an element looks at its index.
bool reads_index(const Monoid& monoid) {
  return std::any_of(monoid.lift.values.begin(), monoid.lift.values.end(), [&](const ProgramValue& value) {
    return value.kind == ProgramValue::Kind::input && value.input >= monoid.operand_count;
  });
}

class Refinement {
 public:
  Refinement(const Graph& graph, SplitRelation split) : graph_(graph), split_(split), live_(live_nodes(graph)) {}

  // Whether every live node can do with the parts, and some view inside the graph then disappears.
  bool possible() const {
    if (split_.whole == split_.outer || split_.whole == split_.inner) return false;
    for (const SplitRelation& other : graph_.splits)
      if (other.whole == split_.whole && !(other == split_)) return false;
    bool useful = false;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!live_[id]) continue;
      if (!allows(id)) return false;
      if (graph_.node(id).kind != NodeKind::view) continue;
      const bool at_leaf = graph_.node(graph_.operands(id)[0]).kind == NodeKind::input;
      for (const ViewTerm& term : graph_.views[graph_.node(id).payload].terms) {
        if (is_split(term) && !at_leaf) useful = true;
        if (is_merge(term)) useful = true;
      }
    }
    return useful;
  }

  Graph run() const {
    return rebuild(
        graph_,
        [&](Builder& builder, NodeId id, std::span<const NodeId> operands) { return renew(builder, id, operands); },
        [&](Builder& builder, OutputInfo& output) {
          if (!std::count(output.axes.begin(), output.axes.end(), split_.whole)) return;
          output.node = in_parts(builder, output.node);
          if (output.declared.empty()) output.declared = output.axes;
          replace(output.axes);
        });
  }

 private:
  bool is_split(const ViewTerm& term) const {
    return term.kind == ViewKind::split && term.operand_axis == split_.whole;
  }
  bool is_merge(const ViewTerm& term) const {
    return (term.kind == ViewKind::merge_outer || term.kind == ViewKind::merge_inner) && term.a == split_.whole;
  }
  AxisSet parts() const { return AxisSet::of(split_.outer) | AxisSet::of(split_.inner); }

  bool allows(NodeId id) const {
    const Node& n = graph_.node(id);
    const AxisSet whole = AxisSet::of(split_.whole);
    if (n.axes.contains(split_.whole) && !(n.axes & parts()).empty()) return false;
    switch (n.kind) {
      case NodeKind::input:
        return graph_.inputs[n.payload].monoid < 0 || !n.axes.contains(split_.whole);
      case NodeKind::view:
        for (const ViewTerm& term : graph_.views[n.payload].terms) {
          const bool touches = term.operand_axis == split_.whole || term.a == split_.whole || term.b == split_.whole ||
                               term.inner == split_.whole;
          if (touches && !is_split(term) && !is_merge(term)) return false;
        }
        return true;
      case NodeKind::fold: {
        if (!graph_.folded_axes(id).contains(split_.whole)) return true;
        const Monoid& monoid = graph_.monoid_of(id);
        return monoid.commutative && !reads_index(monoid) && !graph_.fold(id).of_states;
      }
      case NodeKind::gather:
        return graph_.gathers[n.payload].axis != split_.whole;
      case NodeKind::scatter: {
        AxisSet read;
        for (const NodeId operand : graph_.operands(id)) read |= graph_.node(operand).axes;
        const AxisId axis = graph_.scatters[n.payload].axis;
        return axis != split_.whole && !(read.contains(whole) && parts().contains(axis));
      }
      case NodeKind::scan:
      case NodeKind::random:
      case NodeKind::loop:
        return false;
      default:
        return true;
    }
  }

  void replace(std::vector<AxisId>& axes) const {
    const auto place = std::find(axes.begin(), axes.end(), split_.whole);
    if (place == axes.end()) return;
    *place = split_.inner;
    axes.insert(place, split_.outer);
  }

  NodeId in_parts(Builder& builder, NodeId id) const {
    if (!builder.node(id).axes.contains(split_.whole)) return id;
    return builder.split(id, split_.whole, split_.outer, split_.inner);
  }

  NodeId renew(Builder& builder, NodeId id, std::span<const NodeId> given) const {
    const Node& n = graph_.node(id);
    std::vector<NodeId> operands;
    for (const NodeId operand : given) operands.push_back(in_parts(builder, operand));
    switch (n.kind) {
      case NodeKind::iota: {
        if (n.payload != split_.whole) return no_node;
        const NodeId start = builder.map(ScalarOp::mul, {builder.iota(split_.outer), builder.extent(split_.inner)});
        return builder.map(ScalarOp::add, {start, builder.iota(split_.inner)});
      }
      case NodeKind::view: {
        ViewInfo view = graph_.views[n.payload];
        const bool merges =
            std::any_of(view.terms.begin(), view.terms.end(), [&](const ViewTerm& term) { return is_merge(term); });
        std::erase_if(view.terms, [&](const ViewTerm& term) { return is_merge(term) || is_split(term); });
        if (view.added.contains(split_.whole)) view.added = (view.added - AxisSet::of(split_.whole)) | parts();
        const NodeId result = builder.view(operands[0], std::move(view));
        return merges ? builder.broadcast(result, parts()) : result;
      }
      case NodeKind::fold: {
        std::vector<AxisId> axes = graph_.fold(id).axes;
        replace(axes);
        if (graph_.fold(id).of_states) return builder.fold_states(operands[0], std::move(axes));
        return builder.fold(builder.monoid(Monoid(graph_.monoid_of(id))), operands, std::move(axes));
      }
      case NodeKind::scatter: {
        ScatterInfo scatter = graph_.scatters[n.payload];
        replace(scatter.folded);
        return builder.scatter(operands[0], operands[1], scatter.axis, std::move(scatter.folded));
      }
      default:
        return builder.remake(graph_, id, operands);
    }
  }

  const Graph& graph_;
  SplitRelation split_;
  std::vector<bool> live_;
};

}  // namespace

Graph refine_splits(const Graph& graph) {
  Graph refined = graph;
  for (const SplitRelation& split : graph.splits) {
    const Refinement refinement(refined, split);
    if (refinement.possible()) refined = refinement.run();
  }
  return refined;
}

}  // namespace tigon::dsl
