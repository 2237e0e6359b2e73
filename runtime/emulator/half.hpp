// Conversions between the narrow float formats and f32, and rounding of exact intermediate values in any direction.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace tigon::emulator {

enum class Rounding : std::uint8_t { nearest, zero, down, up, away };  // away: to nearest, ties away from zero

inline float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
float half_to_float(std::uint16_t bits);

// The format with `mantissa` explicit bits and `exponent` exponent bits nearest to the value in the given direction.
// Works for every value that a double holds exactly; NaN becomes `nan`.
struct Format {
  int mantissa;
  int exponent;
  bool has_infinity;
  std::uint32_t nan;
};
inline constexpr Format format_f16{10, 5, true, 0x7fff};
inline constexpr Format format_bf16{7, 8, true, 0x7fff};
inline constexpr Format format_f32{23, 8, true, 0x7fffffff};
inline constexpr Format format_tf32{10, 8, true, 0x7fffffff >> 13};
inline constexpr Format format_e4m3{3, 4, false, 0x7f};
inline constexpr Format format_e5m2{2, 5, true, 0x7f};
std::uint32_t round_to_format(double value, const Format& format, Rounding rounding, bool finite_only = false);
double format_to_double(std::uint32_t bits, const Format& format);

// Round to nearest, ties to even, the common cases.
inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
std::uint16_t float_to_half(float value);

// a + b as a double whose last bit is odd when it is not exact, so that a further rounding is right.
inline double sum_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  auto bits = std::bit_cast<std::int64_t>(sum);
  if (error == 0 || (bits & 1) != 0) return sum;
  // Towards the side on which the true sum lies.
  bits += ((error > 0) == (sum > 0)) ? 1 : -1;
  return std::bit_cast<double>(bits);
}

// Division and square root, likewise.
double quotient_to_odd(double a, double b);
double root_to_odd(double a);

inline float flush(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000) == 0 ? std::bit_cast<float>(bits & 0x80000000) : value;
}
inline float canonical(float value) { return value != value ? std::bit_cast<float>(std::uint32_t{0x7fffffff}) : value; }

}  // namespace tigon::emulator
