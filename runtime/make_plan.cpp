// From a traced graph and the extents given to compile to a plan for this machine.
#include "dsl/passes.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cpu/matmul_support.hpp"
#include "runtime/cpu_features.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
using dsl::AxisId;

namespace {

// A plan's axes have lost the identity of the C++ types; names are unique in a graph and kept. no_axis: none.
AxisId plan_axis(const plan::Plan& plan, const dsl::Graph& graph, const detail::GivenExtent& entry) {
  for (const dsl::AxisInfo& of_graph : graph.axes) {
    if (of_graph.tag != entry.axis.tag) continue;
    for (std::size_t axis = 0; axis < plan.axes.size(); ++axis)
      if (plan.axes[axis].name == of_graph.name) return static_cast<AxisId>(axis);
  }
  return dsl::no_axis;
}

dsl::Extents planned_extents(const dsl::Graph& graph, const std::vector<detail::GivenExtent>& given) {
  dsl::Extents extents(graph.axes.size(), -1);
  for (const detail::GivenExtent& entry : given) {
    for (std::size_t axis = 0; axis < graph.axes.size(); ++axis) {
      if (graph.axes[axis].tag != entry.axis.tag) continue;
      if (entry.low < 0 || entry.high < entry.low || entry.high >= (std::int64_t{1} << 31)) {
        throw Error({.kind = ErrorKind::usage,
                     .function = graph.name,
                     .axis = graph.axes[axis].name,
                     .found = fmt::format("{} to {}", entry.low, entry.high),
                     .expected = "0 <= low <= high < 2^31"},
                    "an extent's range is empty, negative or too large");
      }
      extents[axis] = entry.high;
    }
  }
  extents = dsl::resolve_extents(graph, std::move(extents));
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] < 0) {
      throw Error({.kind = ErrorKind::usage,
                   .function = graph.name,
                   .axis = graph.axes[axis].name,
                   .cure = "Give it to compile in extents<...>(...)"},
                  "the axis has no extent");
    }
  }
  return extents;
}

// The axes whose extents move with this one's: its parts, its whole, and what equals them.
dsl::AxisSet moving_with(const plan::Plan& plan, AxisId axis, dsl::AxisSet given) {
  dsl::AxisSet moving = dsl::AxisSet::of(axis);
  const auto add = [&](AxisId other) {
    if (plan.axes[other].fixed < 0 && !given.contains(other)) moving |= dsl::AxisSet::of(other);
  };
  for (dsl::AxisSet before; !(before == moving);) {
    before = moving;
    for (const dsl::EqualRelation& equal : plan.equals) {
      if (moving.contains(equal.a)) add(equal.b);
      if (moving.contains(equal.b)) add(equal.a);
    }
    for (const dsl::SplitRelation& split : plan.splits) {
      if (moving.contains(split.outer) || moving.contains(split.inner)) add(split.whole);
      if (!moving.contains(split.whole)) continue;
      const bool inner_stays = plan.axes[split.inner].fixed >= 0 || given.contains(split.inner);
      add(inner_stays ? split.outer : split.inner);
    }
  }
  return moving;
}

// A range is for axes that launches may bring at any extent; where a kernel's text holds the extent, it is refused.
void check_ranges(const plan::Plan& plan, const dsl::Graph& graph, const std::vector<detail::GivenExtent>& given) {
  dsl::AxisSet single;
  for (const detail::GivenExtent& entry : given) {
    const AxisId axis = plan_axis(plan, graph, entry);
    if (axis != dsl::no_axis && entry.low == entry.high) single |= dsl::AxisSet::of(axis);
  }
  for (const AxisRange& range : given_ranges(plan, graph, given)) {
    const dsl::AxisInfo& info = plan.axes[range.axis];
    ErrorDetails details{.kind = ErrorKind::usage,
                         .function = plan.name,
                         .axis = info.name,
                         .found = fmt::format("from_to({}, {})", range.low, range.high)};
    if (info.fixed >= 0) {
      details.expected = std::to_string(info.fixed);
      details.cure = "Leave the axis out";
      throw Error(std::move(details), "a range is given for an axis whose type fixes the extent");
    }
    for (const AxisId other : moving_with(plan, range.axis, single)) {
      if (!plan.fixed.contains(other)) continue;
      details.expected = "one extent";
      details.cure = "Give it one extent, and compile again for another";
      throw Error(
          std::move(details),
          other == range.axis
              ? "the axis cannot be left to run time: kernels run along it and hold its extent"
              : fmt::format(
                    "the axis cannot be left to run time: kernels hold the extent of `{}`, which follows from it",
                    plan.axes[other].name));
    }
  }
}

}  // namespace

schedule::DeviceModel cpu_model() {
  schedule::DeviceModel device;
  device.name = "cpu";
  device.vector_bytes = machine().vector_bytes;
  return device;
}

plan::PlanOptions plan_options(const CompileOptions& options, const schedule::DeviceModel& device) {
  plan::PlanOptions result;
  result.memory_budget = static_cast<double>(options.memory_budget);
  result.unfused = options.unfused;
  result.matmul = device.multiprocessors > 0 ? plan::MatmulSupport{.f32 = true, .bf16 = true} : cpu_matmul_support();
  return result;
}

std::vector<AxisRange> given_ranges(const plan::Plan& plan, const dsl::Graph& graph,
                                    const std::vector<detail::GivenExtent>& given) {
  std::vector<AxisRange> ranges;
  for (const detail::GivenExtent& entry : given) {
    const AxisId axis = plan_axis(plan, graph, entry);
    if (entry.low != entry.high && axis != dsl::no_axis) ranges.push_back({axis, entry.low, entry.high});
  }
  return ranges;
}

plan::Plan make_plan(const dsl::Graph& graph, const std::vector<detail::GivenExtent>& given,
                     const CompileOptions& options, const schedule::DeviceModel& device, bool matmul_library) {
  const dsl::Extents extents = planned_extents(graph, given);
  const dsl::Graph prepared = dsl::prepare(graph, extents, {.exact = options.exact});
  plan::PlanOptions wanted = plan_options(options, device);
  if (!matmul_library) wanted.matmul = {.f32 = false, .bf16 = false};
  plan::Plan plan = plan::plan(prepared, planned_extents(prepared, given), device, wanted);
  check_ranges(plan, graph, given);
  return plan;
}

}  // namespace tigon::runtime
