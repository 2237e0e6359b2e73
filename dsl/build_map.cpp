// Constants, casts and maps: dtypes of operands, commutative order, the safe folds, and the normal form of masks.
#include <cmath>

#include "dsl/build_state.hpp"
#include "dsl/scalar_table.hpp"
#include "dsl/whole.hpp"

namespace tigon::dsl {
namespace {

// Whether every value of `narrow` is a value of `wide`.
bool represents(DType wide, DType narrow) {
  if (wide == narrow) return true;
  switch (narrow) {
    case DType::boolean:
      return true;
    case DType::i32:
      return wide == DType::i64 || wide == DType::f64;
    case DType::bf16:
    case DType::f16:
      return wide == DType::f32 || wide == DType::f64;
    case DType::f32:
      return wide == DType::f64;
    default:
      return false;
  }
}

bool is_map(const Graph& graph, NodeId id, ScalarOp op) {
  return graph.node(id).kind == NodeKind::map && graph.op(id) == op;
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

// The finish of a logsumexp's state, if the node is one.
std::optional<NodeId> state_of_logsumexp(const Graph& graph, NodeId id) {
  if (graph.node(id).kind != NodeKind::finish || graph.node(id).payload != lse_value) return std::nullopt;
  const NodeId state = graph.operands(id)[0];
  if (graph.monoid_of(state).name != builtin_monoid(BuiltinMonoid::logsumexp).name) return std::nullopt;
  return state;
}

}  // namespace

std::optional<double> constant_value(const Graph& graph, NodeId id) {
  const Node& n = graph.node(id);
  if (n.kind != NodeKind::constant) return std::nullopt;
  const Constant& constant = graph.constants[n.payload];
  const bool whole = n.dtype == DType::i32 || n.dtype == DType::i64;
  return whole ? static_cast<double>(constant.integer) : constant.number;
}

bool is_zero(const Graph& graph, NodeId id) {
  const std::optional<double> value = constant_value(graph, id);
  return value && same_bits(*value, 0.0);
}

NodeId Builder::constant(DType dtype, double value) {
  if (dtype == DType::i32 || dtype == DType::i64) return integer(dtype, nearest_integer(dtype, value));
  if (dtype == DType::boolean) value = value != 0 ? 1 : 0;
  if (dtype == DType::bf16) value = to_f32(to_bf16(static_cast<float>(value)));
  if (dtype == DType::f16) value = to_f32(to_f16(static_cast<float>(value)));
  std::vector<Constant>& table = state_->graph.constants;
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Constant& c) { return same_bits(c.number, value) && c.integer == 0; });
  const auto payload = static_cast<std::uint32_t>(found - table.begin());
  if (found == table.end()) table.push_back({value, 0});
  return state_->intern(NodeKind::constant, dtype, payload, {}, {});
}

NodeId Builder::integer(DType dtype, std::int64_t value) {
  if (dtype != DType::i32 && dtype != DType::i64) return constant(dtype, static_cast<double>(value));
  std::vector<Constant>& table = state_->graph.constants;
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Constant& c) { return same_bits(c.number, 0.0) && c.integer == value; });
  const auto payload = static_cast<std::uint32_t>(found - table.begin());
  if (found == table.end()) table.push_back({0.0, value});
  return state_->intern(NodeKind::constant, dtype, payload, {}, {});
}

NodeId Builder::cast(DType dtype, NodeId operand) {
  const Graph& graph = state_->graph;
  if (node(operand).dtype == dtype) return operand;
  if (const std::optional<double> value = constant_value(graph, operand)) {
    const bool exact = node(operand).dtype != DType::i64 || std::fabs(*value) < 9007199254740992.0;  // 2^53
    const double limit = dtype == DType::i32 ? 2147483648.0 : 9007199254740992.0;
    const bool fits = is_floating(dtype) || dtype == DType::boolean || std::fabs(*value) < limit;  // NaN does not fit
    if (exact && fits) return constant(dtype, *value);
  }
  if (node(operand).kind == NodeKind::cast) {
    const NodeId inner = graph.operands(operand)[0];
    if (represents(node(operand).dtype, node(inner).dtype) && dtype != DType::boolean) return cast(dtype, inner);
  }
  return state_->intern(NodeKind::cast, dtype, 0, node(operand).axes, std::span(&operand, 1));
}

NodeId Builder::map(ScalarOp op, std::span<const NodeId> given) {
  const ScalarOpInfo& row = info(op);
  if (static_cast<int>(given.size()) != row.arity) {
    throw Error({.kind = ErrorKind::internal,
                 .function = std::string(row.name),
                 .found = std::to_string(given.size()),
                 .expected = std::to_string(row.arity)},
                "wrong number of operands");
  }
  std::array<NodeId, 3> ids{};
  std::array<DType, 3> dtypes{};
  for (std::size_t i = 0; i < given.size(); ++i) dtypes[i] = node(given[i]).dtype;
  const std::span<const DType> found(dtypes.data(), given.size());
  AxisSet axes;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const DType wanted = operand_dtype(op, found, static_cast<int>(i));
    const bool truth = wanted == DType::boolean && dtypes[i] != DType::boolean;
    ids[i] = truth ? map(ScalarOp::not_equal, {given[i], constant(dtypes[i], 0)}) : cast(wanted, given[i]);
    axes |= node(ids[i]).axes;
  }
  const std::span<NodeId> operands(ids.data(), given.size());
  if (row.commutative && operands[0] > operands[1]) std::swap(operands[0], operands[1]);
  if (const std::optional<NodeId> simpler = fold_map(*this, op, operands)) return *simpler;
  return state_->intern(NodeKind::map, result_dtype(op, found), static_cast<std::uint32_t>(op), axes, operands);
}

NodeId Builder::masked(std::span<const NodeId> conditions, NodeId value) {
  std::vector<NodeId> masks;
  const auto take_apart = [&](const auto& self, NodeId condition) -> void {
    if (is_map(graph(), condition, ScalarOp::logical_and)) {
      const NodeId left = graph().operands(condition)[0];
      const NodeId right = graph().operands(condition)[1];
      self(self, left);
      self(self, right);
    } else {
      masks.push_back(condition);
    }
  };
  for (const NodeId condition : conditions) take_apart(take_apart, condition);
  // Masks that the value already carries join the set.
  while (is_map(graph(), value, ScalarOp::where) && is_zero(graph(), graph().operands(value)[2])) {
    const NodeId condition = graph().operands(value)[0];
    value = graph().operands(value)[1];
    take_apart(take_apart, condition);
  }
  std::sort(masks.begin(), masks.end(), [&](NodeId a, NodeId b) {
    const int a_axes = node(a).axes.size();
    const int b_axes = node(b).axes.size();
    return a_axes != b_axes ? a_axes < b_axes : a < b;
  });
  masks.erase(std::unique(masks.begin(), masks.end()), masks.end());
  for (auto mask = masks.rbegin(); mask != masks.rend(); ++mask) {
    value = map(ScalarOp::where, {*mask, value, constant(node(value).dtype, 0)});
  }
  return value;
}

// ---- the safe folds: exact for every value, NaN's sign and payload aside
// --------------------------------------------- constants: any op on constants, in f64 (integers: add, sub, mul, neg
// exactly in 64 bits) x * 1, x / 1, x + -0.0, x - +0.0, integer x + 0                          -> x x * -1 -> neg(x)
// neg(neg(x)) -> x                          signs move outwards through mul and div x + neg(y) -> x - y             x -
// neg(y) -> x + y                       neg(x) + y -> y - x neg(x - y) is left alone (the sign of a zero differs)
// not(not(c)) -> c, not(a == b) -> a != b, not(a != b) -> a == b, and/or of equal operands
// where(c, 0, b) -> where(not(c), b, 0), else where(not(c), a, b) -> where(c, b, a), where(c, a, a) -> a, where(c,
// where(c, a, b), d) -> where(c, a, d) min(x, x), max(x, x) -> x       mul0(constant p, v) -> 0 or p * v x - lse -> (x
// - max) - log_rest and lse - x -> (max - x) + log_rest: a confident target keeps its full precision Never: 0 * x, x -
// x, x / x, x + +0.0 on floats, anything through attach, reassociation across a cast.
namespace {

// A rewrite may drop an operand only when the result still varies over the same axes.
std::optional<NodeId> keeping_axes(const Builder& builder, NodeId result, std::span<const NodeId> operands) {
  AxisSet axes;
  for (const NodeId operand : operands) axes |= builder.node(operand).axes;
  if (builder.node(result).axes == axes) return result;
  return std::nullopt;
}

std::optional<NodeId> fold_constants(Builder& builder, ScalarOp op, std::span<const NodeId> operands) {
  const Graph& graph = builder.graph();
  std::array<double, 3> values{};
  std::array<DType, 3> dtypes{};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::optional<double> value = constant_value(graph, operands[i]);
    if (!value) return std::nullopt;
    values[i] = *value;
    dtypes[i] = graph.node(operands[i]).dtype;
  }
  const DType result = result_dtype(op, std::span(dtypes.data(), operands.size()));
  const DType computed =
      operand_dtype(op, std::span(dtypes.data(), operands.size()), static_cast<int>(operands.size()) - 1);
  if (is_whole(computed)) {
    std::array<std::int64_t, 3> whole{};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Constant& constant = graph.constants[graph.node(operands[i]).payload];
      whole[i] = is_whole(dtypes[i]) ? wrap(computed, constant.integer) : constant.number != 0;
    }
    const auto exact = whole_result(op, computed, std::span(whole.data(), operands.size()));
    if (!exact) return std::nullopt;
    return is_whole(result) ? builder.integer(result, *exact) : builder.constant(result, static_cast<double>(*exact));
  }
  return builder.constant(result, info(op).reference(values[0], values[1], values[2]));
}

std::optional<NodeId> fold_arithmetic(Builder& builder, ScalarOp op, std::span<const NodeId> x) {
  using enum ScalarOp;
  const Graph& graph = builder.graph();
  const auto operand_of = [&](NodeId id) { return graph.operands(id)[0]; };
  const auto number = [&](NodeId id) { return constant_value(graph, id); };
  const auto is_neg = [&](NodeId id) { return is_map(graph, id, neg); };
  const bool floating = is_floating(builder.node(x[0]).dtype);
  const auto zero = [&](NodeId id, bool negative) {
    const auto value = number(id);
    return value && *value == 0 && (!floating || std::signbit(*value) == negative);
  };
  switch (op) {
    case neg:
      if (is_neg(x[0])) return operand_of(x[0]);
      return std::nullopt;
    case add:
      if (zero(x[0], true)) return x[1];
      if (zero(x[1], true)) return x[0];
      if (is_neg(x[1])) return builder.map(sub, {x[0], operand_of(x[1])});
      if (is_neg(x[0])) return builder.map(sub, {x[1], operand_of(x[0])});
      return std::nullopt;
    case sub:
      if (zero(x[1], false)) return x[0];
      if (is_neg(x[1])) return builder.map(add, {x[0], operand_of(x[1])});
      if (const auto state = state_of_logsumexp(graph, x[1])) {
        const NodeId lead = builder.map(sub, {x[0], builder.finish(*state, lse_max)});
        return builder.map(sub, {lead, builder.finish(*state, lse_log_rest)});
      }
      if (const auto state = state_of_logsumexp(graph, x[0])) {
        const NodeId lead = builder.map(sub, {builder.finish(*state, lse_max), x[1]});
        return builder.map(add, {lead, builder.finish(*state, lse_log_rest)});
      }
      return std::nullopt;
    case mul:
      for (int i = 0; i < 2; ++i) {
        const auto factor = number(x[i]);
        if (factor && *factor == 1) return x[1 - i];
        if (factor && *factor == -1) return builder.map(neg, {x[1 - i]});
        if (factor && is_neg(x[1 - i])) return builder.map(mul, {builder.map(neg, {x[i]}), operand_of(x[1 - i])});
      }
      for (int i = 0; i < 2; ++i)
        if (is_neg(x[i])) return builder.map(neg, {builder.map(mul, {operand_of(x[i]), x[1 - i]})});
      return std::nullopt;
    case div:
      if (number(x[1]) && *number(x[1]) == 1) return x[0];
      if (is_neg(x[0])) return builder.map(neg, {builder.map(div, {operand_of(x[0]), x[1]})});
      if (is_neg(x[1])) return builder.map(neg, {builder.map(div, {x[0], operand_of(x[1])})});
      return std::nullopt;
    case min:
    case max:
      if (x[0] == x[1]) return x[0];
      return std::nullopt;
    case mul0:
      if (const auto factor = number(x[0])) {
        if (*factor != 0) return builder.map(mul, x);
        return keeping_axes(builder, builder.constant(builder.node(x[1]).dtype, 0), x);
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<NodeId> fold_logic(Builder& builder, ScalarOp op, std::span<const NodeId> x) {
  using enum ScalarOp;
  const Graph& graph = builder.graph();
  const auto operand = [&](NodeId id, int i) { return graph.operands(id)[i]; };
  switch (op) {
    case logical_not:
      if (is_map(graph, x[0], logical_not)) return operand(x[0], 0);
      if (is_map(graph, x[0], equal)) return builder.map(not_equal, {operand(x[0], 0), operand(x[0], 1)});
      if (is_map(graph, x[0], not_equal)) return builder.map(equal, {operand(x[0], 0), operand(x[0], 1)});
      return std::nullopt;
    case logical_and:
    case logical_or:
      if (x[0] == x[1]) return x[0];
      for (int i = 0; i < 2; ++i) {
        const auto truth = constant_value(graph, x[i]);
        if (truth && (*truth != 0) == (op == logical_and)) return x[1 - i];
      }
      return std::nullopt;
    case where: {
      if (const auto truth = constant_value(graph, x[0])) {
        if (const auto chosen = keeping_axes(builder, *truth != 0 ? x[1] : x[2], x)) return chosen;
      }
      if (x[1] == x[2]) {
        if (const auto both = keeping_axes(builder, x[1], x)) return both;
      }
      if (is_zero(graph, x[1])) return builder.map(where, {builder.map(logical_not, {x[0]}), x[2], x[1]});
      if (is_map(graph, x[0], logical_not) && !is_zero(graph, x[2])) {
        return builder.map(where, {operand(x[0], 0), x[2], x[1]});
      }
      std::array<NodeId, 3> inner{x[0], x[1], x[2]};
      if (is_map(graph, x[1], where) && operand(x[1], 0) == x[0]) inner[1] = operand(x[1], 1);
      if (is_map(graph, x[2], where) && operand(x[2], 0) == x[0]) inner[2] = operand(x[2], 2);
      if (inner[1] == x[1] && inner[2] == x[2]) return std::nullopt;
      const NodeId direct = builder.map(where, {inner[0], inner[1], inner[2]});
      return keeping_axes(builder, direct, x);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<NodeId> fold_map(Builder& builder, ScalarOp op, std::span<const NodeId> operands) {
  if (const auto constant = fold_constants(builder, op, operands)) return constant;
  if (const auto simpler = fold_arithmetic(builder, op, operands)) return simpler;
  return fold_logic(builder, op, operands);
}

}  // namespace tigon::dsl
