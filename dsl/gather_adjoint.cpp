// Chooses the adjoint of a gather so that atomics and scatters are the last resort.
#include "dsl/gather_adjoint.hpp"

#include "dsl/build_state.hpp"

namespace tigon::dsl {
namespace {

using enum ScalarOp;

constexpr std::int64_t few_positions = 64;  // summing one-hot masks over so many indices beats a scatter

// The one own axis of the index along which it is affine, preferring axes of unknown extent: the others are summed.
struct Inverse {
  AxisId axis = no_axis;
  Affine affine;
};

std::optional<Inverse> find_inverse(Builder& builder, NodeId index, AxisSet own, AxisId gathered) {
  std::optional<Inverse> found;
  for (const AxisId axis : own) {
    const std::optional<Affine> affine = affine_in(builder, index, axis);
    if (!affine) continue;
    if (axis != gathered && builder.node(affine->rest).axes.contains(gathered)) continue;
    const bool known = builder.graph().axes[axis].fixed >= 0;
    if (!found || (!known && builder.graph().axes[found->axis].fixed >= 0)) found = Inverse{axis, *affine};
  }
  return found;
}

// The position along the inverse's axis whose index is iota(gathered); -1 where there is none.
NodeId inverse_index(Builder& builder, const Inverse& inverse, AxisId gathered) {
  const NodeId distance = builder.map(sub, {builder.iota(gathered), inverse.affine.rest});
  const std::int64_t c = inverse.affine.coefficient;
  if (c == 1) return distance;
  if (c == -1) return builder.map(neg, {distance});
  const DType dtype = builder.node(distance).dtype;
  const NodeId step = builder.integer(dtype, c);
  const NodeId exact = builder.map(equal, {builder.map(rem, {distance, step}), builder.integer(dtype, 0)});
  return builder.map(where, {exact, builder.map(floor_div, {distance, step}), builder.integer(dtype, -1)});
}

}  // namespace

std::optional<Affine> affine_in(Builder& builder, NodeId index, AxisId axis) {
  const Graph& graph = builder.graph();
  const Node n = graph.node(index);
  if (!n.axes.contains(axis)) return Affine{0, index};
  if (n.kind == NodeKind::iota) return Affine{1, builder.integer(n.dtype, 0)};
  if (n.kind == NodeKind::cast && !is_floating(n.dtype) && n.dtype != DType::boolean) {
    const std::optional<Affine> inner = affine_in(builder, graph.operands(index)[0], axis);
    if (!inner || is_floating(builder.node(inner->rest).dtype)) return std::nullopt;
    return Affine{inner->coefficient, builder.cast(n.dtype, inner->rest)};
  }
  if (n.kind != NodeKind::map || is_floating(n.dtype)) return std::nullopt;
  const ScalarOp op = graph.op(index);
  if (op != add && op != sub && op != mul && op != neg) return std::nullopt;
  const NodeId left = graph.operands(index)[0];
  const NodeId right = op == neg ? no_node : graph.operands(index)[1];
  const std::optional<Affine> a = affine_in(builder, left, axis);
  if (!a) return std::nullopt;
  if (op == neg) return Affine{-a->coefficient, builder.map(neg, {a->rest})};
  const std::optional<Affine> b = affine_in(builder, right, axis);
  if (!b) return std::nullopt;
  Affine result;
  if (op == mul) {
    const auto factor = constant_value(builder.graph(), a->coefficient == 0 ? a->rest : b->rest);
    if ((a->coefficient != 0 && b->coefficient != 0) || !factor) return std::nullopt;
    const auto whole = static_cast<std::int64_t>(*factor);
    result = {(a->coefficient + b->coefficient) * whole, builder.map(mul, {a->rest, b->rest})};
  } else {
    result.coefficient = op == add ? a->coefficient + b->coefficient : a->coefficient - b->coefficient;
    result.rest = builder.map(op, {a->rest, b->rest});
  }
  if (result.coefficient == 0) return std::nullopt;  // the index does not vary along the axis after all
  return result;
}

GatherAdjoint gather_adjoint(Builder& builder, NodeId gather, Cotangent g) {
  const CotangentAlgebra algebra(builder);
  const GatherInfo info = builder.graph().gathers[builder.node(gather).payload];
  const NodeId table = builder.graph().operands(gather)[0];
  NodeId index = builder.graph().operands(gather)[1];
  const AxisSet shared = builder.node(table).axes - AxisSet::of(info.axis);
  const AxisSet own = builder.node(index).axes - shared;
  GatherAdjoint result;

  if (!own.empty() && info.policy != IndexPolicy::clamp) {
    if (const std::optional<Inverse> inverse = find_inverse(builder, index, own, info.axis)) {
      const AxisSet solved = AxisSet::of(inverse->axis);
      g = algebra.with_masks_applied(std::move(g), solved);
      const NodeId along = builder.broadcast(g.value, solved);
      const NodeId position = inverse_index(builder, *inverse, info.axis);
      g.value = builder.gather(along, position, inverse->axis, IndexPolicy::fill, 0);
      result.table = algebra.reduce(std::move(g), own - solved);
      return result;
    }
  }
  if (info.policy == IndexPolicy::clamp) {
    const NodeId last = builder.map(sub, {builder.extent(info.axis), builder.integer(DType::i64, 1)});
    index = builder.map(clamp, {index, builder.integer(DType::i64, 0), last});
  }
  std::int64_t positions = 1;
  for (const AxisId axis : own) {
    const std::int64_t fixed = builder.graph().axes[axis].fixed;
    positions = fixed < 0 || positions > few_positions ? few_positions + 1 : positions * fixed;
  }
  const bool summed_one_hot = positions <= few_positions && !(builder.node(index).axes & shared).empty();
  if (own.empty() || (summed_one_hot && !own.contains(info.axis))) {
    const NodeId hit = builder.map(equal, {builder.iota(info.axis), index});
    algebra.mask(g, hit);
    result.table = algebra.reduce(std::move(g), own);
    if (own.empty()) result.one_hot = {hit, gather};
    return result;
  }
  std::vector<AxisId> folded;
  for (const AxisId axis : own) folded.push_back(axis);
  g = algebra.with_masks_applied(std::move(g), own);
  g.value = builder.scatter(g.value, index, info.axis, std::move(folded));
  result.table = std::move(g);
  return result;
}

Cotangent scatter_adjoint(Builder& builder, NodeId scatter, Cotangent g) {
  const CotangentAlgebra algebra(builder);
  const ScatterInfo info = builder.graph().scatters[builder.node(scatter).payload];
  const NodeId values = builder.graph().operands(scatter)[0];
  const NodeId index = builder.graph().operands(scatter)[1];
  const AxisSet target = AxisSet::of(info.axis);
  const AxisSet all = builder.node(values).axes | builder.node(index).axes;
  g = algebra.with_masks_applied(std::move(g), target);
  g.value = builder.gather(builder.broadcast(g.value, target), index, info.axis, IndexPolicy::fill, 0);
  return algebra.reduce(std::move(g), all - builder.node(values).axes);
}

}  // namespace tigon::dsl
