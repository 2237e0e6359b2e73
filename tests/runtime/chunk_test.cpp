// Chunked plans compute what plans in one piece do, whatever the number of tokens and the last chunk's length.
#include <catch2/catch.hpp>

#include "dsl/reference/compare.hpp"
#include "losses.hpp"
#include "problem.hpp"
#include "tigon/ops/cross_entropy.hpp"

using namespace tigon;
using namespace tigon::test;

namespace {

constexpr std::int64_t planned_tokens = 150, vocab = 301, hidden = 24;

dsl::Graph linear_cross_entropy(const ops::CrossEntropyOptions& options) {
  const auto loss = function("linear_cross_entropy", [options](LossOf<f32>::Args<Tensor> in) {
    return ops::linear_cross_entropy<Hidden, Vocab>(in.x, in.weight, in.target, options);
  });
  return *value_and_grad(loss, wrt<"x", "weight">).trace();
}

Problem at_tokens(const dsl::Graph& graph, std::int64_t tokens) {
  return make_problem(graph, {{"tokens", planned_tokens}, {"vocab", vocab}, {"hidden", hidden}}, vocab,
                      {{"tokens", tokens}, {"vocab", vocab}, {"hidden", hidden}}, static_cast<std::uint64_t>(tokens));
}

// The chunk of the first loop over tokens, 0 if there is none.
std::int64_t token_chunk(const plan::Plan& plan) {
  std::int64_t chunk = 0;
  each_step(plan.steps, [&](const plan::Step& step) {
    const auto* loop = std::get_if<plan::Loop>(&step.node);
    if (loop != nullptr && plan.axes[loop->axis].name == "tokens" && chunk == 0) chunk = loop->chunk;
  });
  return chunk;
}

void check_chunks(const dsl::Graph& graph) {
  const Problem planned = at_tokens(graph, planned_tokens);
  plan::PlanOptions options;
  for (std::size_t axis = 0; axis < planned.graph.axes.size(); ++axis) {
    if (planned.graph.axes[axis].name != "tokens") continue;
    options.strategies = {{.axis = static_cast<dsl::AxisId>(axis), .bytes = 20'000, .chunk = 32}};
  }
  const plan::Plan plan = plan_of(planned, options);
  CHECK(count_loops(plan_of(planned)) == 0);
  const std::int64_t chunk = token_chunk(plan);
  REQUIRE(chunk == 32);
  CHECK(planned_tokens % chunk != 0);  // the last chunk is shorter
  CHECK(held_whole(plan, "tokens", "vocab") == "");
  // Also less than a chunk, a chunk, one more, several, and more than was planned.
  for (const std::int64_t tokens : {planned_tokens, std::int64_t{0}, std::int64_t{1}, chunk - 1, chunk, chunk + 1,
                                    2 * chunk, 3 * chunk + 1, 2 * planned_tokens + 1}) {
    INFO(tokens << " tokens by " << chunk);
    const Problem problem = at_tokens(graph, tokens);
    const auto expected = dsl::evaluate(problem.graph, problem.inputs);
    const GraphRun whole = check_run(problem);
    const GraphRun chunked = check_run(problem, options);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      // Both lie within the bound of one value: they differ by at most twice that.
      dsl::TensorValue between = expected[i];
      between.value = whole.outputs[i];
      const dsl::Comparison comparison = dsl::compare(between, chunked.outputs[i]);
      INFO(problem.graph.outputs[i].name << ": " << comparison.sentence);
      CHECK(comparison.passed);
    }
  }
}

}  // namespace

TEST_CASE("chunks: linear cross entropy, the mean of rows that are not ignored") {
  check_chunks(linear_cross_entropy({}));
}
TEST_CASE("chunks: linear cross entropy with smoothing") {
  check_chunks(linear_cross_entropy({.label_smoothing = 0.1}));
}
TEST_CASE("chunks: linear cross entropy with z-loss") { check_chunks(linear_cross_entropy({.z_loss = 1e-3})); }
TEST_CASE("chunks: linear cross entropy with smoothing, z-loss and soft caps") {
  check_chunks(linear_cross_entropy({.label_smoothing = 0.1, .z_loss = 1e-3, .softcap = 8}));
}
TEST_CASE("chunks: a loss of the user's own") {
  check_chunks(*value_and_grad(linear_focal<f32>(), wrt<"x", "weight">).trace());
}
