// Other axes for the same elements: rename, split, merge, broadcast.
#pragma once
#include "tigon/math.hpp"

namespace tigon {

// Makes self-products possible: dot<D>(q, rename<Tokens, Keys>(q)).
template <class From, class To, detail::TensorLike T>
auto rename(const T& x, const detail::Location& location = detail::Location::current()) {
  using Axes = detail::AxesOf<T>;
  static_assert(detail::contains<From, Axes>, "tigon: rename<From, To>: the tensor does not have the axis From.");
  static_assert(!detail::contains<To, Axes>, "tigon: rename<From, To>: the tensor already has the axis To.");
  detail::set_location(location);
  return detail::TensorOf<detail::DTypeOf<T>, detail::Replace<Axes, From, detail::List<To>>>(
      detail::rename(x.value(), detail::axis_ref<From>(), detail::axis_ref<To>()));
}

// index(Whole) = index(Outer) * extent(Inner) + index(Inner). `outer_extent` fixes Outer's extent for this use.
template <class Whole, class Outer, class Inner, detail::TensorLike T>
auto split(const T& x, std::int64_t outer_extent = -1, const detail::Location& location = detail::Location::current()) {
  using Axes = detail::AxesOf<T>;
  static_assert(detail::contains<Whole, Axes>, "tigon: split<Whole, Outer, Inner>: the tensor does not have Whole.");
  static_assert(!detail::contains<Outer, Axes> && !detail::contains<Inner, Axes> && !std::is_same_v<Outer, Inner>,
                "tigon: split<Whole, Outer, Inner>: the new axes must differ from the tensor's and from each other.");
  detail::set_location(location);
  return detail::TensorOf<detail::DTypeOf<T>, detail::Replace<Axes, Whole, detail::List<Outer, Inner>>>(detail::split(
      x.value(), detail::axis_ref<Whole>(), detail::axis_ref<Outer>(), detail::axis_ref<Inner>(), outer_extent));
}

template <class Outer, class Inner, class Whole, detail::TensorLike T>
auto merge(const T& x, const detail::Location& location = detail::Location::current()) {
  using Axes = detail::AxesOf<T>;
  static_assert(detail::contains<Outer, Axes> && detail::contains<Inner, Axes> && !std::is_same_v<Outer, Inner>,
                "tigon: merge<Outer, Inner, Whole>: the tensor does not have both Outer and Inner.");
  static_assert(!detail::contains<Whole, detail::Remove<Axes, detail::List<Outer, Inner>>>,
                "tigon: merge<Outer, Inner, Whole>: the tensor already has Whole.");
  detail::set_location(location);
  using Kept = detail::Remove<Axes, detail::List<Inner>>;
  return detail::TensorOf<detail::DTypeOf<T>, detail::Replace<Kept, Outer, detail::List<Whole>>>(
      detail::merge(x.value(), detail::axis_ref<Outer>(), detail::axis_ref<Inner>(), detail::axis_ref<Whole>()));
}

// The tensor with at least these axes, so that both branches of an `if` have one type.
template <class... A, detail::TensorLike T>
auto broadcast(const T& x, const detail::Location& location = detail::Location::current()) {
  using S = detail::MakeSignature<detail::DTypeOf<T>, detail::Union<detail::AxesOf<T>, detail::List<A...>>>;
  detail::set_location(location);
  return Tensor<S>(detail::broadcast(x.value(), detail::type_ref<S>()));
}

}  // namespace tigon
