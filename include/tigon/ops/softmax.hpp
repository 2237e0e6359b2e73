// softmax and log_softmax over one or more axes.
#pragma once
#include <limits>

#include "tigon/ops/support.hpp"

namespace tigon::ops {

using tigon::log_softmax;
using tigon::log_softmax_parts;

// exp(x - logsumexp(x)) in f32. A row that holds nothing but -infinity gives 0, with gradient 0.
template <class... V, detail::TensorLike T>
auto softmax(const T& x, const Location& location = Location::current()) {
  check_float<T>();
  const auto wide = widened(x, location);
  const auto parts = log_softmax_parts<V...>(wide, location);
  const auto empty = parts.max == -std::numeric_limits<double>::infinity();
  const auto shift = where(empty, 0, parts.max, location);
  const auto y = exp((wide - shift) - parts.log_rest, location);
  // dy = y (dx - d logsumexp(x)); differentiating the guarded form instead would bring in the row's argmax.
  return attach(y, stop_gradient(y, location) * (wide - logsumexp<V...>(wide, location)), location);
}

}  // namespace tigon::ops
