// LayerNorm over one or more axes: mean first, then the mean of squared differences, which does not cancel.
#pragma once
#include "tigon/ops/support.hpp"

namespace tigon::ops {

struct LayerNormOptions {
  double epsilon = 1e-5;

  static constexpr NumberRange epsilon_range = not_negative;
};

// (x - mean) / sqrt(variance + epsilon), in f32: what the weight and the bias are applied to.
template <class... Axis, detail::TensorLike T>
auto standardised(const T& x, const LayerNormOptions& options = {}, const Location& location = Location::current()) {
  check_float<T>();
  check_option("layer_norm", "epsilon", options.epsilon, LayerNormOptions::epsilon_range, location);
  const auto centred = x - mean<Axis...>(widened(x, location), location);
  return centred * rsqrt(mean<Axis...>(square(centred, location), location) + options.epsilon, location);
}

template <class... Axis, detail::TensorLike T>
auto layer_norm(const T& x, const LayerNormOptions& options = {}, const Location& location = Location::current()) {
  return rounded_like<T>(standardised<Axis...>(x, options, location), location);
}

template <class... Axis, detail::TensorLike T, detail::TensorLike W>
auto layer_norm(const T& x, const W& weight, const LayerNormOptions& options = {},
                const Location& location = Location::current()) {
  return rounded_like<T>(standardised<Axis...>(x, options, location) * weight, location);
}

template <class... Axis, detail::TensorLike T, detail::TensorLike W, detail::TensorLike B>
auto layer_norm(const T& x, const W& weight, const B& bias, const LayerNormOptions& options = {},
                const Location& location = Location::current()) {
  return rounded_like<T>(standardised<Axis...>(x, options, location) * weight + bias, location);
}

}  // namespace tigon::ops
