// The printed form of a graph.
#include "differentiate_support.hpp"

namespace tigon::dsl::testing {

TEST_CASE("a graph prints as its values, single-use maps inline, with names and the user's lines") {
  Make g("rms_norm");
  const AxisId t = g.ax("tokens"), h = g.ax("hidden");
  const NodeId x = g.in("x", {t, h}, DType::bf16), w = g.in("weight", {h}, DType::bf16);
  const NodeId eps = g.scalar("eps", DType::f32);
  g.set_location("model/norm.cpp", 31);
  const NodeId square = g.m(mul, x, x);
  const NodeId total = g.sum(square, {h});
  const NodeId mean_square = g.m(div, total, g.extent(h));
  g.name(mean_square, "mean_square");
  g.set_location("", 0);
  const NodeId r = g.m(rsqrt, g.m(add, mean_square, eps));
  g.out("y", g.cast(DType::bf16, g.m(mul, g.m(mul, x, r), w)), {t, h});
  CHECK(print(simplify(g.done())) ==
        R"(rms_norm(x: bf16[tokens, hidden], weight: bf16[hidden], eps: f32[])
  %0 = input x                                               bf16[tokens, hidden]
  %1 = input weight                                          bf16[hidden]
  %2 = scalar eps                                            f32[]
  %3 = cast f32 (%0)                                         f32[tokens, hidden]      norm.cpp:31
  %5 = fold sum over hidden (mul(%3, %3))                    f32[tokens] state        norm.cpp:31
  %6 = finish sum (%5)                                       f32[tokens]              norm.cpp:31
  %9 = map div(%6, cast f32 (extent(hidden)))                f32[tokens]             mean_square  norm.cpp:31
  %15 = cast bf16 (mul(mul(%3, rsqrt(add(%2, %9))), cast f32 (%1))) bf16[tokens, hidden]
  return y = %15: bf16[tokens, hidden]
)");
}

TEST_CASE("views, gathers, scatters, states and modes print") {
  Make g("f");
  const AxisId t = g.ax("t"), p = g.ax("p"), two = g.ax("two", 2), v = g.ax("v"), q = g.ax("q");
  const NodeId x = g.in("x", {t}), i = g.in("i", {t}, DType::i32), table = g.in("table", {v});
  g.out("split", g.split(x, t, p, two), {p, two});
  g.out("merged", g.merge(g.in("y", {p, two}), p, two, t), {t});
  g.out("renamed", g.rename(x, t, q), {q});
  g.out("at", g.gather(table, i, v, IndexPolicy::clamp), {t});
  g.output({.name = "bins", .node = g.scatter(x, i, v, {t}), .axes = {v}, .mode = OutputMode::accumulate});
  g.output({.name = "state", .node = g.fold(g.monoid(BuiltinMonoid::logsumexp), {x}, {t}), .axes = {}});
  CHECK(squeezed(g.done()) == R"(f(x: f32[t], i: i32[t], table: f32[v], y: f32[p, two])
 %0 = input x f32[t]
 %1 = input i i32[t]
 %2 = input table f32[v]
 %3 = view [t = p * extent(two) + two] (%0) f32[p, two]
 %4 = input y f32[p, two]
 %5 = view [p = t / extent(two), two = t % extent(two)] (%4) f32[t]
 %6 = view [t = q] (%0) f32[q]
 %7 = at v (%2, %1, clamp) f32[t]
 %8 = scatter to v over t (%0, %1) f32[v]
 %9 = fold logsumexp over t (%0) f32[] state
 return split = %3: f32[p, two]
 return merged = %5: f32[t]
 return renamed = %6: f32[q]
 return at = %7: f32[t]
 return bins = %8: f32[v] accumulate
 return state = %9: f32[]
)");
}

}  // namespace tigon::dsl::testing
