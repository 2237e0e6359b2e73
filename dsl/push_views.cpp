// Moves views to the leaves, so that inside the graph an axis has one name and chunking sees it everywhere.
#include "dsl/passes.hpp"
#include "dsl/rebuild.hpp"

namespace tigon::dsl {
namespace {

AxisSet introduced(const std::vector<ViewTerm>& terms) {
  AxisSet axes;
  for (const ViewTerm& term : terms) {
    axes |= AxisSet::of(term.a);
    if (term.kind == ViewKind::split) axes |= AxisSet::of(term.b);
  }
  return axes;
}

std::vector<ViewTerm> restricted(const std::vector<ViewTerm>& terms, AxisSet axes) {
  std::vector<ViewTerm> result;
  for (const ViewTerm& term : terms)
    if (axes.contains(term.operand_axis)) result.push_back(term);
  return result;
}

class ViewPusher {
 public:
  explicit ViewPusher(const Graph& graph) : old_(graph) { find_plain(); }

  // Broadcasts vanish on the way: a value may lack axes along which it is constant, until an output wants them.
  NodeId rule(Builder& builder, NodeId id, std::span<const NodeId> operands) {
    const Node& n = old_.node(id);
    NodeId result = no_node;
    switch (n.kind) {
      case NodeKind::view:
        result = push(builder, operands[0], old_.views[n.payload].terms);
        break;
      case NodeKind::gather: {
        const AxisId axis = old_.gathers[n.payload].axis;
        const std::array<NodeId, 2> both{builder.broadcast(operands[0], AxisSet::of(axis)), operands[1]};
        result = builder.remake(old_, id, both);
        break;
      }
      case NodeKind::scatter: {
        const AxisSet missing = old_.folded_axes(id) - builder.node(operands[1]).axes;
        const std::array<NodeId, 2> both{builder.broadcast(operands[0], missing), operands[1]};
        result = builder.remake(old_, id, both);
        break;
      }
      default:
        result = builder.remake(old_, id, operands);
        break;
    }
    if (plain_[id]) {
      if (is_plain_.size() <= result) is_plain_.resize(result + 1);
      is_plain_[result] = true;
    }
    return result;
  }

 private:
  // Nodes that an output reaches without a view between: pushing a view through such a fold would compute it twice.
  void find_plain() {
    plain_.assign(old_.nodes.size(), false);
    for (const OutputInfo& output : old_.outputs) plain_[output.node] = true;
    for (NodeId id = static_cast<NodeId>(old_.nodes.size()); id-- > 0;) {
      if (!plain_[id] || (old_.node(id).kind == NodeKind::view && !old_.views[old_.node(id).payload].terms.empty()))
        continue;
      for (const NodeId operand : old_.operands(id)) plain_[operand] = true;
    }
  }

  NodeId push(Builder& builder, NodeId id, const std::vector<ViewTerm>& all) {
    const Node n = builder.node(id);
    const std::vector<ViewTerm> terms = restricted(all, n.axes);
    if (terms.empty()) return id;
    const auto span = builder.graph().operands(id);
    std::vector<NodeId> operands(span.begin(), span.end());
    switch (n.kind) {
      case NodeKind::iota:
        return iota_under(builder, terms[0]);
      case NodeKind::map:
        if (stays(builder, id)) break;
        for (NodeId& operand : operands) operand = push(builder, operand, terms);
        return builder.map(static_cast<ScalarOp>(n.payload), operands);
      case NodeKind::cast:
        if (stays(builder, id)) break;
        return builder.cast(n.dtype, push(builder, operands[0], terms));
      case NodeKind::finish: {
        const bool shared = id < is_plain_.size() && is_plain_[id];
        if (builder.node(operands[0]).kind != NodeKind::fold || shared) break;
        const FoldInfo fold = builder.graph().fold(operands[0]);
        const AxisSet folded = builder.graph().folded_axes(operands[0]);
        if (fold.of_states || !(introduced(terms) & folded).empty()) break;
        const auto of_fold = builder.graph().operands(operands[0]);
        std::vector<NodeId> inner(of_fold.begin(), of_fold.end());
        for (NodeId& operand : inner) operand = push(builder, operand, terms);
        return builder.finish(builder.fold(fold.monoid, inner, fold.axes), static_cast<int>(n.payload));
      }
      case NodeKind::gather: {
        const GatherInfo info = builder.graph().gathers[n.payload];
        const AxisSet table_axes = builder.node(operands[0]).axes - AxisSet::of(info.axis);
        const std::vector<ViewTerm> of_table = restricted(terms, table_axes);
        if (introduced(of_table).contains(info.axis)) break;
        const NodeId index = push(builder, operands[1], terms);
        return builder.gather(push(builder, operands[0], of_table), index, info.axis, info.policy, info.fill);
      }
      case NodeKind::view:
        if (const std::optional<NodeId> composed = compose(builder, id, terms)) return *composed;
        break;
      default:
        break;
    }
    return builder.view(id, {terms, {}});
  }

  // A map that is also read plainly and rests on a fold is a value worth having once: the view then reads it strided.
  bool stays(const Builder& builder, NodeId id) {
    return id < is_plain_.size() && is_plain_[id] && rests_on_fold(builder, id);
  }

  bool rests_on_fold(const Builder& builder, NodeId id) {
    if (id >= rests_.size()) rests_.resize(id + 1, 0);
    if (rests_[id] != 0) return rests_[id] == 2;
    bool found = builder.node(id).kind == NodeKind::fold;
    const auto span = builder.graph().operands(id);
    const std::vector<NodeId> operands(span.begin(), span.end());
    for (const NodeId operand : operands) found = found || rests_on_fold(builder, operand);
    rests_[id] = found ? 2 : 1;
    return found;
  }

  static NodeId iota_under(Builder& builder, const ViewTerm& term) {
    switch (term.kind) {
      case ViewKind::rename:
        return builder.iota(term.a);
      case ViewKind::split:
        return builder.map(ScalarOp::add, {builder.map(ScalarOp::mul, {builder.iota(term.a), builder.extent(term.b)}),
                                           builder.iota(term.b)});
      case ViewKind::merge_outer:
        return builder.map(ScalarOp::floor_div, {builder.iota(term.a), builder.extent(term.inner)});
      case ViewKind::merge_inner:
        break;
    }
    return builder.map(ScalarOp::rem, {builder.iota(term.a), builder.extent(term.inner)});
  }

  // One view in place of two: renames substitute, a merge takes back a split and a split a merge.
  std::optional<NodeId> compose(Builder& builder, NodeId id, const std::vector<ViewTerm>& outer) {
    ViewInfo inner = builder.graph().views[builder.node(id).payload];
    if (!inner.added.empty()) return std::nullopt;
    const NodeId source = builder.graph().operands(id)[0];
    AxisSet pass_through = builder.node(source).axes;
    for (const ViewTerm& term : inner.terms) pass_through -= AxisSet::of(term.operand_axis);
    std::vector<ViewTerm> terms = inner.terms;
    for (const ViewTerm& term : outer) {
      if (term.kind == ViewKind::rename) {
        if (pass_through.contains(term.operand_axis)) {
          terms.push_back(term);
          continue;
        }
        for (std::size_t i = 0; i < inner.terms.size(); ++i) {
          if (inner.terms[i].a == term.operand_axis) terms[i].a = term.a;
          if (inner.terms[i].b == term.operand_axis) terms[i].b = term.a;
        }
      } else if (!cancel(terms, inner.terms, outer, term)) {
        return std::nullopt;
      }
    }
    std::erase_if(terms, [](const ViewTerm& t) { return t.operand_axis == no_axis; });
    return builder.view(source, {std::move(terms), {}});
  }

  static bool cancel(std::vector<ViewTerm>& terms, const std::vector<ViewTerm>& before,
                     const std::vector<ViewTerm>& all, const ViewTerm& outer) {
    return outer.kind == ViewKind::split ? split_of_merge(terms, before, outer)
                                         : merge_of_split(terms, before, all, outer);
  }

  // A merged axis is taken apart again: the parts come back if the inner part is the same.
  static bool split_of_merge(std::vector<ViewTerm>& terms, const std::vector<ViewTerm>& before, const ViewTerm& outer) {
    bool any = false;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const ViewTerm& term = before[i];
      if (term.a != outer.operand_axis || term.kind == ViewKind::rename || term.kind == ViewKind::split) continue;
      if (term.inner != outer.b) return false;
      const AxisId part = term.kind == ViewKind::merge_outer ? outer.a : outer.b;
      terms[i] = {term.operand_axis, ViewKind::rename, part, no_axis, no_axis};
      any = true;
    }
    return any;
  }

  // Both parts of a split are merged again: the whole comes back under the merged axis' name.
  static bool merge_of_split(std::vector<ViewTerm>& terms, const std::vector<ViewTerm>& before,
                             const std::vector<ViewTerm>& all, const ViewTerm& outer) {
    const auto merged = [&](AxisId part) {
      return std::any_of(all.begin(), all.end(), [&](const ViewTerm& term) {
        return term.operand_axis == part && term.a == outer.a && term.kind != ViewKind::rename;
      });
    };
    for (std::size_t i = 0; i < before.size(); ++i) {
      const ViewTerm& term = before[i];
      if (term.kind != ViewKind::split || term.b != outer.inner || !merged(term.a) || !merged(term.b)) continue;
      if (term.a != outer.operand_axis && term.b != outer.operand_axis) continue;
      terms[i] = {term.operand_axis, ViewKind::rename, outer.a, no_axis, no_axis};
      return true;
    }
    return false;
  }

  const Graph& old_;
  std::vector<bool> plain_;
  std::vector<bool> is_plain_;
  std::vector<std::uint8_t> rests_;  // by new node, whether it rests on a fold: 0 unknown, 1 no, 2 yes
};

}  // namespace

Graph push_views(const Graph& graph) {
  ViewPusher pusher(graph);
  return rebuild(graph, [&](Builder& builder, NodeId id, std::span<const NodeId> operands) {
    return pusher.rule(builder, id, operands);
  });
}

}  // namespace tigon::dsl
