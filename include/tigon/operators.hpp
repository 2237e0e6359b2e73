// + - * / % comparisons, logic and bits on tensors and numbers. Axes broadcast by name; 16-bit floats yield f32.
#pragma once
#include "tigon/detail/operand.hpp"

namespace tigon {

template <class L, class R>
  requires detail::Operands<L, R>
auto operator+(const L& a, const R& b) {
  return detail::arithmetic_of<ScalarOp::add>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator-(const L& a, const R& b) {
  return detail::arithmetic_of<ScalarOp::sub>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator*(const L& a, const R& b) {
  return detail::arithmetic_of<ScalarOp::mul>(a, b);
}
// On integers `/` rounds towards minus infinity, as index arithmetic wants, and `%` goes with it.
template <class L, class R>
  requires detail::Operands<L, R>
auto operator/(const L& a, const R& b) {
  if constexpr (detail::is_float_dtype<typename detail::ArithmeticOf<L, R>::type>) {
    return detail::arithmetic_of<ScalarOp::div>(a, b);
  } else {
    return detail::arithmetic_of<ScalarOp::floor_div>(a, b);
  }
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator%(const L& a, const R& b) {
  return detail::integer_of<ScalarOp::rem>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator&(const L& a, const R& b) {
  return detail::integer_of<ScalarOp::bit_and>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator|(const L& a, const R& b) {
  return detail::integer_of<ScalarOp::bit_or>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator^(const L& a, const R& b) {
  return detail::integer_of<ScalarOp::bit_xor>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator<<(const L& a, const R& b) {
  return detail::integer_of<ScalarOp::shift_left>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator>>(const L& a, const R& b) {
  return detail::integer_of<ScalarOp::shift_right>(a, b);
}

template <class L, class R>
  requires detail::Operands<L, R>
auto operator==(const L& a, const R& b) {
  return detail::comparison<ScalarOp::equal>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator!=(const L& a, const R& b) {
  return detail::comparison<ScalarOp::not_equal>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator<(const L& a, const R& b) {
  return detail::comparison<ScalarOp::less>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator<=(const L& a, const R& b) {
  return detail::comparison<ScalarOp::less_equal>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator>(const L& a, const R& b) {
  return detail::comparison<ScalarOp::less>(b, a);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator>=(const L& a, const R& b) {
  return detail::comparison<ScalarOp::less_equal>(b, a);
}

// Both sides are always evaluated: these are values, not control flow.
template <class L, class R>
  requires detail::Operands<L, R>
auto operator&&(const L& a, const R& b) {
  return detail::logic<ScalarOp::logical_and>(a, b);
}
template <class L, class R>
  requires detail::Operands<L, R>
auto operator||(const L& a, const R& b) {
  return detail::logic<ScalarOp::logical_or>(a, b);
}
template <detail::TensorLike T>
auto operator!(const T& a) {
  static_assert(detail::is_truth<T>, "tigon: logic works on booleans; compare first, for example x != 0.");
  return detail::unary<bool, ScalarOp::logical_not>(a);
}

template <detail::TensorLike T>
auto operator-(const T& a) {
  return detail::unary<detail::Arithmetic<detail::DTypeOf<T>>, ScalarOp::neg>(a);
}
template <detail::TensorLike T>
auto operator+(const T& a) {
  return a;
}

namespace detail {
template <class T>
inline constexpr bool may_be_absent = false;
template <class S>
inline constexpr bool may_be_absent<Tensor<maybe<S>>> = true;
template <class L, class R>
concept AbsentOperands = (may_be_absent<L> && (may_be_absent<R> || Operand<R>)) || (Operand<L> && may_be_absent<R>);
}  // namespace detail

#define TIGON_REFUSE_ABSENT(op)                                                                                   \
  template <class L, class R>                                                                                     \
    requires detail::AbsentOperands<L, R>                                                                         \
  auto operator op(const L&, const R&) {                                                                          \
    static_assert(std::is_void_v<L>,                                                                              \
                  "tigon: this tensor may be absent; test it first: if (in.bias) y = y + *in.bias; or or_else."); \
  }
TIGON_REFUSE_ABSENT(+)
TIGON_REFUSE_ABSENT(-)
TIGON_REFUSE_ABSENT(*)
TIGON_REFUSE_ABSENT(/)
TIGON_REFUSE_ABSENT(%)
TIGON_REFUSE_ABSENT(<)
TIGON_REFUSE_ABSENT(<=)
TIGON_REFUSE_ABSENT(>)
TIGON_REFUSE_ABSENT(>=)
TIGON_REFUSE_ABSENT(==)
TIGON_REFUSE_ABSENT(!=)
#undef TIGON_REFUSE_ABSENT

// `x += y` is `x = x + y`: the axes and the dtype must stay what they are.
template <class S, detail::Operand R>
Tensor<S>& operator+=(Tensor<S>& a, const R& b) {
  return a = a + b;
}
template <class S, detail::Operand R>
Tensor<S>& operator-=(Tensor<S>& a, const R& b) {
  return a = a - b;
}
template <class S, detail::Operand R>
Tensor<S>& operator*=(Tensor<S>& a, const R& b) {
  return a = a * b;
}
template <class S, detail::Operand R>
Tensor<S>& operator/=(Tensor<S>& a, const R& b) {
  return a = a / b;
}

}  // namespace tigon
