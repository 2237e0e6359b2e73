// log, log2 and log1p.
#include <limits>
#include <numbers>

#include "codegen/llvm/prelude_coefficients.hpp"
#include "codegen/llvm/prelude_parts.hpp"
#include "codegen/llvm/prelude_writer.hpp"

namespace tigon::llvm {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// A constant as the sum of its value rounded to the dtype and the rest.
struct Pair {
  double high;
  double low;
};
constexpr double ln2_high_f32 = static_cast<double>(std::numbers::ln2_v<float>);
constexpr double log2e_high_f32 = static_cast<double>(std::numbers::log2e_v<float>);
constexpr Pair ln2_f32 = {ln2_high_f32, std::numbers::ln2 - ln2_high_f32};
constexpr Pair log2e_f32 = {log2e_high_f32, std::numbers::log2e - log2e_high_f32};
constexpr Pair ln2_f64 = {std::numbers::ln2, 2.3190468138462996e-17};
constexpr Pair log2e_f64 = {std::numbers::log2e, 2.0355273740931033e-17};

// Where the mantissa starts and what the exponent of one is.
std::uint64_t one_bits(const PreludeWriter& w) { return w.pick<std::uint64_t>(0x3f800000, 0x3ff0000000000000); }
std::uint64_t root_half_bits(const PreludeWriter& w) { return w.pick<std::uint64_t>(0x3f3504f3, 0x3fe6a09e667f3bcd); }
std::uint64_t mantissa_mask(const PreludeWriter& w) { return w.pick<std::uint64_t>(0x007fffff, 0x000fffffffffffff); }

// The exponent of u so that u = 2^k m with sqrt(1/2) <= m < sqrt(2): the bits of u 2^(1/2), of which the exponent field
// is k + bias and the mantissa field that of m, moved.
Value shift_to_root(PreludeWriter& w, const Value& u) {
  const Value offset = w.whole("root_offset", one_bits(w) - root_half_bits(w));
  return w.binary("moved", "add", w.bits("u_bits", u), offset);
}

// An integer k + bias as floating k: set into the low bits of a power of two, which is then subtracted.
Value exponent_to_float(PreludeWriter& w, const Value& biased, const Value& power_and_bias) {
  const Value power = w.whole("power_bits", w.pick<std::uint64_t>(0x4b000000, 0x4330000000000000));
  const Value set = w.from_bits("k_biased", w.binary("k_bits", "or", biased, power));
  return w.sub("k", set, power_and_bias);
}
double power_and_bias(const PreludeWriter& w) { return w.pick(8388608.0 + 127, 4503599627370496.0 + 1023); }

// x > 0 as 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); subnormal x is scaled first.
struct Split {
  Value k;
  Value f;
};

Split split(PreludeWriter& w, const Value& x) {
  const Value small = w.compare("subnormal", "fcmp olt", x, w.number("smallest", w.pick(0x1p-126, 0x1p-1022)));
  const Value lifted = w.mul("lifted", x, w.number("lift", w.pick(0x1p24, 0x1p54)));
  const Value normal = w.select("normal", small, lifted, x);
  const double bias = power_and_bias(w);
  const Value usual = w.number("bias", bias);
  const Value offset = w.select("k_offset", small, w.number("lifted_bias", bias + w.pick(24.0, 54.0)), usual);
  const Value moved = shift_to_root(w, normal);
  const Value biased = w.binary("biased", "lshr", moved, w.whole("mantissa_bits", w.pick(23, 52)));
  // A negative x leaves its sign in the exponent; its result is replaced, so only the shape matters.
  const Value k = exponent_to_float(w, biased, offset);
  const Value fraction = w.binary("fraction", "and", moved, w.whole("mantissa_mask", mantissa_mask(w)));
  const Value m = w.from_bits("m", w.binary("m_bits", "add", fraction, w.whole("root_half_bits", root_half_bits(w))));
  return {k, w.sub("f", m, w.number("one", 1.0))};
}

// log(1 + f) = f + rest.
Value log_rest(PreludeWriter& w, const Value& f) {
  const Value square = w.mul("f_squared", f, f);
  if (w.is_f32()) return w.mul("rest", square, w.polynomial("q", f, coefficients::log_f32));
  // With s = f / (2 + f), log(1 + f) = 2 s + s z q(z) = f - (f^2/2 - s (f^2/2 + z q(z))).
  const Value s = w.div("s", f, w.add("two_plus_f", f, w.number("two", 2.0)));
  const Value z = w.mul("z", s, s);
  const Value series = w.mul("series", z, w.polynomial("q", z, coefficients::log_f64));
  const Value half_square = w.mul("half_square", square, w.number("half", 0.5));
  const Value minus_half_square = w.negate("minus_half_square", half_square);
  return w.fma("rest", s, w.add("sum", half_square, series), minus_half_square);
}

// f + rest + k ln2.
Value join_natural(PreludeWriter& w, const Value& k, const Value& f, const Value& rest) {
  const Pair ln2 = w.pick(ln2_f32, ln2_f64);
  const Value low = w.fma("low", k, w.number("ln2_low", ln2.low), rest);
  const Value high = w.add("high", low, f);
  return w.fma("sum_of_parts", k, w.number("ln2_high", ln2.high), high);
}

// -inf at `pole`, NaN below, infinity and NaN kept.
Value guard(PreludeWriter& w, const Value& x, const Value& value, double pole) {
  const Value zero = w.number("pole", pole);
  const Value at_pole = w.compare("at_pole", "fcmp oeq", x, zero);
  const Value nan = w.number("nan", not_a_number);
  const Value outside = w.select("outside", at_pole, w.number("minus_infinity", -infinity), nan);
  const Value inside = w.compare("inside", "fcmp ogt", x, zero);
  const Value bounded = w.select("bounded", inside, value, outside);
  const Value infinite = w.number("infinity", infinity);
  return w.select("result", w.compare("at_infinity", "fcmp oeq", x, infinite), infinite, bounded);
}

}  // namespace

void write_log(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const auto [k, f] = split(w, x);
  w.result(guard(w, x, join_natural(w, k, f, log_rest(w, f)), 0.0));
}

// k + log2(e) (f + rest), the product with log2(e) in two parts.
void write_log2(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const auto [k, f] = split(w, x);
  const Pair log2e = w.pick(log2e_f32, log2e_f64);
  const Value rest = log_rest(w, f);
  const Value high = w.number("log2e_high", log2e.high);
  const Value low = w.mul("low", f, w.number("log2e_low", log2e.low));
  const Value scaled_rest = w.fma("scaled_rest", rest, high, low);
  const Value mantissa_log = w.fma("mantissa_log", f, high, scaled_rest);
  w.result(guard(w, x, w.add("sum_of_parts", k, mantissa_log), 0.0));
}

// u = 1 + x = 2^k (1 + f) with f computed from x, not from the rounded u: f = (x / 4) 2^(2-k) + (2^-k - 1).
void write_log1p(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const Value quarter = w.number("quarter", 0.25);
  const Value u = w.add("u", x, w.number("one", 1.0));
  const Value moved = shift_to_root(w, u);
  const Value biased = w.binary("biased", "lshr", moved, w.whole("mantissa_bits", w.pick(23, 52)));
  const Value k = exponent_to_float(w, biased, w.number("bias", power_and_bias(w)));
  // The exponent field of 2^(2-k) is 2 bias + 2 minus that of 2^k; with 2 - k it is normal for k = 128 (1024) as well.
  const Value field_mask = w.whole("field_mask", w.pick<std::uint64_t>(0x7f800000, 0x7ff0000000000000));
  const Value field = w.binary("field", "and", moved, field_mask);
  const Value field_sum = w.whole("field_sum", w.pick<std::uint64_t>(0x80000000, 0x8000000000000000));
  const Value scale = w.from_bits("scale", w.binary("scale_bits", "sub", field_sum, field));
  const Value offset = w.fma("offset", scale, quarter, w.number("minus_one", -1.0));
  const Value f = w.fma("f", w.mul("quarter_x", x, quarter), scale, offset);
  const Value joined = join_natural(w, k, f, log_rest(w, f));
  // For tiny x the result is x: keeps its sign when zero and its bits when subnormal.
  const Value tiny_bound = w.number("tiny_bound", w.pick(0x1p-25, 0x1p-54));
  const Value tiny = w.compare("tiny", "fcmp olt", w.absolute("a", x), tiny_bound);
  w.result(guard(w, x, w.select("kept", tiny, x, joined), -1.0));
}

}  // namespace tigon::llvm
