// Classifies folds and counts passes under a shape, predicts its time, and lists the shapes worth trying.
#include "codegen/schedule/sweep_cost.hpp"

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

}  // namespace

AxisSet sweep_space(const Graph& graph, NodeId node, const Analysis& analysis) {
  const FoldRole role = analysis.role[node];
  const bool over_columns = role == FoldRole::sweep || role == FoldRole::grid;
  return (over_columns ? output_space(graph, node) : graph.node(node).axes) & analysis.shape.column_set();
}

std::variant<Analysis, Refusal> analyse(const KernelRequest& request, const std::vector<int>& outputs,
                                        const Shape& shape, const DeviceModel& device, std::size_t most_places) {
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
    SweepCost sweep(request, device, result, space, most_places);
    const AxisId lanes = sweep.lanes();
    for (const NodeId id : sinks) {
      const Node& n = graph.node(id);
      const bool vector = lanes != dsl::no_axis && (output_space(graph, id) & space).contains(lanes);
      if (n.kind == NodeKind::fold && result.role[id] != FoldRole::serial) {
        for (const NodeId operand : graph.operands(id)) result.cost_ns += sweep.of(operand);
        result.cost_ns += sweep.points(vector) * sweep.op_ns(vector) * sweep.merge_cost(id);
      } else {
        result.cost_ns += sweep.of(id);
        result.cost_ns +=
            sweep.points(vector) * (vector ? size_of(n.dtype) * device.contiguous_byte_ns : device.scalar_op_ns);
      }
    }
    if (sweep.exhausted()) {
      return Refusal{fmt::format("its values would be computed at more than {} places", most_places)};
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
                                       const DeviceModel& device, std::size_t most_places) {
  std::optional<Analysis> best;
  Refusal refusal{"no shape fits"};
  for (const Shape& shape : candidate_shapes(request, outputs)) {
    std::variant<Analysis, Refusal> offer = analyse(request, outputs, shape, device, most_places);
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
