// The constructors: hash-consing, dtypes, safe folds and the folds that must never happen, masks, axes and their
// errors.
#include <cmath>

#include "differentiate_support.hpp"

namespace tigon::dsl::testing {

TEST_CASE("equal nodes are one node; commutative operands are ordered by id") {
  Make g;
  const AxisId t = g.ax("t"), v = g.ax("v");
  const NodeId x = g.in("x", {t}), y = g.in("y", {v});
  CHECK(g.m(add, x, y) == g.m(add, y, x));
  CHECK(g.m(sub, x, y) != g.m(sub, y, x));
  CHECK(g.m(min, x, y) != g.m(min, y, x));  // a tie goes to the first operand
  CHECK(g.node(g.m(mul, y, x)).axes == (AxisSet::of(t) | AxisSet::of(v)));
  CHECK(g.graph().operands(g.m(mul, y, x))[0] == x);
  CHECK(g.num(0.0) != g.num(-0.0));
  CHECK(g.sum(x, {t}) == g.sum(x, {t}));
  CHECK(g.in("x", {t}) == x);
  CHECK_THROWS_WITH(g.in("x", {v}), Catch::Contains("one name"));
  CHECK_THROWS_WITH(g.in("z", {t, t}), Catch::Contains("twice"));
}

TEST_CASE("operands are cast to the promoted dtype, and an integer op refuses floats") {
  Make g;
  const AxisId t = g.ax("t");
  const NodeId b = g.in("b", {t}, DType::bf16), i = g.in("i", {t}, DType::i32), f = g.in("f", {t}),
               d = g.in("d", {t}, DType::f64);
  CHECK(g.node(g.m(add, b, b)).dtype == DType::f32);
  CHECK(g.node(g.m(add, i, g.iota(t))).dtype == DType::i64);
  CHECK(g.node(g.m(mul, f, g.iota(t))).dtype == DType::f32);
  CHECK(g.node(g.m(mul, f, d)).dtype == DType::f64);
  CHECK(g.node(g.m(less, b, f)).dtype == DType::boolean);
  CHECK(g.node(g.m(div, i, i)).dtype == DType::f32);
  CHECK(g.node(g.m(where, i, b, b)).dtype == DType::f32);
  CHECK(g.node(g.m(where, g.m(less, f, f), g.m(less, b, f), g.m(less, f, b))).dtype == DType::boolean);
  CHECK(g.node(g.sum(i, {t})).dtype == DType::i32);
  CHECK(g.node(g.sum(g.m(less, f, f), {t})).dtype == DType::i32);
  CHECK(g.node(g.reduce(BuiltinMonoid::logsumexp, i, {t})).dtype == DType::f32);
  CHECK(g.node(g.reduce(BuiltinMonoid::argmax, b, {t}, arg_index)).dtype == DType::i64);
  CHECK(g.node(g.reduce(BuiltinMonoid::any, f, {t})).dtype == DType::boolean);
  CHECK_THROWS_WITH(g.m(rem, f, f), Catch::Contains("integers only"));
}

TEST_CASE("casts: a round trip through a wider dtype vanishes, a rounding stays") {
  Make g;
  const AxisId t = g.ax("t");
  const NodeId b = g.in("b", {t}, DType::bf16), f = g.in("f", {t});
  CHECK(g.cast(DType::bf16, g.cast(DType::f32, b)) == b);
  CHECK(g.cast(DType::f64, g.cast(DType::f32, b)) == g.cast(DType::f64, b));
  const NodeId rounded = g.cast(DType::f32, g.cast(DType::bf16, f));
  CHECK(rounded != f);
  CHECK(g.node(rounded).kind == NodeKind::cast);
  CHECK(g.cast(DType::f32, f) == f);
  CHECK(*&g.graph().constants[g.node(g.cast(DType::bf16, g.num(1.001))).payload].number == 1.0);
}

TEST_CASE("safe folds") {
  Make g;
  const AxisId t = g.ax("t");
  const NodeId x = g.in("x", {t}), y = g.in("y", {t}), i = g.in("i", {t}, DType::i32);
  const NodeId c = g.m(less, x, y), d = g.m(less, y, x);
  CHECK(g.m(mul, x, g.num(1)) == x);
  CHECK(g.m(div, x, g.num(1)) == x);
  CHECK(g.m(mul, x, g.num(-1)) == g.m(neg, x));
  CHECK(g.m(add, x, g.num(-0.0)) == x);
  CHECK(g.m(sub, x, g.num(0.0)) == x);
  CHECK(g.m(add, i, g.integer(DType::i32, 0)) == i);
  CHECK(g.m(neg, g.m(neg, x)) == x);
  CHECK(g.m(add, x, g.m(neg, y)) == g.m(sub, x, y));
  CHECK(g.m(mul, g.m(neg, x), y) == g.m(neg, g.m(mul, x, y)));
  CHECK(g.m(mul, g.m(neg, x), g.m(neg, y)) == g.m(mul, x, y));
  CHECK(g.m(logical_not, g.m(logical_not, c)) == c);
  CHECK(g.m(logical_not, g.m(equal, x, y)) == g.m(not_equal, x, y));
  CHECK(g.m(where, c, x, x) == x);
  CHECK(g.m(where, g.m(logical_not, c), x, y) == g.m(where, c, y, x));
  CHECK(g.m(where, c, g.m(where, c, x, y), g.num(2)) == g.m(where, c, x, g.num(2)));
  CHECK(g.m(where, c, g.num(0), x) == g.m(where, g.m(logical_not, c), x, g.num(0)));
  CHECK(g.m(logical_and, c, c) == c);
  CHECK(g.m(logical_and, c, d) == g.m(logical_and, d, c));
  CHECK(g.m(add, g.num(2), g.num(3)) == g.num(5));
  CHECK(g.m(mul, g.integer(DType::i64, 3'000'000'007), g.integer(DType::i64, 3'000'000'019)) ==
        g.integer(DType::i64, 9'000'000'078'000'000'133));
  CHECK(g.m(mul0, g.num(2), x) == g.m(mul, g.num(2), x));
}

TEST_CASE("folds that would launder NaN, infinity or a rounding do not happen") {
  Make g;
  const AxisId t = g.ax("t"), v = g.ax("v");
  const NodeId x = g.in("x", {t}), wide = g.in("wide", {t, v});
  const auto is = [&](NodeId id, ScalarOp op) { return g.node(id).kind == NodeKind::map && g.graph().op(id) == op; };
  CHECK(is(g.m(mul, x, g.num(0)), mul));
  CHECK(is(g.m(sub, x, x), sub));
  CHECK(is(g.m(div, x, x), div));
  CHECK(is(g.m(add, x, g.num(0.0)), add));
  CHECK(is(g.m(sub, x, g.attach(x, no_node)), sub));
  CHECK(is(g.m(mul0, g.num(0), x), mul0));  // it would lose the axis
  CHECK(g.node(g.m(where, g.m(less, wide, x), x, x)).axes == g.node(wide).axes);
  CHECK(
      is(g.m(mul, g.m(where, g.m(less, x, x), x, g.num(0)), wide), mul));  // a user's mask does not swallow an infinity
  const NodeId rounded = g.cast(DType::f32, g.cast(DType::bf16, g.m(add, x, g.num(1))));
  CHECK(g.m(sub, rounded, g.num(1)) != x);
}

TEST_CASE("x - logsumexp is taken apart so that a confident target keeps its precision") {
  Make g;
  const AxisId t = g.ax("t"), v = g.ax("v");
  const NodeId x = g.in("x", {t, v});
  const NodeId state = g.fold(g.monoid(BuiltinMonoid::logsumexp), {x}, {v});
  const NodeId lse = g.finish(state, lse_value), top = g.finish(state, lse_max), rest = g.finish(state, lse_log_rest);
  CHECK(g.m(sub, x, lse) == g.m(sub, g.m(sub, x, top), rest));
  CHECK(g.m(sub, lse, x) == g.m(add, g.m(sub, top, x), rest));
}

TEST_CASE("masks: one order, conjunctions taken apart, fewest axes outermost") {
  Make g;
  const AxisId t = g.ax("t"), v = g.ax("v");
  const NodeId x = g.in("x", {t, v}), row = g.in("row", {t}, DType::boolean),
               cell = g.in("cell", {t, v}, DType::boolean);
  const NodeId expected = g.m(where, row, g.m(where, cell, x, g.num(0)), g.num(0));
  CHECK(g.masked(std::vector{cell, row}, x) == expected);
  CHECK(g.masked(row, g.masked(cell, x)) == expected);
  CHECK(g.masked(cell, g.masked(row, x)) == expected);
  CHECK(g.masked(g.m(logical_and, cell, row), x) == expected);
  CHECK(g.masked(row, expected) == expected);
}

TEST_CASE("a mask leaves a sum whose axes it lacks, and goes onto the factors of a contraction") {
  Make g;
  const AxisId t = g.ax("t"), v = g.ax("v"), h = g.ax("h");
  const NodeId a = g.in("a", {t, v}), b = g.in("b", {t, h}), c = g.in("c", {t}, DType::boolean);
  const NodeId masked_a = g.m(where, c, a, g.num(0));
  CHECK(g.sum(masked_a, {v}) == g.m(where, c, g.sum(a, {v}), g.num(0)));
  const NodeId product = g.m(where, c, g.m(mul, a, b), g.num(0));
  CHECK(g.sum(product, {t}) == g.sum(g.m(mul, masked_a, g.m(where, c, b, g.num(0))), {t}));
  const NodeId w = g.in("w", {v, h});
  const NodeId lone = g.sum(g.m(where, c, g.m(mul, a, w), g.num(0)), {t, v});  // w lacks the mask's axis: as IEEE says
  CHECK(g.graph().op(g.graph().operands(g.graph().operands(lone)[0])[0]) == where);
}

TEST_CASE("sums over an axis that the operand lacks multiply by the extent; other monoids broadcast") {
  Make g;
  const AxisId t = g.ax("t"), k = g.ax("k", 3);
  const NodeId x = g.in("x", {t});
  CHECK(g.sum(x, {k}) == g.m(mul, x, g.num(3)));
  CHECK(g.sum(x, {t, k}) == g.m(mul, g.sum(x, {t}), g.num(3)));
  const NodeId top = g.reduce(BuiltinMonoid::max, x, {k});
  CHECK(g.node(g.graph().operands(g.graph().operands(top)[0])[0]).kind == NodeKind::view);
}

TEST_CASE("rank mistakes name the axis") {
  Make g;
  const AxisId t = g.ax("tokens"), v = g.ax("vocab");
  const NodeId x = g.in("x", {t});
  CHECK_THROWS_WITH(g.gather(x, g.integer(DType::i32, 0), v, IndexPolicy::checked), Catch::Contains("`vocab`"));
  CHECK_THROWS_WITH(g.rename(x, v, t), Catch::Contains("`vocab`"));
  CHECK_THROWS_WITH(g.rename(g.in("y", {t, v}), v, t), Catch::Contains("`tokens`"));
  CHECK_THROWS_WITH(g.out("o", g.in("y", {t, v}), {t}), Catch::Contains("`o`"));
  CHECK_THROWS_WITH(g.attach(x, g.num(1)), Catch::Contains("surrogate"));
  CHECK_THROWS_WITH(g.gather(x, x, t, IndexPolicy::checked), Catch::Contains("integer"));
}

TEST_CASE("extents are completed by splits and renames, and disagreement names the axis and both values") {
  Make g("f");
  const AxisId n = g.ax("n"), p = g.ax("p"), two = g.ax("two", 2), q = g.ax("q");
  const NodeId x = g.in("x", {n});
  g.rename(g.split(x, n, p, two), p, q);
  const Graph graph = g.done();
  CHECK(resolve_extents(graph, {6}) == Extents{6, 3, 2, 3});
  CHECK(resolve_extents(graph, {-1, -1, -1, 5}) == Extents{10, 5, 2, 5});
  CHECK_THROWS_WITH(resolve_extents(graph, {7}),
                    Catch::Contains("`n`") && Catch::Contains("7") && Catch::Contains("multiple of 2"));
  CHECK_THROWS_WITH(resolve_extents(graph, {6, 4}), Catch::Contains("found 6, expected 8"));
  CHECK_THROWS_WITH(resolve_extents(graph, {-1, -1, 3}), Catch::Contains("`two`"));
}

TEST_CASE("axes: one per tag and fixed extent, names made unique") {
  Builder g("f");
  static const int first = 0, second = 0;
  const AxisId a = g.axis(&first, "hidden");
  CHECK(g.axis(&first, "hidden") == a);
  const AxisId b = g.axis(&second, "hidden");
  CHECK(g.graph().axes[b].name == "hidden'2");
  CHECK(g.graph().axes[g.axis(&first, "hidden", 8)].name == "hidden'3");
}

TEST_CASE("remake rebuilds every node kind of another graph") {
  Make g("f");
  const AxisId t = g.ax("t"), v = g.ax("v"), p = g.ax("p"), two = g.ax("two", 2);
  const NodeId x = g.in("x", {t, v}), i = g.in("i", {t}, DType::i32);
  const NodeId at = g.gather(x, i, v, IndexPolicy::fill, 0.5);
  const NodeId sum = g.scatter(g.attach(at, no_node), i, v, {t});
  g.out("a", g.m(add, sum, g.m(mul, g.cast(DType::f32, g.iota(v)), g.scalar("s", DType::f32))), {v});
  g.out("b", g.m(mul, g.lse(g.split(x, t, p, two), two), g.cast(DType::f32, g.extent(t))), {v, p});
  const Graph graph = g.done();
  CHECK(print(simplify(graph)) == print(simplify(simplify(graph))));
  CHECK(squeezed(simplify(graph)).find("at v (%0, %1, fill 0.5)") != std::string::npos);
}

}  // namespace tigon::dsl::testing
