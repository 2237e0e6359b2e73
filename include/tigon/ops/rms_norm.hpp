// RMSNorm with its three casting modes, and the one fused with the residual's addition.
#pragma once
#include "tigon/ops/support.hpp"

namespace tigon::ops {

// Where a 16-bit RMSNorm rounds. llama: the normalised value, then its product with the weight. gemma: the end only.
// none: every step, the mean of squares and epsilon included.
enum class Casting { llama, gemma, none };

struct RmsNormOptions {
  Casting casting = Casting::llama;
  double offset = 0;  // added to the weight: 1 where weights are stored around 0
  double epsilon = 1e-6;

  static constexpr NumberRange offset_range = any_number, epsilon_range = not_negative;
  void check(std::string_view op, const Location& location) const {
    check_option(op, "offset", offset, offset_range, location);
    check_option(op, "epsilon", epsilon, epsilon_range, location);
  }
};

namespace detail_of_ops {

template <class Axis, class T>
auto root_mean_square_scale(const T& x, const RmsNormOptions& options, const Location& location) {
  options.check("rms_norm", location);
  if (options.casting != Casting::none) {
    return rsqrt(mean<Axis>(square(widened(x, location), location), location) + options.epsilon, location);
  }
  const auto mean_square =
      rounded_like<T>(mean<Axis>(rounded_like<T>(square(x, location), location), location), location);
  const auto epsilon =
      cast<detail::DTypeOf<T>>(number<detail::Floating<detail::DTypeOf<T>>>(options.epsilon), location);
  const auto shifted = rounded_like<T>(mean_square + epsilon, location);
  return widened(rounded_like<T>(rsqrt(shifted, location), location), location);
}

}  // namespace detail_of_ops

// x / sqrt(mean(x^2) + epsilon), in x's dtype.
template <class Axis, detail::TensorLike T>
auto rms_norm(const T& x, const RmsNormOptions& options = {}, const Location& location = Location::current()) {
  check_float<T>();
  check_axis<Axis, T>();
  return rounded_like<T>(x * detail_of_ops::root_mean_square_scale<Axis>(x, options, location), location);
}

// x / sqrt(mean(x^2) + epsilon) * (offset + weight), in x's dtype.
template <class Axis, detail::TensorLike T, detail::TensorLike W>
auto rms_norm(const T& x, const W& weight, const RmsNormOptions& options = {},
              const Location& location = Location::current()) {
  check_float<T>();
  check_axis<Axis, T>();
  const auto scale = detail_of_ops::root_mean_square_scale<Axis>(x, options, location);
  const auto normalised = x * scale;
  auto factor = widened(weight, location);
  if (options.offset != 0) factor = factor + options.offset;
  if (options.casting == Casting::gemma) return rounded_like<T>(normalised * factor, location);
  if (options.offset != 0) factor = widened(rounded_like<W>(factor, location), location);
  return rounded_like<T>(rounded_like<T>(normalised, location) * factor, location);
}

template <class Y, class S>
struct AddRmsNorm {
  Y y;
  S sum;  // x + residual, rounded to x's dtype: the next residual
};

// The residual is added, the sum is rounded, and what was rounded is normalised.
template <class Axis, detail::TensorLike T, detail::TensorLike U, detail::TensorLike W>
auto add_rms_norm(const T& x, const U& residual, const W& weight, const RmsNormOptions& options = {},
                  const Location& location = Location::current()) {
  detail::set_location(location);
  const auto total = rounded_like<T>(x + residual, location);
  const auto y = rms_norm<Axis>(total, weight, options, location);
  return AddRmsNorm<decltype(rms_norm<Axis>(total, weight, options, location)), std::remove_const_t<decltype(total)>>{
      y, total};
}

}  // namespace tigon::ops
