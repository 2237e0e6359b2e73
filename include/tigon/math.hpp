// Functions of values, element by element. Each names the user's line.
#pragma once
#include "tigon/operators.hpp"

namespace tigon {

#define TIGON_UNARY(function, op, Result)                                                     \
  template <detail::TensorLike T>                                                             \
  auto function(const T& x, const detail::Location& location = detail::Location::current()) { \
    detail::set_location(location);                                                           \
    return detail::unary<Result<detail::DTypeOf<T>>, ScalarOp::op>(x);                        \
  }
#define TIGON_BINARY(function, op, rule)                                                                  \
  template <class L, class R>                                                                             \
    requires detail::Operands<L, R>                                                                       \
  auto function(const L& a, const R& b, const detail::Location& location = detail::Location::current()) { \
    detail::set_location(location);                                                                       \
    return detail::rule<ScalarOp::op>(a, b);                                                              \
  }

TIGON_UNARY(abs, abs, detail::Arithmetic)
TIGON_UNARY(sign, sign, detail::Arithmetic)
TIGON_UNARY(floor, floor, detail::Floating)
TIGON_UNARY(ceil, ceil, detail::Floating)
TIGON_UNARY(round, round, detail::Floating)  // to nearest, ties to even
TIGON_UNARY(sqrt, sqrt, detail::Floating)
TIGON_UNARY(rsqrt, rsqrt, detail::Floating)
TIGON_UNARY(exp, exp, detail::Floating)
TIGON_UNARY(expm1, expm1, detail::Floating)
TIGON_UNARY(log, log, detail::Floating)
TIGON_UNARY(log1p, log1p, detail::Floating)
TIGON_UNARY(sin, sin, detail::Floating)
TIGON_UNARY(cos, cos, detail::Floating)
TIGON_UNARY(tanh, tanh, detail::Floating)
TIGON_UNARY(erf, erf, detail::Floating)
TIGON_UNARY(sigmoid, sigmoid, detail::Floating)
TIGON_UNARY(softplus, softplus, detail::Floating)        // log(1 + exp(x))
TIGON_UNARY(log_sigmoid, log_sigmoid, detail::Floating)  // -softplus(-x)
TIGON_UNARY(relu, relu, detail::Arithmetic)
TIGON_UNARY(log1mexp, log1mexp, detail::Floating)  // log(1 - exp(x)), x < 0

TIGON_BINARY(min, min, arithmetic_of)  // the gradient goes to the first operand on a tie
TIGON_BINARY(max, max, arithmetic_of)
TIGON_BINARY(pow, pow, floating_of)
TIGON_BINARY(logaddexp, logaddexp, floating_of)  // log(exp(a) + exp(b))
TIGON_BINARY(mul0, mul0, arithmetic_of)          // a * b, but 0 where a is 0, whatever b holds

#undef TIGON_UNARY
#undef TIGON_BINARY

template <detail::TensorLike T>
auto is_finite(const T& x, const detail::Location& location = detail::Location::current()) {
  detail::set_location(location);
  return detail::unary<bool, ScalarOp::is_finite>(x);
}

template <detail::TensorLike T>
auto square(const T& x, const detail::Location& location = detail::Location::current()) {
  detail::set_location(location);
  return x * x;
}

// x * sigmoid(x)
template <detail::TensorLike T>
auto silu(const T& x, const detail::Location& location = detail::Location::current()) {
  detail::set_location(location);
  return x * detail::unary<detail::Floating<detail::DTypeOf<T>>, ScalarOp::sigmoid>(x);
}

// Rounds to another dtype; the one way to narrow. A float becomes an integer towards zero, kept in its range, NaN 0.
template <class D, detail::TensorLike T>
auto cast(const T& x, const detail::Location& location = detail::Location::current()) {
  static_assert(detail::is_dtype<D>, "tigon: unknown dtype: use one of bool, i32, i64, f16, bf16, f32, f64.");
  detail::set_location(location);
  return detail::TensorOf<D, detail::AxesOf<T>>(detail::cast(dtype_v<D>, x.value()));
}

// Chooses; the gradient of what was not chosen is exactly 0, whatever it holds.
template <detail::TensorLike C, detail::Operand L, detail::Operand R>
auto where(const C& condition, const L& a, const R& b, const detail::Location& location = detail::Location::current()) {
  static_assert(detail::is_truth<C>, "tigon: the condition of where is a boolean tensor; compare first.");
  detail::set_location(location);
  using D = typename detail::SelectedOf<L, R>::type;
  using S = detail::MakeSignature<D, detail::Union<detail::AxesOf<C>, detail::JoinedAxes<L, R>>>;
  const detail::Value first = detail::value_of(a, dtype_v<D>);
  const detail::Value second = detail::value_of(b, dtype_v<D>);
  return Tensor<S>(detail::map(ScalarOp::where, detail::type_ref<S>(), condition.value(), first, second));
}

// min(max(x, low), high); the gradient passes at the bounds.
template <detail::TensorLike T, detail::Operand L, detail::Operand H>
auto clamp(const T& x, const L& low, const H& high, const detail::Location& location = detail::Location::current()) {
  detail::set_location(location);
  using D = detail::Promote<typename detail::ArithmeticOf<T, L>::type, typename detail::ArithmeticOf<T, H>::type>;
  using S = detail::MakeSignature<D, detail::Union<detail::JoinedAxes<T, L>, typename detail::OperandAxes<H>::type>>;
  const detail::Value first = detail::value_of(low, dtype_v<D>);
  const detail::Value second = detail::value_of(high, dtype_v<D>);
  return Tensor<S>(detail::map(ScalarOp::clamp, detail::type_ref<S>(), x.value(), first, second));
}

// The global index along an axis, and the axis' extent; both i64.
template <class A>
auto iota(const detail::Location& location = detail::Location::current()) {
  detail::set_location(location);
  return Tensor<i64(A)>(detail::iota(detail::axis_ref<A>()));
}
template <class A>
auto extent(const detail::Location& location = detail::Location::current()) {
  detail::set_location(location);
  return Tensor<i64()>(detail::extent(detail::axis_ref<A>()));
}

// `value`, whose gradient goes to `surrogate` instead: custom gradients. Both have the same axes and are floats.
template <detail::TensorLike T, detail::TensorLike U>
auto attach(const T& value, const U& surrogate, const detail::Location& location = detail::Location::current()) {
  static_assert(detail::same_set<detail::AxesOf<T>, detail::AxesOf<U>>,
                "tigon: attach(value, surrogate) needs two tensors of the same axes.");
  detail::set_location(location);
  return detail::TensorOf<detail::DTypeOf<T>, detail::AxesOf<T>>(detail::attach(value.value(), surrogate.value()));
}
template <detail::TensorLike T>
auto stop_gradient(const T& value, const detail::Location& location = detail::Location::current()) {
  detail::set_location(location);
  return detail::TensorOf<detail::DTypeOf<T>, detail::AxesOf<T>>(detail::stop_gradient(value.value()));
}

// The name a value has in printed graphs and generated code.
template <detail::TensorLike T>
T named(const T& value, std::string_view name) {
  detail::name(value.value(), name);
  return value;
}

}  // namespace tigon
