// From a graph to a plan: buffers for arguments and results, then steps for the clusters in their order.
#include "codegen/plan/body.hpp"
#include "dsl/graph.hpp"
#include "tigon/error.hpp"

namespace tigon::plan {
using dsl::AxisId;
using dsl::AxisSet;
using dsl::Graph;
using dsl::NodeId;

namespace {

// Axes whose extents may stand in kernels' texts: those that lie innermost in memory somewhere, and what follows from
// them by splits and renames. All others are run-time axes.
AxisSet fixed_axes(const Graph& graph, const std::vector<std::vector<AxisId>>& layouts) {
  AxisSet fixed;
  const auto innermost = [&](const std::vector<AxisId>& layout) {
    if (layout.size() >= 2) fixed |= AxisSet::of(layout.back());
  };
  for (const dsl::InputInfo& input : graph.inputs) innermost(input.axes);
  for (const dsl::OutputInfo& output : graph.outputs) innermost(output.axes);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const dsl::NodeKind kind = graph.node(id).kind;
    if (kind == dsl::NodeKind::finish || kind == dsl::NodeKind::gather) innermost(layouts[id]);
  }
  for (std::size_t axis = 0; axis < graph.axes.size(); ++axis) {
    if (graph.axes[axis].fixed >= 0) fixed |= AxisSet::of(static_cast<AxisId>(axis));
  }
  for (bool changed = true; changed;) {
    const AxisSet before = fixed;
    for (const dsl::EqualRelation& equal : graph.equals) {
      if (fixed.contains(equal.a) || fixed.contains(equal.b)) fixed |= AxisSet::of(equal.a) | AxisSet::of(equal.b);
    }
    for (const dsl::SplitRelation& split : graph.splits) {
      const int known = fixed.contains(split.whole) + fixed.contains(split.outer) + fixed.contains(split.inner);
      if (known >= 2) fixed |= AxisSet::of(split.whole) | AxisSet::of(split.outer) | AxisSet::of(split.inner);
    }
    changed = !(before == fixed);
  }
  return fixed;
}

}  // namespace

Plan plan(const Graph& graph, const dsl::Extents& extents, const schedule::DeviceModel& device,
          const PlanOptions& options) {
  Plan result;
  result.name = graph.name;
  result.device = device.name;
  result.axes = graph.axes;
  for (dsl::AxisInfo& axis : result.axes) axis.tag = nullptr;
  result.splits = graph.splits;
  result.equals = graph.equals;
  result.planned = extents;
  result.inputs = graph.inputs;
  result.scalars = graph.scalars;
  result.outputs = graph.outputs;

  Work work;
  work.graph = &graph;
  work.extents = extents;
  work.layouts = natural_layouts(graph);
  result.fixed = work.fixed = fixed_axes(graph, work.layouts);

  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const dsl::InputInfo& input = graph.inputs[i];
    result.input_buffers.push_back(static_cast<BufferId>(result.buffers.size()));
    result.buffers.push_back({.name = input.name,
                              .dtype = input.dtype,
                              .axes = input.axes,
                              .home = Home::argument,
                              .index = static_cast<std::uint32_t>(i)});
    work.stored[input.node] = {{result.input_buffers.back()}, input.axes, dsl::no_axis};
  }
  Destinations destinations;
  std::vector<std::size_t> copies;  // outputs whose node another output has already claimed
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const dsl::OutputInfo& output = graph.outputs[i];
    BufferId buffer = static_cast<BufferId>(result.buffers.size());
    if (output.mode == dsl::OutputMode::alias) {
      buffer = result.input_buffers[static_cast<std::size_t>(output.alias_input)];
      work.overwrites[output.node] = graph.inputs[static_cast<std::size_t>(output.alias_input)].node;
    } else {
      result.buffers.push_back({.name = output.name,
                                .dtype = output.dtype,
                                .axes = output.axes,
                                .home = Home::output,
                                .index = static_cast<std::uint32_t>(i)});
    }
    result.output_buffers.push_back(buffer);
    if (destinations.contains(output.node) || work.stored.contains(output.node)) {
      copies.push_back(i);
      continue;
    }
    destinations[output.node] = {buffer, output.axes, output.mode, output.name};
    work.targets.push_back(output.node);
    work.layouts[output.node] = output.axes;
  }

  Body body(result, device, options);
  result.steps = body.steps(work, destinations);
  for (const std::size_t i : copies) {
    const dsl::OutputInfo& output = graph.outputs[i];
    Work copy = work;
    copy.stored = body.stored();
    copy.targets = {output.node};
    copy.layouts[output.node] = output.axes;
    copy.overwrites.clear();
    for (Step& step :
         body.steps(copy, {{output.node, {result.output_buffers[i], output.axes, output.mode, output.name}}})) {
      result.steps.push_back(std::move(step));
    }
  }
  finish_plan(result);
  return result;
}

}  // namespace tigon::plan
