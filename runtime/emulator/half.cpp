// Conversions between the narrow float formats and f32, and rounding of exact intermediate values in any direction.
#include "runtime/emulator/half.hpp"

#include <limits>

namespace tigon::emulator {

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t rest = bits & 0x7fffU;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ffU) << 13);
  if (rest >= 0x400) return std::bit_cast<float>(sign | ((rest << 13) + (112U << 23)));
  const float tiny = static_cast<float>(rest) * 0x1p-24F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(tiny) | sign);
}

std::uint16_t float_to_half(float value) {
  return static_cast<std::uint16_t>(round_to_format(value, format_f16, Rounding::nearest));
}

std::uint32_t round_to_format(double value, const Format& format, Rounding rounding, bool finite_only) {
  const auto sign_shift = format.mantissa + format.exponent;
  const auto sign = static_cast<std::uint32_t>(std::signbit(value)) << sign_shift;
  if (std::isnan(value)) return format.nan;
  const int bias = (1 << (format.exponent - 1)) - 1;
  // Without infinities the topmost exponent holds numbers, all but the NaN with every bit set.
  const std::uint32_t infinity = ((1U << format.exponent) - 1) << format.mantissa;
  const std::uint32_t largest = format.has_infinity ? infinity - 1 : (1U << sign_shift) - 2;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(value)) return finite_only || !format.has_infinity ? sign | largest : sign | infinity;
  int exponent = std::ilogb(magnitude);
  if (exponent < 1 - bias) exponent = 1 - bias;
  // In units of the last place: an integer of at most mantissa + 1 bits and a fraction.
  const double scaled = std::ldexp(magnitude, format.mantissa - exponent);
  const double whole = std::floor(scaled);
  const double fraction = scaled - whole;
  auto units = static_cast<std::uint64_t>(whole);
  const bool negative = std::signbit(value);
  bool increase = false;
  switch (rounding) {
    case Rounding::nearest:
      increase = fraction > 0.5 || (fraction == 0.5 && (units & 1) != 0);
      break;
    case Rounding::away:
      increase = fraction >= 0.5;
      break;
    case Rounding::down:
      increase = negative && fraction > 0;
      break;
    case Rounding::up:
      increase = !negative && fraction > 0;
      break;
    case Rounding::zero:
      break;
  }
  units += increase;
  const auto hidden = std::uint64_t{1} << format.mantissa;
  const auto field = static_cast<std::uint64_t>(exponent - (1 - bias));
  // A subnormal has exponent field 0; a carry out of the mantissa raises the exponent by itself.
  const std::uint64_t bits = units + field * hidden;
  if (bits > largest) {
    const bool towards_zero = rounding == Rounding::zero || (rounding == Rounding::down && !negative) ||
                              (rounding == Rounding::up && negative);
    if (finite_only || towards_zero) return sign | largest;
    return sign | (format.has_infinity ? infinity : largest);
  }
  return sign | static_cast<std::uint32_t>(bits);
}

double format_to_double(std::uint32_t bits, const Format& format) {
  const auto sign_shift = format.mantissa + format.exponent;
  const bool negative = (bits >> sign_shift & 1) != 0;
  const auto rest = bits & ((1U << sign_shift) - 1);
  const auto field = rest >> format.mantissa;
  const auto mantissa = rest & ((1U << format.mantissa) - 1);
  const auto top = (1U << format.exponent) - 1;
  const int bias = (1 << (format.exponent - 1)) - 1;
  double value = 0;
  if (format.has_infinity && field == top) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (!format.has_infinity && rest == (1U << sign_shift) - 1) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (field == 0) {
    value = std::ldexp(mantissa, 1 - bias - format.mantissa);
  } else {
    value = std::ldexp(mantissa + (1U << format.mantissa), static_cast<int>(field) - bias - format.mantissa);
  }
  return negative ? -value : value;
}

namespace {
// Makes the last bit odd if the exact value differs from `value`; `remainder` has the sign of exact - value.
double odd(double value, double remainder) {
  auto bits = std::bit_cast<std::int64_t>(value);
  if (remainder == 0 || (bits & 1) != 0 || !std::isfinite(value)) return value;
  bits += ((remainder > 0) == (value > 0)) ? 1 : -1;
  return std::bit_cast<double>(bits);
}
}  // namespace

double quotient_to_odd(double a, double b) {
  const double quotient = a / b;
  if (!std::isfinite(quotient) || quotient == 0) return quotient;
  const double remainder = std::fma(-quotient, b, a);
  return odd(quotient, b > 0 ? remainder : -remainder);
}

double root_to_odd(double a) {
  const double root = std::sqrt(a);
  if (!std::isfinite(root) || root == 0) return root;
  return odd(root, std::fma(-root, root, a));
}

}  // namespace tigon::emulator
