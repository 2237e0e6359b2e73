// Losses of the user's own around a large matmul: values, gradients and memory; and rows that are easy to get wrong.
#include "losses.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "dsl/reference/gradcheck.hpp"
#include "problem.hpp"
#include "runtime/compiled.hpp"

using namespace tigon;
using namespace tigon::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class D>
Problem focal_problem(const NamedExtents& extents) {
  const auto gradient = value_and_grad(linear_focal<D>(), wrt<"x", "weight">);
  return make_problem(*gradient.trace(), extents, extents.at("vocab"));
}

// All numbers of every output.
bool all_finite(const GraphRun& run) {
  for (const auto& output : run.outputs) {
    for (const double value : output) {
      if (!std::isfinite(value)) return false;
    }
  }
  return true;
}

struct Rows {
  GraphRun run;
  std::vector<double> gradient;  // row-major: tokens, vocab
  double value = 0;
};
// The focal loss on given logits, held to the reference.
Rows run_rows(std::int64_t vocab, const std::vector<double>& logits, const std::vector<double>& targets) {
  const auto gradient = value_and_grad(focal(), wrt<"logits">);
  const auto tokens = static_cast<std::int64_t>(targets.size());
  Problem problem = make_problem(*gradient.trace(), {{"tokens", tokens}, {"vocab", vocab}}, vocab);
  argument(problem, "logits") = logits;
  argument(problem, "target") = targets;
  Rows rows;
  rows.run = check_run(problem);
  rows.value = rows.run.outputs[output_number(problem.graph, "value")].at(0);
  rows.gradient = rows.run.outputs[output_number(problem.graph, "grad.logits")];
  return rows;
}

}  // namespace

TEMPLATE_TEST_CASE("losses: focal cross entropy with z-loss, fused with its matmul", "", f32, bf16) {
  const Problem problem = focal_problem<TestType>({{"tokens", 150}, {"vocab", 301}, {"hidden", 24}});
  CHECK(all_finite(check_run(problem)));
  // The logits take 180,600 bytes in f32. In bf16, f32 forms of the weight, x and their gradients take 87,000 as well.
  const plan::PlanOptions budget = with_budget(std::is_same_v<TestType, f32> ? 90'000 : 150'000);
  const plan::Plan plan = plan_of(problem, budget);
  CHECK(count_loops(plan) >= 1);
  CHECK(held_whole(plan, "tokens", "vocab") == "");
  const GraphRun chunked = check_run(problem, budget);
  CHECK(static_cast<double>(chunked.workspace_bytes) <= budget.memory_budget);
}

TEST_CASE("losses: the focal loss passes gradcheck") {
  const Problem problem = make_problem(*linear_focal<f32>().trace(), {{"tokens", 9}, {"vocab", 7}, {"hidden", 5}}, 7);
  const dsl::GradcheckResult result = dsl::gradcheck(problem.graph, problem.inputs);
  INFO(result.sentence);
  CHECK(result.passed);
  CHECK(result.skipped == 0);
}

TEST_CASE("losses: compiled through the public interface under a budget") {
  const auto step = compile(value_and_grad(linear_focal<f32>(), wrt<"x", "weight">),
                            extents<Tokens, Vocab, Hidden>(150, 301, 24), {.memory_budget = 90'000});
  CHECK(held_whole(runtime::plan_of(step.core()), "tokens", "vocab") == "");
  CHECK(step.workspace_bytes() < 150 * 301 * 4);
}

TEST_CASE("losses: two drawn at random are chunked like any other") {
  for (const std::uint64_t seed : {11u, 12u}) {
    INFO("seed " << seed);
    const auto gradient = value_and_grad(random_loss(seed), wrt<"x", "weight">);
    const NamedExtents extents{{"tokens", 150}, {"vocab", 301}, {"hidden", 24}};
    const Problem problem = make_problem(*gradient.trace(), extents, 301);
    check_run(problem);
    const plan::PlanOptions budget = with_budget(45'000);
    const plan::Plan plan = plan_of(problem, budget);
    CHECK(count_loops(plan) >= 1);
    CHECK(held_whole(plan, "tokens", "vocab") == "");
    const GraphRun chunked = check_run(problem, budget);
    CHECK(static_cast<double>(chunked.workspace_bytes) <= budget.memory_budget);

    const Problem small = make_problem(*random_loss(seed).trace(), {{"tokens", 5}, {"vocab", 6}, {"hidden", 4}}, 6);
    const dsl::GradcheckResult result = dsl::gradcheck(small.graph, small.inputs);
    INFO(result.sentence);
    CHECK(result.passed);
  }
}

TEST_CASE("losses: a target that leads by 25 logits keeps its precision") {
  const Rows rows = run_rows(3, {25, 0, 0, 1, 26, 1}, {0, 1});
  const double nll = std::log1p(2 * std::exp(-25.0));
  const double lse = 25 + nll;
  const double z = 1e-3 * (lse * lse + (lse + 1) * (lse + 1)) / 2;
  CHECK(rows.value == Approx(z).epsilon(1e-6));
  // The other logits' gradient is that of the z-loss: the share exp(-25) is not lost.
  CHECK(rows.gradient[1] == Approx(1e-3 * lse * std::exp(-25.0)).epsilon(1e-5));
  CHECK(all_finite(rows.run));
}

TEST_CASE("losses: ignored rows count nothing, whatever their logits hold") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  SECTION("all are ignored") {
    const Rows rows = run_rows(3, {1, 2, 3, 4, 5, 6}, {-100, -100});
    CHECK(rows.value == 0);
    for (const double g : rows.gradient) CHECK(g == 0);
  }
  SECTION("infinities and NaN in ignored rows") {
    const Rows rows =
        run_rows(3, {1, 2, 3, infinity, infinity, -infinity, nan, 1, nan, -infinity, -infinity, -infinity},
                 {2, -100, -100, -100});
    const Rows alone = run_rows(3, {1, 2, 3}, {2});
    CHECK(all_finite(rows.run));
    CHECK(rows.value == alone.value);
    for (std::size_t i = 0; i < 3; ++i) CHECK(rows.gradient[i] == alone.gradient[i]);
    for (std::size_t i = 3; i < rows.gradient.size(); ++i) CHECK(rows.gradient[i] == 0);
  }
  SECTION("NaN in a row that counts stays") {
    const Rows rows = run_rows(3, {1, 2, 3, nan, 0, 0}, {2, 1});
    CHECK(std::isnan(rows.value));
    for (std::size_t i = 0; i < 3; ++i) CHECK(std::isfinite(rows.gradient[i]));
  }
}

TEST_CASE("losses: minus infinity, one class, no token") {
  SECTION("classes that are ruled out") {
    const Rows rows = run_rows(4, {1, -infinity, 2, -infinity, -infinity, -infinity, 3, -infinity}, {2, 2});
    CHECK(all_finite(rows.run));
    CHECK(rows.gradient[1] == 0);
    CHECK(rows.gradient[3] == 0);
    CHECK(rows.gradient[4] == 0);
  }
  SECTION("a vocabulary of one") {
    const Rows rows = run_rows(1, {3, -2}, {0, -100});
    CHECK(rows.value == Approx(9e-3));
    CHECK(rows.gradient[0] == Approx(6e-3));
    CHECK(rows.gradient[1] == 0);
  }
  SECTION("no token") {
    const Problem problem = focal_problem<f32>({{"tokens", 0}, {"vocab", 11}, {"hidden", 5}});
    const GraphRun run = check_run(problem);
    CHECK(run.outputs[output_number(problem.graph, "value")] == std::vector<double>{0});
    for (const double g : run.outputs[output_number(problem.graph, "grad.weight")]) CHECK(g == 0);
  }
  SECTION("a vocabulary of one, fused with its matmul") {
    check_run(focal_problem<f32>({{"tokens", 40}, {"vocab", 1}, {"hidden", 24}}));
  }
}
