// Given strategies: any axis in chunks, regions one after the other and one inside another, lookups and scatters along
// a chunked axis.
#include <catch2/catch.hpp>

#include "losses.hpp"
#include "problem.hpp"

using namespace tigon;
using namespace tigon::test;

namespace {

struct Keys : axis<"keys"> {};
struct Batch : axis<"batch"> {};
struct Half : axis<"half"> {};
struct Rest : axis<"rest"> {};

dsl::AxisId axis_named(const Problem& problem, const std::string& name) {
  for (std::size_t axis = 0; axis < problem.graph.axes.size(); ++axis) {
    if (problem.graph.axes[axis].name == name) return static_cast<dsl::AxisId>(axis);
  }
  throw std::runtime_error("no axis " + name);
}

struct Chunk {
  std::string axis;
  std::int64_t length;
  double bytes = 1;  // the least size of the values that it is for
};
plan::PlanOptions in_chunks(const Problem& problem, const std::vector<Chunk>& chunks) {
  plan::PlanOptions options;
  for (const Chunk& chunk : chunks)
    options.strategies.push_back({axis_named(problem, chunk.axis), chunk.bytes, chunk.length});
  return options;
}

// The axes of the loops around each other, outermost first, of the deepest nest.
std::string deepest_loops(const plan::Plan& plan, const std::vector<plan::Step>& steps) {
  std::string deepest;
  for (const plan::Step& step : steps) {
    const auto* loop = std::get_if<plan::Loop>(&step.node);
    if (loop == nullptr) continue;
    const std::string inside = deepest_loops(plan, loop->body);
    std::string own = plan.axes[loop->axis].name;
    if (!inside.empty()) own += " " + inside;
    if (own.size() > deepest.size()) deepest = own;
  }
  return deepest;
}

// Values within the reference's bound, at the planned number of tokens and at others.
void check_runs(const dsl::Graph& graph, const std::vector<Chunk>& chunks) {
  for (const std::int64_t tokens : {150, 0, 1, 31, 64, 97}) {
    INFO(tokens << " tokens");
    const Problem problem = make_problem(graph, {{"tokens", 150}, {"vocab", 301}, {"hidden", 24}}, 301,
                                         {{"tokens", tokens}, {"vocab", 301}, {"hidden", 24}});
    check_run(problem, in_chunks(problem, chunks));
  }
}

dsl::Graph focal_gradient() { return *value_and_grad(linear_focal<f32>(), wrt<"x", "weight">).trace(); }
Problem focal_problem() {
  return make_problem(focal_gradient(), {{"tokens", 150}, {"vocab", 301}, {"hidden", 24}}, 301);
}

template <template <class> class Slot>
struct AttentionArgs {
  TIGON_ARGS(AttentionArgs, (Slot<f32(Tokens, Hidden)>, query), (Slot<f32(Tokens, Hidden)>, key),
             (Slot<f32(Tokens, Hidden)>, value));
};
// Two attentions, the second over the first one's result.
auto two_attentions() {
  return function("two_attentions", [](AttentionArgs<Tensor> in) {
    const auto attend = [](const auto& query, const auto& key, const auto& value) {
      const auto scores = dot<Hidden>(query, rename<Tokens, Keys>(key));
      return dot<Keys>(softmax<Keys>(scores), rename<Tokens, Keys>(value));
    };
    const auto first = attend(in.query, in.key, in.value);
    const auto second = attend(first, in.key, first);
    return mean<Tokens>(sum<Hidden>(square(second)));
  });
}

template <template <class> class Slot>
struct EmbeddingArgs {
  TIGON_ARGS(EmbeddingArgs, (Slot<f32(Vocab, Hidden)>, table), (Slot<i32(Batch, Tokens)>, words));
};
auto embedded() {
  return function("embedded", [](EmbeddingArgs<Tensor> in) {
    const auto x = at<Vocab>(in.table, where(in.words < 0, 0, in.words));
    const auto logits = dot<Hidden>(tanh(x), in.table);
    return mean<Batch>(mean<Tokens>(logsumexp<Vocab>(logits)));
  });
}

}  // namespace

TEST_CASE("strategies: the vocabulary in chunks, so that no row of logits is ever whole") {
  const Problem problem = focal_problem();
  const plan::PlanOptions options = in_chunks(problem, {{"vocab", 64}});
  const plan::Plan plan = plan_of(problem, options);
  CHECK(deepest_loops(plan, plan.steps) == "vocab");
  CHECK(held_whole(plan, "tokens", "vocab") == "");
  check_run(problem, options);
}

TEST_CASE("strategies: tokens in chunks and the vocabulary inside them, and the other way round") {
  const Problem problem = focal_problem();
  for (const std::vector<Chunk>& chunks :
       {std::vector<Chunk>{{"tokens", 32}, {"vocab", 100}}, std::vector<Chunk>{{"vocab", 100}, {"tokens", 32}}}) {
    const plan::PlanOptions options = in_chunks(problem, chunks);
    const plan::Plan plan = plan_of(problem, options);
    CHECK(deepest_loops(plan, plan.steps) == chunks[0].axis + " " + chunks[1].axis);
    CHECK(check_run(problem, options).workspace_bytes < check_run(problem).workspace_bytes / 8);
  }
}

TEST_CASE("strategies: another number of tokens than was planned") {
  check_runs(focal_gradient(), {{"tokens", 32}});
  check_runs(focal_gradient(), {{"vocab", 64}});
  check_runs(focal_gradient(), {{"tokens", 32}, {"vocab", 100}});
}

TEST_CASE("strategies: a step's partitions are counted for its chunk") {
  // 150 rows make more partitions than a chunk of 3, whose partial sums are merged inside the loop.
  const Problem problem = focal_problem();
  check_run(problem, in_chunks(problem, {{"tokens", 3}}));
}

TEST_CASE("strategies: two attentions in chunks of queries, of keys, and of channels") {
  const Problem problem = make_problem(*value_and_grad(two_attentions(), wrt<"query", "key", "value">).trace(),
                                       {{"tokens", 70}, {"hidden", 40}}, 10);
  for (const char* axis : {"tokens", "keys", "hidden"}) {
    INFO(axis);
    const plan::PlanOptions options = in_chunks(problem, {{axis, 16, 1024}});
    CHECK(count_loops(plan_of(problem, options)) >= 1);
    check_run(problem, options);
  }
}

TEST_CASE("strategies: a table's gradient is scattered chunk by chunk") {
  const Problem problem = make_problem(*value_and_grad(embedded(), wrt<"table">).trace(),
                                       {{"batch", 6}, {"tokens", 11}, {"vocab", 40}, {"hidden", 9}}, 40);
  for (const char* axis : {"batch", "tokens", "vocab", "hidden"}) {
    INFO(axis);
    const plan::PlanOptions options = in_chunks(problem, {{axis, 4}});
    CHECK(count_loops(plan_of(problem, options)) >= 1);
    check_run(problem, options);
  }
}

TEST_CASE("strategies: an axis that is part of a split is refused with a sentence") {
  const auto halves = function("halves", [](LogitsArgs<Tensor> in) {
    const auto parts = split<Vocab, Half, Rest>(tanh(in.logits), 4);
    return sum<Tokens>(sum<Rest>(sum<Half>(square(parts))));
  });
  const Problem problem = make_problem(*halves.trace(), {{"tokens", 5}, {"vocab", 8}}, 8);
  CHECK_THROWS_WITH(plan_of(problem, in_chunks(problem, {{"rest", 1}})), Catch::Contains("part of a split"));
}

TEST_CASE("a large value's mask is made chunk by chunk with it, and no step makes what nobody reads") {
  for (const bool narrow : {false, true}) {
    const dsl::Graph graph =
        narrow ? *value_and_grad(linear_focal<bf16>(), wrt<"x", "weight">).trace() : focal_gradient();
    const Problem problem = make_problem(graph, {{"tokens", 150}, {"vocab", 301}, {"hidden", 24}}, 301);
    // Above the size of the mask, which has as many elements in a byte each.
    const plan::Plan plan = plan_of(problem, in_chunks(problem, {{"tokens", 32, narrow ? 80000.0 : 150000.0}}));
    CHECK(deepest_loops(plan, plan.steps) == "tokens");
    CHECK(held_whole(plan, "tokens", "vocab") == "");
    std::vector<bool> read(plan.buffers.size(), false);
    each_step(plan.steps, [&](const plan::Step& step) {
      if (const auto* matmul = std::get_if<plan::Matmul>(&step.node)) read[matmul->a] = read[matmul->b] = true;
      const auto* launch = std::get_if<plan::Launch>(&step.node);
      for (std::size_t i = 0; launch != nullptr && i < launch->buffers.size(); ++i) {
        const auto& parameter = plan.kernels[launch->kernel].scheduled.nest.parameters[i];
        if (launch->buffers[i] != plan::no_buffer && parameter.access != loops::Access::write)
          read[launch->buffers[i]] = true;
      }
    });
    for (std::size_t id = 0; id < plan.buffers.size(); ++id) {
      const plan::Buffer& buffer = plan.buffers[id];
      INFO(buffer.name);
      if (buffer.home == plan::Home::workspace && buffer.first_step >= 0) CHECK(read[id]);
    }
  }
}

TEST_CASE("a few tokens are chunked too, though a chunk of one would leave no matrix product") {
  const Problem problem = make_problem(focal_gradient(), {{"tokens", 8}, {"vocab", 5003}, {"hidden", 24}}, 5003);
  const plan::PlanOptions options = with_budget(0.7 * 8 * 5003 * 4);
  CHECK(held_whole(plan_of(problem, options), "tokens", "vocab") == "");
  check_run(problem, options);
}
