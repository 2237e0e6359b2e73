// Searches the ways to chunk a function's largest values: a Pareto front of workspace against time, and the one to
// take.
#pragma once
#include "codegen/plan/chunk.hpp"

namespace tigon::plan {

// Builds a plan under a strategy (none: unchunked).
struct Candidate {
  Plan plan;
  double workspace_bytes = 0;
  std::string strategy;
};

// `build` makes the plan for a strategy or refuses. Returns the fastest plan within the budget; within 1 % of its time
// the smallest. Throws Error{usage} if none fits. Without a budget the unchunked plan is taken.
Plan search(const Work& work, const schedule::DeviceModel& device, const PlanOptions& options,
            const std::function<std::variant<Plan, schedule::Refusal>(const Region*, const Strategy&)>& build);

}  // namespace tigon::plan
