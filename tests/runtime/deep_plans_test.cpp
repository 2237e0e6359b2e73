// Chains of folds and of maps: what a kernel computes grows with the chain and not with its power, and so does
// planning.
#include <catch2/catch.hpp>

#include "codegen/loops/walk.hpp"
#include "problem.hpp"
#include "tigon/tigon.hpp"

using namespace tigon;

namespace {

struct Tokens : axis<"tokens"> {};
struct Hidden : axis<"hidden"> {};
struct Vocab : axis<"vocab"> {};

template <template <class> class Slot>
struct ChainArgs {
  TIGON_ARGS(ChainArgs, (Slot<f32(Tokens, Hidden)>, x), (Slot<f32(Vocab, Hidden)>, w));
};

const test::NamedExtents small{{"tokens", 4}, {"hidden", 8}, {"vocab", 8}};
constexpr double tokens = 4;  // left to run time; every other loop's bounds are constants

// x through two products of matrices for each link.
auto products(int links) {
  return function("products", [links](const ChainArgs<Tensor>& in) {
    Tensor<f32(Tokens, Hidden)> y = in.x;
    for (int i = 0; i < links; ++i) {
      const auto z = dot<Hidden>(y, in.w);
      y = dot<Vocab>(relu(z), in.w) * 0.01f;
    }
    return sum<Tokens, Hidden>(y * y);
  });
}

// Softmax over one axis and the other in turn.
auto alternating(int links) {
  return function("alternating", [links](const ChainArgs<Tensor>& in) {
    Tensor<f32(Tokens, Hidden)> y = in.x;
    for (int i = 0; i < links; ++i) {
      if (i % 2 == 0)
        y = softmax<Hidden>(y) * 3;
      else
        y = softmax<Tokens>(y) * 3;
    }
    return sum<Tokens, Hidden>(y * y);
  });
}

auto softmaxes(int links) {
  return function("softmaxes", [links](const ChainArgs<Tensor>& in) {
    Tensor<f32(Tokens, Hidden)> y = in.x;
    for (int i = 0; i < links; ++i) y = softmax<Hidden>(y) * 3;
    return sum<Tokens, Hidden>(y * y);
  });
}

auto sines(int links) {
  return function("sines", [links](const ChainArgs<Tensor>& in) {
    Tensor<f32(Tokens, Hidden)> y = in.x;
    for (int i = 0; i < links; ++i) y = sin(y) + in.x;
    return sum<Tokens, Hidden>(y);
  });
}

template <class F>
test::Problem problem(const F& f) {
  return test::make_problem(*f.trace(), small, 2);
}
template <class F>
test::Problem gradient(const F& f) {
  return test::make_problem(*value_and_grad(f, wrt<"x">).trace_with_results({}).graph, small, 2);
}

// How often the statements of a block run that take an element into a fold.
double updates(const loops::Nest& nest, const loops::Block& block) {
  double count = 0;
  for (const loops::Statement& statement : block) {
    if (std::holds_alternative<loops::Update>(statement.node)) ++count;
    const loops::Block* body = loops::body_of(statement);
    if (body == nullptr) continue;
    double runs = 1;
    if (const auto* loop = std::get_if<loops::Loop>(&statement.node)) {
      const auto constant = [&](loops::ExprId id) { return nest.exprs[id].kind == loops::ExprKind::constant; };
      const bool known = constant(loop->begin) && constant(loop->end);
      runs = known ? static_cast<double>(nest.exprs[loop->end].integer - nest.exprs[loop->begin].integer) : tokens;
    }
    count += runs * updates(nest, *body);
  }
  return count;
}
double updates(const plan::Plan& plan) {
  double count = 0;
  for (const plan::Kernel& kernel : plan.kernels) {
    for (const loops::Part& part : kernel.scheduled.nest.parts) count += updates(kernel.scheduled.nest, part.grid.body);
  }
  return count;
}

}  // namespace

TEST_CASE("a chain of small products is computed once, link by link") {
  constexpr double link = 2 * 4 * 8 * 8;  // additions of two products
  for (const int links : {2, 4, 8}) {
    INFO(links);
    const plan::Plan forward = test::plan_of(problem(products(links)));
    CHECK(updates(forward) >= links * link);
    CHECK(updates(forward) <= 16 * links * link);
    const plan::Plan backward = test::plan_of(gradient(products(links)));
    CHECK(updates(backward) <= 32 * links * link);
  }
}

TEST_CASE("softmaxes over one axis and the other are computed once, link by link") {
  constexpr double link = 2 * 4 * 8;  // a maximum and a sum
  for (const int links : {2, 4, 8}) {
    INFO(links);
    CHECK(updates(test::plan_of(problem(alternating(links)))) <= 32 * links * link);
    CHECK(updates(test::plan_of(gradient(alternating(links)))) <= 64 * links * link);
  }
}

TEST_CASE("nested chains compute what the reference does") {
  test::check_run(problem(products(3)));
  test::check_run(gradient(products(3)));
  test::check_run(problem(alternating(4)));
  test::check_run(gradient(alternating(4)));
}

TEST_CASE("twice the chain asks for a little more than twice the predictions") {
  const auto predictions = [](const auto& f) { return test::plan_of(gradient(f)).predictions; };
  CHECK(predictions(sines(100)) <= 3 * predictions(sines(50)));
  CHECK(predictions(softmaxes(40)) <= 3 * predictions(softmaxes(20)));
}

TEST_CASE("a chain of 20,000 maps is cut into kernels of a few hundred values") {
  const plan::Plan plan = test::plan_of(problem(sines(10000)));
  CHECK(plan.kernels.size() >= 20000 / 512);
  for (const plan::Kernel& kernel : plan.kernels) CHECK(kernel.graph.nodes.size() <= 600);
  CHECK(plan.predictions <= 20000);
}

TEST_CASE("a cut chain computes what the reference does") { test::check_run(problem(sines(300))); }
