// The reference's values, computed by hand for each node kind, and its handling of NaN, infinities and empty axes.
#include "dsl/reference/evaluate.hpp"

#include <cmath>
#include <limits>
#include <set>

#include "dsl/build.hpp"
#include "dsl/program.hpp"
#include "dsl/reference/compare.hpp"
#include "tigon/error.hpp"

using namespace tigon;
using namespace tigon::dsl;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

// A graph under construction with two axes, r = 2 and c = 3, and tensors given with their numbers.
struct Bench {
  Builder b{"test"};
  AxisId r = b.axis(nullptr, "r");
  AxisId c = b.axis(nullptr, "c");
  Extents extents{2, 3};
  std::vector<TensorValue> tensors;
  std::vector<double> scalars;

  NodeId tensor(DType dtype, std::vector<AxisId> axes, std::vector<double> value) {
    TensorValue t;
    t.dtype = dtype;
    t.axes = axes;
    for (const AxisId axis : axes) t.extents.push_back(extents[axis]);
    t.value = std::move(value);
    tensors.push_back(t);
    return b.input("x" + std::to_string(tensors.size()), dtype, std::move(axes));
  }
  NodeId floats(std::vector<AxisId> axes, std::vector<double> value) {
    return tensor(DType::f32, std::move(axes), std::move(value));
  }
  TensorValue run(NodeId node, std::vector<AxisId> axes, EvaluateOptions options = {}) {
    b.output({"y", node, b.node(node).dtype, std::move(axes)});
    return evaluate(std::move(b).finish(), {tensors, scalars, extents}, options).at(0);
  }
};

void check_values(const TensorValue& tensor, const std::vector<double>& expected) {
  REQUIRE(tensor.value.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("element " << i);
    if (std::isnan(expected[i])) {
      CHECK(std::isnan(tensor.value[i]));
    } else {
      CHECK(tensor.value[i] == expected[i]);
      CHECK(std::signbit(tensor.value[i]) == std::signbit(expected[i]));
    }
    CHECK(tensor.undetermined[i] == 0);
  }
}

const std::vector<double> six{1, 2, 3, 4, 5, 6};

}  // namespace

TEST_CASE("evaluate: maps broadcast by axis name and outputs have their own layout") {
  Bench t;
  const NodeId x = t.floats({t.r, t.c}, six);
  const NodeId w = t.floats({t.c}, {10, 20, 30});
  const TensorValue y = t.run(t.b.map(ScalarOp::add, {x, w}), {t.c, t.r});
  check_values(y, {11, 14, 22, 25, 33, 36});
  CHECK(y.extents == std::vector<i64>{3, 2});
  for (const double bound : y.bound) CHECK(bound == 0);  // small whole numbers add exactly
}

TEST_CASE("evaluate: an output may have axes that its value lacks") {
  Bench t;
  check_values(t.run(t.floats({t.c}, {1, 2, 3}), {t.r, t.c}), {1, 2, 3, 1, 2, 3});
}

TEST_CASE("evaluate: iota, extent, scalar and constant") {
  Bench t;
  const NodeId i = t.b.iota(t.c);
  const NodeId n = t.b.extent(t.c);
  t.scalars = {7};
  const NodeId s = t.b.scalar("s", DType::i64);
  const NodeId value = t.b.map(
      ScalarOp::add, {t.b.map(ScalarOp::mul, {i, n}), t.b.map(ScalarOp::add, {s, t.b.integer(DType::i64, 100)})});
  check_values(t.run(value, {t.c}), {107, 110, 113});
}

TEST_CASE("evaluate: casts round where they are honoured") {
  const double third = static_cast<double>(1.0F / 3.0F);
  for (const bool honoured : {true, false}) {
    Bench t;
    const NodeId x = t.floats({t.c}, {third, 65519, 70000});
    const TensorValue y = t.run(t.b.cast(DType::f16, x), {t.c}, {.honour_casts = honoured});
    if (honoured) {
      check_values(y, {0.333251953125, 65504, infinity});
    } else {
      check_values(y, {third, 65519, 70000});
    }
  }
  Bench t;
  const NodeId x = t.floats({t.c}, {2.75, -2.75, not_a_number});
  check_values(t.run(t.b.cast(DType::i32, x), {t.c}), {2, -2, 0});
}

TEST_CASE("evaluate: views rename, split, merge and broadcast") {
  {
    Bench t;
    const AxisId q = t.b.axis(nullptr, "q");
    t.extents.push_back(-1);
    const NodeId x = t.floats({t.r, t.c}, six);
    check_values(t.run(t.b.rename(x, t.c, q), {q, t.r}), {1, 4, 2, 5, 3, 6});
  }
  {
    Bench t;
    const AxisId whole = t.b.axis(nullptr, "whole");
    t.extents.push_back(6);
    const NodeId x = t.floats({whole}, six);
    check_values(t.run(t.b.split(x, whole, t.r, t.c), {t.r, t.c}), six);
  }
  {
    Bench t;
    const AxisId whole = t.b.axis(nullptr, "whole");
    t.extents.push_back(-1);
    const NodeId x = t.floats({t.c, t.r}, {1, 4, 2, 5, 3, 6});
    check_values(t.run(t.b.merge(t.b.map(ScalarOp::neg, {x}), t.r, t.c, whole), {whole}), {-1, -2, -3, -4, -5, -6});
  }
}

TEST_CASE("evaluate: folds of every built-in monoid") {
  const auto fold = [](BuiltinMonoid monoid, int finish, std::vector<double> numbers, DType dtype = DType::f32) {
    Bench t;
    const NodeId x = t.tensor(dtype, {t.r, t.c}, std::move(numbers));
    return t.run(t.b.finish(t.b.fold(t.b.monoid(monoid), {x}, {t.c}), finish), {t.r});
  };
  check_values(fold(BuiltinMonoid::sum, 0, six), {6, 15});
  check_values(fold(BuiltinMonoid::product, 0, six), {6, 120});
  check_values(fold(BuiltinMonoid::max, 0, six), {3, 6});
  check_values(fold(BuiltinMonoid::min, 0, six), {1, 4});
  check_values(fold(BuiltinMonoid::argmax, arg_index, {5, 5, 1, 1, 2, 9}), {0, 2});
  check_values(fold(BuiltinMonoid::argmin, arg_index, {5, 5, 1, 2, 2, 9}), {2, 0});
  check_values(fold(BuiltinMonoid::argmax, arg_index, {5, not_a_number, 7, not_a_number, not_a_number, 9}), {1, 0});
  check_values(fold(BuiltinMonoid::any, 0, {0, 0, 0, 0, 1, 0}, DType::boolean), {0, 1});
  check_values(fold(BuiltinMonoid::all, 0, {1, 1, 1, 0, 1, 0}, DType::boolean), {1, 0});
  check_values(fold(BuiltinMonoid::moments, moments_mean, six), {2, 5});
  check_values(fold(BuiltinMonoid::moments, moments_count, six), {3, 3});
  const TensorValue variance = fold(BuiltinMonoid::moments, moments_variance, six);
  CHECK(variance.value[0] == Approx(2.0 / 3));
  const TensorValue lse = fold(BuiltinMonoid::logsumexp, lse_value, {0, 0, 0, 1000, 1001, -infinity});
  CHECK(lse.value[0] == Approx(std::log(3.0)).epsilon(1e-14));
  CHECK(lse.value[1] == Approx(1001 + std::log1p(std::exp(-1.0))).epsilon(1e-14));
  const TensorValue rest = fold(BuiltinMonoid::logsumexp, lse_log_rest, {0, -3, -5, 7, 7, 7});
  CHECK(rest.value[0] == Approx(std::log1p(std::exp(-3.0) + std::exp(-5.0))).epsilon(1e-14));
  CHECK(rest.value[1] == Approx(std::log(3.0)).epsilon(1e-14));
}

TEST_CASE("evaluate: logsumexp of infinities and NaN") {
  const auto fold = [](int finish, std::vector<double> numbers) {
    Bench t;
    const NodeId x = t.floats({t.r, t.c}, std::move(numbers));
    return t.run(t.b.finish(t.b.fold(t.b.monoid(BuiltinMonoid::logsumexp), {x}, {t.c}), finish), {t.r});
  };
  check_values(fold(lse_value, {-infinity, -infinity, -infinity, 1, infinity, infinity}), {-infinity, infinity});
  check_values(fold(lse_value, {not_a_number, 1, 2, 1, 2, not_a_number}), {not_a_number, not_a_number});
  check_values(fold(lse_max, {-infinity, 4, -infinity, -infinity, -infinity, -5}), {4, -5});
  check_values(fold(lse_log_rest, {-infinity, 4, -infinity, -infinity, -infinity, -infinity}), {0, 0});
}

TEST_CASE("evaluate: a monoid of one's own that does not commute") {
  Bench t;  // composition of x -> a x + b, in order
  Monoid affine{
      .name = "affine", .operand_count = 2, .state = {ValueClass::element, ValueClass::element}, .identity = {1, 0}};
  {
    ProgramBuilder p;
    const auto a = p.input(0), b = p.input(1);
    affine.lift = std::move(p).finish({a, b});
  }
  {
    ProgramBuilder p;
    const auto a1 = p.input(0), b1 = p.input(1), a2 = p.input(2), b2 = p.input(3);
    const auto b = p.apply(ScalarOp::add, {p.apply(ScalarOp::mul, {a2, b1}), b2});
    affine.merge = std::move(p).finish({p.apply(ScalarOp::mul, {a1, a2}), b});
  }
  {
    ProgramBuilder p;
    const auto b = p.input(1);
    affine.finishes.push_back({"offset", ValueClass::element, std::move(p).finish({b})});
  }
  affine.commutative = false;
  const NodeId a = t.floats({t.r, t.c}, {2, 3, 5, 1, 1, 1});
  const NodeId b = t.floats({t.r, t.c}, {1, 1, 1, 1, 2, 3});
  check_values(t.run(t.b.finish(t.b.fold(t.b.monoid(affine), {a, b}, {t.c}), 0), {t.r}), {21, 6});  // ((1*3)+1)*5+1
}

TEST_CASE("evaluate: states are stored, read back and merged") {
  Bench t;
  const NodeId x = t.floats({t.r, t.c}, {0, -3, -5, 2, 1, 2});
  const NodeId state = t.b.fold(t.b.monoid(BuiltinMonoid::logsumexp), {x}, {t.c});
  const TensorValue stored = t.run(state, {t.r});
  REQUIRE(stored.value.size() == 4);
  CHECK(stored.value[0] == 0);
  CHECK(stored.value[1] == 2);
  CHECK(stored.value[2] == Approx(std::exp(-3.0) + std::exp(-5.0)));
  CHECK(stored.value[3] == Approx(1 + std::exp(-1.0)));

  Builder b("merge");
  const AxisId r = b.axis(nullptr, "r");
  const int lse = b.monoid(BuiltinMonoid::logsumexp);
  const NodeId in = b.input("states", DType::f32, {r}, lse);
  b.output({"y", b.finish(b.fold_states(in, {r}), lse_value), DType::f32, {}});
  TensorValue states = stored;
  states.axes = {r};
  const TensorValue y = evaluate(std::move(b).finish(), {{states}, {}, {2}}).at(0);
  double all = 0;
  for (const double v : {0.0, -3.0, -5.0, 2.0, 1.0, 2.0}) all += std::exp(v);
  CHECK(y.value[0] == Approx(std::log(all)).epsilon(1e-14));
}

TEST_CASE("evaluate: gathers by each policy") {
  const auto gather = [](IndexPolicy policy, std::vector<double> index) {
    Bench t;
    const NodeId table = t.floats({t.r, t.c}, six);
    const NodeId at = t.tensor(DType::i32, {t.r}, std::move(index));
    return t.run(t.b.gather(table, at, t.c, policy, 9), {t.r});
  };
  check_values(gather(IndexPolicy::checked, {2, 0}), {3, 4});
  check_values(gather(IndexPolicy::fill, {-1, 3}), {9, 9});
  check_values(gather(IndexPolicy::clamp, {-1, 3}), {1, 6});
  CHECK_THROWS_AS(gather(IndexPolicy::checked, {0, 3}), Error);
  {
    Bench t;  // a window: the index carries the table's own axis, and the table is computed
    const NodeId table = t.b.map(ScalarOp::neg, {t.floats({t.r, t.c}, six)});
    const NodeId before = t.b.map(ScalarOp::sub, {t.b.iota(t.c), t.b.integer(DType::i64, 1)});
    check_values(t.run(t.b.gather(table, before, t.c, IndexPolicy::fill, 0), {t.r, t.c}), {0, -1, -2, 0, -4, -5});
  }
}

TEST_CASE("evaluate: scatter adds and leaves out what lies outside") {
  Bench t;
  const AxisId v = t.b.axis(nullptr, "v");
  t.extents.push_back(4);
  const NodeId x = t.floats({t.r, t.c}, six);
  const NodeId at = t.tensor(DType::i32, {t.c}, {1, 1, 7});
  check_values(t.run(t.b.scatter(x, at, v, {t.c}), {t.r, v}), {0, 3, 0, 0, 0, 9, 0, 0});
}

TEST_CASE("evaluate: a mask keeps out what it masks") {
  Bench t;
  const NodeId x = t.floats({t.c}, {not_a_number, 2, infinity});
  const NodeId keep = t.tensor(DType::boolean, {t.c}, {0, 1, 0});
  check_values(t.run(t.b.map(ScalarOp::where, {keep, x, t.b.constant(DType::f32, 0)}), {t.c}), {0, 2, 0});
}

TEST_CASE("evaluate: NaN and infinities come out by kind and without a bound") {
  Bench t;
  const NodeId x = t.floats({t.r, t.c}, {infinity, 1, 2, infinity, -infinity, 1});
  const TensorValue y = t.run(t.b.sum(x, {t.c}), {t.r});
  check_values(y, {infinity, not_a_number});
  CHECK(y.bound == std::vector<double>{0, 0});
  CHECK(compare(y, std::vector<double>{infinity, not_a_number}).passed);
  CHECK_FALSE(compare(y, std::vector<double>{1e38, not_a_number}).passed);
  CHECK_FALSE(compare(y, std::vector<double>{infinity, 0}).passed);
  CHECK_FALSE(compare(y, std::vector<double>{-infinity, not_a_number}).passed);

  Bench over;  // f32 overflows where f64 does not
  const NodeId large = over.floats({over.c}, {3e38, -3e38, 1});
  check_values(over.run(over.b.map(ScalarOp::mul, {large, over.b.constant(DType::f32, 2)}), {over.c}),
               {infinity, -infinity, 2});
}

TEST_CASE("evaluate: axes of extent zero") {
  Bench t;
  t.extents = {2, 0};
  const NodeId x = t.floats({t.r, t.c}, {});
  const NodeId top = t.b.finish(t.b.fold(t.b.monoid(BuiltinMonoid::max), {x}, {t.c}), 0);
  const NodeId lse = t.b.finish(t.b.fold(t.b.monoid(BuiltinMonoid::logsumexp), {x}, {t.c}), lse_value);
  t.b.output({"sum", t.b.sum(x, {t.c}), DType::f32, {t.r}});
  t.b.output({"max", top, DType::f32, {t.r}});
  t.b.output({"lse", lse, DType::f32, {t.r}});
  t.b.output({"all", t.b.sum(x, {t.r, t.c}), DType::f32, {}});
  t.b.output({"exp", t.b.map(ScalarOp::exp, {x}), DType::f32, {t.r, t.c}});
  const auto y = evaluate(std::move(t.b).finish(), {t.tensors, {}, t.extents});
  check_values(y[0], {0, 0});
  check_values(y[1], {-infinity, -infinity});
  check_values(y[2], {-infinity, -infinity});
  check_values(y[3], {0});
  check_values(y[4], {});

  Bench none;
  none.extents = {0, 0};
  check_values(none.run(none.b.map(ScalarOp::add, {none.floats({none.r, none.c}, {}), none.floats({none.c}, {})}),
                        {none.r, none.c}),
               {});
}

TEST_CASE("evaluate: a contraction's products are never held") {
  Builder b("logits");
  const AxisId t = b.axis(nullptr, "t"), v = b.axis(nullptr, "v"), h = b.axis(nullptr, "h");
  const NodeId x = b.input("x", DType::f32, {t, h});
  const NodeId w = b.input("w", DType::f32, {v, h});
  b.output({"y", b.sum(b.map(ScalarOp::mul, {x, w}), {h}), DType::f32, {t, v}});
  const auto filled = [](std::vector<AxisId> axes, std::vector<i64> extents) {
    TensorValue tensor{.dtype = DType::f32, .axes = std::move(axes), .extents = std::move(extents)};
    tensor.value.assign(static_cast<std::size_t>(tensor.extents[0] * tensor.extents[1]), 0.5);
    return tensor;
  };
  EvaluateStatistics statistics;
  const auto y =
      evaluate(std::move(b).finish(), {{filled({t, h}, {64, 64}), filled({v, h}, {1000, 64})}, {}, {64, 1000, 64}},
               {.statistics = &statistics});
  CHECK(y[0].value[63999] == 16);
  CHECK(statistics.largest_stored == 64'000);
  CHECK(statistics.element_steps >= 64 * 64'000);
}

TEST_CASE("evaluate: cost does not double with depth") {
  Builder b("ladder");
  const AxisId n = b.axis(nullptr, "n");
  NodeId x = b.input("x", DType::f32, {n});
  for (int i = 0; i < 60; ++i) {  // each rung reads the one below twice, once shifted
    const NodeId before = b.map(ScalarOp::sub, {b.iota(n), b.integer(DType::i64, 1)});
    const NodeId shifted = b.gather(x, before, n, IndexPolicy::clamp);
    x = b.map(ScalarOp::mul, {b.map(ScalarOp::add, {x, shifted}), b.constant(DType::f32, 0.5)});
  }
  b.output({"y", x, DType::f32, {n}});
  TensorValue ones{.dtype = DType::f32, .axes = {n}, .extents = {100}};
  ones.value.assign(100, 1.0);
  EvaluateStatistics statistics;
  const auto y = evaluate(std::move(b).finish(), {{ones}, {}, {100}}, {.statistics = &statistics});
  CHECK(y[0].value[99] == 1);
  CHECK(statistics.element_steps < 60 * 100 * 20);
}
