// Searches the ways to chunk a function's largest values: a Pareto front of workspace against time, and the one to
// take.
#pragma once
#include "codegen/plan/chunk.hpp"

namespace tigon::plan {

using BuildPlan = std::function<std::variant<Plan, schedule::Refusal>(const std::vector<Strategy>&)>;

// `build` makes the plan for some strategies (none: nothing is chunked) or refuses. Returns the fastest plan within the
// budget of those that the search visits; within 1 % of its time the smallest. Throws Error{usage} if none fits.
// Without a budget the unchunked plan is taken.
Plan search(const Work& work, const PlanOptions& options, const BuildPlan& build);

}  // namespace tigon::plan
