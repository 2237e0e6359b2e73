// Walks a sweep's values as the emitter does, indices reduced to the loops that they depend on.
#include "codegen/schedule/sweep_cost.hpp"

#include "dsl/scalar_table.hpp"

namespace tigon::schedule {
using dsl::AxisId;
using dsl::AxisSet;
using dsl::Graph;
using dsl::Node;
using dsl::NodeId;
using dsl::NodeKind;

SweepCost::SweepCost(const KernelRequest& request, const DeviceModel& device, const Analysis& analysis, AxisSet space,
                     std::size_t most_places)
    : request_(request),
      device_(device),
      analysis_(analysis),
      rows_(analysis.shape.row_set()),
      loops_(rows_ | space),
      most_places_(most_places),
      counted_(request.graph.nodes.size()) {
  for (const AxisId axis : analysis.shape.columns) {
    if (space.contains(axis)) columns_.push_back(axis);
  }
  if (!columns_.empty()) lanes_ = columns_.back();
  for (const AxisId axis : loops_) {
    start_[axis] = add({.around = AxisSet::of(axis), .lane = axis == lanes_ ? Lane::contiguous : Lane::no});
  }
}

SweepCost::IndexId SweepCost::add(const Index& index) {
  indices_.push_back(index);
  return static_cast<IndexId>(indices_.size() - 1);
}

double SweepCost::product(AxisSet axes) const {
  double result = 1;
  for (const AxisId axis : axes) result *= static_cast<double>(request_.extents[axis]);
  return result;
}

// The lanes' loop runs once for a vector, and what does not vary along it is computed that often.
double SweepCost::evaluations(const Index& index) const {
  if (lanes_ == dsl::no_axis || !index.around.contains(lanes_)) return product(index.around) * index.runs;
  const double width = device_.vector_bytes / 4.0;
  const double vectors = std::ceil(static_cast<double>(request_.extents[lanes_]) / width);
  const double count = product(index.around - AxisSet::of(lanes_)) * index.runs * vectors;
  return index.lane == Lane::no ? count : count * width;
}

double SweepCost::points(bool vector) const {
  if (!vector) return product(loops_);
  return evaluations({.around = loops_, .lane = Lane::contiguous});
}

double SweepCost::merge_cost(NodeId fold) const {
  double cost = 0;
  for (const ProgramValue& value : request_.graph.monoid_of(fold).merge.values) {
    if (value.kind == ProgramValue::Kind::operation) cost += dsl::info(value.op).cost;
  }
  return std::max(cost, 1.0);
}

// What a value that carries these axes depends on. Its folds' loops lie inside each other: the innermost one counts.
SweepCost::Index SweepCost::together(AxisSet axes, const Environment& at) const {
  Index result;
  for (const AxisId axis : axes) {
    const Index& index = indices_[at[axis]];
    result.around |= index.around;
    result.lane = std::max(result.lane, index.lane);
    if (index.depth > result.depth) {
      result.depth = index.depth;
      result.runs = index.runs;
    }
  }
  return result;
}

// Whether the value has not been met at these indices before; it then has.
bool SweepCost::is_new(NodeId node, const Environment& at) {
  std::vector<IndexId>& known = counted_[node];
  const AxisSet axes = request_.graph.node(node).axes;
  const auto length = static_cast<std::size_t>(axes.size()) + 1;  // the first says that a place follows
  for (std::size_t first = 0; first < known.size(); first += length) {
    std::size_t next = first + 1;
    bool same = true;
    for (const AxisId axis : axes) same = same && known[next++] == at[axis];
    if (same) return false;
  }
  known.push_back(0);
  for (const AxisId axis : axes) known.push_back(at[axis]);
  ++places_;
  return true;
}

double SweepCost::of_operands(NodeId node, const Environment& at) {
  double cost = 0;
  for (const NodeId operand : request_.graph.operands(node)) cost += of(operand, at);
  return cost;
}

double SweepCost::of(NodeId node, const Environment& at) {
  if (exhausted() || !is_new(node, at)) return 0;
  const Graph& graph = request_.graph;
  const Node& n = graph.node(node);
  if (n.kind == NodeKind::fold) return is_finished(node, at) ? 0 : of_fold(node, at);
  if (n.kind == NodeKind::view) return of(graph.operands(node)[0], through_view(node, at));
  const Index index = together(n.axes, at);
  const bool vector = index.lane != Lane::no;
  double count = evaluations(index);
  // A device's lanes are innermost: what varies with them is computed for every row, also where it does not depend on
  // the row.
  if (device_.multiprocessors > 0 && vector) count *= product(loops_ - index.around);
  switch (n.kind) {
    case NodeKind::input: {
      const dsl::InputInfo& input = graph.inputs[n.payload];
      if (!vector) return count * device_.scalar_op_ns;
      bool contiguous = indices_[at[input.axes.back()]].lane == Lane::contiguous;
      for (std::size_t i = 0; i + 1 < input.axes.size(); ++i) {
        contiguous = contiguous && indices_[at[input.axes[i]]].lane == Lane::no;
      }
      return count * (contiguous ? size_of(n.dtype) * device_.contiguous_byte_ns : device_.strided_element_ns);
    }
    case NodeKind::gather: {
      const auto operands = graph.operands(node);
      const double cost = of(operands[1], at);
      Environment looked_up = at;
      Gathered key{operands[1], {}};
      for (const AxisId axis : graph.node(operands[1]).axes) key.second.push_back(at[axis]);
      IndexId& found = of_gathers_[std::move(key)];
      if (found == 0) {
        Index by = together(graph.node(operands[1]).axes, at);
        if (by.lane != Lane::no) by.lane = Lane::strided;
        found = add(by);
      }
      looked_up[graph.gathers[n.payload].axis] = found;
      return cost + of(operands[0], looked_up);
    }
    case NodeKind::map:
      return of_operands(node, at) + count * op_ns(vector) * dsl::info(graph.op(node)).cost;
    case NodeKind::finish:
    case NodeKind::cast:
      return of_operands(node, at) + 2 * count * op_ns(vector);
    default:
      return 0;
  }
}

// A sweep leaves a fold's state for its own row; of another row, the fold is computed where it is read.
bool SweepCost::is_finished(NodeId fold, const Environment& at) const {
  if (analysis_.role[fold] != FoldRole::sweep) return false;
  for (const AxisId axis : request_.graph.node(fold).axes) {
    if (at[axis] != start_[axis]) return false;
  }
  return true;
}

double SweepCost::of_fold(NodeId node, const Environment& at) {
  const Graph& graph = request_.graph;
  Index index = together(graph.node(node).axes, at);
  const bool vector = index.lane != Lane::no;
  index.around = loops_around(index, node);
  Environment inside = at;
  for (const AxisId axis : graph.fold(node).axes) {
    index.runs *= static_cast<double>(request_.extents[axis]);
    ++index.depth;
    Index loop = index;
    loop.lane = Lane::no;
    inside[axis] = add(loop);
  }
  double again = 1;
  if (device_.multiprocessors > 0 && vector) again = product(loops_ - index.around);
  return of_operands(node, inside) + again * evaluations(index) * op_ns(vector) * merge_cost(node);
}

// The sweep's loops around a fold's own: all from the outermost to the innermost one that it depends on.
AxisSet SweepCost::loops_around(const Index& index, NodeId fold) const {
  AxisSet result = index.around;
  AxisSet columns;
  for (const AxisId axis : columns_) {
    columns |= AxisSet::of(axis);
    if (index.around.contains(axis)) result |= rows_ | columns;
  }
  if (!(index.around & rows_).empty() || stands_inside_rows(fold)) result |= rows_;
  return result;
}

// As the emitter places it: a fold that rests on a finished sweep or on a checked index stands in the rows loop.
bool SweepCost::stands_inside_rows(NodeId fold) const {
  if (analysis_.level[fold] > 0) return true;
  const Graph& graph = request_.graph;
  std::vector<bool> reached(graph.nodes.size(), false);
  reached[fold] = true;
  for (NodeId id = fold + 1; id-- > 0;) {
    if (!reached[id]) continue;
    const Node& n = graph.node(id);
    if (n.kind == NodeKind::gather && graph.gathers[n.payload].policy == dsl::IndexPolicy::checked) return true;
    for (const NodeId operand : graph.operands(id)) reached[operand] = true;
  }
  return false;
}

SweepCost::Environment SweepCost::through_view(NodeId node, const Environment& at) {
  const dsl::ViewInfo& view = request_.graph.views[request_.graph.node(node).payload];
  Environment result = at;
  for (const dsl::ViewTerm& term : view.terms) {
    if (term.kind == dsl::ViewKind::rename) {
      result[term.operand_axis] = at[term.a];
      continue;
    }
    const bool split = term.kind == dsl::ViewKind::split;
    const IndexId b = split ? at[term.b] : 0;
    IndexId& found =
        of_views_[{static_cast<std::uint32_t>(term.kind), at[term.a], b, split ? term.b : 0u, split ? 0u : term.inner}];
    if (found == 0) {
      Index index = indices_[at[term.a]];
      if (index.lane != Lane::no) index.lane = Lane::strided;
      if (split) {
        const Index& inner = indices_[b];
        index.around |= inner.around;
        index.lane = std::max(index.lane, inner.lane);
        if (inner.depth > index.depth) {
          index.depth = inner.depth;
          index.runs = inner.runs;
        }
      }
      found = add(index);
    }
    result[term.operand_axis] = found;
  }
  return result;
}

}  // namespace tigon::schedule
