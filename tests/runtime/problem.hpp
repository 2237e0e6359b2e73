// A traced function with arguments: prepared, filled and ready to be planned, run and compared with its reference.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "codegen/plan/plan.hpp"
#include "dsl/reference/evaluate.hpp"
#include "run_graph.hpp"

namespace tigon::test {

using NamedExtents = std::map<std::string, std::int64_t>;

struct Problem {
  dsl::Graph graph;            // prepared for the planned extents
  dsl::Extents planned;        // by its AxisId
  dsl::EvaluateInputs inputs;  // at the extents of the run
};

// Extents of a graph's axes from extents by name.
dsl::Extents extents_for(const dsl::Graph& graph, const NamedExtents& extents);

// Floats are normal and exact in their dtypes; integers count as class numbers below `classes`, of which every seventh
// is -100. Scalars are 1. Planned for `planned`, filled for `run` (empty: the same).
Problem make_problem(const dsl::Graph& traced, const NamedExtents& planned, std::int64_t classes,
                     const NamedExtents& run = {}, std::uint64_t seed = 1);

// An argument's elements by its name.
std::vector<double>& argument(Problem& problem, const std::string& name);
std::size_t output_number(const dsl::Graph& graph, const std::string& name);

// CHECKs that every output of a run lies within the reference's bound; yields what was computed.
GraphRun check_run(const Problem& problem, const plan::PlanOptions& options = {}, int max_threads = 0);

// The plan for this machine with a limit to the workspace; 0: none.
plan::PlanOptions with_budget(double bytes);
plan::Plan plan_of(const Problem& problem, const plan::PlanOptions& options = {});

// Every step, loops before what they run.
void each_step(const std::vector<plan::Step>& steps, const std::function<void(const plan::Step&)>& visit);
std::size_t count_loops(const plan::Plan& plan);
std::size_t count_launches(const plan::Plan& plan);  // launches, matmuls and fills as the steps list them
// The workspace buffers that carry both axes whole.
std::string held_whole(const plan::Plan& plan, const std::string& first, const std::string& second);

}  // namespace tigon::test
