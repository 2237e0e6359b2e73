// Gradients of small functions and of random graphs against finite differences; a wrong gradient is noticed.
#include "dsl/reference/gradcheck.hpp"

#include <limits>

#include "dsl/build.hpp"
#include "dsl/differentiate.hpp"
#include "dsl/print.hpp"
#include "dsl/reference/random_graph.hpp"
#include "dsl/reference/random_source.hpp"

namespace tigon::dsl {
namespace {

using enum ScalarOp;

// Inputs away from ties and from zero, where one-sided conventions hold that differences do not know.
EvaluateInputs untied(const Graph& graph, const Extents& extents, std::uint64_t seed) {
  EvaluateInputs inputs = random_inputs(graph, extents, seed);
  RandomSource random(seed);
  for (TensorValue& tensor : inputs.tensors) {
    if (!is_floating(tensor.dtype)) continue;
    for (double& value : tensor.value) value += random.uniform(0.01, 0.02);
  }
  return inputs;
}

struct Bench {
  Builder b{"f"};
  AxisId t = b.axis(nullptr, "t"), v = b.axis(nullptr, "v"), h = b.axis(nullptr, "h");
  Extents extents{5, 7, 4};
  NodeId x = b.input("x", DType::f32, {t, v});
  NodeId f(double value) { return b.constant(DType::f32, value); }
  NodeId softmax(NodeId a, AxisId axis) {
    const NodeId state = b.fold(b.monoid(BuiltinMonoid::logsumexp), {a}, {axis});
    return b.map(exp, {b.map(sub, {a, b.finish(state, lse_value)})});
  }
  GradcheckResult check(NodeId node, std::vector<AxisId> axes, std::uint64_t seed = 3, GradcheckOptions options = {}) {
    b.output({"y", node, b.node(node).dtype, std::move(axes)});
    const Graph graph = std::move(b).finish();
    return gradcheck(graph, untied(graph, extents, seed), options);
  }
};

#define CHECK_GRADIENT(result)              \
  do {                                      \
    const GradcheckResult found = (result); \
    INFO(found.sentence);                   \
    CHECK(found.passed);                    \
    CHECK(found.worst < 1e-6);              \
  } while (false)

TEST_CASE("gradcheck: maps") {
  for (const ScalarOp op : {neg, exp, expm1, sin, cos, tanh, erf, sigmoid, softplus, log_sigmoid, relu, abs}) {
    Bench f;
    INFO(static_cast<int>(op));
    CHECK_GRADIENT(f.check(f.b.map(op, {f.x}), {f.t, f.v}));
  }
  for (const ScalarOp op : {sqrt, rsqrt, log, log1p}) {
    Bench f;
    const NodeId positive = f.b.map(add, {f.b.map(mul, {f.x, f.x}), f.f(0.5)});
    INFO(static_cast<int>(op));
    CHECK_GRADIENT(f.check(f.b.map(op, {positive}), {f.t, f.v}));
  }
  for (const ScalarOp op : {add, sub, mul, min, max, logaddexp, mul0}) {
    Bench f;
    const NodeId w = f.b.input("w", DType::f32, {f.v});
    INFO(static_cast<int>(op));
    CHECK_GRADIENT(f.check(f.b.map(op, {f.x, w}), {f.t, f.v}));
  }
  {
    Bench f;
    const NodeId w = f.b.input("w", DType::f32, {f.v});
    const NodeId positive = f.b.map(add, {f.b.map(mul, {w, w}), f.f(0.5)});
    CHECK_GRADIENT(f.check(f.b.map(div, {f.x, positive}), {f.t, f.v}));
  }
  {
    Bench f;
    const NodeId positive = f.b.map(add, {f.b.map(mul, {f.x, f.x}), f.f(0.5)});
    const NodeId w = f.b.input("w", DType::f32, {f.v});
    CHECK_GRADIENT(f.check(f.b.map(pow, {positive, w}), {f.t, f.v}));
  }
}

TEST_CASE("gradcheck: folds, softmax, and logsumexp under masks") {
  for (const BuiltinMonoid monoid :
       {BuiltinMonoid::sum, BuiltinMonoid::max, BuiltinMonoid::min, BuiltinMonoid::logsumexp, BuiltinMonoid::moments}) {
    for (std::size_t finish = 0; finish < builtin_monoid(monoid).finishes.size(); ++finish) {
      if (monoid == BuiltinMonoid::moments && finish == static_cast<std::size_t>(moments_count)) continue;
      for (const bool both : {false, true}) {
        Bench f;
        const std::vector<AxisId> axes = both ? std::vector<AxisId>{f.v, f.t} : std::vector<AxisId>{f.v};
        const NodeId value = f.b.finish(f.b.fold(f.b.monoid(monoid), {f.x}, axes), static_cast<int>(finish));
        INFO(builtin_monoid(monoid).name << " " << finish);
        CHECK_GRADIENT(f.check(value, both ? std::vector<AxisId>{} : std::vector<AxisId>{f.t}));
      }
    }
  }
  {
    Bench f;
    CHECK_GRADIENT(f.check(f.softmax(f.x, f.v), {f.t, f.v}));
  }
  {
    Bench f;
    const NodeId keep = f.b.map(less_equal, {f.b.iota(f.v), f.b.iota(f.t)});
    const NodeId low = f.f(-std::numeric_limits<double>::infinity());
    CHECK_GRADIENT(f.check(f.softmax(f.b.map(where, {keep, f.x, low}), f.v), {f.t, f.v}));
  }
  {
    Bench f;
    const NodeId keep = f.b.input("keep", DType::boolean, {f.t, f.v});
    const NodeId low = f.f(-std::numeric_limits<double>::infinity());
    const NodeId state = f.b.fold(f.b.monoid(BuiltinMonoid::logsumexp), {f.b.map(where, {keep, f.x, low})}, {f.v});
    CHECK_GRADIENT(f.check(f.b.finish(state, lse_value), {f.t}));
  }
}

TEST_CASE("gradcheck: gather, scatter and views") {
  for (const IndexPolicy policy : {IndexPolicy::checked, IndexPolicy::fill, IndexPolicy::clamp}) {
    Bench f;
    const NodeId target = f.b.input("target", DType::i32, {f.t});
    CHECK_GRADIENT(f.check(f.b.gather(f.x, target, f.v, policy), {f.t}));
  }
  {
    Bench f;  // an embedding: the index does not share the table's other axis
    const NodeId table = f.b.input("table", DType::f32, {f.v, f.h});
    const NodeId target = f.b.input("target", DType::i32, {f.t});
    CHECK_GRADIENT(f.check(f.b.gather(table, target, f.v, IndexPolicy::checked), {f.t, f.h}));
  }
  {
    Bench f;
    const NodeId before = f.b.map(sub, {f.b.iota(f.v), f.b.integer(DType::i64, 2)});
    const NodeId square = f.b.map(mul, {f.x, f.x});
    CHECK_GRADIENT(f.check(f.b.gather(square, before, f.v, IndexPolicy::fill), {f.t, f.v}));
  }
  {
    Bench f;
    const NodeId target = f.b.input("target", DType::i32, {f.t});
    CHECK_GRADIENT(f.check(f.b.scatter(f.b.map(sin, {f.x}), target, f.h, {f.t}), {f.v, f.h}));
  }
  {
    Bench f;
    const AxisId whole = f.b.axis(nullptr, "whole");
    f.extents.push_back(-1);
    const NodeId merged = f.b.merge(f.b.map(sin, {f.x}), f.v, f.t, whole);
    CHECK_GRADIENT(f.check(f.b.map(mul, {merged, merged}), {whole}));
  }
  {
    Bench f;
    const AxisId outer = f.b.axis(nullptr, "outer"), inner = f.b.axis(nullptr, "inner");
    f.extents = {6, 3, 4, 2, 3};
    const NodeId split = f.b.split(f.b.map(sin, {f.x}), f.t, outer, inner);
    CHECK_GRADIENT(f.check(f.b.sum(f.b.map(mul, {split, split}), {inner}), {outer, f.v}));
  }
}

TEST_CASE("gradcheck: norms, a loss and attention") {
  {
    Bench f;  // RMS norm
    const NodeId w = f.b.input("w", DType::f32, {f.v});
    const NodeId mean = f.b.map(div, {f.b.sum(f.b.map(mul, {f.x, f.x}), {f.v}), f.b.cast(DType::f32, f.b.extent(f.v))});
    const NodeId scale = f.b.map(rsqrt, {f.b.map(add, {mean, f.f(1e-3)})});
    CHECK_GRADIENT(f.check(f.b.map(mul, {f.b.map(mul, {f.x, scale}), w}), {f.t, f.v}));
  }
  {
    Bench f;  // layer norm by moments
    const NodeId state = f.b.fold(f.b.monoid(BuiltinMonoid::moments), {f.x}, {f.v});
    const NodeId scale = f.b.map(rsqrt, {f.b.map(add, {f.b.finish(state, moments_variance), f.f(1e-3)})});
    CHECK_GRADIENT(f.check(f.b.map(mul, {f.b.map(sub, {f.x, f.b.finish(state, moments_mean)}), scale}), {f.t, f.v}));
  }
  {
    Bench f;  // linear cross entropy with ignored targets
    const NodeId hidden = f.b.input("hidden", DType::f32, {f.t, f.h});
    const NodeId weight = f.b.input("weight", DType::f32, {f.v, f.h});
    const NodeId target = f.b.input("target", DType::i32, {f.t});
    const NodeId kept = f.b.input("kept", DType::boolean, {f.t});
    const NodeId logits = f.b.sum(f.b.map(mul, {hidden, weight}), {f.h});
    const NodeId lse = f.b.finish(f.b.fold(f.b.monoid(BuiltinMonoid::logsumexp), {logits}, {f.v}), lse_value);
    const NodeId row = f.b.map(sub, {lse, f.b.gather(logits, target, f.v, IndexPolicy::checked)});
    const NodeId count = f.b.map(max, {f.b.sum(f.b.cast(DType::f32, kept), {f.t}), f.f(1)});
    const NodeId loss = f.b.map(div, {f.b.sum(f.b.masked(kept, row), {f.t}), count});
    CHECK_GRADIENT(f.check(loss, {}, 3, {.wrt = {"hidden", "weight"}}));
  }
  {
    Bench f;  // causal attention
    const AxisId s = f.b.axis(nullptr, "s");
    f.extents.push_back(5);
    const NodeId q = f.b.input("q", DType::bf16, {f.t, f.h});
    const NodeId k = f.b.input("k", DType::bf16, {s, f.h});
    const NodeId value = f.b.input("value", DType::bf16, {s, f.v});
    const NodeId scores = f.b.map(mul, {f.b.sum(f.b.map(mul, {q, k}), {f.h}), f.f(0.5)});
    const NodeId keep = f.b.map(less_equal, {f.b.iota(s), f.b.iota(f.t)});
    const NodeId low = f.f(-std::numeric_limits<double>::infinity());
    const NodeId weights = f.softmax(f.b.map(where, {keep, scores, low}), s);
    const NodeId out = f.b.sum(f.b.map(mul, {f.b.cast(DType::bf16, weights), value}), {s});
    CHECK_GRADIENT(f.check(f.b.cast(DType::bf16, out), {f.t, f.v}, 3, {.wrt = {"q", "k", "value"}}));
  }
}

TEST_CASE("gradcheck: random smooth graphs") {
  i64 checked = 0;
  int not_finite = 0;
  std::vector<std::uint64_t> wrong;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const RandomGraph random = random_graph(seed, {.steps = 7,
                                                   .most_elements = 400,
                                                   .long_axes = false,
                                                   .sixteen_bits = false,
                                                   .discontinuous = false,
                                                   .differentiable = true});
    const EvaluateInputs inputs = untied(random.graph, random.extents, seed);
    const auto outputs = evaluate(random.graph, inputs, {.honour_casts = false});
    const bool finite = std::all_of(outputs.begin(), outputs.end(), [](const TensorValue& output) {
      return std::all_of(output.value.begin(), output.value.end(), [](double value) { return std::isfinite(value); });
    });
    if (!finite) {  // a row that is masked altogether, or a mean of nothing
      ++not_finite;
      continue;
    }
    const GradcheckResult result =
        gradcheck(random.graph, inputs, {.directions = 1, .coordinates = 2, .tolerance = 1e-5});
    checked += result.checked - result.skipped;
    if (result.passed || result.checked == 0) continue;
    wrong.push_back(seed);
    UNSCOPED_INFO("seed " << seed << ": " << result.sentence);
  }
  CHECK(wrong.empty());
  CHECK(checked > 300);
  CHECK(not_finite < 12);
}

TEST_CASE("gradcheck: a wrong gradient, a missing term and a dropped mask are noticed") {
  Bench f;
  f.b.output({"y", f.b.map(sin, {f.x}), DType::f32, {f.t, f.v}});
  const Graph graph = std::move(f.b).finish();
  const EvaluateInputs inputs = random_inputs(graph, f.extents, 1);
  const auto wrong_by = [&](double factor, bool drop_last) {
    Builder b("wrong");
    const AxisId t = b.axis(nullptr, "t"), v = b.axis(nullptr, "v");
    const NodeId x = b.input("x", DType::f32, {t, v});
    const NodeId up = b.input("upstream.y", DType::f32, {t, v});
    NodeId g = b.map(mul, {b.map(mul, {up, b.map(cos, {x})}), b.constant(DType::f64, factor)});
    if (drop_last) g = b.masked(b.map(less, {b.iota(v), b.integer(DType::i64, 6)}), g);
    b.output({"grad.x", g, DType::f64, {t, v}});
    return gradcheck(graph, std::move(b).finish(), inputs);
  };
  CHECK(wrong_by(1, false).passed);
  CHECK_FALSE(wrong_by(1.00001, false).passed);
  CHECK_FALSE(wrong_by(-1, false).passed);
  CHECK_FALSE(wrong_by(1, true).passed);
}

TEST_CASE("gradcheck: kinks are skipped, not blamed, and too many fail") {
  Bench f;
  f.b.output({"y", f.b.map(relu, {f.x}), DType::f32, {f.t, f.v}});
  const Graph graph = std::move(f.b).finish();
  EvaluateInputs inputs = random_inputs(graph, f.extents, 1);
  inputs.tensors[0].value[3] = 1e-9;
  const GradcheckResult one = gradcheck(graph, inputs, {.directions = 4, .coordinates = 35});
  INFO(one.sentence);
  CHECK(one.worst < 1e-6);
  CHECK(one.skipped >= 1);
  for (double& value : inputs.tensors[0].value) value = 0;
  const GradcheckResult all = gradcheck(graph, inputs);
  CHECK_FALSE(all.passed);
}

}  // namespace
}  // namespace tigon::dsl
