// What operators do with operands: dtypes of numbers, union of axes, and the call of the untyped half.
#pragma once
#include "tigon/tensor.hpp"

namespace tigon::detail {

template <class D, class L>
using TensorOf = Tensor<MakeSignature<D, L>>;

template <class D>
inline constexpr bool is_float_dtype = is_floating(dtype_v<D>);
template <class D>
inline constexpr bool is_integer_dtype = !is_float_dtype<D> && !std::is_same_v<D, bool>;
// What functions of floats yield: integers become f32.
template <class D>
using Floating = std::conditional_t<is_float_dtype<D>, Arithmetic<D>, f32>;

// Numbers are weak: they take the dtype of the tensors they meet; only a fraction that meets integers makes f32.
template <class N, class D>
using WeakArithmetic = std::conditional_t<std::is_floating_point_v<N>, Floating<D>, Arithmetic<D>>;
template <class N, class D>
using WeakSelect = std::conditional_t<std::is_same_v<N, bool> && std::is_same_v<D, bool>, bool, WeakArithmetic<N, D>>;

template <class L, class R>
concept Operands = (TensorLike<L> && (TensorLike<R> || Number<R>)) || (Number<L> && TensorLike<R>);
template <class T>
concept Operand = TensorLike<T> || Number<T>;

template <class T>
struct OperandAxes {
  using type = List<>;
};
template <TensorLike T>
struct OperandAxes<T> {
  using type = AxesOf<T>;
};
template <class L, class R>
using JoinedAxes = Union<typename OperandAxes<L>::type, typename OperandAxes<R>::type>;

template <class L, class R>
struct ArithmeticOf {
  using type = Promote<DTypeOf<L>, DTypeOf<R>>;
};
template <TensorLike L, Number R>
struct ArithmeticOf<L, R> {
  using type = WeakArithmetic<R, DTypeOf<L>>;
};
template <Number L, TensorLike R>
struct ArithmeticOf<L, R> {
  using type = WeakArithmetic<L, DTypeOf<R>>;
};
template <Number L, Number R>
struct ArithmeticOf<L, R> {
  using type = std::conditional_t<std::is_floating_point_v<L> || std::is_floating_point_v<R>, f32, i32>;
};
template <class L, class R>
struct SelectedOf {
  using type = Select<DTypeOf<L>, DTypeOf<R>>;
};
template <TensorLike L, Number R>
struct SelectedOf<L, R> {
  using type = WeakSelect<R, DTypeOf<L>>;
};
template <Number L, TensorLike R>
struct SelectedOf<L, R> {
  using type = WeakSelect<L, DTypeOf<R>>;
};
template <Number L, Number R>
struct SelectedOf<L, R> : ArithmeticOf<L, R> {};

// The node of an operand; a number becomes a constant of the given dtype.
template <class T>
Value value_of(const T& operand, DType dtype) {
  if constexpr (TensorLike<T>) {
    return operand.value();
  } else {
    return constant_of(dtype, operand);
  }
}

template <class D, ScalarOp op, class T>
auto unary(const T& x) {
  using R = MakeSignature<D, AxesOf<T>>;
  return Tensor<R>(map(op, type_ref<R>(), x.value()));
}
// `Meet` is the dtype that the operands' numbers take, `D` the result's.
template <class D, class Meet, ScalarOp op, class L, class R>
auto binary(const L& a, const R& b) {
  using S = MakeSignature<D, JoinedAxes<L, R>>;
  const Value first = value_of(a, dtype_v<Meet>);  // before the second with every compiler, so that node numbers agree
  const Value second = value_of(b, dtype_v<Meet>);
  return Tensor<S>(map(op, type_ref<S>(), first, second));
}
template <ScalarOp op, class L, class R>
auto arithmetic_of(const L& a, const R& b) {
  using D = typename ArithmeticOf<L, R>::type;
  return binary<D, D, op>(a, b);
}
template <ScalarOp op, class L, class R>
auto comparison(const L& a, const R& b) {
  return binary<bool, typename ArithmeticOf<L, R>::type, op>(a, b);
}
template <ScalarOp op, class L, class R>
auto floating_of(const L& a, const R& b) {
  using D = Floating<typename ArithmeticOf<L, R>::type>;
  return binary<D, D, op>(a, b);
}
template <ScalarOp op, class L, class R>
auto integer_of(const L& a, const R& b) {
  using D = typename ArithmeticOf<L, R>::type;
  static_assert(is_integer_dtype<D>, "tigon: this operator works on integers; cast<i32>(x) first.");
  return binary<D, D, op>(a, b);
}
template <class T>
inline constexpr bool is_truth = std::is_same_v<T, bool>;
template <TensorLike T>
inline constexpr bool is_truth<T> = std::is_same_v<DTypeOf<T>, bool>;
template <ScalarOp op, class L, class R>
auto logic(const L& a, const R& b) {
  static_assert(is_truth<L> && is_truth<R>, "tigon: logic works on booleans; compare first, for example x != 0.");
  return binary<bool, bool, op>(a, b);
}

}  // namespace tigon::detail
