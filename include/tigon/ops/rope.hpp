// Rotary position embedding: pairs of channels turned by an angle that grows with the position.
#pragma once
#include <cmath>

#include "tigon/ops/support.hpp"

namespace tigon::ops {

// The two members of a pair of channels.
struct RopePair : axis<"pair", 2> {};

// half_split pairs channel i with channel i + half; interleaved pairs channel 2i with channel 2i + 1.
enum class RopeLayout { half_split, interleaved };

template <class S>
struct RopeAngles {
  Tensor<S> cos, sin;
};

inline constexpr NumberRange rope_base_range = positive;

// Angles position / base^(i / half) for the positions given, in f32; Half has half as many elements as the channels.
template <class Half, detail::TensorLike P>
auto rope_angles(const P& position, double base = 10000, const Location& location = Location::current()) {
  check_option("rope_angles", "base", base, rope_base_range, location);
  const auto step = cast<f32>(iota<Half>(location), location) * -std::log(base) / cast<f32>(extent<Half>(location));
  const auto angle = cast<f32>(position, location) * exp(step, location);
  using S = typename std::remove_const_t<decltype(angle)>::tensor_signature;
  return RopeAngles<S>{cos(angle, location), sin(angle, location)};
}

// x with its pairs (a, b) along Channels turned to (a cos - b sin, b cos + a sin), in x's dtype. cos and sin have the
// axis Half and whatever axes of x the angle depends on.
template <class Channels, class Half, detail::TensorLike T, detail::TensorLike C, detail::TensorLike S>
auto rope(const T& x, const C& cos, const S& sin, RopeLayout layout = RopeLayout::half_split,
          const Location& location = Location::current()) {
  check_float<T>();
  check_axis<Channels, T>();
  check_axis<Half, C>();
  check_axis<Half, S>();
  const auto wide = widened(x, location);
  const auto turned = [&](const auto& pairs) {
    const auto member = iota<RopePair>(location);
    const auto other = at<RopePair>(pairs, 1 - member, checked, location);
    return pairs * cos + (2 * member - 1) * other * sin;
  };
  using Split = decltype(merge<RopePair, Half, Channels>(turned(split<Channels, RopePair, Half>(wide)), location));
  if (layout == RopeLayout::half_split) {
    const Split y =
        merge<RopePair, Half, Channels>(turned(split<Channels, RopePair, Half>(wide, -1, location)), location);
    return rounded_like<T>(y, location);
  }
  const Split y =
      merge<Half, RopePair, Channels>(turned(split<Channels, Half, RopePair>(wide, -1, location)), location);
  return rounded_like<T>(y, location);
}

}  // namespace tigon::ops
