// The user's names for values survive the passes before planning, also where a pass puts others in their place.
#include "dsl/build.hpp"
#include "dsl/passes.hpp"

namespace tigon::dsl {
namespace {

using enum ScalarOp;

// The kinds of the nodes that bear the name, in order: "fold finish cast".
std::string kinds_named(const Graph& graph, const std::string& name) {
  std::string text;
  for (const NamedNode& named : graph.names) {
    if (named.name != name) continue;
    const Node& n = graph.node(named.node);
    const char* kind = n.kind == NodeKind::fold     ? "fold"
                       : n.kind == NodeKind::finish ? "finish"
                       : n.kind == NodeKind::cast   ? "cast"
                       : n.kind == NodeKind::map    ? "map"
                                                    : "other";
    text += (text.empty() ? "" : " ") + std::string(kind) + "_" + std::string(tigon::name(n.dtype));
  }
  return text;
}

struct Named {
  Builder b{"f"};
  AxisId t = b.axis(nullptr, "t"), v = b.axis(nullptr, "v"), k = b.axis(nullptr, "k");
  NodeId named(NodeId node, const char* name) {
    b.name(node, name);
    return node;
  }
};

}  // namespace

TEST_CASE("names reach maps, reductions and their states") {
  Named f;
  const NodeId x = f.b.input("x", DType::f32, {f.t, f.v});
  const NodeId scaled = f.named(f.b.map(mul, {x, f.b.constant(DType::f32, 3)}), "scaled");
  const NodeId state = f.b.fold(f.b.monoid(BuiltinMonoid::logsumexp), {scaled}, {f.v});
  const NodeId lse = f.named(f.b.finish(state, lse_value), "lse");
  const NodeId kept = f.named(f.b.attach(f.b.map(exp, {f.b.map(sub, {scaled, lse})}), no_node), "p");
  f.b.output({"y", f.b.sum(kept, {f.v}), DType::f32, {f.t}});
  const Graph prepared = prepare(std::move(f.b).finish(), {4, 8}, {});
  CHECK(kinds_named(prepared, "scaled") == "map_f32");
  CHECK(kinds_named(prepared, "lse") == "fold_f32");  // x - lse is (x - max) - log_rest: the finish is gone
  CHECK(kinds_named(prepared, "p") == "map_f32");     // what was attached to is erased
}

TEST_CASE("a large result that is rounded keeps its name on what is stored") {
  Named f;
  const NodeId x = f.b.input("x", DType::bf16, {f.t, f.k}), w = f.b.input("w", DType::bf16, {f.v, f.k});
  const NodeId logits = f.named(f.b.sum(f.b.map(mul, {x, w}), {f.k}), "logits");
  const NodeId top = f.b.finish(f.b.fold(f.b.monoid(BuiltinMonoid::max), {logits}, {f.v}), 0);
  f.b.output({"y", f.b.sum(f.b.map(exp, {f.b.map(sub, {logits, top})}), {f.v}), DType::f32, {f.t}});
  const Graph graph = std::move(f.b).finish();
  CHECK(kinds_named(prepare(graph, {512, 512, 64}, {}), "logits") == "fold_f32 cast_bf16 cast_f32");
  CHECK(kinds_named(prepare(graph, {4, 4, 4}, {}), "logits") == "fold_f32 finish_f32");
}

TEST_CASE("a state that has a name of its own keeps it") {
  Named f;
  const NodeId x = f.b.input("x", DType::f32, {f.t, f.v});
  const NodeId state = f.named(f.b.fold(f.b.monoid(BuiltinMonoid::moments), {x}, {f.v}), "statistics");
  const NodeId mean = f.named(f.b.finish(state, moments_mean), "mean");
  const NodeId variance = f.named(f.b.finish(state, moments_variance), "variance");
  f.b.output({"y", f.b.map(add, {mean, variance}), DType::f32, {f.t}});
  const Graph prepared = prepare(std::move(f.b).finish(), {4, 8}, {});
  CHECK(kinds_named(prepared, "statistics") == "fold_f32");
  CHECK(kinds_named(prepared, "mean") == "finish_f32");
  CHECK(kinds_named(prepared, "variance") == "finish_f32");
}

}  // namespace tigon::dsl
