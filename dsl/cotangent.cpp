// The algebra of cotangents: addition with common masks and scales taken out, and sums over axes.
#include "dsl/cotangent.hpp"

#include <cmath>

#include "dsl/build_state.hpp"

namespace tigon::dsl {
namespace {

using enum ScalarOp;

bool is_op(const Graph& graph, NodeId id, ScalarOp op) {
  return graph.node(id).kind == NodeKind::map && graph.op(id) == op;
}

// An extent, or a product of extents and positive integers, perhaps cast.
bool is_extent_product(const Graph& graph, NodeId id) {
  const Node& n = graph.node(id);
  if (n.kind == NodeKind::extent) return true;
  if (const auto value = constant_value(graph, id)) return *value > 0 && std::floor(*value) == *value && *value < 1e15;
  if (n.kind == NodeKind::cast && !is_16_bit_float(n.dtype)) return is_extent_product(graph, graph.operands(id)[0]);
  if (is_op(graph, id, mul)) {
    return is_extent_product(graph, graph.operands(id)[0]) && is_extent_product(graph, graph.operands(id)[1]);
  }
  return false;
}

// A host number, an extent, a finite constant, or sums, products, casts and signs of these.
bool is_known_finite(const Graph& graph, NodeId id) {
  const Node& n = graph.node(id);
  if (!n.axes.empty()) return false;
  if (n.kind == NodeKind::scalar) return true;
  if (const auto value = constant_value(graph, id)) return std::isfinite(*value);
  if (is_extent_product(graph, id)) return true;
  if (n.kind == NodeKind::cast && !is_16_bit_float(n.dtype)) return is_known_finite(graph, graph.operands(id)[0]);
  if (n.kind != NodeKind::map) return false;
  const ScalarOp op = graph.op(id);
  if (op != mul && op != neg && op != add && op != sub) return false;
  const auto operands = graph.operands(id);
  return std::all_of(operands.begin(), operands.end(), [&](NodeId operand) { return is_known_finite(graph, operand); });
}

// max(e, c) with a constant c whose reciprocal is finite in f32.
bool is_bounded_away_from_zero(const Graph& graph, NodeId id) {
  if (!graph.node(id).axes.empty() || !is_op(graph, id, max)) return false;
  for (const NodeId operand : graph.operands(id)) {
    const auto floor = constant_value(graph, operand);
    if (floor && *floor > 1e-37) return true;
  }
  return false;
}

std::vector<NodeId> intersection(const std::vector<NodeId>& a, const std::vector<NodeId>& b) {
  std::vector<NodeId> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return common;
}
std::vector<NodeId> difference(const std::vector<NodeId>& a, const std::vector<NodeId>& b) {
  std::vector<NodeId> rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}
void insert_sorted(std::vector<NodeId>& list, NodeId id) {
  list.insert(std::lower_bound(list.begin(), list.end(), id), id);
}

}  // namespace

void CotangentAlgebra::mask(Cotangent& cotangent, NodeId condition) const {
  if (is_op(builder_.graph(), condition, logical_and)) {
    const NodeId left = builder_.graph().operands(condition)[0];
    const NodeId right = builder_.graph().operands(condition)[1];
    mask(cotangent, left);
    mask(cotangent, right);
    return;
  }
  if (!std::binary_search(cotangent.masks.begin(), cotangent.masks.end(), condition)) {
    insert_sorted(cotangent.masks, condition);
  }
}

bool CotangentAlgebra::multiply_scale(Cotangent& cotangent, NodeId factor) const {
  const Graph& graph = builder_.graph();
  if (!is_known_finite(graph, factor)) return false;
  if (const auto number = constant_value(graph, factor)) {
    if (*number == 0) return false;
    cotangent.scale.number *= *number;
  } else {
    insert_sorted(cotangent.scale.factors, factor);
  }
  return true;
}

bool CotangentAlgebra::divide_scale(Cotangent& cotangent, NodeId divisor) const {
  const Graph& graph = builder_.graph();
  if (!graph.node(divisor).axes.empty()) return false;
  if (const auto number = constant_value(graph, divisor)) {
    if (*number == 0 || !std::isfinite(*number)) return false;
    cotangent.scale.number /= *number;
    return true;
  }
  NodeId safe = no_node;
  if (is_extent_product(graph, divisor)) {
    // An empty axis leaves nothing to scale, but 1/0 beside an empty sum would make NaN of its 0.
    safe = builder_.map(max, {divisor, builder_.constant(builder_.node(divisor).dtype, 1)});
  } else if (is_bounded_away_from_zero(graph, divisor)) {
    safe = divisor;
  } else {
    return false;
  }
  const DType dtype = is_floating(builder_.node(safe).dtype) ? arithmetic(builder_.node(safe).dtype) : DType::f32;
  insert_sorted(cotangent.scale.factors, builder_.map(div, {builder_.constant(dtype, 1), safe}));
  return true;
}

void CotangentAlgebra::normalise(Cotangent& cotangent, bool peel) const {
  for (;;) {
    const Graph& graph = builder_.graph();
    if (is_op(graph, cotangent.value, neg)) {
      cotangent.value = graph.operands(cotangent.value)[0];
      cotangent.scale.number = -cotangent.scale.number;
    } else if (peel && is_op(graph, cotangent.value, where) && is_zero(graph, graph.operands(cotangent.value)[2])) {
      const NodeId condition = graph.operands(cotangent.value)[0];
      cotangent.value = graph.operands(cotangent.value)[1];
      mask(cotangent, condition);
    } else {
      return;
    }
  }
}

NodeId CotangentAlgebra::scaled(NodeId value, const Scale& scale) const {
  if (scale.factors.empty() && scale.number == 1) return value;
  const DType dtype = arithmetic(builder_.node(value).dtype);
  NodeId product = builder_.constant(dtype, scale.number);
  for (const NodeId factor : scale.factors) product = builder_.map(mul, {product, builder_.cast(dtype, factor)});
  return builder_.map(mul, {value, product});
}

NodeId CotangentAlgebra::materialise(const Cotangent& cotangent) const {
  return builder_.masked(cotangent.masks, scaled(cotangent.value, cotangent.scale));
}

Cotangent CotangentAlgebra::factor_common(std::span<Cotangent> cotangents) const {
  Cotangent common = cotangents[0];
  common.value = no_node;
  for (const Cotangent& other : cotangents.subspan(1)) {
    common.masks = intersection(common.masks, other.masks);
    common.scale.factors = intersection(common.scale.factors, other.scale.factors);
    if (std::fabs(other.scale.number) != std::fabs(common.scale.number)) common.scale.number = 1;
  }
  for (Cotangent& cotangent : cotangents) {
    const Scale rest{cotangent.scale.number / common.scale.number,
                     difference(cotangent.scale.factors, common.scale.factors)};
    cotangent.value = builder_.masked(difference(cotangent.masks, common.masks), scaled(cotangent.value, rest));
    cotangent.masks.clear();
    cotangent.scale = {};
  }
  return common;
}

Cotangent CotangentAlgebra::add(const Cotangent& a, const Cotangent& b) const {
  std::array<Cotangent, 2> both{a, b};
  Cotangent sum = factor_common(both);
  if (both[0].value == both[1].value) {  // twice the same: a doubled scale
    sum.value = both[0].value;
    sum.scale.number *= 2;
    return sum;
  }
  sum.value = builder_.map(ScalarOp::add, {both[0].value, both[1].value});
  normalise(sum);
  return sum;
}

Cotangent CotangentAlgebra::with_masks_applied(Cotangent cotangent, AxisSet axes) const {
  std::vector<NodeId> outer;
  std::vector<NodeId> inner;
  for (const NodeId condition : cotangent.masks) {
    ((builder_.node(condition).axes & axes).empty() ? outer : inner).push_back(condition);
  }
  cotangent.value = builder_.masked(inner, cotangent.value);
  cotangent.masks = std::move(outer);
  return cotangent;
}

Cotangent CotangentAlgebra::reduce(Cotangent cotangent, AxisSet axes, NodeId incoming) const {
  if (axes.empty()) return cotangent;
  const Graph& graph = builder_.graph();
  if (is_op(graph, cotangent.value, mul)) {
    NodeId a = graph.operands(cotangent.value)[0];
    NodeId b = graph.operands(cotangent.value)[1];
    const AxisSet a_axes = graph.node(a).axes;
    const AxisSet b_axes = graph.node(b).axes;
    const bool contraction =
        !(a_axes & b_axes & axes).empty() && !(a_axes - b_axes).empty() && !(b_axes - a_axes).empty();
    const auto is_incoming = [&](NodeId id) {
      return id == incoming || (graph.node(id).kind == NodeKind::cast && graph.operands(id)[0] == incoming);
    };
    if (contraction) {
      std::vector<NodeId> kept;
      std::vector<NodeId> of_a;
      std::vector<NodeId> of_b;
      for (const NodeId condition : cotangent.masks) {
        const AxisSet mask_axes = builder_.node(condition).axes;
        const bool stays = (mask_axes & axes).empty();
        if (a_axes.contains(mask_axes) && (!stays || is_incoming(a))) of_a.push_back(condition);
        if (b_axes.contains(mask_axes) && (!stays || is_incoming(b))) of_b.push_back(condition);
        if (stays || (!a_axes.contains(mask_axes) && !b_axes.contains(mask_axes))) kept.push_back(condition);
      }
      if (!of_a.empty()) a = builder_.masked(of_a, a);
      if (!of_b.empty()) b = builder_.masked(of_b, b);
      cotangent.value = builder_.map(mul, {a, b});
      cotangent.masks = std::move(kept);
    }
  }
  cotangent = with_masks_applied(std::move(cotangent), axes);
  std::vector<AxisId> present;
  for (const AxisId axis : axes) {
    if (builder_.node(cotangent.value).axes.contains(axis)) {
      present.push_back(axis);
    } else {
      const DType dtype = arithmetic(builder_.node(cotangent.value).dtype);
      const NodeId count = builder_.cast(dtype, builder_.extent(axis));
      if (!multiply_scale(cotangent, count)) cotangent.value = builder_.map(mul, {cotangent.value, count});
    }
  }
  if (!present.empty()) cotangent.value = builder_.sum(cotangent.value, present);
  return cotangent;
}

}  // namespace tigon::dsl
