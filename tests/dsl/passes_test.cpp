// The passes, each by the printed form of a small graph.
#include "differentiate_support.hpp"

namespace tigon::dsl::testing {
namespace {

bool has(const Graph& graph, const std::string& text) {
  INFO(print(graph));
  return squeezed(graph).find(text) != std::string::npos;
}

// y = dot(x, w), read again by tanh; x is bf16, w has the given dtype.
Graph product(DType of_w, bool read_again, DType out = DType::bf16) {
  Make g("f");
  const AxisId m = g.ax("m"), n = g.ax("n"), k = g.ax("k");
  const NodeId x = g.in("x", {m, k}, DType::bf16), w = g.in("w", {n, k}, of_w);
  const NodeId y = g.sum(g.m(mul, x, g.m(mul, w, g.num(2, DType::f32))), {k});
  g.out("y", g.cast(out, read_again ? g.m(tanh, y) : g.m(mul, y, g.num(3))), {m, n});
  return g.done();
}

}  // namespace

TEST_CASE("attach is erased, and what only a surrogate needed is dropped") {
  Make g("f");
  const AxisId t = g.ax("t");
  const NodeId x = g.in("x", {t});
  g.out("y", g.m(sub, x, g.attach(x, g.m(tanh, x))), {t});
  const Graph erased = erase_attach(g.done());
  CHECK(has(erased, "= map sub(%0, %0) f32[t]"));  // and x - x stays
  CHECK_FALSE(has(simplify(erased), "tanh"));
}

TEST_CASE("views go through maps, casts, folds and gathers to the inputs, and iotas follow") {
  Make g("f");
  const AxisId n = g.ax("n"), p = g.ax("p"), two = g.ax("two", 2), v = g.ax("v");
  const NodeId x = g.in("x", {n, v}, DType::bf16), i = g.in("i", {n}, DType::i32);
  const NodeId total = g.sum(g.m(exp, x), {v});
  const NodeId s = g.m(add, total, g.gather(x, i, v, IndexPolicy::checked));
  const NodeId numbered = g.m(mul, s, g.cast(DType::f32, g.iota(n)));
  g.out("y", g.split(numbered, n, p, two), {p, two});
  CHECK(squeezed(push_views(g.done())) == R"(f(x: bf16[n, v], i: i32[n])
 %0 = input x bf16[n, v]
 %1 = input i i32[n]
 %12 = view [n = p * extent(two) + two] (%0) bf16[p, two, v]
 %15 = fold sum over v (exp(cast f32 (%12))) f32[p, two] state
 %16 = finish sum (%15) f32[p, two]
 %17 = view [n = p * extent(two) + two] (%1) i32[p, two]
 %18 = at v (%12, %17) bf16[p, two]
 %27 = map mul(add(%16, cast f32 (%18)), cast f32 (add(mul(iota(p), 2), iota(two)))) f32[p, two]
 return y = %27: f32[p, two]
)");
}

TEST_CASE("a split of a merge and a rename of a rename compose; a fold that is read plainly is not computed twice") {
  Make g("f");
  const AxisId a = g.ax("a"), b = g.ax("b"), ab = g.ax("ab"), a2 = g.ax("a2"), v = g.ax("v");
  const NodeId x = g.in("x", {a, b, v});
  const NodeId merged = g.merge(g.m(tanh, x), a, b, ab);
  g.out("y", g.rename(g.split(g.m(exp, merged), ab, a, b), a, a2), {a2, b, v});
  const NodeId total = g.sum(x, {v, b});
  g.out("z", g.m(mul, total, g.rename(total, a, a2)), {a, a2});
  const Graph pushed = push_views(g.done());
  INFO(print(pushed));
  CHECK(has(pushed, "view [a = a2] (%0)"));
  CHECK_FALSE(has(pushed, "ab"));
  int folds = 0;
  for (const Node& node : simplify(pushed).nodes) folds += node.kind == NodeKind::fold ? 1 : 0;
  CHECK(folds == 1);
}

TEST_CASE("a split axis is replaced by its parts, in gradients too; outputs keep their memory") {
  Make g("pairs");
  const AxisId n = g.ax("n"), p = g.ax("p"), pair = g.ax("pair", 2), h = g.ax("h"), v = g.ax("v");
  const NodeId x = g.in("x", {n, h}), w = g.in("w", {v, h});
  const NodeId score = g.sum(g.m(tanh, g.sum(g.m(mul, x, w), {h})), {v});
  const NodeId both = g.split(score, n, p, pair);
  const NodeId first = g.gather(both, g.integer(DType::i32, 0), pair, IndexPolicy::checked);
  const NodeId second = g.gather(both, g.integer(DType::i32, 1), pair, IndexPolicy::checked);
  g.out("loss", g.mean(g.m(softplus, g.m(sub, second, first)), {p}));
  const Graph graph = g.done();
  check_gradient(graph, {"x", "w"}, {4, 2, 2, 3, 2});
  const Graph refined =
      simplify(push_views(refine_splits(differentiate(graph, {.wrt = {"x", "w"}, .output = "loss"}))));
  INFO(print(refined));
  for (NodeId id = 0; id < refined.nodes.size(); ++id) {
    if (refined.node(id).kind != NodeKind::view) continue;
    CHECK(refined.node(refined.operands(id)[0]).kind == NodeKind::input);
  }
  REQUIRE(refined.outputs[1].name == "grad.x");
  CHECK(refined.outputs[1].axes == std::vector<AxisId>{p, pair, h});
  CHECK(refined.outputs[1].declared == std::vector<AxisId>{n, h});
  CHECK(refined.outputs[2].declared.empty());
}

TEST_CASE("large contractions round the operand that meets a 16-bit one, and a result that is read again") {
  const Extents large{1024, 64, 16};  // exactly 2^20 multiplications
  const Graph rounded = round_contractions(product(DType::f32, true), large, {});
  CHECK(has(rounded, "cast f32 (cast bf16 (mul(%1, 2)))"));
  CHECK(has(rounded, "tanh(cast f32 (cast bf16 (%"));
  CHECK(has(round_contractions(product(DType::f32, false), large, {}), "cast bf16 (mul(%1, 2))"));
  CHECK_FALSE(has(round_contractions(product(DType::f32, false, DType::f32), large, {}), "mul(cast f32 (cast bf16 (%"));
  const Extents small{1024, 64, 15};
  CHECK(print(round_contractions(product(DType::f32, true), small, {})) == print(product(DType::f32, true)));
  CHECK(print(round_contractions(product(DType::f32, true), large, {.exact = true})) ==
        print(product(DType::f32, true)));
  const Graph kept = round_contractions(product(DType::f32, true), large, {.keep_large_as = DType::f32});
  CHECK(has(kept, "cast bf16 (mul(%1, 2))"));
  CHECK_FALSE(has(kept, "tanh(cast"));
  Make g("f");  // two f32 operands stay f32
  const AxisId m = g.ax("m"), n = g.ax("n"), k = g.ax("k");
  g.out("y", g.m(tanh, g.sum(g.m(mul, g.in("x", {m, k}), g.in("w", {n, k})), {k})), {m, n});
  const Graph plain = g.done();
  CHECK(print(round_contractions(plain, large, {})) == print(plain));
}

TEST_CASE("a factor rounded for one contraction is rounded for all; sums of contractions are rounded once") {
  Make g("f");
  const AxisId t = g.ax("tokens"), f = g.ax("width"), h = g.ax("hidden");
  const NodeId x = g.in("x", {t, h}), gate = g.in("gate", {f, h}, DType::bf16), up = g.in("up", {f, h}, DType::bf16);
  const NodeId n = g.m(tanh, x);
  const NodeId a = g.sum(g.m(mul, n, gate), {h});
  const NodeId b = g.sum(g.m(mul, n, up), {h});
  g.out("y", g.cast(DType::bf16, g.m(mul, a, g.m(sigmoid, b))), {t, f});
  const Graph gradient =
      prepare(differentiate(g.done(), {.wrt = {"x", "gate", "up"}, .upstreams = {"y"}}), {512, 512, 512}, {});
  INFO(print(gradient));
  int contractions = 0;
  for (NodeId id = 0; id < gradient.nodes.size(); ++id) {
    const auto c = contraction_at(gradient, id);
    if (!c) continue;
    ++contractions;
    for (const NodeId factor : {c->a, c->b}) {
      REQUIRE(gradient.node(factor).kind == NodeKind::cast);
      CHECK(gradient.node(gradient.operands(factor)[0]).dtype == DType::bf16);
    }
  }
  CHECK(contractions == 6);
  // d_n = d_a . gate + d_b . up: added in f32, then rounded.
  bool found = false;
  for (NodeId id = 0; id < gradient.nodes.size(); ++id) {
    if (gradient.node(id).kind != NodeKind::map || gradient.op(id) != add) continue;
    const auto operands = gradient.operands(id);
    found = found || (contraction_at(gradient, operands[0]) && contraction_at(gradient, operands[1]));
  }
  CHECK(found);
}

TEST_CASE("linearize with preparing before the cut saves 16-bit activations in 16 bits") {
  Make g("f");
  const AxisId t = g.ax("tokens"), f = g.ax("width"), h = g.ax("hidden");
  const NodeId x = g.in("x", {t, h}, DType::bf16), w = g.in("w", {f, h}, DType::bf16);
  g.out("y", g.cast(DType::bf16, g.m(tanh, g.sum(g.m(mul, x, w), {h}))), {t, f});
  const Linearized two =
      linearize(g.done(), {.wrt = {"x", "w"}}, [](const Graph& whole) { return prepare(whole, {512, 512, 512}, {}); });
  REQUIRE(two.forward.outputs.size() == 2);
  CHECK(two.forward.outputs[1].dtype == DType::bf16);
  CHECK(two.backward.inputs.back().name == "saved.0");
}

TEST_CASE("a contraction is recognised with its rows, columns, batch and contracted axes") {
  Make g("f");
  const AxisId b = g.ax("b"), m = g.ax("m"), n = g.ax("n"), k = g.ax("k");
  const NodeId x = g.in("x", {b, m, k}), w = g.in("w", {b, n, k}), row = g.in("row", {b, k});
  const NodeId y = g.sum(g.m(mul, x, w), {k});
  const NodeId product_of_rows = g.sum(g.m(mul, x, row), {k});  // a matrix times a vector
  const std::optional<Contraction> c = contraction_at(g.graph(), y);
  REQUIRE(c);
  CHECK(c->batch == AxisSet::of(b));
  CHECK(c->rows == AxisSet::of(m));
  CHECK(c->columns == AxisSet::of(n));
  CHECK(c->contracted == AxisSet::of(k));
  CHECK(contraction_work(*c, {2, 3, 4, 5}) == 120);
  CHECK_FALSE(contraction_at(g.graph(), product_of_rows));
}

TEST_CASE("preparing twice changes nothing, and the second text is the first") {
  Make g("f");
  const AxisId n = g.ax("n"), p = g.ax("p"), two = g.ax("two", 2), h = g.ax("h"), o = g.ax("o");
  const NodeId x = g.in("x", {n, h}, DType::bf16), w = g.in("w", {o, h}, DType::bf16);
  const NodeId y = g.split(g.sum(g.m(mul, x, w), {h}), n, p, two);
  g.out("loss", g.mean(g.m(mul, y, g.m(tanh, y)), {p, two, o}));
  const Graph gradient = differentiate(g.done(), {.wrt = {"x", "w"}, .output = "loss"});
  Extents extents{4096, 2048, 2, 128, 256};
  const Graph once = prepare(gradient, extents, {});
  CHECK(print(prepare(once, extents, {})) == print(once));
}

}  // namespace tigon::dsl::testing
