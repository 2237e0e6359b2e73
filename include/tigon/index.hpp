// Gathering by any integer expression, what is built on it, and adding into places.
#pragma once
#include <vector>

#include "tigon/shape.hpp"

namespace tigon {

// table[..., index, ...] along A, for every element of index. The index may use any axis, A included.
// Rules: checked (the default), fill(value), clamped.
template <class A, detail::TensorLike T, detail::Operand I>
auto at(const T& table, const I& index, IndexRule rule = checked,
        const detail::Location& location = detail::Location::current()) {
  static_assert(detail::contains<A, detail::AxesOf<T>>,
                "tigon: at<A>(table, index): the table does not have the axis A.");
  if constexpr (detail::TensorLike<I>) {
    static_assert(detail::is_integer_dtype<detail::DTypeOf<I>>,
                  "tigon: at<A>(table, index): the index is not integer.");
  } else {
    static_assert(std::is_integral_v<I>, "tigon: at<A>(table, index): the index is not integer.");
  }
  detail::set_location(location);
  using Rest = detail::Remove<detail::AxesOf<T>, detail::List<A>>;
  using S = detail::MakeSignature<detail::DTypeOf<T>, detail::Union<Rest, typename detail::OperandAxes<I>::type>>;
  return Tensor<S>(detail::gather(detail::type_ref<S>(), table.value(), detail::value_of(index, DType::i64),
                                  detail::axis_ref<A>(), rule));
}

// Elements start, start + 1, ... of A under the axis Part. `length` fixes Part's extent for this use.
template <class A, class Part, detail::TensorLike T, detail::Operand I>
auto slice(const T& x, const I& start, std::int64_t length = -1,
           const detail::Location& location = detail::Location::current()) {
  static_assert(!detail::contains<Part, detail::Remove<detail::AxesOf<T>, detail::List<A>>>,
                "tigon: slice<A, Part>: the tensor already has the axis Part.");
  detail::set_location(location);
  const Tensor<i64(Part)> position(detail::sized_iota(detail::axis_ref<Part>(), length));
  return at<A>(x, position + start, checked, location);
}

// Moves the elements up by `by` (down if negative); what falls outside is gone, what comes in is `value`.
template <class A, detail::TensorLike T, detail::Operand I>
auto shift(const T& x, const I& by, double value = 0, const detail::Location& location = detail::Location::current()) {
  return at<A>(x, iota<A>(location) - by, fill(value), location);
}

// A under the longer axis Padded, with `before` elements of `value` in front and the rest of them behind.
template <class A, class Padded, detail::TensorLike T>
auto pad(const T& x, std::int64_t before, double value = 0, std::int64_t padded_extent = -1,
         const detail::Location& location = detail::Location::current()) {
  static_assert(!detail::contains<Padded, detail::Remove<detail::AxesOf<T>, detail::List<A>>>,
                "tigon: pad<A, Padded>: the tensor already has the axis Padded.");
  detail::set_location(location);
  const Tensor<i64(Padded)> position(detail::sized_iota(detail::axis_ref<Padded>(), padded_extent));
  return at<A>(x, position - before, fill(value), location);
}

template <class A, detail::TensorLike T>
auto flip(const T& x, const detail::Location& location = detail::Location::current()) {
  const auto last = extent<A>(location) - 1;
  return at<A>(x, last - iota<A>(location), fill(0), location);
}

// x along First, then y along Second, under the axis Whole, whose extent is the sum of the two.
template <class Whole, class First, class Second, detail::TensorLike T, detail::TensorLike U>
auto concat(const T& x, const U& y, const detail::Location& location = detail::Location::current()) {
  static_assert(std::is_same_v<detail::DTypeOf<T>, detail::DTypeOf<U>>,
                "tigon: concat joins two tensors of one dtype; cast one.");
  static_assert(!detail::contains<Whole, detail::Remove<detail::AxesOf<T>, detail::List<First>>> &&
                    !detail::contains<Whole, detail::Remove<detail::AxesOf<U>, detail::List<Second>>>,
                "tigon: concat<Whole, First, Second>: a tensor already has the axis Whole.");
  const auto position = iota<Whole>(location);
  const auto border = extent<First>(location);
  const auto first = at<First>(x, position, fill(0), location);
  const auto second = at<Second>(y, position - border, fill(0), location);
  return cast<detail::DTypeOf<T>>(where(position < border, first, second, location), location);
}

namespace detail {
template <class A, class S>
auto stacked(const Tensor<S>* parts, std::int64_t count, const Location& location) {
  static_assert(!contains<A, AxesOf<Tensor<S>>>, "tigon: stack<A>: the tensors already have the axis A.");
  set_location(location);
  const Tensor<i64(A)> position(sized_iota(axis_ref<A>(), count));
  using D = DTypeOf<Tensor<S>>;
  auto result = broadcast<A>(parts[count - 1], location);
  for (std::int64_t i = count - 2; i >= 0; --i) result = cast<D>(where(position == i, parts[i], result, location));
  return result;
}
}  // namespace detail

// The parts side by side along the new axis A.
template <class A, class S>
auto stack(const std::vector<Tensor<S>>& parts, const detail::Location& location = detail::Location::current()) {
  if (parts.empty()) detail::refuse_absent("stack needs at least one tensor");
  return detail::stacked<A>(parts.data(), static_cast<std::int64_t>(parts.size()), location);
}
template <class A, class S>
auto stack(const Tensor<S>& first, const Tensor<S>& second,
           const detail::Location& location = detail::Location::current()) {
  const Tensor<S> parts[] = {first, second};
  return detail::stacked<A>(parts, 2, location);
}

// Adds values to the places of the new axis Into that index names; an index outside adds nothing. The axes Folded are
// summed away (by default all of the index's). Accumulates in f32, in a fixed order.
template <class Into, class... Folded, detail::TensorLike T, detail::TensorLike I>
auto scatter_add(const T& values, const I& index, const detail::Location& location = detail::Location::current()) {
  static_assert(detail::is_integer_dtype<detail::DTypeOf<I>>, "tigon: scatter_add: the index is not integer.");
  using Given = detail::List<Folded...>;
  using Gone = std::conditional_t<sizeof...(Folded) == 0, detail::AxesOf<I>, Given>;
  using All = detail::Union<detail::AxesOf<T>, detail::AxesOf<I>>;
  static_assert(detail::is_subset<Gone, All>, "tigon: scatter_add folds an axis that neither values nor index has.");
  using Rest = detail::Remove<All, Gone>;
  static_assert(!detail::contains<Into, Rest>,
                "tigon: scatter_add: the result would have the axis Into twice; rename it.");
  detail::set_location(location);
  using S = detail::MakeSignature<detail::Arithmetic<detail::DTypeOf<T>>, detail::Union<Rest, detail::List<Into>>>;
  return Tensor<S>(detail::scatter(detail::type_ref<S>(), values.value(), index.value(), detail::axis_ref<Into>(),
                                   detail::refs<Gone>()));
}

}  // namespace tigon
