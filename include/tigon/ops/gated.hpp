// Gated activations: swiglu and geglu, of two tensors or of one that holds both halves.
#pragma once
#include <cmath>
#include <numbers>

#include "tigon/ops/support.hpp"

namespace tigon::ops {

struct GatedHalf : axis<"half", 2> {};

enum class Gelu { tanh, erf };

struct SwigluOptions {
  double gate_multiplier = 1;
  double down_multiplier = 1;

  static constexpr NumberRange multiplier_range = any_number;
  void check(const Location& location) const {
    check_option("swiglu", "gate_multiplier", gate_multiplier, multiplier_range, location);
    check_option("swiglu", "down_multiplier", down_multiplier, multiplier_range, location);
  }
};

// x/2 (1 + erf(x / sqrt 2)), or its approximation by tanh; in f32.
template <detail::TensorLike T>
auto gelu(const T& x, Gelu form = Gelu::tanh, const Location& location = Location::current()) {
  check_float<T>();
  const auto wide = widened(x, location);
  if (form == Gelu::erf) return wide * 0.5 * (1 + erf(wide * (std::numbers::sqrt2 / 2), location));
  const double scale = std::sqrt(2 / std::numbers::pi);
  return wide * 0.5 * (1 + tanh((wide + wide * wide * wide * 0.044715) * scale, location));
}

// silu(gate) * up; silu is rounded to the gate's dtype first, as a module of its own would.
template <detail::TensorLike G, detail::TensorLike U>
auto swiglu(const G& gate, const U& up, const SwigluOptions& options = {},
            const Location& location = Location::current()) {
  check_float<G>();
  options.check(location);
  auto wide = widened(gate, location);
  if (options.gate_multiplier != 1) wide = wide * options.gate_multiplier;
  auto product = rounded_like<G>(silu(wide, location), location) * up;
  if (options.down_multiplier != 1) product = product * options.down_multiplier;
  return rounded_like<G>(product, location);
}

template <detail::TensorLike G, detail::TensorLike U>
auto geglu(const G& gate, const U& up, Gelu form = Gelu::tanh, const Location& location = Location::current()) {
  return rounded_like<G>(rounded_like<G>(gelu(gate, form, location), location) * up, location);
}

// The gate is the first half of Both, `up` the second: one gradient, written once.
template <class Both, class Features, detail::TensorLike T>
auto packed_swiglu(const T& x, const SwigluOptions& options = {}, const Location& location = Location::current()) {
  const auto halves = split<Both, GatedHalf, Features>(x, -1, location);
  return swiglu(at<GatedHalf>(halves, 0, checked, location), at<GatedHalf>(halves, 1, checked, location), options,
                location);
}

}  // namespace tigon::ops
