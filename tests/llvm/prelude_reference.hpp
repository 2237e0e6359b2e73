// What the prelude's functions should give, by the C library in more precision, and distances in units of the last
// place.
#pragma once
#include <string_view>

namespace tigon::testing {

using Extended = long double;

struct PreludeReference {
  std::string_view name;
  double (*of_f32)(double x);      // for f32 operands
  Extended (*of_f64)(Extended x);  // for f64 operands
  bool flushes;                    // built on exp: a result below the smallest normal may be 0
};

// The functions of one operand that have a stated error.
extern const PreludeReference prelude_references[14];

// |got - exact| in units of the last place of the exact value in the format; infinity counts as the next power of two
// beyond the largest number. Infinite when one of both is NaN, 0 when both are.
double ulp_distance_f32(float got, double exact);
double ulp_distance_f64(double got, Extended exact);

}  // namespace tigon::testing
