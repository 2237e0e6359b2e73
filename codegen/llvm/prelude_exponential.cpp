// exp, exp2, expm1 and the functions made of them: tanh, sigmoid, softplus, log_sigmoid.
#include <cmath>
#include <limits>
#include <numbers>

#include "codegen/llvm/prelude_coefficients.hpp"
#include "codegen/llvm/prelude_parts.hpp"
#include "codegen/llvm/prelude_writer.hpp"

namespace tigon::llvm {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ln2 = std::numbers::ln2;
// ln2 = high + low: high is ln2 rounded to the dtype, low the rest rounded to f64.
constexpr double ln2_high_f32 = static_cast<double>(std::numbers::ln2_v<float>);
constexpr double ln2_low_f32 = ln2 - ln2_high_f32;
constexpr double ln2_low_f64 = 2.3190468138462996e-17;

// Adding 1.5 2^(mantissa bits) rounds to an integer n and leaves n in the low bits of the sum, with no conversion that
// would be undefined for large x.
Value rounding_magic(PreludeWriter& w) { return w.number("magic", w.pick(12582912.0, 6755399441055744.0)); }

// x = n ln2 + r, |r| <= ln2 / 2.
struct Split {
  Value shifted;  // n + magic
  Value r;
};

Split split_by_ln2(PreludeWriter& w, const Value& x) {
  const Value magic = rounding_magic(w);
  const Value shifted = w.fma("shifted", x, w.number("log2e", std::numbers::log2e), magic);
  const Value n = w.sub("n", shifted, magic);
  const Value rest = w.fma("r_high", n, w.number("minus_ln2_high", w.pick(-ln2_high_f32, -ln2)), x);
  return {shifted, w.fma("r", n, w.number("minus_ln2_low", w.pick(-ln2_low_f32, -ln2_low_f64)), rest)};
}

std::span<const double> exp_coefficients(const PreludeWriter& w) {
  return w.is_f32() ? std::span<const double>(coefficients::exp_f32) : std::span<const double>(coefficients::exp_f64);
}

// exp(r) - 1 = r + r^2 q(r) on |r| <= ln2 / 2.
Value expm1_reduced(PreludeWriter& w, const Value& r) {
  const Value q = w.polynomial("q", r, exp_coefficients(w));
  const Value r_squared = w.mul("r_squared", r, r);
  return w.fma("rest", r_squared, q, r);
}

// n moved to where the exponent is.
Value exponent_bits(PreludeWriter& w, const Value& shifted) {
  const Value place = w.whole("mantissa_bits", w.pick(23, 52));
  return w.binary("exponent", "shl", w.bits("shifted_bits", shifted), place);
}

// p 2^n by adding n to p's exponent, then 0 where x < lowest, and x + inf (infinity or NaN) where x > highest or NaN.
Value scale_and_bound(PreludeWriter& w, const Value& x, const Value& p, const Value& shifted, double lowest,
                      double highest) {
  const Value exponent = exponent_bits(w, shifted);
  const Value scaled_bits = w.binary("scaled_bits", "add", w.bits("p_bits", p), exponent);
  const Value scaled = w.from_bits("scaled", scaled_bits);
  const Value small = w.compare("small", "fcmp olt", x, w.number("lowest", lowest));
  const Value flushed = w.select("flushed", small, w.number("zero", 0.0), scaled);
  const Value large = w.compare("large", "fcmp ugt", x, w.number("highest", highest));
  const Value overflow = w.add("overflow", x, w.number("infinity", infinity));
  return w.select("result", large, overflow, flushed);
}

// The largest x whose exp is finite and the smallest whose exp is normal, in each dtype.
constexpr double exp_highest_f32 = 88.72283172607422;
constexpr double exp_lowest_f32 = -87.33654022216797;
constexpr double exp_highest_f64 = 709.782712893384;
constexpr double exp_lowest_f64 = -708.3964185322641;

}  // namespace

void write_exp(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const auto [shifted, r] = split_by_ln2(w, x);
  const Value one = w.number("one", 1.0);
  const Value slope = w.fma("slope", w.polynomial("q", r, exp_coefficients(w)), r, one);
  const Value p = w.fma("p", slope, r, one);
  w.result(scale_and_bound(w, x, p, shifted, w.pick(exp_lowest_f32, exp_lowest_f64),
                           w.pick(exp_highest_f32, exp_highest_f64)));
}

void write_exp2(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const Value magic = rounding_magic(w);
  const Value shifted = w.add("shifted", x, magic);
  const Value r = w.sub("r", x, w.sub("n", shifted, magic));
  const Value q = w.polynomial(
      "q", r,
      w.is_f32() ? std::span<const double>(coefficients::exp2_f32) : std::span<const double>(coefficients::exp2_f64));
  const Value p = w.fma("p", r, q, w.number("one", 1.0));
  const double highest = w.pick(static_cast<double>(std::nextafter(128.0F, 0.0F)), std::nextafter(1024.0, 0.0));
  w.result(scale_and_bound(w, x, p, shifted, w.pick(-126.0, -1022.0), highest));
}

// 2^n (exp(r) - 1) + (2^n - 1) = 2 (rest 2^(n-1) + (2^(n-1) - 1/2)): the halves keep n = 128 (1024) finite.
void write_expm1(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const Value floor = w.number("floor", w.pick(-20.0, -40.0));  // below it the result rounds to -1
  const Value low = w.compare("low", "fcmp olt", x, floor);
  const Value bounded = w.select("bounded", low, floor, x);
  const auto [shifted, r] = split_by_ln2(w, bounded);
  const Value rest = expm1_reduced(w, r);
  const Value half = w.number("half", 0.5);
  const Value half_bits = w.bits("half_bits", half);
  const Value scale_bits = w.binary("scale_bits", "add", exponent_bits(w, shifted), half_bits);
  const Value half_scale = w.from_bits("half_scale", scale_bits);
  const Value half_result = w.fma("half_result", rest, half_scale, w.sub("offset", half_scale, half));
  const Value result = w.add("twice", half_result, half_result);
  // For tiny x the result is x: keeps its sign when zero and its bits when subnormal.
  const Value tiny_bound = w.number("tiny_bound", w.pick(0x1p-25, 0x1p-54));
  const Value tiny = w.compare("tiny", "fcmp olt", w.absolute("magnitude", x), tiny_bound);
  const Value kept = w.select("kept", tiny, x, result);
  const Value large = w.compare("large", "fcmp ugt", x, w.number("highest", w.pick(exp_highest_f32, exp_highest_f64)));
  const Value overflow = w.add("overflow", x, w.number("infinity", infinity));
  w.result(w.select("result", large, overflow, kept));
}

namespace {

// Below 0.6 a polynomial, above 1 - 2 / (exp(2 a) + 1).
Value tanh_magnitude_f32(PreludeWriter& w, const Value& a) {
  const Value one = w.number("one", 1.0);
  const Value grown = w.call("grown", "exp", w.add("twice", a, a));
  const Value denominator = w.add("denominator", grown, one);
  const Value quotient = w.div("quotient", w.number("minus_two", -2.0), denominator);
  const Value large = w.add("large", quotient, one);
  const Value square = w.mul("square", a, a);
  const Value q = w.polynomial("q", square, coefficients::tanh_f32);
  const Value small = w.fma("small", w.mul("cube", square, a), q, a);
  return w.select("magnitude", w.compare("near_zero", "fcmp olt", a, w.number("split", 0.6)), small, large);
}

// e / (e + 2) with e = exp(2 a) - 1; from 20 on the result is 1.
Value tanh_magnitude_f64(PreludeWriter& w, const Value& a) {
  const Value bound = w.number("bound", 20.0);
  const Value bounded = w.select("bounded", w.compare("over", "fcmp ogt", a, bound), bound, a);
  const Value grown = w.call("grown", "expm1", w.add("twice", bounded, bounded));
  return w.div("magnitude", grown, w.add("denominator", grown, w.number("two", 2.0)));
}

}  // namespace

void write_tanh(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const Value a = w.absolute("a", x);
  const Value magnitude = w.is_f32() ? tanh_magnitude_f32(w, a) : tanh_magnitude_f64(w, a);
  w.result(w.copy_sign("result", magnitude, x));
}

// 1 / (1 + exp(-x)): where exp overflows the result rounds to 0.
void write_sigmoid(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const Value one = w.number("one", 1.0);
  const Value decayed = w.call("decayed", "exp", w.negate("minus_x", x));
  w.result(w.div("result", one, w.add("denominator", decayed, one)));
}

namespace {

// log(1 + exp(-|x|)), the part of softplus that is never large.
Value softplus_rest(PreludeWriter& w, const Value& x) {
  const Value decayed = w.call("decayed", "exp", w.negate("minus_a", w.absolute("a", x)));
  return w.call("rest", "log1p", decayed);
}

}  // namespace

void write_softplus(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const Value zero = w.number("zero", 0.0);
  const Value positive = w.select("positive_part", w.compare("positive", "fcmp ogt", x, zero), x, zero);
  w.result(w.add("result", softplus_rest(w, x), positive));
}

void write_log_sigmoid(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const Value zero = w.number("zero", 0.0);
  const Value negative = w.select("negative_part", w.compare("negative", "fcmp olt", x, zero), x, zero);
  w.result(w.sub("result", negative, softplus_rest(w, x)));
}

}  // namespace tigon::llvm
