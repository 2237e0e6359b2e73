// The untyped half of the language, called by the templates of include/tigon: each makes nodes in the current trace.
#include <cmath>
#include <limits>

#include "dsl/scalar_table.hpp"
#include "dsl/trace.hpp"
#include "tigon/error.hpp"

namespace tigon::detail {
namespace {

Trace& trace_of(Value value) {
  Trace& trace = current_trace("tensor expression");
  trace.use(value);
  return trace;
}

// The operand as a reduction takes it: in the dtype its elements are accumulated in.
dsl::NodeId element(Trace& trace, Value operand, DType dtype) {
  return trace.builder().cast(dtype, trace.use(operand));
}

dsl::NodeId truth(Trace& trace, Value operand) {
  dsl::Builder& build = trace.builder();
  const dsl::NodeId node = trace.use(operand);
  const DType dtype = build.node(node).dtype;
  if (dtype == DType::boolean) return node;
  const dsl::NodeId zero = is_floating(dtype) ? build.constant(dtype, 0) : build.integer(dtype, 0);
  return build.map(ScalarOp::not_equal, {node, zero});
}

dsl::BuiltinMonoid builtin(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean:
      return dsl::BuiltinMonoid::sum;
    case Reduction::product:
      return dsl::BuiltinMonoid::product;
    case Reduction::max:
      return dsl::BuiltinMonoid::max;
    case Reduction::min:
      return dsl::BuiltinMonoid::min;
    case Reduction::logsumexp:
      return dsl::BuiltinMonoid::logsumexp;
    case Reduction::argmax:
      return dsl::BuiltinMonoid::argmax;
    case Reduction::argmin:
      return dsl::BuiltinMonoid::argmin;
    case Reduction::any:
      return dsl::BuiltinMonoid::any;
    case Reduction::all:
      return dsl::BuiltinMonoid::all;
  }
  throw Error({.kind = ErrorKind::internal}, "unknown reduction");
}

dsl::NodeId fold_builtin(Trace& trace, dsl::BuiltinMonoid monoid, dsl::NodeId operand, std::vector<dsl::AxisId> axes) {
  dsl::Builder& build = trace.builder();
  const dsl::NodeId operands[] = {operand};
  return build.fold(build.monoid(dsl::builtin_monoid(monoid)), operands, std::move(axes));
}

Pair two_finishes(const TypeRef& type, Value operand, AxisRefs axes, dsl::BuiltinMonoid monoid, int first, int second) {
  Trace& trace = trace_of(operand);
  const dsl::NodeId node = element(trace, operand, type.dtype);
  const dsl::NodeId state = fold_builtin(trace, monoid, node, trace.axes_of(node, axes));
  dsl::Builder& build = trace.builder();
  return {trace.give(build.finish(state, first), type), trace.give(build.finish(state, second), type)};
}

// Of the dtypes without fractions.
std::int64_t highest(DType dtype) {
  if (dtype == DType::boolean) return 1;
  return dtype == DType::i32 ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int64_t>::max();
}

double largest(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return to_f32(bf16{0x7f7f});
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

// Integers and truth values exactly; floats round, but to no infinity.
bool holds(DType dtype, double number) {
  if (dtype == DType::boolean) return number == 0 || number == 1;
  if (!is_floating(dtype)) {
    const double end = dtype == DType::i32 ? 2147483648.0 : 9223372036854775808.0;  // 2^31, 2^63
    return number >= -end && number < end && number == std::trunc(number);
  }
  if (!std::isfinite(number) || dtype == DType::f64) return true;
  // Halfway between the largest number and the one that would follow it.
  const double end = std::ldexp(2 - std::ldexp(1, -info(dtype).mantissa), dtype == DType::f16 ? 15 : 127);
  return std::fabs(number) < end;
}

[[noreturn]] void refuse_number(Trace& trace, DType dtype, const std::string& number) {
  const bool floating = is_floating(dtype);
  throw Error({.function = trace.name(),
               .found = number,
               .expected = floating ? fmt::format("-{0} to {0}, or an infinity", largest(dtype))
                           : dtype == DType::boolean
                               ? std::string("0 or 1")
                               : fmt::format("a whole number from {} to {}", -highest(dtype) - 1, highest(dtype)),
               .cure = floating ? "Write an infinity, or compute in a wider dtype"
                                : "Cast the tensor that it meets: cast<i64>(x) holds more, cast<f32>(x) fractions"},
              fmt::format("a number is written that {} does not hold", name(dtype)));
}

dsl::IndexPolicy policy(IndexRule rule) {
  if (rule.kind == IndexRule::Kind::fill) return dsl::IndexPolicy::fill;
  return rule.kind == IndexRule::Kind::clamp ? dsl::IndexPolicy::clamp : dsl::IndexPolicy::checked;
}

}  // namespace

Value constant(DType dtype, double number) {
  Trace& trace = current_trace("constant");
  if (!holds(dtype, number)) refuse_number(trace, dtype, fmt::format("{}", number));
  return trace.give(trace.builder().constant(dtype, number));
}

Value constant(DType dtype, std::int64_t number) {
  Trace& trace = current_trace("constant");
  dsl::Builder& build = trace.builder();
  if (is_floating(dtype)) return constant(dtype, static_cast<double>(number));
  const std::int64_t high = highest(dtype), low = dtype == DType::boolean ? 0 : -high - 1;
  if (number < low || number > high) refuse_number(trace, dtype, std::to_string(number));
  return trace.give(build.integer(dtype, number));
}

Value constant(DType dtype, std::uint64_t number) {
  if (is_floating(dtype)) return constant(dtype, static_cast<double>(number));
  if (number > static_cast<std::uint64_t>(highest(dtype)))
    refuse_number(current_trace("constant"), dtype, std::to_string(number));
  return constant(dtype, static_cast<std::int64_t>(number));
}

Value iota(const AxisRef& axis) {
  Trace& trace = current_trace("iota");
  return trace.give(trace.builder().iota(trace.axis(axis)));
}

Value sized_iota(const AxisRef& axis, std::int64_t extent) {
  Trace& trace = current_trace("iota");
  return trace.give(trace.builder().iota(trace.axis(axis, extent)));
}

Value extent(const AxisRef& axis) {
  Trace& trace = current_trace("extent");
  return trace.give(trace.builder().extent(trace.axis(axis)));
}

Value map(ScalarOp op, const TypeRef& type, Value a) {
  Trace& trace = trace_of(a);
  return trace.give(trace.builder().map(op, {a.node}), type);
}

Value map(ScalarOp op, const TypeRef& type, Value a, Value b) {
  Trace& trace = trace_of(a);
  return trace.give(trace.builder().map(op, {a.node, trace.use(b)}), type);
}

Value map(ScalarOp op, const TypeRef& type, Value a, Value b, Value c) {
  Trace& trace = trace_of(a);
  return trace.give(trace.builder().map(op, {a.node, trace.use(b), trace.use(c)}), type);
}

Value cast(DType dtype, Value value) {
  Trace& trace = trace_of(value);
  return trace.give(trace.builder().cast(dtype, value.node));
}

Value reduce(Reduction reduction, const TypeRef& type, Value operand, AxisRefs axes) {
  Trace& trace = trace_of(operand);
  dsl::Builder& build = trace.builder();
  const bool logical = reduction == Reduction::any || reduction == Reduction::all;
  const bool index = reduction == Reduction::argmax || reduction == Reduction::argmin;
  const dsl::NodeId node =
      logical ? truth(trace, operand)
              : element(trace, operand, index ? arithmetic(build.node(operand.node).dtype) : type.dtype);
  if (axes.count == 0) return trace.give(node, type);

  const std::vector<dsl::AxisId> ids = trace.axes_of(node, axes);
  const dsl::Monoid& monoid = dsl::builtin_monoid(builtin(reduction));
  int number = 0;
  if (reduction == Reduction::logsumexp) number = dsl::lse_value;
  for (std::size_t i = 0; index && i < monoid.finishes.size(); ++i) {
    if (monoid.finishes[i].value_class == ValueClass::index) number = static_cast<int>(i);
  }
  const bool sums = reduction == Reduction::sum || reduction == Reduction::mean;
  dsl::NodeId result =
      sums ? build.sum(node, ids) : build.finish(fold_builtin(trace, builtin(reduction), node, ids), number);
  if (reduction == Reduction::mean) {
    dsl::NodeId count = build.extent(ids[0]);
    for (std::size_t i = 1; i < ids.size(); ++i) count = build.map(ScalarOp::mul, {count, build.extent(ids[i])});
    result = build.map(ScalarOp::div, {result, build.cast(type.dtype, count)});
  }
  return trace.give(result, type);
}

Pair moments(const TypeRef& type, Value operand, AxisRefs axes) {
  const dsl::Monoid& monoid = dsl::builtin_monoid(dsl::BuiltinMonoid::moments);
  return two_finishes(type, operand, axes, dsl::BuiltinMonoid::moments, finish_number(monoid, "mean"),
                      finish_number(monoid, "variance"));
}

Pair log_softmax_parts(const TypeRef& type, Value operand, AxisRefs axes) {
  return two_finishes(type, operand, axes, dsl::BuiltinMonoid::logsumexp, dsl::lse_max, dsl::lse_log_rest);
}

Value finish(Value state, int number, const TypeRef& type) {
  Trace& trace = trace_of(state);
  return trace.give(trace.builder().finish(state.node, number), type);
}

Value finish(Value state, std::string_view name, const TypeRef& type) {
  Trace& trace = trace_of(state);
  return finish(state, finish_number(trace.builder().graph().monoid_of(state.node), name), type);
}

Value rename(Value operand, const AxisRef& from, const AxisRef& to) {
  Trace& trace = trace_of(operand);
  const dsl::NodeId node = trace.carrying(operand.node, from);
  return trace.give(trace.builder().rename(node, trace.axis_of(node, from), trace.axis(to)));
}

Value split(Value operand, const AxisRef& whole, const AxisRef& outer, const AxisRef& inner, std::int64_t extent) {
  Trace& trace = trace_of(operand);
  const dsl::NodeId node = trace.carrying(operand.node, whole);
  const dsl::AxisId whole_id = trace.axis_of(node, whole);
  const dsl::AxisId outer_id = trace.axis(outer, extent);
  // An outer extent that holds for this use only makes an inner extent that does too.
  const dsl::AxisId inner_id = extent >= 0 && outer.fixed < 0 ? trace.derived_axis(inner, extent) : trace.axis(inner);
  return trace.give(trace.builder().split(node, whole_id, outer_id, inner_id));
}

Value merge(Value operand, const AxisRef& outer, const AxisRef& inner, const AxisRef& whole) {
  Trace& trace = trace_of(operand);
  const dsl::NodeId node = trace.carrying(trace.carrying(operand.node, outer), inner);
  return trace.give(
      trace.builder().merge(node, trace.axis_of(node, outer), trace.axis_of(node, inner), trace.axis(whole)));
}

Value broadcast(Value operand, const TypeRef& type) {
  Trace& trace = trace_of(operand);
  dsl::AxisSet axes;
  for (const AxisRef& axis : type.axes) axes |= dsl::AxisSet::of(trace.axis_of(operand.node, axis));
  return trace.give(trace.builder().broadcast(operand.node, axes), type);
}

Value gather(const TypeRef& type, Value table, Value index, const AxisRef& axis, IndexRule rule) {
  Trace& trace = trace_of(table);
  const dsl::NodeId node = trace.carrying(table.node, axis);
  const DType dtype = trace.builder().node(node).dtype;
  if (rule.kind == IndexRule::Kind::fill && !holds(dtype, rule.value))
    refuse_number(trace, dtype, fmt::format("{}", rule.value));
  return trace.give(trace.builder().gather(node, trace.use(index), trace.axis_of(node, axis), policy(rule), rule.value),
                    type);
}

Value scatter(const TypeRef& type, Value values, Value index, const AxisRef& into, AxisRefs folded) {
  Trace& trace = trace_of(values);
  dsl::Builder& build = trace.builder();
  const dsl::NodeId node = element(trace, values, type.dtype);
  const dsl::NodeId place = trace.use(index);
  std::vector<dsl::AxisId> ids;
  for (const AxisRef& axis : folded) {
    const dsl::AxisId of_values = trace.axis_of(node, axis);
    ids.push_back(build.node(node).axes.contains(of_values) ? of_values : trace.axis_of(place, axis));
  }
  return trace.give(build.scatter(node, place, trace.axis(into), std::move(ids)), type);
}

Value attach(Value value, Value surrogate) {
  Trace& trace = trace_of(value);
  return trace.give(trace.builder().attach(value.node, trace.use(surrogate)));
}

Value stop_gradient(Value value) {
  Trace& trace = trace_of(value);
  return trace.give(trace.builder().attach(value.node, dsl::no_node));
}

void name(Value value, std::string_view name) {
  Trace& trace = trace_of(value);
  trace.builder().name(value.node, std::string(name));
}

}  // namespace tigon::detail
