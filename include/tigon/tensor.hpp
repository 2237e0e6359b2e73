// Tensor<D(Axes...)>: a value of the function being traced. Its type carries dtype and axes, not extents or expression.
#pragma once
#include <type_traits>
#include <utility>

#include "tigon/detail/trace.hpp"

namespace tigon {

template <class S>
class Tensor;

namespace detail {

template <class T>
concept TensorLike = requires { typename std::remove_cvref_t<T>::tensor_signature; };
template <class T>
concept Number = std::is_arithmetic_v<std::remove_cvref_t<T>>;

template <class T>
using SignatureOf = Signature<typename std::remove_cvref_t<T>::tensor_signature>;
template <class T>
using DTypeOf = typename SignatureOf<T>::dtype;
template <class T>
using AxesOf = typename SignatureOf<T>::axes;

}  // namespace detail

// A value: a node number. Assignable; `x = f(x)` names another node. Slots scalar<D>, accumulate<...> and inplace<...>
// of a struct are tensors too.
template <class S>
class Tensor {
  static_assert(std::is_empty_v<detail::Signature<S>>);  // instantiates it: a wrong signature is refused at once

 public:
  using tensor_signature = S;
  using tigon_slot = S;

  Tensor() = default;
  explicit Tensor(detail::Value value) : value_(value) {}
  // The order of axes does not matter to a value: f32(T, V) converts to f32(V, T). Anything else must be written out.
  template <class Other>
    requires(!std::is_same_v<S, Other>)
  Tensor(const Tensor<Other>& other) : value_(other.value()) {
    using From = detail::Signature<Other>;
    using To = detail::Signature<S>;
    static_assert(detail::same_set<typename From::axes, typename To::axes>,
                  "tigon: these two tensors have different axes; reduce, broadcast or rename one.");
    static_assert(std::is_same_v<typename From::dtype, typename To::dtype>,
                  "tigon: these two tensors have different dtypes; write cast<D>(x) where it should be rounded.");
  }

  [[nodiscard]] detail::Value value() const { return value_; }

 private:
  detail::Value value_;
};

// A slot that may be absent. `if (in.bias) y = y + *in.bias;` is decided when tracing, so absent operands cost nothing.
template <class S>
class Tensor<maybe<S>> {
 public:
  using tigon_slot = maybe<S>;

  Tensor() = default;
  Tensor(Tensor<S> tensor) : tensor_(tensor), present_(true) {}
  template <class Other>
    requires(!std::is_same_v<Other, S> && !std::is_same_v<Other, maybe<S>>)
  Tensor(const Tensor<Other>& other) : tensor_(other), present_(true) {}

  explicit operator bool() const { return present_; }
  const Tensor<S>& operator*() const {
    if (!present_) refuse();
    return tensor_;
  }
  const Tensor<S>* operator->() const { return &**this; }
  // The tensor, or another in its place, which must have its dtype and axes.
  [[nodiscard]] Tensor<S> or_else(const Tensor<S>& other) const { return present_ ? tensor_ : other; }

 private:
  [[noreturn]] static void refuse();
  Tensor<S> tensor_;
  bool present_ = false;
};

namespace detail {
[[noreturn]] void refuse_absent(std::string_view what);
}
template <class S>
void Tensor<maybe<S>>::refuse() {
  detail::refuse_absent("an absent tensor was read; test it first: if (in.bias) y = y + *in.bias;");
}

namespace detail {
template <Number N>
Value constant_of(DType dtype, N number) {
  if constexpr (std::is_floating_point_v<N>) {
    return constant(dtype, static_cast<double>(number));
  } else if constexpr (std::is_unsigned_v<N>) {
    return constant(dtype, static_cast<std::uint64_t>(number));
  } else {
    return constant(dtype, static_cast<std::int64_t>(number));
  }
}
}  // namespace detail

// A rank-0 tensor out of a number of the host that is fixed when tracing; an Error if the dtype does not hold it.
template <class D, detail::Number N>
Tensor<D()> number(N value) {
  return Tensor<D()>(detail::constant_of(dtype_v<D>, value));
}

}  // namespace tigon
