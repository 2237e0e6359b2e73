// Fills arguments by name, runs plans and looks through their steps and buffers.
#include "problem.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "dsl/passes.hpp"
#include "dsl/reference/bounded.hpp"
#include "dsl/reference/compare.hpp"
#include "dsl/reference/random_source.hpp"
#include "runtime/compiled.hpp"

namespace tigon::test {

dsl::Extents extents_for(const dsl::Graph& graph, const NamedExtents& extents) {
  dsl::Extents result(graph.axes.size(), -1);
  for (std::size_t axis = 0; axis < graph.axes.size(); ++axis) {
    const auto at = extents.find(graph.axes[axis].name);
    if (at != extents.end()) result[axis] = at->second;
  }
  return dsl::resolve_extents(graph, result);
}

Problem make_problem(const dsl::Graph& traced, const NamedExtents& planned, std::int64_t classes,
                     const NamedExtents& run, std::uint64_t seed) {
  Problem problem{dsl::prepare(traced, extents_for(traced, planned), {}), {}, {}};
  problem.planned = extents_for(problem.graph, planned);
  problem.inputs.extents = run.empty() ? problem.planned : extents_for(problem.graph, run);
  dsl::RandomSource random(seed);
  for (const dsl::InputInfo& input : problem.graph.inputs) {
    dsl::TensorValue tensor{.dtype = input.dtype, .axes = input.axes};
    std::int64_t count = 1;
    for (const dsl::AxisId axis : input.axes) {
      tensor.extents.push_back(problem.inputs.extents[axis]);
      count *= tensor.extents.back();
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (is_floating(input.dtype)) {
        tensor.value.push_back(dsl::round_to(input.dtype, random.normal()));
      } else {
        const auto drawn = static_cast<double>(random.below(std::max<std::int64_t>(classes, 1)));
        tensor.value.push_back(i % 7 == 3 ? -100 : drawn);
      }
    }
    problem.inputs.tensors.push_back(std::move(tensor));
  }
  problem.inputs.scalars.assign(problem.graph.scalars.size(), 1);
  return problem;
}

std::vector<double>& argument(Problem& problem, const std::string& name) {
  for (std::size_t i = 0; i < problem.graph.inputs.size(); ++i) {
    if (problem.graph.inputs[i].name == name) return problem.inputs.tensors[i].value;
  }
  throw std::runtime_error("no argument " + name);
}

std::size_t output_number(const dsl::Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    if (graph.outputs[i].name == name) return i;
  }
  throw std::runtime_error("no output " + name);
}

GraphRun check_run(const Problem& problem, const plan::PlanOptions& options, int max_threads) {
  const auto expected = dsl::evaluate(problem.graph, problem.inputs);
  GraphRun run = run_on_cpu(problem.graph, problem.planned, problem.inputs, options, max_threads);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const dsl::Comparison comparison = dsl::compare(expected[i], run.outputs[i]);
    INFO(problem.graph.outputs[i].name << ": " << comparison.sentence);
    CHECK(comparison.passed);
  }
  return run;
}

plan::PlanOptions with_budget(double bytes) {
  CompileOptions options;
  options.memory_budget = static_cast<std::size_t>(bytes);
  return runtime::plan_options(options);
}

plan::Plan plan_of(const Problem& problem, const plan::PlanOptions& options) {
  return plan::plan(problem.graph, problem.planned, runtime::cpu_model(), options);
}

void each_step(const std::vector<plan::Step>& steps, const std::function<void(const plan::Step&)>& visit) {
  for (const plan::Step& step : steps) {
    visit(step);
    if (const auto* loop = std::get_if<plan::Loop>(&step.node)) each_step(loop->body, visit);
  }
}

std::size_t count_loops(const plan::Plan& plan) {
  std::size_t count = 0;
  each_step(plan.steps, [&](const plan::Step& step) { count += std::holds_alternative<plan::Loop>(step.node); });
  return count;
}
std::size_t count_launches(const plan::Plan& plan) {
  std::size_t count = 0;
  each_step(plan.steps, [&](const plan::Step& step) { count += !std::holds_alternative<plan::Loop>(step.node); });
  return count;
}

std::string held_whole(const plan::Plan& plan, const std::string& first, const std::string& second) {
  std::string found;
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.home != plan::Home::workspace) continue;
    const auto whole = [&](const std::string& name) {
      return std::any_of(buffer.axes.begin(), buffer.axes.end(), [&](dsl::AxisId axis) {
        return plan.axes[axis].name == name && !buffer.chunked.contains(axis);
      });
    };
    if (whole(first) && whole(second)) found += buffer.name + " ";
  }
  return found;
}

}  // namespace tigon::test
