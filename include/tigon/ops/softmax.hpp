// softmax and log_softmax over one or more axes.
#pragma once
#include "tigon/ops/support.hpp"

namespace tigon::ops {

using tigon::log_softmax;
using tigon::log_softmax_parts;

// tigon::softmax of a float tensor, in f32. A row that holds nothing but -infinity gives 0, with gradient 0.
template <class... V, detail::TensorLike T>
auto softmax(const T& x, const Location& location = Location::current()) {
  check_float<T>();
  return tigon::softmax<V...>(widened(x, location), location);
}

}  // namespace tigon::ops
