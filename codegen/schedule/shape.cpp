// Classifies folds and counts passes under a shape, predicts its time, and lists the shapes worth trying.
#include "codegen/schedule/shape.hpp"

#include <set>

#include "dsl/scalar_table.hpp"

namespace tigon::schedule {
using dsl::AxisId;
using dsl::AxisSet;
using dsl::Graph;
using dsl::Node;
using dsl::NodeId;
using dsl::NodeKind;

AxisSet set_of(const std::vector<AxisId>& axes) {
  AxisSet result;
  for (const AxisId axis : axes) result |= AxisSet::of(axis);
  return result;
}
AxisSet Shape::row_set() const { return set_of(rows); }
AxisSet Shape::column_set() const { return set_of(columns); }

AxisSet output_space(const Graph& graph, NodeId node) {
  const NodeKind kind = graph.node(node).kind;
  AxisSet space = graph.node(node).axes;
  if (kind == NodeKind::fold || kind == NodeKind::scatter) space |= graph.folded_axes(node);
  return space;
}

std::vector<NodeId> cone(const Graph& graph, const std::vector<int>& outputs) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (const int output : outputs) needed[graph.outputs[static_cast<std::size_t>(output)].node] = true;
  for (NodeId id = static_cast<NodeId>(graph.nodes.size()); id-- > 0;) {
    if (!needed[id]) continue;
    for (const NodeId operand : graph.operands(id)) needed[operand] = true;
  }
  std::vector<NodeId> result;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (needed[id]) result.push_back(id);
  }
  return result;
}

namespace {

double product(const dsl::Extents& extents, AxisSet axes) {
  double result = 1;
  for (const AxisId axis : axes) result *= static_cast<double>(extents[axis]);
  return result;
}

// Axes whose meaning has changed (by a view or a gather) on every path from an output to the node.
std::vector<AxisSet> altered_axes(const Graph& graph, const std::vector<NodeId>& nodes,
                                  const std::vector<int>& outputs) {
  const AxisSet everything = AxisSet::from_bits(~std::uint64_t{0});
  std::vector<AxisSet> altered(graph.nodes.size(), everything);
  for (const int output : outputs) altered[graph.outputs[static_cast<std::size_t>(output)].node] = AxisSet();
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const Node& n = graph.node(*it);
    const auto operands = graph.operands(*it);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      AxisSet inside = altered[*it];
      if (n.kind == NodeKind::view) {
        for (const dsl::ViewTerm& term : graph.views[n.payload].terms) inside |= AxisSet::of(term.operand_axis);
      }
      if (n.kind == NodeKind::gather && i == 0) inside |= AxisSet::of(graph.gathers[n.payload].axis);
      if (n.kind == NodeKind::fold) inside -= graph.folded_axes(*it);
      altered[operands[i]] = altered[operands[i]] & inside;
    }
  }
  return altered;
}

// Predicts the time of one sweep: every node it evaluates once, counted over the loops whose axes it carries.
class SweepCost {
 public:
  SweepCost(const KernelRequest& request, const DeviceModel& device, const Analysis& analysis, AxisSet loops)
      : request_(request), device_(device), analysis_(analysis), loops_(loops) {}

  // Where a value is wanted, beyond the sweep's own loops.
  struct Place {
    AxisId lanes = dsl::no_axis;
    AxisSet serial{};  // axes of the loops of serial folds around it
    AxisSet moving{};  // axes whose index changes with the loops over `around`, which a value need not carry
    AxisSet around{};
    AxisSet fixed{};       // axes of the sweep whose index a gather has replaced
    bool altered = false;  // below a view that has renamed the lanes' axis
  };

  double of(NodeId node, const Place& at) {
    const Graph& graph = request_.graph;
    const Node& n = graph.node(node);
    AxisSet own = n.axes & (loops_ | at.serial);
    own -= at.fixed;
    if (!(n.axes & (at.serial | at.moving)).empty()) own |= at.around;
    if (!visited_.insert({node, own.bits()}).second) return 0;
    const bool vector = at.lanes != dsl::no_axis && n.axes.contains(at.lanes) && !at.fixed.contains(at.lanes);
    const AxisId lanes = vector ? at.lanes : dsl::no_axis;
    // Lanes are innermost: what varies with them is computed for every row, also where it does not depend on the row.
    double again = 1;
    if (device_.multiprocessors > 0 && vector && !at.altered)
      again = product(request_.extents, loops_ - own) * product(request_.extents, loops_ & own & at.serial);
    const auto count_of = [&](AxisSet axes) { return again * evaluations(axes, lanes); };
    double cost = 0;
    switch (n.kind) {
      case NodeKind::input: {
        const dsl::InputInfo& input = graph.inputs[n.payload];
        const double count = count_of(own);
        if (!vector) return count * device_.scalar_op_ns;
        const bool contiguous = !input.axes.empty() && input.axes.back() == lanes;
        return count * (contiguous ? size_of(n.dtype) * device_.contiguous_byte_ns : device_.strided_element_ns);
      }
      case NodeKind::fold: {
        if (analysis_.role[node] == FoldRole::sweep) return 0;
        const AxisSet folded = graph.folded_axes(node);
        Place inside = at;
        inside.serial |= folded;
        inside.fixed -= folded;
        const AxisSet rows = stands_inside_rows(node) ? analysis_.shape.row_set() & loops_ : AxisSet();
        inside.around |= rows;
        if (folded.contains(at.lanes)) inside.lanes = dsl::no_axis;  // its own loop over that axis is not of lanes
        for (const NodeId operand : graph.operands(node)) cost += of(operand, inside);
        return cost + count_of(own | folded | rows) * op_ns(vector) * merge_cost(node);
      }
      case NodeKind::view: {
        for (const dsl::ViewTerm& term : graph.views[n.payload].terms) {
          if (term.a == at.lanes || term.b == at.lanes) return of_altered(graph.operands(node)[0], at, term);
        }
        return of(graph.operands(node)[0], at);
      }
      case NodeKind::gather: {
        const auto operands = graph.operands(node);
        const Node& index = graph.node(operands[1]);
        cost += of(operands[1], at);
        if (vector && index.axes.contains(at.lanes)) return cost + count_of(own) * device_.strided_element_ns;
        Place looked_up = at;
        const AxisSet axis = AxisSet::of(graph.gathers[n.payload].axis);
        looked_up.moving |= axis;
        looked_up.around |= index.axes & (loops_ | at.serial);
        looked_up.fixed |= axis;
        if (axis.contains(at.lanes)) looked_up.lanes = dsl::no_axis;
        return cost + of(operands[0], looked_up);
      }
      case NodeKind::map:
        for (const NodeId operand : graph.operands(node)) cost += of(operand, at);
        return cost + count_of(own) * op_ns(vector) * dsl::info(graph.op(node)).cost;
      case NodeKind::finish:
      case NodeKind::cast:
        for (const NodeId operand : graph.operands(node)) cost += of(operand, at);
        return cost + 2 * count_of(own) * op_ns(vector);
      default:
        return 0;
    }
  }

  double merge_cost(NodeId fold) const {
    double cost = 0;
    for (const ProgramValue& value : request_.graph.monoid_of(fold).merge.values) {
      if (value.kind == ProgramValue::Kind::operation) cost += dsl::info(value.op).cost;
    }
    return std::max(cost, 1.0);
  }
  double op_ns(bool vector) const { return vector ? device_.vector_op_ns : device_.scalar_op_ns; }
  double evaluations(AxisSet axes, AxisId lane_axis) const {
    double count = product(request_.extents, lane_axis == dsl::no_axis ? axes : axes - AxisSet::of(lane_axis));
    if (lane_axis != dsl::no_axis) {
      const double width = device_.vector_bytes / 4.0;
      count *= std::ceil(static_cast<double>(request_.extents[lane_axis]) / width) * width;
    }
    return count;
  }

 private:
  // As the emitter places it: a fold that rests on a finished sweep or on a checked index stands in the rows loop.
  bool stands_inside_rows(NodeId fold) const {
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

  // Below a view the lane axis goes by the operand's name.
  double of_altered(NodeId operand, const Place& at, const dsl::ViewTerm& term) {
    const bool contiguous =
        term.kind == dsl::ViewKind::rename || (term.kind == dsl::ViewKind::split && term.b == at.lanes);
    if (!contiguous) {
      return evaluations(request_.graph.node(operand).axes & (loops_ | at.serial), at.lanes) *
             device_.strided_element_ns;
    }
    Place below = at;
    below.lanes = term.operand_axis;
    below.altered = true;
    return of(operand, below);
  }

  const KernelRequest& request_;
  const DeviceModel& device_;
  const Analysis& analysis_;
  AxisSet loops_;
  std::set<std::pair<NodeId, std::uint64_t>> visited_;  // with the axes that it was counted over
};

}  // namespace

AxisSet sweep_space(const Graph& graph, NodeId node, const Analysis& analysis) {
  const FoldRole role = analysis.role[node];
  const bool over_columns = role == FoldRole::sweep || role == FoldRole::grid;
  return (over_columns ? output_space(graph, node) : graph.node(node).axes) & analysis.shape.column_set();
}

std::variant<Analysis, Refusal> analyse(const KernelRequest& request, const std::vector<int>& outputs,
                                        const Shape& shape, const DeviceModel& device) {
  const Graph& graph = request.graph;
  Analysis result;
  result.shape = shape;
  result.role.assign(graph.nodes.size(), FoldRole::none);
  result.level.assign(graph.nodes.size(), 0);
  const AxisSet rows = shape.row_set();
  const AxisSet columns = shape.column_set();
  const std::vector<NodeId> nodes = cone(graph, outputs);
  const std::vector<AxisSet> altered = altered_axes(graph, nodes, outputs);
  std::vector<bool> is_output(graph.nodes.size(), false);
  for (const int output : outputs) is_output[graph.outputs[static_cast<std::size_t>(output)].node] = true;
  std::vector<bool> read(graph.nodes.size(), false);
  for (const NodeId id : nodes) {
    for (const NodeId operand : graph.operands(id)) read[operand] = true;
  }
  const AxisSet grid_axes = shape.split_lanes ? columns : rows;

  for (const NodeId id : nodes) {
    const Node& n = graph.node(id);
    int level = 0;
    for (const NodeId operand : graph.operands(id)) {
      level = std::max(level, result.level[operand] + (result.role[operand] == FoldRole::sweep ? 1 : 0));
    }
    result.level[id] = level;
    if (n.kind == NodeKind::scatter) return Refusal{"a scatter is a kernel of its own"};
    if (n.kind != NodeKind::fold) continue;
    const AxisSet folded = graph.folded_axes(id);
    if (folded.empty()) continue;
    if (is_output[id] && !(folded & grid_axes).empty()) {
      if (!folded.contains(grid_axes) || !(n.axes & grid_axes).empty() || !(rows | columns).contains(folded)) {
        return Refusal{"a fold over some of the rows' axes, carrying others, has no place for its partial states"};
      }
      if (request.whole) return Refusal{"the state would be left in partitions"};
      if (read[id]) return Refusal{"a fold over the grid is complete only when the kernel has ended"};
      result.role[id] = FoldRole::grid;
      continue;
    }
    const bool in_place = columns.contains(folded) && (n.axes & columns).empty() && !folded.empty() &&
                          (altered[id] & (n.axes | folded)).empty() && rows.contains(n.axes);
    if (in_place && shape.split_lanes)
      return Refusal{"partitions that share the lanes axis cannot finish a fold over it"};
    result.role[id] = in_place ? FoldRole::sweep : FoldRole::serial;
  }
  for (const int output : outputs) {
    const NodeId id = graph.outputs[static_cast<std::size_t>(output)].node;
    const AxisSet axes = graph.node(id).axes;
    if (result.role[id] == FoldRole::grid) continue;
    if (!axes.contains(grid_axes)) return Refusal{"an output lacks an axis that partitions share"};
    if (!(rows | columns).contains(axes)) return Refusal{"an output carries an axis that no loop covers"};
  }

  // Time: every sweep (one for each level and subspace of the columns) and what stands between them.
  std::map<std::pair<int, std::uint64_t>, std::vector<NodeId>> sweeps;
  for (const NodeId id : nodes) {
    const bool fold_sink = result.role[id] == FoldRole::sweep || result.role[id] == FoldRole::grid;
    if (!fold_sink && !is_output[id]) continue;
    sweeps[{result.level[id], sweep_space(graph, id, result).bits()}].push_back(id);
    result.passes = std::max(result.passes, result.level[id] + 1);
  }
  for (const auto& [at, sinks] : sweeps) {
    const AxisSet space = AxisSet::from_bits(at.second);
    AxisId lanes = dsl::no_axis;
    for (const AxisId axis : shape.columns) {
      if (space.contains(axis)) lanes = axis;
    }
    SweepCost sweep(request, device, result, rows | space);
    for (const NodeId id : sinks) {
      const Node& n = graph.node(id);
      const bool vector = lanes != dsl::no_axis && (output_space(graph, id) & space).contains(lanes);
      const double count = sweep.evaluations(rows | space, vector ? lanes : dsl::no_axis);
      if (n.kind == NodeKind::fold && result.role[id] != FoldRole::serial) {
        for (const NodeId operand : graph.operands(id)) result.cost_ns += sweep.of(operand, {.lanes = lanes});
        result.cost_ns += count * sweep.op_ns(vector) * sweep.merge_cost(id);
      } else {
        result.cost_ns += sweep.of(id, {.lanes = lanes});
        result.cost_ns += count * (vector ? size_of(n.dtype) * device.contiguous_byte_ns : device.scalar_op_ns);
      }
    }
  }
  const double share = product(request.extents, shape.split_lanes ? columns : rows);
  if (share >= 8 || (shape.split_lanes && share >= 4096)) result.cost_ns *= 0.5;
  if (device.multiprocessors > 0) {
    // Rates are the whole device's: fewer threads than keep it busy get less of them.
    constexpr double busy_threads = 512, most_lanes = 1024;
    const double lanes = shape.columns.empty() ? 1 : static_cast<double>(request.extents[shape.columns.back()]);
    const double threads = shape.split_lanes ? lanes : share * std::clamp(lanes, 1.0, most_lanes);
    result.cost_ns *= std::max(1.0, busy_threads * device.multiprocessors / std::max(threads, 1.0));
  }
  double bytes = 0;
  for (const NodeId id : nodes) {
    if (graph.node(id).kind == NodeKind::input || is_output[id]) {
      bytes += product(request.extents, graph.node(id).axes) * size_of(graph.node(id).dtype);
    }
  }
  result.cost_ns += bytes * device.memory_byte_ns * 0.5;
  return result;
}

namespace {

// Bytes of memory whose innermost dimension is the axis: what lanes on it would read and write in order.
std::vector<double> innermost_bytes(const KernelRequest& request, const std::vector<int>& outputs) {
  const Graph& graph = request.graph;
  std::vector<double> votes(graph.axes.size(), 0);
  for (const NodeId id : cone(graph, outputs)) {
    if (graph.node(id).kind != NodeKind::input) continue;
    const dsl::InputInfo& input = graph.inputs[graph.node(id).payload];
    if (!input.axes.empty())
      votes[input.axes.back()] +=
          product(request.extents, graph.node(id).axes) + 1e-3 * static_cast<double>(input.axes.size());
  }
  for (const int output : outputs) {
    const dsl::OutputInfo& info = graph.outputs[static_cast<std::size_t>(output)];
    if (!info.axes.empty())
      votes[info.axes.back()] +=
          product(request.extents, graph.node(info.node).axes) + 1e-3 * static_cast<double>(info.axes.size());
  }
  return votes;
}

// Axes in the order of the longest layout that holds them, so that rows walk memory forwards.
std::vector<AxisId> memory_order(const KernelRequest& request, AxisSet axes) {
  const std::vector<AxisId>* longest = nullptr;
  const auto consider = [&](const std::vector<AxisId>& layout) {
    if (longest == nullptr || (set_of(layout) & axes).size() > (set_of(*longest) & axes).size()) longest = &layout;
  };
  for (const dsl::OutputInfo& output : request.graph.outputs) consider(output.axes);
  for (const dsl::InputInfo& input : request.graph.inputs) consider(input.axes);
  std::vector<AxisId> result;
  if (longest != nullptr) {
    for (const AxisId axis : *longest) {
      if (axes.contains(axis)) result.push_back(axis);
    }
  }
  for (const AxisId axis : axes) {
    if (std::find(result.begin(), result.end(), axis) == result.end()) result.push_back(axis);
  }
  return result;
}

}  // namespace

std::vector<Shape> candidate_shapes(const KernelRequest& request, const std::vector<int>& outputs) {
  const Graph& graph = request.graph;
  AxisSet common = AxisSet::from_bits(~std::uint64_t{0});
  AxisSet carried = common;  // by every output's result
  AxisSet all;
  for (const int output : outputs) {
    const NodeId id = graph.outputs[static_cast<std::size_t>(output)].node;
    common = common & output_space(graph, id);
    carried = carried & graph.node(id).axes;
    all |= output_space(graph, id);
  }
  std::vector<AxisSet> sets;
  const auto propose = [&](AxisSet set) {
    if (std::find(sets.begin(), sets.end(), set) == sets.end()) sets.push_back(set);
  };
  AxisSet folded_anywhere;
  for (const NodeId id : cone(graph, outputs)) {
    if (graph.node(id).kind != NodeKind::fold) continue;
    const AxisSet folded = graph.folded_axes(id);
    if (!all.contains(folded)) all |= folded;
    propose(folded);
    folded_anywhere |= folded;
  }
  if (!folded_anywhere.empty()) propose(folded_anywhere);
  for (const AxisId axis : all) propose(AxisSet::of(axis));
  const std::vector<double> votes = innermost_bytes(request, outputs);

  std::vector<Shape> result;
  const auto add = [&](AxisSet columns, AxisSet rows) {
    for (const int output : outputs) {
      columns |= graph.node(graph.outputs[static_cast<std::size_t>(output)].node).axes - rows;
    }
    rows -= columns;
    Shape shape;
    shape.rows = memory_order(request, rows);
    shape.columns = memory_order(request, columns);
    const auto lanes = std::max_element(shape.columns.begin(), shape.columns.end(),
                                        [&](AxisId a, AxisId b) { return votes[a] < votes[b]; });
    if (lanes != shape.columns.end()) std::rotate(lanes, lanes + 1, shape.columns.end());
    if (std::find(result.begin(), result.end(), shape) == result.end()) result.push_back(shape);
    if (shape.rows.empty() && shape.columns.size() == 1) {
      shape.split_lanes = true;
      result.push_back(shape);
    }
  };
  for (const AxisSet set : sets) {
    add(set, common - set);
    add(set, (common & carried) - set);
  }
  if (sets.empty()) add(AxisSet(), AxisSet());
  return result;
}

std::variant<Analysis, Refusal> choose(const KernelRequest& request, const std::vector<int>& outputs,
                                       const DeviceModel& device) {
  std::optional<Analysis> best;
  Refusal refusal{"no shape fits"};
  for (const Shape& shape : candidate_shapes(request, outputs)) {
    std::variant<Analysis, Refusal> offer = analyse(request, outputs, shape, device);
    if (const auto* refused = std::get_if<Refusal>(&offer)) {
      refusal = *refused;
      continue;
    }
    Analysis& analysis = std::get<Analysis>(offer);
    if (!best || analysis.cost_ns < best->cost_ns) best = std::move(analysis);
  }
  if (!best) return refusal;
  return *std::move(best);
}

}  // namespace tigon::schedule
