// What the catalogue's headers share: the dtype an activation is rounded to, and checks of floats and axes.
#pragma once
#include "tigon/index.hpp"
#include "tigon/ops/number_range.hpp"
#include "tigon/reduce.hpp"

namespace tigon::ops {

// Where an op was called: errors and generated code name this line.
using Location = detail::Location;

// Rounds to the dtype of `like`: activations keep the dtype of what they are made from.
template <class Like, detail::TensorLike T>
auto rounded_like(const T& x, const Location& location) {
  return cast<detail::DTypeOf<Like>>(x, location);
}

// The tensor in the dtype that arithmetic on it is done in: f32 for 16-bit floats.
template <detail::TensorLike T>
auto widened(const T& x, const Location& location) {
  return cast<detail::Floating<detail::DTypeOf<T>>>(x, location);
}

template <class T>
constexpr void check_float() {
  static_assert(detail::is_float_dtype<detail::DTypeOf<T>>, "tigon: this op works on floats; cast<f32>(x) first.");
}
template <class Axis, class T>
constexpr void check_axis() {
  static_assert(detail::is_axis<Axis>, "tigon: an axis is a type derived from tigon::axis<\"name\">.");
  static_assert(detail::contains<Axis, detail::AxesOf<T>>, "tigon: this op works along an axis the tensor lacks.");
}

namespace detail_of_ops {
template <class T, class L>
struct SumAxes;
template <class T, class... A>
struct SumAxes<T, detail::List<A...>> {
  static auto of(const T& x, const Location& location) {
    if constexpr (sizeof...(A) == 0) {
      return cast<detail::Arithmetic<detail::DTypeOf<T>>>(x, location);
    } else {
      return sum<A...>(x, location);
    }
  }
};
}  // namespace detail_of_ops

// The sum over every axis of x.
template <detail::TensorLike T>
auto sum_all(const T& x, const Location& location = Location::current()) {
  return detail_of_ops::SumAxes<T, detail::AxesOf<T>>::of(x, location);
}

}  // namespace tigon::ops
