// A number of the reference evaluation: its value in f64 and how far a backend's result may lie from it.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "dsl/scalar_program.hpp"
#include "tigon/dtype.hpp"
#include "tigon/scalar_op.hpp"

namespace tigon::dsl {

// A bound of zero says that every backend computes exactly this value. Undetermined: a discontinuity lies within the
// bound, so nothing can be said about the value.
struct Bounded {
  double value = 0;
  double bound = 0;
  bool undetermined = false;
};

// What storing in a dtype does to a number. With casts ignored every float counts as f64.
struct Rounding {
  DType dtype = DType::f64;
  bool floating = true;
  double unit = 0;       // half an ulp, relative
  double smallest = 0;   // normal number
  double subnormal = 0;  // smallest number above zero
  double largest = 0;    // what still rounds to a finite number, at most
};
Rounding rounding_of(DType dtype, bool honour_casts);

// The nearest number of the dtype, as a double; integers wrap.
double round_to(DType dtype, double value);

// Adds the rounding of one operation, accurate to `ulps`, to a result whose propagated bound is known.
inline Bounded settle(double value, double propagated, bool undetermined, double ulps, const Rounding& rounding) {
  if (!rounding.floating) {
    if (rounding.dtype == DType::i32 && std::abs(value) > 2147483647.0) value = round_to(DType::i32, value);
    return {value, propagated, undetermined};
  }
  const double magnitude = std::abs(value);
  if (!(magnitude <= rounding.largest)) {
    if (std::isnan(value)) return {value, 0, undetermined};
    if (magnitude - propagated <= rounding.largest) undetermined = true;
    return {std::copysign(std::numeric_limits<double>::infinity(), value), 0, undetermined};
  }
  double bound = propagated;
  if (ulps > 0) {
    const bool exact = propagated == 0 && ulps <= 0.5 && rounding.dtype != DType::f64 &&
                       (magnitude >= rounding.smallest || magnitude == 0) && round_to(rounding.dtype, value) == value;
    if (!exact) {
      bound += 2 * ulps * rounding.unit * magnitude;
      // Numbers below the smallest normal may be flushed to zero.
      if (magnitude < rounding.smallest && magnitude > 0) bound += std::min(magnitude, rounding.smallest);
    }
  }
  if (!(bound < std::numeric_limits<double>::infinity())) return {value, 0, true};
  if (magnitude + bound > rounding.largest) undetermined = true;
  return {value, bound, undetermined};
}

// One scalar operation on numbers with bounds.
Bounded apply(ScalarOp op, const Bounded* arguments, const Rounding& rounding);
Bounded cast_to(const Bounded& operand, DType from, const Rounding& to, bool honour_casts);

inline Bounded multiply(const Bounded& a, const Bounded& b, const Rounding& rounding) {
  const double value = a.value * b.value;
  if (!std::isfinite(value)) return apply(ScalarOp::mul, std::initializer_list<Bounded>{a, b}.begin(), rounding);
  const double propagated = std::abs(a.value) * b.bound + std::abs(b.value) * a.bound + a.bound * b.bound;
  return settle(value, propagated, a.undetermined || b.undetermined, 0.5, rounding);
}
inline Bounded add(const Bounded& a, const Bounded& b, const Rounding& rounding) {
  return settle(a.value + b.value, a.bound + b.bound, a.undetermined || b.undetermined, 0.5, rounding);
}

// Runs a program of a monoid; bounds follow its derivative as a whole, so that x + (y - x) * w costs no more than it
// does.
void run_bounded(const ScalarProgram& program, std::span<const Bounded> inputs, std::span<Bounded> results,
                 DType element, bool honour_casts);

// The longest chain of additions that a kernel may put an element of a fold over n elements through.
inline double fold_depth(double n) { return std::min(n, 64 + n / 64); }

}  // namespace tigon::dsl
