// The bound is sound and not slack: plain f32 evaluation of random graphs stays within it and comes near to it, and a
// small fault does not.
#include <algorithm>
#include <cmath>
#include <limits>

#include "dsl/build.hpp"
#include "dsl/print.hpp"
#include "dsl/reference/compare.hpp"
#include "dsl/reference/random_graph.hpp"
#include "dsl/reference/random_source.hpp"
#include "evaluate_plain.hpp"

using namespace tigon;
using namespace tigon::dsl;

namespace {

TensorValue numbers(AxisId axis, i64 count, std::uint64_t seed, double mean) {
  RandomSource random(seed);
  TensorValue tensor{.dtype = DType::f32, .axes = {axis}, .extents = {count}};
  for (i64 i = 0; i < count; ++i)
    tensor.value.push_back(static_cast<double>(static_cast<float>(mean + random.normal())));
  return tensor;
}

}  // namespace

TEST_CASE("bound: plain f32 evaluation of random graphs lies within, and not far within") {
  ErrorHistogram errors;
  NodeHistogram nodes;
  i64 elements = 0;
  i64 undetermined = 0;
  std::vector<std::uint64_t> wrong;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomGraph random = random_graph(seed, {.most_elements = 6000});
    count_nodes(random.graph, nodes);
    const EvaluateInputs inputs = random_inputs(random.graph, random.extents, seed, seed % 3 == 0);
    const auto expected = evaluate(random.graph, inputs);
    const auto computed = evaluate_plainly(random.graph, inputs, {.seed = seed});
    REQUIRE(expected.size() == computed.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Comparison comparison = compare(expected[i], computed[i]);
      elements += static_cast<i64>(expected[i].value.size());
      undetermined += comparison.undetermined;
      errors.add(expected[i], computed[i]);
      if (comparison.wrong == 0) continue;
      wrong.push_back(seed);
      UNSCOPED_INFO("seed " << seed << ", output " << i << ": " << comparison.sentence);
    }
  }
  CHECK(wrong.empty());
  WARN(errors.print() << "; " << undetermined << " of " << elements << " elements undetermined\n" << print(nodes));
  CHECK(errors.median() > 1e-4);
  CHECK(errors.median() < 1);
  CHECK(undetermined * 100 < elements);
  for (const char* kind : {"map",
                           "cast",
                           "view",
                           "fold",
                           "finish",
                           "gather checked",
                           "gather fill",
                           "gather clamp",
                           "scatter",
                           "iota",
                           "scalar",
                           "fold sum",
                           "fold product",
                           "fold max",
                           "fold min",
                           "fold logsumexp",
                           "fold argmax",
                           "fold argmin",
                           "fold moments",
                           "fold any",
                           "fold all",
                           "fold of a product",
                           "view split",
                           "view rename",
                           "view merge_outer",
                           "view broadcast",
                           "map where",
                           "input bf16",
                           "input f16",
                           "input f64",
                           "input i32"}) {
    INFO(kind);
    CHECK(nodes[kind] > 0);
  }
}

TEST_CASE("bound: a dropped last element of a sum of 70,001 is caught") {
  Builder b("total");
  const AxisId n = b.axis(nullptr, "n");
  const NodeId x = b.input("x", DType::f32, {n});
  b.output({"sum", b.sum(x, {n}), DType::f32, {}});
  b.output({"lse", b.finish(b.fold(b.monoid(BuiltinMonoid::logsumexp), {x}, {n}), lse_value), DType::f32, {}});
  const Graph graph = std::move(b).finish();
  const auto check = [&](TensorValue tensor, bool exact) {
    const EvaluateInputs inputs{{std::move(tensor)}, {}, {70'001}};
    const auto expected = evaluate(graph, inputs);
    const auto right = evaluate_plainly(graph, inputs);
    const auto wrong = evaluate_plainly(graph, inputs, {.drop_last = true});
    INFO(compare(expected[0], wrong[0]).sentence);
    CHECK((expected[0].bound[0] == 0) == exact);
    CHECK(compare(expected[0], right[0]).passed);
    CHECK_FALSE(compare(expected[0], wrong[0]).passed);
    CHECK(compare(expected[1], right[1]).passed);
  };
  TensorValue real = numbers(n, 70'001, 5, 0);
  real.value.back() = 10;  // allowed: 2 x 1158 x 2^-24 x 55,900 = 7.7
  check(real, false);
  TensorValue eighths = numbers(n, 70'001, 6, 0);  // multiples of 1/8 add exactly: any element is missed
  for (double& value : eighths.value) value = std::floor(value * 8) / 8;
  eighths.value.back() = 0.125;
  check(eighths, true);
}

TEST_CASE("bound: a function's error grows through what follows") {
  Builder b("growth");
  const AxisId n = b.axis(nullptr, "n");
  const NodeId x = b.input("x", DType::f32, {n});
  const NodeId y =
      b.map(ScalarOp::exp, {b.map(ScalarOp::mul, {b.map(ScalarOp::exp, {x}), b.constant(DType::f32, 10)})});
  b.output({"y", y, DType::f32, {n}});
  const Graph graph = std::move(b).finish();
  TensorValue tensor{.dtype = DType::f32, .axes = {n}, .extents = {1}, .value = {1}};
  const TensorValue result = evaluate(graph, {{tensor}, {}, {1}})[0];
  const double inner = std::exp(1.0) * 10;
  // exp: 2 ulp; the product: half of one more; the outer exp multiplies the relative error by its argument.
  CHECK(result.bound[0] / result.value[0] == Approx((4 + 1) * 0x1p-24 * inner + 4 * 0x1p-24).epsilon(0.01));
}

TEST_CASE("bound: sums by depth, contractions by length") {
  Builder b("sums");
  const AxisId n = b.axis(nullptr, "n");
  const NodeId x = b.input("x", DType::f32, {n});
  const NodeId y = b.input("y", DType::f32, {n});
  b.output({"sum", b.sum(x, {n}), DType::f32, {}});
  b.output({"dot", b.sum(b.map(ScalarOp::mul, {x, y}), {n}), DType::f32, {}});
  const Graph graph = std::move(b).finish();
  const EvaluateInputs inputs{{numbers(n, 6400, 1, 0), numbers(n, 6400, 2, 0)}, {}, {6400}};
  double sum = 0;
  double dot = 0;
  for (std::size_t i = 0; i < 6400; ++i) {
    sum += std::abs(inputs.tensors[0].value[i]);
    dot += std::abs(inputs.tensors[0].value[i] * inputs.tensors[1].value[i]);
  }
  const auto result = evaluate(graph, inputs);
  CHECK(result[0].bound[0] == Approx(164 * 0x1p-24 * sum));
  CHECK(result[1].bound[0] == Approx(6401 * 0x1p-24 * dot).epsilon(1e-6));
}

TEST_CASE("bound: what straddles a discontinuity is undetermined, and too much of it fails") {
  Builder b("straddle");
  const AxisId n = b.axis(nullptr, "n");
  const NodeId x = b.input("x", DType::f32, {n});
  const NodeId third = b.map(ScalarOp::div, {x, b.constant(DType::f32, 3)});  // rounded
  const NodeId back = b.map(ScalarOp::mul, {third, b.constant(DType::f32, 3)});
  b.output({"floor", b.map(ScalarOp::floor, {back}), DType::f32, {n}});
  b.output({"less", b.map(ScalarOp::less, {back, x}), DType::boolean, {n}});
  b.output({"relu", b.map(ScalarOp::where, {b.map(ScalarOp::less, {x, back}), back, x}), DType::f32, {n}});
  const NodeId state = b.fold(b.monoid(BuiltinMonoid::argmax), {back}, {n});
  b.output({"argmax", b.finish(state, arg_index), DType::i64, {}});
  const Graph graph = std::move(b).finish();
  TensorValue tensor{.dtype = DType::f32, .axes = {n}, .extents = {4}, .value = {1, 2.5, 4, 4}};
  const auto result = evaluate(graph, {{tensor}, {}, {4}});
  CHECK(result[0].undetermined == std::vector<std::uint8_t>{1, 0, 1, 1});
  CHECK(result[1].undetermined == std::vector<std::uint8_t>{1, 1, 1, 1});
  CHECK(result[2].undetermined == std::vector<std::uint8_t>{0, 0, 0, 0});  // both sides agree
  CHECK(result[3].undetermined == std::vector<std::uint8_t>{1});
  const Comparison comparison = compare(result[0], std::vector<double>{0, 2, 4, 4});
  CHECK(comparison.wrong == 0);
  CHECK(comparison.undetermined == 3);
  CHECK_FALSE(comparison.passed);
}

TEST_CASE("compare: the worst element is named") {
  const AxisId n = 0;
  TensorValue expected{
      .dtype = DType::f32, .axes = {n, 1}, .extents = {2, 2}, .value = {1, 2, 3, 4}, .bound = {0, 1e-6, 1e-6, 0}};
  expected.undetermined.assign(4, 0);
  CHECK(compare(expected, expected.value).passed);
  CHECK(compare(expected, std::vector<double>{1, 2 + 1.9e-6, 3, 4}).passed);
  const Comparison comparison = compare(expected, std::vector<double>{1, 2, 3 - 4e-6, 4});
  CHECK_FALSE(comparison.passed);
  CHECK(comparison.worst_index == 2);
  CHECK(comparison.worst_ratio == Approx(2));
  CHECK(comparison.sentence.find("(1, 0)") != std::string::npos);
  CHECK_FALSE(compare(expected, std::vector<double>{1, 2, 3}).passed);
}

TEST_CASE("random graphs: the same seed makes the same graph and inputs") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const RandomGraph first = random_graph(seed);
    const RandomGraph second = random_graph(seed);
    CHECK(print(first.graph) == print(second.graph));
    CHECK(first.extents == second.extents);
    const EvaluateInputs a = random_inputs(first.graph, first.extents, 7);
    const EvaluateInputs b = random_inputs(second.graph, second.extents, 7);
    for (std::size_t i = 0; i < a.tensors.size(); ++i) CHECK(a.tensors[i].value == b.tensors[i].value);
  }
  CHECK(print(random_graph(1).graph) != print(random_graph(2).graph));
}
