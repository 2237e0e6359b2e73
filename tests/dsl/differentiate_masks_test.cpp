// Masks dominate adjoints, a confident target keeps its precision, roundings are visible, and vjps are pruned.
#include <cmath>

#include "differentiate_support.hpp"
#include "evaluate_plain.hpp"

namespace tigon::dsl::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// Cross entropy of given logits; rows whose target is -1 are ignored. `weighted` adds class weights.
Graph masked_cross_entropy(bool weighted = false) {
  Make g("cross_entropy");
  const AxisId t = g.ax("tokens"), v = g.ax("vocab");
  const NodeId x = g.in("x", {t, v}), y = g.in("target", {t}, DType::i32);
  const NodeId valid = g.m(not_equal, y, g.integer(DType::i32, -1));
  const NodeId index = g.m(where, valid, y, g.integer(DType::i32, 0));
  NodeId nll = g.m(sub, g.lse(x, v), g.gather(x, index, v, IndexPolicy::checked));
  NodeId count = g.cast(DType::f32, valid);
  if (weighted) {
    const NodeId weight = g.gather(g.in("weight", {v}), index, v, IndexPolicy::checked);
    nll = g.m(mul, weight, nll);
    count = g.m(where, valid, weight, g.num(0));
  }
  const NodeId total = g.sum(g.m(where, valid, nll, g.num(0)), {t});
  g.out("loss", g.m(div, total, g.m(max, g.sum(count, {t}), g.num(1))));
  return g.done();
}

EvaluateInputs logits(const Graph& graph, std::vector<std::vector<double>> rows, std::vector<double> targets,
                      std::vector<double> weights = {}) {
  const auto t = static_cast<std::int64_t>(rows.size());
  const auto v = static_cast<std::int64_t>(rows[0].size());
  EvaluateInputs inputs;
  inputs.extents = {t, v};
  inputs.extents.resize(graph.axes.size(), -1);
  TensorValue x{.dtype = DType::f32, .axes = {0, 1}, .extents = {t, v}};
  for (const auto& row : rows) x.value.insert(x.value.end(), row.begin(), row.end());
  inputs.tensors = {x, {.dtype = DType::i32, .axes = {0}, .extents = {t}, .value = std::move(targets)}};
  if (!weights.empty())
    inputs.tensors.push_back({.dtype = DType::f32, .axes = {1}, .extents = {v}, .value = std::move(weights)});
  return inputs;
}

Graph gradient_of(const Graph& graph, std::vector<std::string> wrt) {
  return simplify(push_views(erase_attach(differentiate(graph, {.wrt = std::move(wrt), .output = "loss"}))));
}

}  // namespace

TEST_CASE("an ignored row has gradient exactly 0 whatever its logits hold; a NaN in a valid row stays") {
  const Graph gradient = gradient_of(masked_cross_entropy(), {"x"});
  for (const double bad : {infinity, -infinity, not_a_number, 3e38}) {
    const EvaluateInputs inputs = logits(gradient, {{bad, 1, bad}, {0.5, 1, -1}}, {-1, 1});
    const TensorValue dx = value_of(gradient, inputs, "grad.x", true);
    for (int i = 0; i < 3; ++i) CHECK(dx.value[static_cast<std::size_t>(i)] == 0.0);
    for (int i = 3; i < 6; ++i) CHECK(std::isfinite(dx.value[static_cast<std::size_t>(i)]));
    CHECK(dx.value[4] < -0.1);
  }
  const EvaluateInputs inputs = logits(gradient, {{not_a_number, 1, 0}, {0.5, 1, -1}}, {1, -1});
  const TensorValue dx = value_of(gradient, inputs, "grad.x", true);
  CHECK(std::isnan(dx.value[0]));
  CHECK(std::isnan(dx.value[1]));
  CHECK(dx.value[3] == 0.0);
}

TEST_CASE("-infinity logits and an all -infinity row give softmax 0 there, and all rows ignored give 0") {
  const Graph gradient = gradient_of(masked_cross_entropy(), {"x"});
  const TensorValue dx =
      value_of(gradient, logits(gradient, {{-infinity, 1, 1}, {0.5, 1, -1}}, {1, 2}), "grad.x", true);
  CHECK(dx.value[0] == 0.0);
  CHECK(dx.value[1] == Approx(-0.25));
  CHECK(dx.value[2] == Approx(0.25));

  Make g;
  const AxisId t = g.ax("tokens"), v = g.ax("vocab");
  const NodeId x = g.in("x", {t, v});
  g.out("loss", g.sum(g.m(exp, g.lse(x, v)), {t}));
  const Graph sum = gradient_of(g.done(), {"x"});
  EvaluateInputs inputs = logits(sum, {{-infinity, -infinity}}, {0});
  inputs.tensors.pop_back();
  const TensorValue all = value_of(sum, inputs, "grad.x", true);
  CHECK(all.value == std::vector<double>{0.0, 0.0});

  const TensorValue none = value_of(gradient, logits(gradient, {{1, 2, 3}, {0.5, 1, -1}}, {-1, -1}), "grad.x", true);
  for (const double value : none.value) CHECK(value == 0.0);
}

TEST_CASE("an infinite class weight under the mask does not leak") {
  const Graph gradient = gradient_of(masked_cross_entropy(true), {"x"});
  const TensorValue dx =
      value_of(gradient, logits(gradient, {{1, 2, 3}, {0.5, 1, -1}}, {-1, 1}, {infinity, 0.5, 2}), "grad.x", true);
  for (int i = 0; i < 3; ++i) CHECK(dx.value[static_cast<std::size_t>(i)] == 0.0);
  for (int i = 3; i < 6; ++i) CHECK(std::isfinite(dx.value[static_cast<std::size_t>(i)]));
}

TEST_CASE("ignored rows of infinite activations leave the weight gradient finite, and the product a contraction") {
  Make g;
  const AxisId t = g.ax("tokens"), v = g.ax("vocab"), h = g.ax("hidden");
  const NodeId x = g.in("x", {t, h}), w = g.in("weight", {v, h}), y = g.in("target", {t}, DType::i32);
  const NodeId logit = g.sum(g.m(mul, x, w), {h});
  const NodeId valid = g.m(not_equal, y, g.integer(DType::i32, -1));
  const NodeId index = g.m(where, valid, y, g.integer(DType::i32, 0));
  const NodeId nll = g.m(sub, g.lse(logit, v), g.gather(logit, index, v, IndexPolicy::checked));
  g.out("loss", g.sum(g.m(where, valid, nll, g.num(0)), {t}));
  const Graph gradient = gradient_of(g.done(), {"x", "weight"});
  INFO(print(gradient));
  EvaluateInputs inputs = random_inputs(gradient, {2, 3, 2}, 7);
  inputs.tensors[0].value[0] = infinity;
  inputs.tensors[2].value = {-1, 1};
  const TensorValue dw = value_of(gradient, inputs, "grad.weight", true);
  for (const double value : dw.value) CHECK(std::isfinite(value));
  const TensorValue dx = value_of(gradient, inputs, "grad.x", true);
  CHECK(dx.value[0] == 0.0);
  CHECK(dx.value[1] == 0.0);
  // Both contractions read one masked cotangent.
  int contractions = 0;
  std::vector<NodeId> factors;
  for (NodeId id = 0; id < gradient.nodes.size(); ++id) {
    if (const auto c = contraction_at(gradient, id)) {
      ++contractions;
      factors.insert(factors.end(), {c->a, c->b});
    }
  }
  CHECK(contractions == 3);
  std::sort(factors.begin(), factors.end());
  int shared_masked = 0;
  for (std::size_t i = 1; i < factors.size(); ++i) {
    if (factors[i] == factors[i - 1] && gradient.node(factors[i]).kind == NodeKind::map &&
        gradient.op(factors[i]) == where) {
      ++shared_masked;
    }
  }
  CHECK(shared_masked == 1);
}

TEST_CASE("a target that leads by 25 logits has an accurate loss and gradient in f32, also around 10000") {
  const Graph gradient = gradient_of(masked_cross_entropy(), {"x"});
  INFO(print(gradient));
  for (const double offset : {0.0, 10000.0}) {
    for (const double lead : {-3.0, 0.0, 16.0, 25.0, 40.0}) {
      std::vector<double> row(1000, offset);
      for (std::size_t i = 0; i < row.size(); ++i) row[i] += static_cast<double>(i % 8) / 8;
      row[17] = offset + lead;
      const EvaluateInputs inputs = logits(gradient, {row}, {17});
      const std::vector<std::vector<double>> computed = evaluate_plainly(gradient, inputs);
      // In f64, directly: p_y - 1 = -(sum of the others) / (all).
      double others = 0;
      for (std::size_t i = 0; i < row.size(); ++i)
        if (i != 17) others += std::exp(row[i] - row[17]);
      INFO("lead " << lead << " offset " << offset);
      CHECK(computed[0][0] == Approx(std::log1p(others)).epsilon(3e-6));
      CHECK(computed[1][17] == Approx(-others / (1 + others)).epsilon(3e-6));
      CHECK(computed[1][3] == Approx(std::exp(row[3] - row[17]) / (1 + others)).epsilon(3e-6));
    }
  }
}

TEST_CASE("label smoothing and z loss keep the small part of a confident target's gradient") {
  Make g;
  const AxisId t = g.ax("tokens"), v = g.ax("vocab");
  const NodeId x = g.in("x", {t, v}), y = g.in("target", {t}, DType::i32);
  const NodeId lse = g.lse(x, v);
  const NodeId nll = g.m(sub, lse, g.gather(x, y, v, IndexPolicy::checked));
  g.out("loss", g.sum(g.m(add, nll, g.m(mul, g.scalar("z", DType::f32), g.m(mul, lse, lse))), {t}));
  const Graph gradient = gradient_of(g.done(), {"x"});
  EvaluateInputs inputs = logits(gradient, {{0.5, 30, 1, 2}}, {1});
  inputs.scalars = {1e-9};
  const double found = evaluate_plainly(gradient, inputs)[1][1];
  const double others = std::exp(0.5 - 30) + std::exp(1.0 - 30) + std::exp(2.0 - 30);
  const double p = 1 / (1 + others);
  const double exact = -others * p + 2e-9 * (30 + std::log1p(others)) * p;
  CHECK(found == Approx(exact).epsilon(1e-5));
}

TEST_CASE("contributions to a bf16 value are added in f32 and rounded once, by a cast") {
  Make g("f");
  const AxisId t = g.ax("t");
  const NodeId x = g.in("x", {t}, DType::bf16);
  const NodeId h = g.cast(DType::bf16, g.m(exp, x));
  g.name(h, "h");
  const NodeId square = g.m(mul, h, h);
  g.out("loss", g.sum(g.m(add, square, g.m(sin, h)), {t}));
  const Graph gradient = gradient_of(g.done(), {"x"});
  CHECK(squeezed(gradient) == R"(f(x: bf16[t])
 %0 = input x bf16[t]
 %2 = map exp(cast f32 (%0)) f32[t]
 %3 = cast bf16 (%2) bf16[t] h
 %4 = cast f32 (%3) f32[t]
 %8 = fold sum over t (add(mul(%4, %4), sin(%4))) f32[] state
 %9 = finish sum (%8) f32[]
 %14 = cast bf16 (add(cos(%4), mul(%4, 2))) bf16[t] d_h
 %17 = cast bf16 (mul(%2, cast f32 (%14))) bf16[t]
 return loss = %9: f32[]
 return grad.x = %17: bf16[t]
)");
}

TEST_CASE("a vjp has upstreams for the outputs asked for; gradient dtypes, subtrees and absent inputs") {
  Make g("f");
  const AxisId t = g.ax("t");
  const NodeId a = g.in("layers[0].w", {t}, DType::bf16), b = g.in("layers[1].w", {t}, DType::bf16),
               c = g.in("layersx", {t});
  g.out("y", g.m(mul, a, c), {t});
  g.out("z", g.m(mul, b, c), {t});
  const Graph graph = g.done();
  const Graph vjp = differentiate(
      graph,
      {.wrt = {"layers"}, .upstreams = {"y"}, .keep_outputs = false, .gradient_dtypes = {{"layers[1]", DType::f32}}});
  REQUIRE(vjp.outputs.size() == 2);
  CHECK(vjp.outputs[0].name == "grad.layers[0].w");
  CHECK(vjp.outputs[0].dtype == DType::bf16);
  CHECK(vjp.outputs[1].name == "grad.layers[1].w");
  CHECK(vjp.outputs[1].dtype == DType::f32);
  CHECK(print_value(vjp, vjp.outputs[1].node) == "view [any t] (0)");  // z has no upstream
  CHECK(vjp.inputs.back().name == "upstream.y");
  CHECK_THROWS_WITH(differentiate(graph, {.wrt = {"nothing"}, .output = "y"}), Catch::Contains("`nothing`"));
  CHECK_THROWS_WITH(differentiate(graph, {.wrt = {"layers"}, .output = "y"}), Catch::Contains("without axes"));
}

TEST_CASE("a reduction without an adjoint refuses a gradient by name") {
  Make g;
  const AxisId t = g.ax("t");
  const NodeId x = g.in("x", {t});
  Monoid law = builtin_monoid(BuiltinMonoid::product);
  law.name = "times";
  law.adjoint = {};
  g.out("loss", g.finish(g.fold(g.monoid(law), {x}, {t}), 0));
  CHECK_THROWS_WITH(differentiate(g.done(), {.wrt = {"x"}, .output = "loss"}), Catch::Contains("times"));
}

TEST_CASE("a rank-0 scale stays beside the cotangent until after the last contraction") {
  Make g("f");
  const AxisId t = g.ax("t"), k = g.ax("k"), n = g.ax("n");
  const NodeId x = g.in("x", {t, k}), w = g.in("w", {n, k});
  const NodeId y = g.sum(g.m(mul, x, w), {k});
  g.out("loss", g.mean(g.m(mul, y, y), {t, n}));
  const Graph gradient = gradient_of(g.done(), {"x"});
  INFO(print(gradient));
  const OutputInfo& dx = gradient.outputs[1];
  REQUIRE(gradient.op(dx.node) == mul);  // scale times the contraction
  const auto operands = gradient.operands(dx.node);
  const bool scale_first = gradient.node(operands[0]).axes.empty();
  CHECK(gradient.node(operands[scale_first ? 1 : 0]).kind == NodeKind::finish);
  // An empty axis does not make NaN of an empty sum.
  EvaluateInputs inputs = random_inputs(gradient, {0, 2, 3}, 1);
  CHECK(value_of(gradient, inputs, "grad.x").value.empty());
}

TEST_CASE("linearize: forward and backward together give the vjp, and the saved values are few") {
  Make g("norm");
  const AxisId t = g.ax("tokens"), h = g.ax("hidden");
  const NodeId x = g.in("x", {t, h}), w = g.in("weight", {h});
  const NodeId r = g.m(rsqrt, g.m(add, g.mean(g.m(mul, x, x), {h}), g.num(1e-2)));
  g.out("y", g.m(mul, g.m(mul, x, r), w), {t, h});
  const Graph graph = g.done();
  const Linearized two = linearize(graph, {.wrt = {"x", "weight"}});
  INFO(print(two.forward));
  INFO(print(two.backward));
  REQUIRE(two.forward.outputs.size() == 2);
  CHECK(two.forward.outputs[1].name == "saved.0");
  CHECK(two.forward.outputs[1].axes == std::vector<AxisId>{t});

  const Graph whole = simplify(differentiate(graph, {.wrt = {"x", "weight"}, .upstreams = {"y"}}));
  EvaluateInputs inputs = random_inputs(whole, {3, 4}, 5);
  const std::vector<TensorValue> expected = evaluate(whole, inputs, {.honour_casts = false});
  EvaluateInputs first = inputs;
  first.tensors.resize(2);
  const std::vector<TensorValue> forward = evaluate(two.forward, first, {.honour_casts = false});
  EvaluateInputs second;
  second.extents = inputs.extents;
  for (const InputInfo& input : two.backward.inputs) {
    if (input.name == "x") second.tensors.push_back(inputs.tensors[0]);
    if (input.name == "weight") second.tensors.push_back(inputs.tensors[1]);
    if (input.name == "upstream.y") second.tensors.push_back(inputs.tensors[2]);
    if (input.name == "saved.0") second.tensors.push_back(forward[1]);
  }
  const std::vector<TensorValue> backward = evaluate(two.backward, second, {.honour_casts = false});
  REQUIRE(backward.size() == 2);
  for (std::size_t k = 0; k < 2; ++k) {
    for (std::size_t i = 0; i < backward[k].value.size(); ++i) {
      CHECK(backward[k].value[i] == Approx(expected[k + 1].value[i]).epsilon(1e-12));
    }
  }
}

}  // namespace tigon::dsl::testing
