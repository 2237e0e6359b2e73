// From a traced graph to a plan for this machine, and back from a compiled function to its plan.
#pragma once
#include "codegen/plan/plan.hpp"
#include "tigon/detail/compiled.hpp"

namespace tigon::runtime {

// The planner's model of this machine's CPU.
schedule::DeviceModel cpu_model();
plan::PlanOptions plan_options(const CompileOptions& options, const schedule::DeviceModel& device = cpu_model());

// Prepares the graph for the given extents (a range counts at its upper end) and plans it; without a library for matrix
// products every contraction is an ordinary kernel.
plan::Plan make_plan(const dsl::Graph& graph, const std::vector<detail::GivenExtent>& given,
                     const CompileOptions& options, const schedule::DeviceModel& device = cpu_model(),
                     bool matmul_library = true);

// The axes that were given a range, as the plan numbers them.
struct AxisRange {
  dsl::AxisId axis = dsl::no_axis;
  std::int64_t low = 0, high = 0;
};
std::vector<AxisRange> given_ranges(const plan::Plan& plan, const dsl::Graph& graph,
                                    const std::vector<detail::GivenExtent>& given);

// The plan of a function compiled by compile(...): `plan_of(step.core())`.
const plan::Plan& plan_of(const detail::CompiledCore& core);

}  // namespace tigon::runtime
