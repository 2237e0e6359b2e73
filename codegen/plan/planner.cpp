// From a graph to a plan: buffers for arguments and results, then steps for the clusters in their order.
#include "codegen/plan/dead_steps.hpp"
#include "codegen/plan/search.hpp"
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

namespace {

// A plan with its buffers for arguments and results, and the work that is left to do.
struct Start {
  Plan plan;
  Work work;
  Destinations destinations;
  std::vector<std::size_t> copies;  // outputs whose node is an argument, or another output has already claimed
};

Start start(const Graph& graph, const dsl::Extents& extents, const schedule::DeviceModel& device) {
  Start result;
  Plan& plan = result.plan;
  Work& work = result.work;
  plan.name = graph.name;
  plan.device = device.name;
  plan.axes = graph.axes;
  for (dsl::AxisInfo& axis : plan.axes) axis.tag = nullptr;
  plan.splits = graph.splits;
  plan.equals = graph.equals;
  plan.planned = extents;
  plan.inputs = graph.inputs;
  plan.scalars = graph.scalars;
  plan.outputs = graph.outputs;
  work.graph = &graph;
  work.extents = extents;
  work.layouts = natural_layouts(graph);
  plan.fixed = work.fixed = fixed_axes(graph, work.layouts);

  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const dsl::InputInfo& input = graph.inputs[i];
    plan.input_buffers.push_back(static_cast<BufferId>(plan.buffers.size()));
    plan.buffers.push_back({.name = input.name,
                            .dtype = input.dtype,
                            .axes = input.axes,
                            .home = Home::argument,
                            .index = static_cast<std::uint32_t>(i)});
    work.stored[input.node] = {{plan.input_buffers.back()}, input.axes, dsl::no_axis};
  }
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const dsl::OutputInfo& output = graph.outputs[i];
    BufferId buffer = static_cast<BufferId>(plan.buffers.size());
    if (output.mode == dsl::OutputMode::alias) {
      buffer = plan.input_buffers[static_cast<std::size_t>(output.alias_input)];
      work.overwrites[output.node] = graph.inputs[static_cast<std::size_t>(output.alias_input)].node;
    } else {
      plan.buffers.push_back({.name = output.name,
                              .dtype = output.dtype,
                              .axes = output.axes,
                              .home = Home::output,
                              .index = static_cast<std::uint32_t>(i)});
    }
    plan.output_buffers.push_back(buffer);
    if (result.destinations.contains(output.node) || work.stored.contains(output.node)) {
      result.copies.push_back(i);
      continue;
    }
    result.destinations[output.node] = {
        .buffer = buffer, .layout = output.axes, .mode = output.mode, .name = output.name};
    work.targets.push_back(output.node);
    work.layouts[output.node] = output.axes;
  }
  return result;
}

// Copies read what is stored already: an argument, or the result that claimed the node.
void append_copies(Plan& plan, const Graph& graph, const Start& from, const schedule::DeviceModel& device,
                   const PlanOptions& options) {
  for (const std::size_t i : from.copies) {
    const dsl::OutputInfo& output = graph.outputs[i];
    Work copy = from.work;
    for (std::size_t other = 0; other < i; ++other) {
      if (graph.outputs[other].node == output.node && !copy.stored.contains(output.node)) {
        copy.stored[output.node] = {{plan.output_buffers[other]}, graph.outputs[other].axes, dsl::no_axis};
      }
    }
    copy.targets = {output.node};
    copy.layouts[output.node] = output.axes;
    copy.overwrites.clear();
    Body body(plan, device, options);
    const Destination destination{
        .buffer = plan.output_buffers[i], .layout = output.axes, .mode = output.mode, .name = output.name};
    for (Step& step : body.steps(copy, {{output.node, destination}})) plan.steps.push_back(std::move(step));
  }
}

}  // namespace

Plan plan(const Graph& graph, const dsl::Extents& extents, const schedule::DeviceModel& device,
          const PlanOptions& options) {
  const Start from = start(graph, extents, device);
  const auto build = [&](const std::vector<Strategy>& strategies) -> std::variant<Plan, schedule::Refusal> {
    Plan result = from.plan;
    auto built = build_steps(result, from.work, from.destinations, strategies, device, options);
    if (auto* refusal = std::get_if<schedule::Refusal>(&built)) return std::move(*refusal);
    result.steps = std::get<Built>(std::move(built)).steps;
    append_copies(result, graph, from, device, options);
    drop_dead_steps(result);
    finish_plan(result);
    return result;
  };
  return search(from.work, options, build);
}

}  // namespace tigon::plan
