// Losses, MLP, attention, norms and the small cases of the table of chunking.
#include "levels_cases.hpp"

#include "dsl/program.hpp"

namespace tigon::dsl::testing {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
using Extents_ = std::vector<std::pair<std::string, std::int64_t>>;

std::size_t find_named(const auto& list, const std::string& name) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].name == name) return i;
  throw std::runtime_error("nothing is called " + name);
}

}  // namespace

AxisId ChunkCase::axis(const std::string& name) const { return static_cast<AxisId>(find_named(graph.axes, name)); }
std::size_t ChunkCase::input(const std::string& name) const { return find_named(graph.inputs, name); }
std::size_t ChunkCase::output(const std::string& name) const { return find_named(graph.outputs, name); }

ChunkCase prepared(const Graph& graph, Extents_ extents, int integer_limit) {
  Extents given(graph.axes.size(), -1);
  for (const auto& [name, extent] : extents) given[find_named(graph.axes, name)] = extent;
  ChunkCase result;
  result.graph = prepare(graph, given, {.exact = true});
  given.resize(result.graph.axes.size(), -1);
  result.inputs = random_inputs(result.graph, given, 7, integer_limit);
  return result;
}

namespace {

Graph with_gradients(Make&& f, std::vector<std::string> wrt, const std::string& output = "loss") {
  return differentiate(std::move(f).done(), {.wrt = std::move(wrt), .output = output});
}
Graph vjp_only(Make&& f, std::vector<std::string> wrt, const std::string& output) {
  return differentiate(std::move(f).done(),
                       {.wrt = std::move(wrt), .output = {}, .upstreams = {output}, .keep_outputs = false});
}

NodeId contract(Make& f, NodeId a, NodeId b, AxisId axis) { return f.sum(f.m(mul, a, b), {axis}); }
NodeId pick(Make& f, NodeId table, NodeId index, AxisId axis) {
  return f.gather(table, index, axis, IndexPolicy::checked);
}

}  // namespace

ChunkCase linear_cross_entropy(Loss loss, CrossEntropySizes sizes) {
  Make f;
  const AxisId t = f.ax("tokens"), v = f.ax("vocab"), h = f.ax("hidden");
  const NodeId x = f.in("x", {t, h}), w = f.in("w", {v, h}), y = f.in("y", {t}, DType::i32);
  NodeId logits = contract(f, x, w, h);
  if (loss == Loss::infinite_logits) logits = f.m(add, logits, f.in("bias", {t, v}));
  if (loss == Loss::z_softcap) {
    const NodeId cap = f.num(3);
    logits = f.m(mul, cap, f.m(tanh, f.m(div, logits, cap)));
  }
  const NodeId lse = f.lse(logits, v);
  NodeId nll = f.m(sub, lse, pick(f, logits, y, v));
  if (loss == Loss::smoothed) {
    const NodeId uniform = f.m(sub, lse, f.mean(logits, {v}));
    nll = f.m(add, f.m(mul, f.num(0.9), nll), f.m(mul, f.num(0.1), uniform));
  }
  if (loss == Loss::z_softcap) nll = f.m(add, nll, f.m(mul, f.num(1e-2), f.m(mul, lse, lse)));
  const NodeId valid = f.m(not_equal, y, f.integer(DType::i32, 1));
  NodeId total = no_node;
  switch (loss) {
    case Loss::none:
      f.out("nll", nll, {t});
      return prepared(differentiate(std::move(f).done(), {.wrt = {"x", "w"}, .output = {}, .upstreams = {"nll"}}),
                      {{"tokens", sizes.tokens}, {"vocab", sizes.vocab}, {"hidden", sizes.hidden}});
    case Loss::ignored_mean:
    case Loss::infinite_logits: {
      const NodeId count = f.sum(f.cast(DType::f32, valid), {t});
      total = f.m(div, f.sum(f.masked(valid, nll), {t}), f.m(max, count, f.num(1)));
      break;
    }
    case Loss::weighted_z: {
      const NodeId weight = pick(f, f.in("weight", {v}), y, v);
      const NodeId z = f.m(mul, f.num(1e-2), f.mean(f.m(mul, lse, lse), {t}));
      total = f.m(add, f.m(div, f.sum(f.m(mul, weight, nll), {t}), f.sum(weight, {t})), z);
      break;
    }
    case Loss::exp_mean_late: {
      const NodeId mean = f.mean(nll, {t});
      f.out("loss", mean);
      const Graph plain = with_gradients(std::move(f), {"x", "w"});
      Builder again(plain);
      const NodeId factor = again.map(exp, {mean});
      again.output({.name = "loss", .node = factor, .axes = {}});
      for (const char* name : {"x", "w"}) {
        const OutputInfo& of = plain.outputs[find_named(plain.outputs, gradient_name(name))];
        again.output({.name = of.name, .node = again.map(mul, {of.node, factor}), .axes = of.axes});
      }
      return prepared(std::move(again).finish(),
                      {{"tokens", sizes.tokens}, {"vocab", sizes.vocab}, {"hidden", sizes.hidden}});
    }
    case Loss::exp_mean:
      total = f.m(exp, f.mean(nll, {t}));
      break;
    default:
      total = f.mean(nll, {t});
  }
  f.out("loss", total);
  return prepared(with_gradients(std::move(f), {"x", "w"}),
                  {{"tokens", sizes.tokens}, {"vocab", sizes.vocab}, {"hidden", sizes.hidden}});
}

ChunkCase distillation() {
  Make f;
  const AxisId t = f.ax("tokens"), v = f.ax("vocab"), hs = f.ax("hidden_student"), ht = f.ax("hidden_teacher");
  const NodeId student = contract(f, f.in("x", {t, hs}), f.in("w", {v, hs}), hs);
  const NodeId teacher = contract(f, f.in("x_teacher", {t, ht}), f.in("w_teacher", {v, ht}), ht);
  const NodeId log_q = f.m(sub, student, f.lse(student, v));
  const NodeId log_p = f.m(sub, teacher, f.lse(teacher, v));
  const NodeId q = f.m(exp, log_q), p = f.m(exp, log_p);
  const NodeId log_m = f.m(log, f.m(add, f.m(mul, f.num(0.3), p), f.m(mul, f.num(0.7), q)));
  const NodeId left = f.m(mul, f.num(0.3), f.m(mul, p, f.m(sub, log_p, log_m)));
  const NodeId right = f.m(mul, f.num(0.7), f.m(mul, q, f.m(sub, log_q, log_m)));
  f.out("loss", f.mean(f.sum(f.m(add, left, right), {v}), {t}));
  return prepared(with_gradients(std::move(f), {"x", "w"}),
                  {{"tokens", 12}, {"vocab", 17}, {"hidden_student", 5}, {"hidden_teacher", 8}});
}

ChunkCase preference() {
  Make f;
  const AxisId b = f.ax("pairs"), p = f.ax("pair"), t = f.ax("time"), v = f.ax("vocab"), h = f.ax("hidden");
  const NodeId y = f.in("y", {b, p, t}, DType::i32);
  const NodeId mask = f.in("mask", {b, p, t}, DType::boolean);
  const auto log_probability = [&](const char* x, const char* w) {
    const NodeId logits = contract(f, f.in(x, {b, p, t, h}), f.in(w, {v, h}), h);
    return f.sum(f.masked(mask, f.m(sub, pick(f, logits, y, v), f.lse(logits, v))), {t});
  };
  const NodeId ratio = f.m(sub, log_probability("x", "w"), log_probability("x_reference", "w_reference"));
  const NodeId sign = f.m(sub, f.num(1), f.m(mul, f.num(2), f.cast(DType::f32, f.iota(p))));
  const NodeId margin = f.sum(f.m(mul, ratio, sign), {p});
  f.out("loss", f.m(neg, f.mean(f.m(log_sigmoid, f.m(mul, f.num(0.1), margin)), {b})));
  return prepared(with_gradients(std::move(f), {"x", "w"}),
                  {{"pairs", 5}, {"pair", 2}, {"time", 4}, {"vocab", 13}, {"hidden", 5}});
}

ChunkCase kto(bool second_forward) {
  Make f;
  const AxisId b = f.ax("batch"), t = f.ax("time"), v = f.ax("vocab"), h = f.ax("hidden");
  const NodeId y = f.in("y", {b, t}, DType::i32);
  const NodeId w = f.in("w", {v, h});
  const auto log_ratio = [&](const char* x, const char* reference) {
    const NodeId logits = contract(f, f.in(x, {b, t, h}), w, h);
    const NodeId logp = f.m(sub, pick(f, logits, y, v), f.lse(logits, v));
    return f.m(sub, f.sum(logp, {t}), f.in(reference, {b}));
  };
  const NodeId ratio = log_ratio("x", "reference");
  const NodeId of_kl = second_forward ? log_ratio("x_kl", "reference_kl") : ratio;
  const NodeId kl = f.attach(f.m(max, f.mean(of_kl, {b}), f.num(0)), no_node);
  const NodeId sign = f.in("sign", {b});
  const NodeId inner = f.m(mul, f.num(0.1), f.m(mul, sign, f.m(sub, ratio, kl)));
  f.out("loss", f.mean(f.m(sub, f.num(1), f.m(sigmoid, inner)), {b}));
  return prepared(with_gradients(std::move(f), {"x", "w"}), {{"batch", 4}, {"time", 4}, {"vocab", 13}, {"hidden", 5}});
}

ChunkCase policy(Policy what) {
  Make f;
  const AxisId b = f.ax("batch"), t = f.ax("time"), v = f.ax("vocab"), h = f.ax("hidden");
  const NodeId y = f.in("y", {b, t}, DType::i32), mask = f.in("mask", {b, t}, DType::boolean);
  const NodeId logits = contract(f, f.in("x", {b, t, h}), f.in("w", {v, h}), h);
  const NodeId logp = f.m(sub, pick(f, logits, y, v), f.lse(logits, v));
  const NodeId advantage = f.in("advantage", {b});
  NodeId log_ratio = f.m(mul, f.num(0.1), f.m(sub, logp, f.in("old", {b, t})));
  if (what != Policy::token) {
    const NodeId length = f.m(max, f.sum(f.cast(DType::f32, mask), {t}), f.num(1));
    log_ratio = f.m(div, f.sum(f.masked(mask, log_ratio), {t}), length);
  }
  const NodeId ratio = f.m(exp, log_ratio);
  const NodeId clipped = f.map(clamp, {ratio, f.num(0.8), f.num(1.2)});
  const NodeId gain = f.m(min, f.m(mul, ratio, advantage), f.m(mul, clipped, advantage));
  NodeId count = f.sum(f.cast(DType::f32, mask), {b, t});
  if (what != Policy::sequence_of_any_count) count = f.m(max, count, f.num(1));
  const NodeId each = f.masked(mask, f.m(neg, gain));
  f.out("loss", f.m(div, f.sum(each, {b, t}), count));
  return prepared(with_gradients(std::move(f), {"x", "w"}), {{"batch", 4}, {"time", 4}, {"vocab", 13}, {"hidden", 5}});
}

ChunkCase swiglu(Mlp what) {
  Make f;
  const AxisId t = f.ax("tokens"), h = f.ax("hidden"), w = f.ax("width"), o = f.ax("out");
  const NodeId x = f.in("x", {t, h});
  const NodeId gate = contract(f, x, f.in("w_gate", {w, h}), h);
  const NodeId up = contract(f, x, f.in("w_up", {w, h}), h);
  const NodeId inner = f.m(mul, f.m(mul, gate, f.m(sigmoid, gate)), up);
  const NodeId y = contract(f, inner, f.in("w_down", {o, w}), w);
  const Extents_ extents{{"tokens", 7}, {"hidden", 6}, {"width", 11}, {"out", 7}};
  const std::vector<std::string> wrt{"x", "w_gate", "w_up", "w_down"};
  if (what == Mlp::squares) {
    f.out("loss", f.sum(f.m(mul, y, y), {t, o}));
    return prepared(with_gradients(std::move(f), wrt), extents);
  }
  f.out("y", y, {t, o});
  if (what == Mlp::forward) return prepared(std::move(f).done(), extents);
  return prepared(vjp_only(std::move(f), wrt, "y"), extents);
}

namespace {

struct Attention {
  AxisId q, k, d, e;
  NodeId queries, keys, values, scores, out;
};
Attention attend(Make& f) {
  Attention a{};
  a.q = f.ax("query");
  a.k = f.ax("key");
  a.d = f.ax("head");
  a.e = f.ax("head_value");
  a.queries = f.in("q", {a.q, a.d});
  a.keys = f.in("k", {a.k, a.d});
  a.values = f.in("v", {a.k, a.e});
  const NodeId scores = contract(f, f.m(mul, a.queries, f.num(0.5)), a.keys, a.d);
  a.scores = f.map(where, {f.m(less_equal, f.iota(a.k), f.iota(a.q)), scores, f.num(minus_infinity)});
  return a;
}
const Extents_ attention_extents{{"query", 7}, {"key", 7}, {"head", 4}, {"head_value", 5}};

}  // namespace

ChunkCase attention_forward() {
  Make f;
  const Attention a = attend(f);
  const NodeId p = f.m(exp, f.m(sub, a.scores, f.lse(a.scores, a.k)));
  f.out("o", contract(f, p, a.values, a.k), {a.q, a.e});
  return prepared(std::move(f).done(), attention_extents);
}

ChunkCase attention_vjp() {
  Make f;
  const Attention a = attend(f);
  const NodeId p = f.m(exp, f.m(sub, a.scores, f.lse(a.scores, a.k)));
  f.out("o", contract(f, p, a.values, a.k), {a.q, a.e});
  return prepared(vjp_only(std::move(f), {"q", "k", "v"}, "o"), attention_extents);
}

ChunkCase attention_vjp_saved() {
  Make f;
  const Attention a = attend(f);
  const NodeId o = f.in("o", {a.q, a.e}), lse = f.in("lse", {a.q}), g = f.in("upstream.o", {a.q, a.e});
  const NodeId p = f.m(exp, f.m(sub, a.scores, lse));
  const NodeId delta = f.sum(f.m(mul, g, o), {a.e});
  const NodeId dp = contract(f, g, a.values, a.e);
  const NodeId ds = f.m(mul, p, f.m(sub, dp, delta));
  f.out("grad.q", f.m(mul, contract(f, ds, a.keys, a.k), f.num(0.5)), {a.q, a.d});
  f.out("grad.k", contract(f, ds, f.m(mul, a.queries, f.num(0.5)), a.q), {a.k, a.d});
  f.out("grad.v", contract(f, p, g, a.q), {a.k, a.e});
  return prepared(std::move(f).done(), attention_extents);
}

ChunkCase rms_norm(bool gradient_first_association) {
  Make f;
  const AxisId t = f.ax("tokens"), h = f.ax("hidden");
  const NodeId x = f.in("x", {t, h}), w = f.in("w", {h});
  const NodeId scale = f.m(rsqrt, f.m(add, f.mean(f.m(mul, x, x), {h}), f.num(1e-5)));
  f.out("y", gradient_first_association ? f.m(mul, f.m(mul, x, w), scale) : f.m(mul, f.m(mul, x, scale), w), {t, h});
  return prepared(differentiate(std::move(f).done(), {.wrt = {"x", "w"}, .output = {}, .upstreams = {"y"}}),
                  {{"tokens", 6}, {"hidden", 19}});
}

namespace {

struct Norm {
  AxisId t, h;
  NodeId x, w;
};
Norm begin_norm(Make& f) {
  Norm n{};
  n.t = f.ax("tokens");
  n.h = f.ax("hidden");
  n.x = f.in("x", {n.t, n.h});
  n.w = f.in("w", {n.h});
  return n;
}
void end_norm(Make& f, const Norm& n, NodeId centred, NodeId variance) {
  const NodeId scale = f.m(rsqrt, f.m(add, variance, f.num(1e-5)));
  f.out("y", f.m(add, f.m(mul, f.m(mul, centred, scale), n.w), f.in("b", {n.h})), {n.t, n.h});
}
void layer_norm(Make& f, bool two_pass) {
  const Norm n = begin_norm(f);
  if (two_pass) {
    const NodeId centred = f.m(sub, n.x, f.mean(n.x, {n.h}));
    return end_norm(f, n, centred, f.mean(f.m(mul, centred, centred), {n.h}));
  }
  const NodeId state = f.fold(f.monoid(BuiltinMonoid::moments), {n.x}, {n.h});
  end_norm(f, n, f.m(sub, n.x, f.finish(state, moments_mean)), f.finish(state, moments_variance));
}
const Extents_ norm_extents{{"tokens", 6}, {"hidden", 19}};

}  // namespace

ChunkCase layer_norm_forward(bool two_pass) {
  Make f;
  layer_norm(f, two_pass);
  return prepared(std::move(f).done(), norm_extents);
}

ChunkCase layer_norm_gradient(Statistics statistics) {
  Make f;
  if (statistics != Statistics::saved) {
    layer_norm(f, statistics == Statistics::two_pass);
    return prepared(vjp_only(std::move(f), {"x", "w", "b"}, "y"), norm_extents);
  }
  const Norm n = begin_norm(f);
  const NodeId mean = f.in("mean", {n.t}), scale = f.in("scale", {n.t}), g = f.in("upstream.y", {n.t, n.h});
  const NodeId normal = f.m(mul, f.m(sub, n.x, mean), scale);
  const NodeId gw = f.m(mul, g, n.w);
  const NodeId rest = f.m(add, f.mean(gw, {n.h}), f.m(mul, normal, f.mean(f.m(mul, gw, normal), {n.h})));
  f.out("grad.x", f.m(mul, scale, f.m(sub, gw, rest)), {n.t, n.h});
  f.out("grad.w", f.sum(f.m(mul, g, normal), {n.t}), {n.h});
  f.out("grad.b", f.sum(g, {n.t}), {n.h});
  return prepared(std::move(f).done(), norm_extents);
}

ChunkCase embedding() {
  Make f;
  const AxisId t = f.ax("tokens"), v = f.ax("vocab"), h = f.ax("hidden");
  const NodeId y = f.in("y", {t}, DType::i32);
  const NodeId row = pick(f, f.in("w", {v, h}), y, v);
  f.out("e", f.masked(f.m(not_equal, y, f.integer(DType::i32, 2)), row), {t, h});
  return prepared(differentiate(std::move(f).done(), {.wrt = {"w"}, .output = {}, .upstreams = {"e"}}),
                  {{"tokens", 11}, {"vocab", 7}, {"hidden", 5}}, 7);
}

ChunkCase predictions() {
  Make f;
  const AxisId t = f.ax("tokens"), v = f.ax("vocab"), h = f.ax("hidden");
  const NodeId logits = contract(f, f.in("x", {t, h}), f.in("w", {v, h}), h);
  const NodeId lse = f.lse(logits, v);
  const NodeId chosen = pick(f, logits, f.in("y", {t}, DType::i32), v);
  const NodeId top = f.fold(f.monoid(BuiltinMonoid::argmax), {logits}, {v});
  f.out("argmax", f.finish(top, arg_index), {t});
  f.out("confidence", f.m(exp, f.m(sub, f.finish(top, arg_value), lse)), {t});
  f.out("rank", f.sum(f.cast(DType::i32, f.m(less, chosen, logits)), {v}), {t});
  const NodeId log_p = f.m(sub, logits, lse);
  f.out("entropy", f.m(neg, f.sum(f.m(mul, f.m(exp, log_p), log_p), {v})), {t});
  return prepared(std::move(f).done(), {{"tokens", 6}, {"vocab", 13}, {"hidden", 5}});
}

ChunkCase affine_composition() {
  Make f;
  const AxisId r = f.ax("rows"), k = f.ax("steps");
  Monoid law{
      .name = "affine", .operand_count = 2, .state = {ValueClass::element, ValueClass::element}, .identity = {1, 0}};
  {
    ProgramBuilder p;
    const auto a = p.input(0), b = p.input(1);
    law.lift = std::move(p).finish({a, b});
  }
  {
    ProgramBuilder p;  // the later function after the earlier one
    const auto a1 = p.input(0), b1 = p.input(1), a2 = p.input(2), b2 = p.input(3);
    const auto slope = p.apply(mul, {a1, a2});
    const auto moved = p.apply(mul, {a2, b1});
    law.merge = std::move(p).finish({slope, p.apply(add, {moved, b2})});
  }
  {
    ProgramBuilder p;
    const auto a = p.input(0), b = p.input(1);
    law.finishes = {{"at_one", ValueClass::element, std::move(p).finish({p.apply(add, {a, b})})}};
  }
  law.commutative = false;
  const NodeId a = f.in("a", {r, k}), b = f.in("b", {r, k});
  const NodeId end = f.finish(f.fold(f.monoid(law), {a, b}, {k}), 0);
  f.out("end", end, {r});
  f.out("centred", f.m(sub, b, end), {r, k});
  return prepared(std::move(f).done(), {{"rows", 5}, {"steps", 11}});
}

ChunkCase moments_of_two_axes() {
  Make f;
  const AxisId r = f.ax("rows"), c = f.ax("columns");
  const NodeId state = f.fold(f.monoid(BuiltinMonoid::moments), {f.in("x", {r, c})}, {r, c});
  f.out("mean", f.finish(state, moments_mean));
  f.out("variance", f.finish(state, moments_variance));
  return prepared(std::move(f).done(), {{"rows", 5}, {"columns", 11}});
}

ChunkCase remapped_vocabulary() {
  Make f;
  const AxisId t = f.ax("tokens"), vs = f.ax("vocab_student"), vt = f.ax("vocab_teacher"), h = f.ax("hidden");
  const NodeId logits = contract(f, f.in("x", {t, h}), f.in("w", {vs, h}), h);
  const NodeId remapped = f.gather(logits, f.in("index", {vt}, DType::i32), vs, IndexPolicy::fill, 0.25);
  const NodeId error = f.m(sub, remapped, f.in("teacher", {t, vt}));
  f.out("loss", f.mean(f.m(mul, error, error), {t, vt}));
  return prepared(with_gradients(std::move(f), {"x", "w"}),
                  {{"tokens", 5}, {"vocab_student", 7}, {"vocab_teacher", 11}, {"hidden", 4}}, 9);
}

ChunkCase window(bool computed) {
  Make f;
  const AxisId t = f.ax("time"), j = f.ax("offset", 3), c = f.ax("channel");
  NodeId x = f.in("x", {t, c});
  if (computed) x = f.m(mul, x, x);
  const NodeId index = f.m(sub, f.m(add, f.iota(t), f.iota(j)), f.integer(DType::i64, 1));
  const NodeId around = f.gather(x, index, t, IndexPolicy::fill);
  f.out("y", f.sum(f.m(mul, around, f.in("kernel", {j, c})), {j}), {t, c});
  return prepared(std::move(f).done(), {{"time", 12}, {"channel", 2}});
}

}  // namespace tigon::dsl::testing
