// Random graphs: preparing keeps every value, and gradients follow finite differences; gradients of gradients too.
#include <cmath>

#include "differentiate_support.hpp"
#include "dsl/reference/random_graph.hpp"

namespace tigon::dsl::testing {
namespace {

// A scalar that depends on every float output (or those with a prefix), not linearly.
Graph with_loss(const Graph& graph, const std::string& name, const std::string& prefix = "") {
  Builder builder{Graph(graph)};
  NodeId loss = no_node;
  for (const OutputInfo& output : graph.outputs) {
    if (!is_floating(output.dtype) || graph.is_state(output.node) || !output.name.starts_with(prefix)) continue;
    const NodeId bent = builder.map(mul, {output.node, builder.map(cos, {output.node})});
    const NodeId part = builder.cast(DType::f64, builder.sum(bent, output.axes));
    loss = loss == no_node ? part : builder.map(add, {loss, part});
  }
  if (loss != no_node) builder.output({.name = name, .node = loss, .dtype = DType::f64, .axes = {}});
  return std::move(builder).finish();
}

bool uses(const Graph& graph, ScalarOp op) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    if (graph.node(id).kind == NodeKind::map && graph.op(id) == op) return true;
  return false;
}

double relative(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  return std::fabs(a - b) / (1 + std::fabs(a));
}

}  // namespace

TEST_CASE("random graphs keep their values when they are prepared") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomGraph random = random_graph(seed, {.steps = 12, .most_elements = 2000, .long_axes = false});
    const EvaluateInputs inputs = random_inputs(random.graph, random.extents, seed, seed % 3 == 0);
    const Graph prepared = prepare(random.graph, random.extents, {.exact = true});
    const std::vector<TensorValue> before = evaluate(random.graph, inputs, {.honour_casts = false});
    const std::vector<TensorValue> after = evaluate(prepared, inputs, {.honour_casts = false});
    REQUIRE(before.size() == after.size());
    for (std::size_t k = 0; k < before.size(); ++k) {
      double worst = 0;
      REQUIRE(before[k].value.size() == after[k].value.size());
      for (std::size_t i = 0; i < before[k].value.size(); ++i) {
        if (!before[k].undetermined.empty() && before[k].undetermined[i] != 0) continue;
        const double distance = relative(before[k].value[i], after[k].value[i]);
        worst = distance <= worst ? worst : distance;  // a NaN on one side only is the worst
        ++compared;
      }
      if (!(worst < 1e-7)) {
        INFO("seed " << seed << "\n" << print(random.graph) << print(prepared));
        CHECK(worst < 1e-7);
      }
    }
  }
  CHECK(compared > 10'000);
}

TEST_CASE("random graphs have the gradients that finite differences show") {
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomGraph random = random_graph(seed, {.steps = 8,
                                                   .most_elements = 400,
                                                   .long_axes = false,
                                                   .empty_axes = false,
                                                   .sixteen_bits = false,
                                                   .discontinuous = false,
                                                   .differentiable = true});
    const Graph graph = with_loss(random.graph, "loss");
    if (graph.outputs.empty() || graph.outputs.back().name != "loss" || uses(graph, mul0)) continue;
    std::vector<std::string> wrt;
    for (const InputInfo& input : graph.inputs)
      if (is_floating(input.dtype) && input.monoid < 0) wrt.push_back(input.name);
    if (wrt.empty()) continue;
    const Graph gradient =
        prepare(differentiate(graph, {.wrt = wrt, .output = "loss"}), random.extents, {.exact = true});
    const EvaluateInputs inputs = random_inputs(graph, random.extents, seed, false);
    const double base = value_of(graph, inputs, "loss").value[0];
    if (!(std::fabs(base) < 1e5)) continue;
    const std::vector<TensorValue> found = evaluate(gradient, inputs, {.honour_casts = false});
    for (std::size_t k = 0; k < graph.inputs.size(); ++k) {
      const std::string name = gradient_name(graph.inputs[k].name);
      const auto output = std::find_if(gradient.outputs.begin(), gradient.outputs.end(),
                                       [&](const OutputInfo& info) { return info.name == name; });
      if (output == gradient.outputs.end()) continue;
      const TensorValue& slopes = found[static_cast<std::size_t>(output - gradient.outputs.begin())];
      for (std::size_t sample = 0; sample < 2 && !slopes.value.empty(); ++sample) {
        const std::size_t i = (seed * 7 + sample * 13) % slopes.value.size();
        EvaluateInputs moved = inputs;
        const double centre = inputs.tensors[k].value[i];
        const auto difference = [&](double step) {
          moved.tensors[k].value[i] = centre + step;
          const double above = value_of(graph, moved, "loss").value[0];
          moved.tensors[k].value[i] = centre - step;
          return (above - value_of(graph, moved, "loss").value[0]) / (2 * step);
        };
        const double step = 1e-4 * (1 + std::fabs(centre));
        const double wide = difference(step);
        const double narrow = difference(step / 2);
        if (!(relative(narrow, wide) < 1e-4)) continue;  // too curved for differences
        ++checked;
        const double expected = (4 * narrow - wide) / 3;
        if (!(relative(expected, slopes.value[i]) < 2e-5)) {
          INFO("seed " << seed << " " << name << "[" << i << "]\n" << print(graph) << print(gradient));
          CHECK(slopes.value[i] == Approx(expected));
        }
      }
    }
  }
  CHECK(checked > 1000);
}

TEST_CASE("a gradient graph is differentiated again") {
  Make g("cross_entropy");
  const AxisId t = g.ax("tokens"), v = g.ax("vocab"), h = g.ax("hidden");
  const NodeId x = g.in("x", {t, h}), w = g.in("weight", {v, h}), y = g.in("target", {t}, DType::i32);
  const NodeId logits = g.sum(g.m(mul, x, w), {h});
  const NodeId valid = g.m(not_equal, y, g.integer(DType::i32, 2));
  const NodeId index = g.m(where, valid, y, g.integer(DType::i32, 0));
  const NodeId nll = g.m(sub, g.lse(logits, v), g.gather(logits, index, v, IndexPolicy::checked));
  g.out("loss", g.mean(g.m(where, valid, nll, g.num(0)), {t}));
  const Graph first = differentiate(g.done(), {.wrt = {"x", "weight"}, .output = "loss"});
  check_gradient(with_loss(first, "curvature", "grad."), {"x", "weight"}, {4, 5, 3}, 3, "curvature", 4);

  Make a("attention");
  const AxisId q = a.ax("query"), k = a.ax("key"), d = a.ax("dim");
  const NodeId qs = a.in("q", {q, d}), ks = a.in("k", {k, d}), vs = a.in("v", {k, d});
  const NodeId scores = a.sum(a.m(mul, qs, ks), {d});
  const NodeId seen = a.m(where, a.m(less_equal, a.iota(k), a.iota(q)), scores, a.num(-INFINITY));
  const NodeId state = a.fold(a.monoid(BuiltinMonoid::logsumexp), {seen}, {k});
  const NodeId mixed = a.sum(a.m(mul, softmax_of(a, seen, state), vs), {k});
  a.out("loss", a.sum(a.m(mul, mixed, a.m(sin, mixed)), {q, d}));
  const Graph once = differentiate(a.done(), {.wrt = {"q", "k", "v"}, .output = "loss"});
  check_gradient(with_loss(once, "curvature", "grad."), {"q", "k", "v"}, {3, 4, 2}, 1, "curvature");
}

}  // namespace tigon::dsl::testing
