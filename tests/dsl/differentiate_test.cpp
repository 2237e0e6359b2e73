// Gradients against finite differences, one small graph per rule.
#include "differentiate_support.hpp"

namespace tigon::dsl::testing {
namespace {

// A matrix product, cross entropy with an ignored index, mean over the valid rows.
Graph cross_entropy(DType dtype = DType::f32, bool ignore = true, bool z_loss = false) {
  Make g("cross_entropy");
  const AxisId t = g.ax("tokens"), v = g.ax("vocab"), h = g.ax("hidden");
  const NodeId x = g.in("x", {t, h}, dtype), w = g.in("weight", {v, h}, dtype), y = g.in("target", {t}, DType::i32);
  NodeId logits = g.sum(g.m(mul, x, w), {h});
  if (dtype != DType::f32) logits = g.cast(dtype, logits);
  g.name(logits, "logits");
  const NodeId valid = g.m(not_equal, y, g.integer(DType::i32, 2));
  const NodeId index = ignore ? g.m(where, valid, y, g.integer(DType::i32, 0)) : y;
  const NodeId lse = g.lse(logits, v);
  NodeId nll = g.m(sub, lse, g.gather(logits, index, v, IndexPolicy::checked));
  if (z_loss) nll = g.m(add, nll, g.m(mul, g.scalar("z_scale", DType::f32), g.m(mul, lse, lse)));
  if (ignore) {
    const NodeId kept = g.m(where, valid, nll, g.num(0));
    const NodeId count = g.m(max, g.sum(g.cast(DType::f32, valid), {t}), g.num(1));
    g.out("loss", g.m(div, g.sum(kept, {t}), count));
  } else {
    g.out("loss", g.mean(nll, {t}));
  }
  return g.done();
}

}  // namespace

TEST_CASE("cross entropy: mean, ignored rows, z loss") {
  check_gradient(cross_entropy(DType::f32, false), {"x", "weight"}, {4, 5, 3});
  check_gradient(cross_entropy(), {"x", "weight"}, {4, 5, 3}, 2, "loss", 4);
  check_gradient(cross_entropy(DType::f32, true, true), {"x", "weight"}, {5, 4, 2}, 3, "loss", 4);
  check_gradient(cross_entropy(DType::bf16, false, true), {"x", "weight"}, {4, 5, 3}, 4);
}

TEST_CASE("every smooth scalar operation has the derivative that finite differences show") {
  for (const ScalarOp op : {neg, abs, sqrt, rsqrt, exp, expm1, log, log1p, sin, cos, tanh, erf, sigmoid, softplus,
                            log_sigmoid, relu, log1mexp}) {
    Make g;
    const AxisId t = g.ax("t");
    NodeId x = g.in("x", {t});
    if (op == sqrt || op == rsqrt || op == log || op == log1p) x = g.m(add, g.m(mul, x, x), g.num(0.25));
    if (op == log1mexp) x = g.m(neg, g.m(add, g.m(mul, x, x), g.num(0.25)));
    g.out("loss", g.sum(g.m(mul, g.m(op, x), g.cast(DType::f32, g.m(add, g.iota(t), g.integer(DType::i64, 1)))), {t}));
    check_gradient(g.done(), {"x"}, {5}, static_cast<unsigned>(op));
  }
  for (const ScalarOp op : {add, sub, mul, div, min, max, pow, logaddexp, mul0}) {
    Make g;
    const AxisId t = g.ax("t"), k = g.ax("k");
    NodeId x = g.in("x", {t}), y = g.in("y", {k});
    if (op == pow) x = g.m(add, g.m(mul, x, x), g.num(0.25));
    const NodeId r = g.m(op, x, y);
    g.out("loss", g.sum(g.m(mul, r, g.m(sin, r)), {t, k}));
    check_gradient(g.done(), {"x", "y"}, {3, 4}, 100 + static_cast<unsigned>(op));
  }
  Make g;
  const AxisId t = g.ax("t");
  const NodeId x = g.in("x", {t}), lo = g.in("lo", {}), hi = g.in("hi", {t});
  g.out("loss", g.sum(g.m(mul, g.m(clamp, x, g.m(sub, lo, g.num(2.2)), g.m(add, hi, g.num(1.7))), x), {t}));
  check_gradient(g.done(), {"x", "lo", "hi"}, {7}, 9);
}

TEST_CASE("norms: mean square and moments") {
  Make g;
  const AxisId t = g.ax("tokens"), h = g.ax("hidden");
  const NodeId x = g.in("x", {t, h}), w = g.in("weight", {h});
  const NodeId r = g.m(rsqrt, g.m(add, g.mean(g.m(mul, x, x), {h}), g.scalar("eps", DType::f32)));
  const NodeId y = g.m(mul, g.m(mul, x, r), w);
  g.out("loss", g.sum(g.m(mul, y, g.m(sin, y)), {t, h}));
  check_gradient(g.done(), {"x", "weight"}, {3, 4});

  Make l;
  const AxisId lt = l.ax("tokens"), lg = l.ax("groups"), lh = l.ax("hidden");
  const NodeId lx = l.in("x", {lt, lg, lh}), lw = l.in("weight", {lh});
  const NodeId state = l.fold(l.monoid(BuiltinMonoid::moments), {lx}, {lg, lh});
  const NodeId centred = l.m(sub, lx, l.finish(state, moments_mean));
  const NodeId scale = l.m(rsqrt, l.m(add, l.finish(state, moments_variance), l.num(1e-2)));
  const NodeId ly = l.m(mul, l.m(mul, centred, scale), lw);
  l.out("loss", l.sum(l.m(mul, ly, l.m(sin, ly)), {lt, lg, lh}));
  check_gradient(l.done(), {"x", "weight"}, {2, 2, 3});
}

TEST_CASE("softmax attention, jensen-shannon, and a max over two axes") {
  Make g;
  const AxisId q = g.ax("query"), k = g.ax("key"), d = g.ax("dim");
  const NodeId qs = g.in("q", {q, d}), ks = g.in("k", {k, d}), vs = g.in("v", {k, d});
  const NodeId scores = g.m(mul, g.sum(g.m(mul, qs, ks), {d}), g.num(0.7));
  const NodeId causal = g.m(where, g.m(less_equal, g.iota(k), g.iota(q)), scores, g.num(-INFINITY));
  const NodeId state = g.fold(g.monoid(BuiltinMonoid::logsumexp), {causal}, {k});
  const NodeId o = g.sum(g.m(mul, softmax_of(g, causal, state), vs), {k});
  g.out("loss", g.sum(g.m(mul, o, g.m(sin, o)), {q, d}));
  check_gradient(g.done(), {"q", "k", "v"}, {3, 4, 2});

  Make j;
  const AxisId t = j.ax("t"), v = j.ax("v");
  const NodeId a = j.in("a", {t, v}), b = j.in("b", {t, v});
  const NodeId s = j.m(sub, a, j.lse(a, v)), r = j.m(sub, b, j.lse(b, v));
  const NodeId mix = j.m(logaddexp, j.m(add, s, j.num(std::log(0.3))), j.m(add, r, j.num(std::log(0.7))));
  const NodeId left = j.m(mul0, j.m(exp, s), j.m(sub, s, mix)), right = j.m(mul0, j.m(exp, r), j.m(sub, r, mix));
  j.out("loss", j.mean(j.sum(j.m(add, j.m(mul, j.num(0.3), left), j.m(mul, j.num(0.7), right)), {v}), {t}));
  check_gradient(j.done(), {"a", "b"}, {2, 4});

  Make m;
  const AxisId mt = m.ax("t"), mi = m.ax("i"), mj = m.ax("j");
  const NodeId x = m.in("x", {mt, mi, mj});
  const NodeId top = m.reduce(BuiltinMonoid::max, x, {mi, mj}),
               low = m.reduce(BuiltinMonoid::argmin, x, {mj}, arg_value);
  m.out("loss", m.m(add, m.sum(m.m(mul, top, top), {mt}), m.sum(m.m(sin, low), {mt, mi})));
  check_gradient(m.done(), {"x"}, {2, 3, 4});
}

TEST_CASE("gathers: one-hot, constant, affine in an own axis, window on its own axis, embedding, top-k, clamp, fill") {
  Make g;
  const AxisId t = g.ax("t"), two = g.ax("two", 2), half = g.ax("half");
  const NodeId x = g.in("x", {t, two, half});
  const NodeId flipped = g.gather(x, g.m(sub, g.integer(DType::i64, 1), g.iota(two)), two, IndexPolicy::checked);
  const NodeId first = g.gather(x, g.integer(DType::i32, 0), two, IndexPolicy::checked);
  g.out("loss", g.sum(g.m(mul, g.m(mul, flipped, x), g.m(sin, first)), {t, two, half}));
  const Graph rope = g.done();
  check_gradient(rope, {"x"}, {2, 2, 3});
  CHECK(print(differentiate(rope, {.wrt = {"x"}, .output = "loss"})).find("scatter") == std::string::npos);

  Make c;  // a convolution with stride 2, dilation 1 and padding, out of range reads 0
  const AxisId row = c.ax("row"), out = c.ax("out"), tap = c.ax("tap", 3);
  const NodeId image = c.in("x", {row}), kernel = c.in("kernel", {tap});
  const NodeId place =
      c.m(sub, c.m(add, c.m(mul, c.iota(out), c.integer(DType::i64, 2)), c.iota(tap)), c.integer(DType::i64, 1));
  const NodeId taps = c.gather(image, place, row, IndexPolicy::fill, 0);
  const NodeId convolved = c.sum(c.m(mul, taps, kernel), {tap});
  c.out("loss", c.sum(c.m(mul, convolved, c.m(cos, convolved)), {out}));
  const Graph convolution = c.done();
  check_gradient(convolution, {"x", "kernel"}, {7, 4, 3});
  CHECK(print(differentiate(convolution, {.wrt = {"x"}, .output = "loss"})).find("scatter") == std::string::npos);

  Make w;  // a window over its own axis
  const AxisId s = w.ax("s"), win = w.ax("window", 3), d = w.ax("d");
  const NodeId keys = w.in("k", {s, d});
  const NodeId at = w.m(sub, w.m(add, w.iota(s), w.iota(win)), w.integer(DType::i64, 1));
  const NodeId near = w.gather(keys, at, s, IndexPolicy::fill, 0);
  const NodeId score = w.sum(w.m(mul, near, keys), {d});
  w.out("loss", w.sum(w.m(sin, score), {s, win}));
  check_gradient(w.done(), {"k"}, {5, 3, 2});

  for (const IndexPolicy policy : {IndexPolicy::checked, IndexPolicy::fill, IndexPolicy::clamp}) {
    Make e;
    const AxisId tokens = e.ax("tokens"), vocab = e.ax("vocab"), hidden = e.ax("hidden");
    const NodeId table = e.in("table", {vocab, hidden}), ids = e.in("ids", {tokens}, DType::i32);
    const NodeId rows = e.gather(table, ids, vocab, policy, 0.5);
    e.out("loss", e.sum(e.m(mul, rows, e.m(sin, rows)), {tokens, hidden}));
    const int limit = policy == IndexPolicy::checked ? 3 : 6;
    const Graph embedding = e.done();
    check_gradient(embedding, {"table"}, {6, 3, 2}, 5, "loss", limit);
    CHECK(print(differentiate(embedding, {.wrt = {"table"}, .output = "loss"})).find("scatter to vocab") !=
          std::string::npos);
  }

  Make k;
  const AxisId kt = k.ax("t"), kv = k.ax("v"), top = k.ax("top", 2);
  const NodeId logits = k.in("x", {kt, kv}), indices = k.in("indices", {kt, top}, DType::i32);
  const NodeId chosen = k.gather(logits, indices, kv, IndexPolicy::checked);
  k.out("loss", k.sum(k.m(mul, chosen, k.m(sin, chosen)), {kt, top}));
  const Graph top_k = k.done();
  check_gradient(top_k, {"x"}, {3, 4, 2}, 6, "loss", 4);
  CHECK(print(differentiate(top_k, {.wrt = {"x"}, .output = "loss"})).find("scatter") == std::string::npos);

  Make r;  // a scatter's own gradient
  const AxisId rt = r.ax("t"), rv = r.ax("v");
  const NodeId values = r.in("x", {rt}), target = r.in("target", {rt}, DType::i32);
  const NodeId bins = r.scatter(values, target, rv, {rt});
  r.out("loss", r.sum(r.m(mul, bins, r.m(sin, bins)), {rv}));
  check_gradient(r.done(), {"x"}, {5, 3});
}

TEST_CASE("a relu network: masks go onto the cotangent, and every product stays a contraction") {
  Make g("mlp");
  const AxisId t = g.ax("tokens"), f = g.ax("width"), h = g.ax("hidden"), o = g.ax("out");
  const NodeId x = g.in("x", {t, h}), up = g.in("up", {f, h}), down = g.in("down", {o, f});
  const NodeId inner = g.m(relu, g.sum(g.m(mul, x, up), {h}));
  const NodeId y = g.sum(g.m(mul, inner, down), {f});
  g.out("loss", g.mean(g.m(mul, y, g.m(sin, y)), {t, o}));
  const Graph graph = g.done();
  check_gradient(graph, {"x", "up", "down"}, {4, 5, 3, 2});
  const Graph gradient =
      prepare(differentiate(graph, {.wrt = {"x", "up", "down"}, .output = "loss"}), {4, 5, 3, 2}, {});
  INFO(print(gradient));
  int contractions = 0;
  for (NodeId id = 0; id < gradient.nodes.size(); ++id) contractions += contraction_at(gradient, id) ? 1 : 0;
  CHECK(contractions == 6);
}

TEST_CASE("a clipped policy ratio: min, clamp, a reference, masks per token, a mean per sequence") {
  Make g("grpo");
  const AxisId b = g.ax("batch"), s = g.ax("time"), v = g.ax("vocab");
  const NodeId x = g.in("x", {b, s, v}), y = g.in("chosen", {b, s}, DType::i32),
               keep = g.in("keep", {b, s}, DType::i32);
  const NodeId advantage = g.in("advantage", {b}), old = g.in("old", {b, s});
  const NodeId logp = g.m(sub, g.gather(x, y, v, IndexPolicy::checked), g.lse(x, v));
  const NodeId ratio = g.m(exp, g.m(sub, logp, old));
  const NodeId plain = g.m(mul, ratio, advantage);
  const NodeId clipped = g.m(mul, g.m(clamp, ratio, g.num(0.8), g.num(1.3)), advantage);
  const NodeId gap = g.m(sub, old, logp);
  const NodeId kl = g.m(sub, g.m(expm1, gap), gap);
  const NodeId each = g.m(sub, g.m(mul, kl, g.scalar("beta", DType::f32)), g.m(min, plain, clipped));
  const NodeId valid = g.m(not_equal, keep, g.integer(DType::i32, 0));
  const NodeId count = g.m(max, g.sum(g.cast(DType::f32, valid), {s}), g.num(1));
  const NodeId total = g.sum(g.m(where, valid, each, g.num(0)), {s});
  g.out("loss", g.mean(g.m(div, total, count), {b}));
  const Graph graph = g.done();
  for (unsigned seed = 0; seed < 4; ++seed) check_gradient(graph, {"x", "old", "advantage"}, {2, 3, 4}, seed);
}

TEST_CASE("views: split, merge, rename and broadcast") {
  Make g;
  const AxisId n = g.ax("n"), p = g.ax("p"), pair = g.ax("pair", 2), m = g.ax("m"), n2 = g.ax("n2");
  const NodeId x = g.in("x", {n, m});
  const NodeId halves = g.split(x, n, p, pair);
  const NodeId gap = g.m(sub, g.gather(halves, g.integer(DType::i32, 0), pair, IndexPolicy::checked),
                         g.gather(halves, g.integer(DType::i32, 1), pair, IndexPolicy::checked));
  const NodeId gram = g.sum(g.m(mul, x, g.rename(x, n, n2)), {m});
  const AxisId flat = g.ax("flat");
  const NodeId merged = g.merge(g.m(mul, gap, g.m(sin, gap)), p, m, flat);
  const NodeId lone = g.merge(g.sum(gap, {p}), p, m, flat);  // repeats along p
  const NodeId wide = g.m(mul, g.m(sin, merged), g.cast(DType::f32, g.iota(flat)));
  g.out("loss",
        g.m(add, g.m(add, g.sum(wide, {flat}), g.sum(g.m(mul, lone, merged), {flat})), g.sum(g.m(cos, gram), {n, n2})));
  check_gradient(g.done(), {"x"}, {4, -1, 2, 3, 4, -1});
}

TEST_CASE("stop_gradient and custom gradients come from attach") {
  Make g;
  const AxisId t = g.ax("t");
  const NodeId x = g.in("x", {t});
  const NodeId ratio = g.m(exp, g.m(sub, x, g.attach(x, no_node)));         // 1, with derivative 1
  g.out("loss", g.sum(g.m(mul, ratio, g.attach(g.m(mul, x, x), x)), {t}));  // d = x * x + 1
  const Graph graph = g.done();
  const Graph gradient = prepare(differentiate(graph, {.wrt = {"x"}, .output = "loss"}), {4}, {});
  const EvaluateInputs inputs = random_inputs(gradient, {4}, 1);
  const TensorValue found = value_of(gradient, inputs, "grad.x");
  for (std::size_t i = 0; i < 4; ++i) {
    const double v = inputs.tensors[0].value[i];
    CHECK(found.value[i] == Approx(v * v + 1));
  }
}

}  // namespace tigon::dsl::testing
