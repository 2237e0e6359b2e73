// Reductions over named axes, several at once: sum<Tokens, Vocab>(x). The result keeps the other axes.
#pragma once
#include <limits>

#include "tigon/shape.hpp"

namespace tigon {
namespace detail {

template <class T, class... A>
constexpr void check_reduced() {
  static_assert(sizeof...(A) > 0, "tigon: name the axes to reduce over: sum<Tokens>(x).");
  static_assert((is_axis<A> && ...), "tigon: an axis is a type derived from tigon::axis<\"name\">.");
  static_assert(is_subset<List<A...>, AxesOf<T>>, "tigon: this reduces over an axis that the tensor does not have.");
  static_assert(all_different<List<A...>>, "tigon: an axis is reduced over twice.");
}

template <class D, Reduction reduction, class T, class... A>
auto reduced(const T& x, const Location& location) {
  check_reduced<T, A...>();
  set_location(location);
  using S = MakeSignature<D, Remove<AxesOf<T>, List<A...>>>;
  return Tensor<S>(reduce(reduction, type_ref<S>(), x.value(), refs<List<A...>>()));
}

template <class D>
using Index = i64;
template <class D>
using Truth = bool;

}  // namespace detail

#define TIGON_REDUCTION(function, Result)                                                                  \
  template <class... A, detail::TensorLike T>                                                              \
  auto function(const T& x, const detail::Location& location = detail::Location::current()) {              \
    return detail::reduced<Result<detail::DTypeOf<T>>, detail::Reduction::function, T, A...>(x, location); \
  }

TIGON_REDUCTION(sum, detail::Arithmetic)  // booleans are counted in i32
TIGON_REDUCTION(product, detail::Arithmetic)
TIGON_REDUCTION(max, detail::Arithmetic)  // the gradient goes to the lowest index on a tie
TIGON_REDUCTION(min, detail::Arithmetic)
TIGON_REDUCTION(mean, detail::Floating)  // over an empty axis: NaN
TIGON_REDUCTION(logsumexp, detail::Floating)
TIGON_REDUCTION(argmax, detail::Index)  // over one axis; the lowest index on a tie, NaN first
TIGON_REDUCTION(argmin, detail::Index)
TIGON_REDUCTION(any, detail::Truth)
TIGON_REDUCTION(all, detail::Truth)

#undef TIGON_REDUCTION

// The contraction sum<K...>(a * b), accumulated in f32.
template <class... K, detail::TensorLike L, detail::TensorLike R>
auto dot(const L& a, const R& b, const detail::Location& location = detail::Location::current()) {
  static_assert(sizeof...(K) > 0, "tigon: name the axes to contract over: dot<Hidden>(x, weight).");
  static_assert(detail::is_subset<detail::List<K...>, detail::Union<detail::AxesOf<L>, detail::AxesOf<R>>>,
                "tigon: this contracts over an axis that neither tensor has.");
  detail::set_location(location);
  const auto product = a * b;
  return detail::reduced<detail::DTypeOf<decltype(product)>, detail::Reduction::sum, decltype(product), K...>(product,
                                                                                                              location);
}

template <class S>
struct Moments {
  Tensor<S> mean, variance;  // variance divides by the count
};
template <class... A, detail::TensorLike T>
auto moments(const T& x, const detail::Location& location = detail::Location::current()) {
  detail::check_reduced<T, A...>();
  detail::set_location(location);
  using S = detail::MakeSignature<detail::Floating<detail::DTypeOf<T>>,
                                  detail::Remove<detail::AxesOf<T>, detail::List<A...>>>;
  const detail::Pair pair = detail::moments(detail::type_ref<S>(), x.value(), detail::refs<detail::List<A...>>());
  return Moments<S>{Tensor<S>(pair.first), Tensor<S>(pair.second)};
}

// logsumexp in two parts, max + log_rest, which keep full precision for confident rows:
// nll = (parts.max - at<V>(x, y)) + parts.log_rest.
template <class S>
struct LogSoftmaxParts {
  Tensor<S> max, log_rest;
};
template <class... V, detail::TensorLike T>
auto log_softmax_parts(const T& x, const detail::Location& location = detail::Location::current()) {
  detail::check_reduced<T, V...>();
  detail::set_location(location);
  using S = detail::MakeSignature<detail::Floating<detail::DTypeOf<T>>,
                                  detail::Remove<detail::AxesOf<T>, detail::List<V...>>>;
  const detail::Pair pair =
      detail::log_softmax_parts(detail::type_ref<S>(), x.value(), detail::refs<detail::List<V...>>());
  return LogSoftmaxParts<S>{Tensor<S>(pair.first), Tensor<S>(pair.second)};
}
// A row that holds nothing but -infinity has no distribution: its log_softmax is NaN.
template <class... V, detail::TensorLike T>
auto log_softmax(const T& x, const detail::Location& location = detail::Location::current()) {
  const auto parts = log_softmax_parts<V...>(x, location);
  return (x - parts.max) - parts.log_rest;
}
// exp(x - logsumexp(x)). A row that holds nothing but -infinity, one that is masked as a whole, gives 0 with gradient
// 0.
template <class... V, detail::TensorLike T>
auto softmax(const T& x, const detail::Location& location = detail::Location::current()) {
  const auto parts = log_softmax_parts<V...>(x, location);
  const auto empty = parts.max == -std::numeric_limits<double>::infinity();
  const auto shift = where(empty, 0, parts.max, location);
  const auto y = exp((x - shift) - parts.log_rest, location);
  // dy = y (dx - d logsumexp(x)); differentiating the guarded form instead would bring in the row's argmax.
  // Named, since compilers differ in which operand they evaluate first.
  const auto log_y = x - logsumexp<V...>(x, location);
  return attach(y, log_y * stop_gradient(y, location), location);
}

// The mean of the elements where the mask holds; 0, with gradient 0, where it holds nowhere.
template <class... A, detail::TensorLike T, detail::TensorLike M>
auto masked_mean(const T& x, const M& mask, const detail::Location& location = detail::Location::current()) {
  static_assert(sizeof...(A) > 0, "tigon: name the axes to reduce over: masked_mean<Tokens>(x, mask).");
  static_assert(detail::is_truth<M>, "tigon: the mask of masked_mean is a boolean tensor; compare first.");
  const auto total = sum<A...>(where(mask, x, 0, location), location);
  const auto count = sum<A...>(broadcast<A...>(mask, location), location);
  return total / max(count, 1, location);
}

}  // namespace tigon
