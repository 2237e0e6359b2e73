// Levels and plans of small graphs: placement, hoisting, refusals, and the two cases that random runs once got wrong.
#include "dsl/levels.hpp"

#include <chrono>
#include <cmath>

#include "levels_cases.hpp"

namespace tigon::dsl::testing {
namespace {

std::vector<NodeId> output_nodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (const OutputInfo& output : graph.outputs) nodes.push_back(output.node);
  return nodes;
}

AxisPlan plan_of(const Graph& graph, AxisId axis, const AxisOptions& options = {}) {
  auto plan = plan_axis(graph, output_nodes(graph), axis, std::vector<bool>(graph.nodes.size()), options);
  if (const auto* refusal = std::get_if<AxisRefusal>(&plan)) FAIL(refusal->reason);
  return std::get<AxisPlan>(std::move(plan));
}
std::string refusal_of(const Graph& graph, AxisId axis) {
  const auto plan = plan_axis(graph, output_nodes(graph), axis, std::vector<bool>(graph.nodes.size()), {});
  const auto* refusal = std::get_if<AxisRefusal>(&plan);
  return refusal == nullptr ? "" : refusal->reason;
}

}  // namespace

TEST_CASE("levels: passes count levels of sinks, not of carriers", "[levels]") {
  Make f;
  const AxisId t = f.ax("t"), v = f.ax("v");
  const NodeId x = f.in("x", {t, v});
  const NodeId y = f.m(exp, x);
  const NodeId best = f.reduce(BuiltinMonoid::argmax, y, {v}, arg_index);
  const NodeId taken = f.gather(y, best, v, IndexPolicy::fill);
  f.out("y", taken, {t});
  const Graph graph = std::move(f).done();
  const std::vector<int> level = levels(graph, output_nodes(graph), v, std::vector<bool>(graph.nodes.size()));
  CHECK(level[x] == 0);
  CHECK(level[y] == 0);
  CHECK(level[best] == 1);
  CHECK(level[taken] == 1);
  const AxisPlan plan = plan_of(graph, v);
  REQUIRE(plan.passes.size() == 2);
  CHECK(plan.passes[0].sinks == std::vector<NodeId>{graph.operands(best)[0]});
  CHECK(plan.passes[0].demanded == std::vector<NodeId>{y});
  CHECK(plan.passes[1].sinks == std::vector<NodeId>{taken});
  CHECK(plan.passes[1].hoisted == std::vector<NodeId>{best});
  CHECK(plan.after.empty());
  CHECK(plan.stored.empty());
  // Along t everything is local.
  CHECK(plan_of(graph, t).passes.size() == 1);
  // A known node ends the cone.
  std::vector<bool> known(graph.nodes.size());
  known[best] = true;
  const auto again = std::get<AxisPlan>(plan_axis(graph, output_nodes(graph), v, known, {}));
  REQUIRE(again.passes.size() == 1);
  CHECK(again.passes[0].hoisted.empty());
}

TEST_CASE("levels: a resident table is read, a computed one selected from or stored", "[levels]") {
  const auto graph_of = [](bool computed, bool windowed) {
    Make f;
    const AxisId t = f.ax("t"), s = f.ax("s");
    NodeId table = f.in("table", {t});
    if (computed) table = f.m(exp, table);
    const NodeId index = windowed ? f.m(add, f.iota(t), f.integer(DType::i64, 1)) : f.in("index", {s}, DType::i32);
    f.out("y", f.gather(table, index, t, IndexPolicy::clamp), {windowed ? t : s});
    return std::move(f).done();
  };
  CHECK(plan_of(graph_of(false, false), 0).passes.empty());
  CHECK(plan_of(graph_of(false, false), 0).after.size() == 1);
  const AxisPlan selected = plan_of(graph_of(true, false), 0);
  REQUIRE(selected.passes.size() == 1);
  CHECK(selected.stored.empty());
  CHECK(selected.after.empty());  // the select is the target
  CHECK(plan_of(graph_of(false, true), 0).passes.size() == 1);
  const AxisPlan windowed = plan_of(graph_of(true, true), 0);
  REQUIRE(windowed.passes.size() == 2);
  CHECK(windowed.stored == windowed.passes[0].sinks);
  const std::vector<NodeId>& later = windowed.passes[1].demanded;
  CHECK(std::find(later.begin(), later.end(), windowed.stored[0]) == later.end());  // not computed again
}

TEST_CASE("levels: a table that is also read locally does not hold its local reader back", "[levels]") {
  Make f;
  const AxisId t = f.ax("t"), s = f.ax("s");
  const NodeId table = f.reduce(BuiltinMonoid::sum, f.in("x", {t, f.ax("k")}), {f.ax("k")});
  const NodeId local = f.m(exp, table);
  f.out("local", local, {t});
  f.out("moved", f.rename(table, t, s), {s});
  const Graph graph = std::move(f).done();
  const AxisPlan plan = plan_of(graph, t);
  REQUIRE(plan.passes.size() == 1);
  CHECK(plan.stored == std::vector<NodeId>{table});
  CHECK(plan.passes[0].sinks == std::vector<NodeId>{table, local});
  CHECK(plan.after.size() == 1);
}

TEST_CASE("levels: maps that carry an inner axis are inlined, their folds hoisted", "[levels]") {
  Make f;
  const AxisId t = f.ax("t"), v = f.ax("v"), h = f.ax("h");
  const NodeId w = f.in("w", {v, h});
  const NodeId norm = f.sum(f.m(mul, w, w), {h});
  const NodeId scaled = f.m(mul, w, f.m(rsqrt, norm));
  const NodeId total = f.sum(f.m(mul, scaled, f.in("x", {t, h})), {h});
  f.out("y", total, {t, v});
  const Graph graph = std::move(f).done();
  AxisOptions options;
  options.rest = AxisSet::of(v);
  CHECK(plan_of(graph, t, options).passes[0].hoisted == std::vector<NodeId>{norm});
  CHECK(plan_of(graph, t).passes[0].hoisted == std::vector<NodeId>{scaled});
  CHECK(plan_of(graph, t).passes[0].heavy);
}

TEST_CASE("levels: a scatter from an axis into itself is refused and otherwise exact", "[levels]") {
  Make f;
  const AxisId t = f.ax("t"), c = f.ax("c");
  const NodeId x = f.m(exp, f.in("x", {t, c}));
  const NodeId scattered = f.scatter(x, f.in("index", {t}, DType::i32), t, {t});
  f.out("y", f.m(mul, scattered, x), {t, c});
  const ChunkCase the = prepared(std::move(f).done(), {{"t", 7}, {"c", 3}}, 7);
  CHECK(refusal_of(the.graph, the.axis("t")).find("into the same axis") != std::string::npos);
  CHECK(refusal_of(the.graph, the.axis("c")).empty());
  const std::vector<TensorValue> expected = evaluate(the.graph, the.inputs, {.honour_casts = false});
  const ChunkedRun run = run_chunked(the.graph, the.inputs, {{{the.axis("c"), 2}}});
  REQUIRE(run.refusal.empty());
  for (std::size_t i = 0; i < expected[0].value.size(); ++i)
    CHECK(run.outputs[0].value[i] == Approx(expected[0].value[i]));
  CHECK(run_chunked(the.graph, the.inputs, {{{the.axis("c"), 2}, {the.axis("t"), 2}}}).refusal.size() > 0);
}

TEST_CASE("levels: merging log-sum-exps of infinities chunk by chunk", "[levels]") {
  Make f;
  const AxisId r = f.ax("r"), v = f.ax("v");
  const NodeId x = f.in("x", {r, v});
  f.out("lse", f.lse(f.m(mul, x, f.num(2)), v), {r});
  f.out("argmax", f.reduce(BuiltinMonoid::argmax, f.m(mul, x, f.num(2)), {v}, arg_index), {r});
  ChunkCase the = prepared(std::move(f).done(), {{"r", 5}, {"v", 7}});
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double>& values = the.inputs.tensors[0].value;
  values[1] = values[5] = infinity;                             // two maxima of infinity in different chunks
  for (std::size_t k = 7; k < 14; ++k) values[k] = -infinity;   // a row of nothing
  for (std::size_t k = 14; k < 20; ++k) values[k] = -infinity;  // whole chunks of nothing
  values[22] = std::nan("");                                    // NaN wins
  values[28] = infinity, values[34] = -infinity;
  for (const i64 size : {1, 2, 3, 7}) {
    const ChunkedRun run = run_chunked(the.graph, the.inputs, {{{the.axis("v"), size}}});
    REQUIRE(run.refusal.empty());
    const std::vector<double>& lse = run.outputs[0].value;
    CHECK(lse[0] == infinity);
    CHECK(lse[1] == -infinity);
    CHECK(lse[2] == 2 * values[20]);
    CHECK(std::isnan(lse[3]));
    CHECK(lse[4] == infinity);
    CHECK(run.outputs[1].value == std::vector<double>{1, 0, 6, 1, 0});
  }
}

TEST_CASE("levels: folds that keep the order are chunked on their outermost axis only", "[levels]") {
  Make f;
  const AxisId a = f.ax("a"), b = f.ax("b");
  Monoid last = builtin_monoid(BuiltinMonoid::max);
  last.name = "ordered";
  last.commutative = false;
  f.out("y", f.finish(f.fold(f.monoid(last), {f.in("x", {a, b})}, {a, b}), 0));
  const Graph graph = std::move(f).done();
  CHECK(refusal_of(graph, a).empty());
  CHECK(refusal_of(graph, b).find("outermost") != std::string::npos);
}

TEST_CASE("levels: a fold among the targets is delivered as its state", "[levels]") {
  Make f;
  const AxisId t = f.ax("t");
  const NodeId state = f.fold(f.monoid(BuiltinMonoid::logsumexp), {f.m(exp, f.in("x", {t}))}, {t});
  f.out("value", f.finish(state, lse_value));
  const Graph graph = std::move(f).done();
  const std::vector<NodeId> targets{state};
  const auto plan = std::get<AxisPlan>(plan_axis(graph, targets, t, std::vector<bool>(graph.nodes.size()), {}));
  REQUIRE(plan.passes.size() == 1);
  CHECK(plan.passes[0].sinks == targets);
  CHECK(plan.after.empty());
}

TEST_CASE("levels: sinks that may go early or late share a pass", "[levels]") {
  Make f;
  const AxisId t = f.ax("t"), v = f.ax("v"), h = f.ax("h");
  const NodeId x = f.in("x", {t, h});
  const NodeId logits = f.sum(f.m(mul, x, f.in("w", {v, h})), {h});
  const NodeId total = f.sum(f.m(mul, logits, logits), {t, v});
  const NodeId sharing = f.sum(f.m(tanh, logits), {t, v});  // either pass; the first has the logits anyway
  const NodeId alone = f.sum(f.m(tanh, x), {t});            // costs the same in either
  f.out("sharing", sharing);
  f.out("alone", alone, {h});
  f.out("y", f.m(mul, x, total), {t, h});
  const Graph graph = std::move(f).done();
  const AxisPlan plan = plan_of(graph, t);
  REQUIRE(plan.passes.size() == 2);
  CHECK(plan.passes[0].heavy);
  CHECK(!plan.passes[1].heavy);
  CHECK(plan.passes[1].sinks.size() == 1);
  CHECK(plan.passes[0].sinks.size() == 3);
}

TEST_CASE("levels: two folds that share a contraction do not hold each other in an early pass", "[levels]") {
  Make f;
  const AxisId t = f.ax("t"), v = f.ax("v"), h = f.ax("h");
  const NodeId logits = f.sum(f.m(mul, f.in("x", {t, h}), f.in("w", {v, h})), {h});
  f.out("first", f.sum(f.m(tanh, logits), {t, v}));
  f.out("second", f.sum(f.m(exp, logits), {t, v}));
  f.out("y", f.m(mul, logits, f.sum(f.in("mask", {t}), {t})), {t, v});
  const AxisPlan plan = plan_of(std::move(f).done(), t);
  REQUIRE(plan.passes.size() == 2);
  CHECK(!plan.passes[0].heavy);
  CHECK(plan.passes[1].sinks.size() == 3);
}

TEST_CASE("levels: small crossing values that only together save an inner pass are stored", "[levels]") {
  Make f;
  const AxisId t = f.ax("t"), v = f.ax("v"), h = f.ax("h");
  const NodeId logits = f.sum(f.m(mul, f.in("x", {t, h}), f.in("w", {v, h})), {h});
  const NodeId a = f.gather(logits, f.in("y", {t}, DType::i32), v, IndexPolicy::checked);
  const NodeId b = f.gather(logits, f.in("z", {t}, DType::i32), v, IndexPolicy::checked);
  const NodeId total = f.sum(f.m(add, a, b), {t});
  f.out("y", f.m(add, f.m(mul, logits, total), f.m(mul, a, b)), {t, v});
  const ChunkCase the = prepared(std::move(f).done(), {{"t", 6}, {"v", 17}, {"h", 5}});
  const ChunkedRun whole = run_chunked(the.graph, the.inputs, {});
  const ChunkedRun run = run_chunked(the.graph, the.inputs, {{{the.axis("t"), 4}, {the.axis("v"), 5}}});
  CHECK(run.stored.size() == 2);
  CHECK(run.passes[0].passes == 2);
  CHECK(run.passes[1].passes == 1);
  CHECK(run.contraction_work == 2 * whole.contraction_work);
  // Chunked over t alone they save nothing.
  CHECK(run_chunked(the.graph, the.inputs, {{{the.axis("t"), 4}}}).stored.empty());
}

TEST_CASE("levels: large graphs are planned in milliseconds", "[levels]") {
  Make f;
  const AxisId t = f.ax("t"), h = f.ax("h");
  NodeId x = f.in("x", {t, h});
  for (int layer = 0; layer < 150; ++layer) {  // 13 nodes each; every normalisation over h is a level more
    const std::string number = std::to_string(layer);
    const NodeId scale = f.m(rsqrt, f.m(add, f.mean(f.m(mul, x, x), {h}), f.num(1e-5)));
    const NodeId w = f.in(("w" + number).c_str(), {h});
    x = f.m(add, x, f.m(tanh, f.m(mul, f.m(mul, x, scale), w)));
    f.out(("s" + number).c_str(), f.sum(f.m(exp, x), {t}), {h});
  }
  f.out("y", x, {t, h});
  const Graph graph = std::move(f).done();
  REQUIRE(graph.nodes.size() > 2000);
  AxisOptions options;
  options.extents = {4096, 1024};
  options.store_large = true;
  const auto start = std::chrono::steady_clock::now();
  const AxisPlan plan = plan_of(graph, t, options);
  const auto taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK(plan.passes.size() == 1);
  CHECK(taken < 1);  // a loaded machine, unoptimised; a few milliseconds otherwise
  const AxisPlan again = plan_of(graph, t, options);
  CHECK(again.passes[0].sinks == plan.passes[0].sinks);
  CHECK(again.work == plan.work);
}

}  // namespace tigon::dsl::testing
