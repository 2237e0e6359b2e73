// pow: x^y = 2^(y log2 |x|), with the logarithm in more bits than the result, and C99's special cases.
#include <limits>
#include <numbers>

#include "codegen/llvm/prelude_coefficients.hpp"
#include "codegen/llvm/prelude_parts.hpp"
#include "codegen/llvm/prelude_writer.hpp"

namespace tigon::llvm {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double rounding_magic = 6755399441055744.0;  // 1.5 2^52

Value number(PreludeWriter& w, std::string_view name, double value) { return w.number(name, value, Lane::f64); }
Value whole(PreludeWriter& w, std::string_view name, std::uint64_t value) { return w.whole(name, value, Lane::i64); }

// a > 0 in f64 as 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2).
struct Split {
  Value k;
  Value m;
  Value f;
};

Split split(PreludeWriter& w, const Value& a) {
  Value normal = a;
  Value bias = number(w, "bias", 4503599627370496.0 + 1023);
  if (!w.is_f32()) {  // an f32 widened is never subnormal
    const Value small = w.compare("subnormal", "fcmp olt", a, number(w, "smallest", 0x1p-1022));
    normal = w.select("normal", small, w.mul("lifted", a, number(w, "lift", 0x1p54)), a);
    bias = w.select("k_offset", small, number(w, "lifted_bias", 4503599627370496.0 + 1023 + 54), bias);
  }
  const Value root_offset = whole(w, "root_offset", 0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
  const Value moved = w.binary("moved", "add", w.bits("a_bits", normal), root_offset);
  const Value biased = w.binary("biased", "lshr", moved, whole(w, "mantissa_bits", 52));
  const Value set = w.binary("k_bits", "or", biased, whole(w, "power_bits", 0x4330000000000000));
  const Value k = w.sub("k", w.from_bits("k_biased", set), bias);
  const Value fraction = w.binary("fraction", "and", moved, whole(w, "mantissa_mask", 0x000fffffffffffff));
  const Value m = w.from_bits("m", w.binary("m_bits", "add", fraction, whole(w, "root_half_bits", 0x3fe6a09e667f3bcd)));
  return {k, m, w.sub("f", m, number(w, "one", 1.0))};
}

// t limited to [-bound, bound]; NaN stays.
Value clamp(PreludeWriter& w, const Value& t, double bound) {
  const Value upper = number(w, "upper", bound);
  const Value lower = number(w, "lower", -bound);
  const Value below = w.select("below_upper", w.compare("above", "fcmp ogt", t, upper), upper, t);
  return w.select("clamped", w.compare("under", "fcmp olt", t, lower), lower, below);
}

// 2^n as a float, from the sum n + magic whose low bits are n.
Value power_of_two(PreludeWriter& w, const Value& n_bits) {
  const Value place = w.binary("place", "shl", n_bits, whole(w, "mantissa_bits", 52));
  return w.from_bits("power", w.binary("power_bits", "add", place, whole(w, "one_bits", 0x3ff0000000000000)));
}

// |x|^y for f32 in f64 arithmetic: log2 to 2^-35, exp2 to 2^-34, one rounding to f32, which also makes subnormal
// results and infinities.
Value magnitude_f32(PreludeWriter& w, const Value& a, const Value& y) {
  const Value wide = w.cast("wide_a", "fpext", a, Lane::f64);
  const auto [k, m, f] = split(w, wide);
  const Value square = w.mul("f_squared", f, f);
  const Value rest = w.mul("rest", square, w.polynomial("q_log", f, coefficients::log2_pow_f32));
  const Value mantissa_log = w.fma("mantissa_log", f, number(w, "log2e", std::numbers::log2e), rest);
  const Value finite_log = w.add("finite_log", k, mantissa_log);
  const Value zero = w.compare("is_zero", "fcmp oeq", wide, number(w, "zero", 0.0));
  const Value log = w.select("log_or_pole", zero, number(w, "minus_infinity", -infinity), finite_log);
  const Value unbounded = w.compare("unbounded", "fcmp ueq", wide, number(w, "infinity", infinity));  // or NaN
  const Value full_log = w.select("full_log", unbounded, wide, log);
  // Beyond +-300 the result is 0 or infinity in f32 anyway.
  const Value t = clamp(w, w.mul("product", w.cast("wide_y", "fpext", y, Lane::f64), full_log), 300.0);
  const Value magic = number(w, "magic", rounding_magic);
  const Value shifted = w.add("shifted", t, magic);
  const Value r = w.sub("r", t, w.sub("n", shifted, magic));
  const Value one = number(w, "one", 1.0);
  const Value p = w.fma("p", r, w.polynomial("q_exp", r, coefficients::exp2_pow_f32), one);
  const Value scaled = w.mul("scaled", p, power_of_two(w, w.bits("n_bits", shifted)));
  return w.cast("magnitude", "fptrunc", scaled, Lane::f32);
}

// A number as the unevaluated sum of two f64.
struct Pair {
  Value high;
  Value low;
};

// a + b with |a| >= |b|, exactly.
Pair exact_sum(PreludeWriter& w, std::string_view name, const Value& a, const Value& b) {
  const std::string base(name);
  const Value high = w.add(base, a, b);
  return {high, w.sub(base + "_error", b, w.sub(base + "_kept", high, a))};
}

// log |x| to about 2^-67 of itself: 2 s + s z (2/3 + z q(z)) with s = f / (1 + m), z = s^2, in pairs where bits matter.
Pair long_log(PreludeWriter& w, const Value& a) {
  const auto [k, m, f] = split(w, a);
  const Value one = number(w, "one", 1.0);
  const Value two = number(w, "two", 2.0);
  const Pair denominator = exact_sum(w, "denominator", two, f);
  const Value inverse = w.div("inverse", one, denominator.high);
  const Value s = w.mul("s", f, inverse);
  const Value minus_s = w.negate("minus_s", s);
  const Value remainder = w.fma("remainder", minus_s, denominator.high, f);
  const Value corrected = w.fma("corrected", minus_s, denominator.low, remainder);
  const Value s_low = w.mul("s_low", corrected, inverse);

  const Value z = w.mul("z", s, s);
  const Value z_error = w.fma("z_error", s, s, w.negate("minus_z", z));
  const Value z_low = w.fma("z_low", w.add("twice_s", s, s), s_low, z_error);

  // c = 2/3 + z q(z), w = c z, cubic = w s.
  const Value two_thirds_low = number(w, "two_thirds_low", 3.700743415417188e-17);
  const Value tail = w.fma("tail", z, w.polynomial("q_log", z, coefficients::log_pow_f64), two_thirds_low);
  const Pair c = exact_sum(w, "c", number(w, "two_thirds", 0.6666666666666666), tail);
  const Value cz = w.mul("cz", c.high, z);
  const Value cz_error = w.fma("cz_error", c.high, z, w.negate("minus_cz", cz));
  const Value cz_low = w.fma("cz_low", c.low, z, w.fma("cz_partial", c.high, z_low, cz_error));
  const Value cubic = w.mul("cubic", cz, s);
  const Value cubic_error = w.fma("cubic_error", cz, s, w.negate("minus_cubic", cubic));
  const Value cubic_low = w.fma("cubic_low", cz_low, s, w.fma("cubic_partial", cz, s_low, cubic_error));

  const Pair mantissa = exact_sum(w, "mantissa_log", w.add("double_s", s, s), cubic);
  const Value mantissa_low = w.add("mantissa_low", mantissa.low, w.fma("low_parts", s_low, two, cubic_low));

  // ln2 in a part of 42 bits, times which k is exact, and the rest.
  const Value k_high = w.mul("k_ln2", k, number(w, "ln2_high", 0x1.62e42fefa38p-1));
  const Value k_low = w.mul("k_ln2_low", k, number(w, "ln2_low", 0x1.ef35793c7673p-45));
  const Pair sum = exact_sum(w, "log_sum", k_high, mantissa.high);
  const Value no_k = w.compare("no_k", "fcmp oeq", k, number(w, "zero", 0.0));
  const Value high = w.select("log_high", no_k, mantissa.high, sum.high);
  const Value error = w.select("log_error", no_k, number(w, "zero", 0.0), sum.low);
  return {high, w.add("log_low", error, w.add("low_sum", mantissa_low, k_low))};
}

// |x|^y for f64: y log|x| as a pair, exp of it scaled in two steps so that subnormal results and infinities come out
// right.
Value magnitude_f64(PreludeWriter& w, const Value& a, const Value& y) {
  const Pair log = long_log(w, a);
  const Value zero = w.compare("is_zero", "fcmp oeq", a, number(w, "zero", 0.0));
  const Value unbounded = w.compare("unbounded", "fcmp ueq", a, number(w, "infinity", infinity));  // or NaN
  const Value log_or_pole = w.select("log_or_pole", zero, number(w, "minus_infinity", -infinity), log.high);
  const Value full_log = w.select("full_log", unbounded, a, log_or_pole);
  const Value product = w.mul("product", y, full_log);
  const Value t = clamp(w, product, 800.0);
  // The product's low part counts only where the high part is not clamped, hence finite.
  const Value error = w.fma("product_error", y, log.high, w.negate("minus_product", product));
  const Value low_sum = w.fma("product_low", y, log.low, error);
  const Value nothing = number(w, "zero", 0.0);
  const Value t_low = w.select("t_low", w.compare("unclamped", "fcmp oeq", t, product), low_sum, nothing);

  const Value magic = number(w, "magic", rounding_magic);
  const Value shifted = w.fma("shifted", t, number(w, "log2e", std::numbers::log2e), magic);
  const Value n = w.sub("n", shifted, magic);
  const Value r_high = w.fma("r_high", n, number(w, "minus_ln2", -std::numbers::ln2), t);
  const Value r_partial = w.fma("r_partial", n, number(w, "minus_ln2_rest", -2.3190468138462996e-17), t_low);
  const Value r = w.add("r", r_high, r_partial);
  const Value square = w.mul("r_squared", r, r);
  const Value rest = w.fma("rest", square, w.polynomial("q_exp", r, coefficients::exp_f64), r);
  const Value p = w.add("p", rest, number(w, "one", 1.0));

  const Value magic_bits = whole(w, "magic_bits", 0x4338000000000000);
  const Value n_bits = w.binary("n_integer", "sub", w.bits("n_bits", shifted), magic_bits);
  const Value half = w.binary("n_half", "ashr", n_bits, whole(w, "bit_one", 1));
  const Value partly = w.mul("partly", p, power_of_two(w, half));
  return w.mul("magnitude", partly, power_of_two(w, w.binary("n_rest", "sub", n_bits, half)));
}

}  // namespace

void write_pow(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const Value y = w.parameter("y", w.floating());
  const Value a = w.absolute("a", x);
  const Value magnitude = w.is_f32() ? magnitude_f32(w, a, y) : magnitude_f64(w, a, y);

  const Value zero = w.number("own_zero", 0.0);
  const Value one = w.number("own_one", 1.0);
  // 1^(+-infinity) has the product 0 * infinity.
  const Value unit = w.compare("unit", "fcmp oeq", a, one);
  const Value y_is_number = w.compare("y_is_number", "fcmp ord", y, y);
  const Value powers_of_unit = w.select("powers_of_unit", y_is_number, one, y);
  const Value positive = w.select("positive", unit, powers_of_unit, magnitude);

  // For x below zero: odd y keeps the sign, other integers drop it, the rest has no real result. Infinite y is even.
  const Value y_rounded = w.nearest("y_rounded", y);
  const Value y_whole = w.compare("y_whole", "fcmp oeq", y_rounded, y);
  const Value y_half = w.mul("y_half", y, w.number("own_half", 0.5));
  const Value half_fraction = w.compare("y_half_fraction", "fcmp une", w.nearest("y_half_rounded", y_half), y_half);
  const Value odd = w.binary("odd", "and", y_whole, half_fraction);
  const Value with_sign = w.copy_sign("with_sign", positive, x);
  const Value with_parity = w.select("with_parity", odd, with_sign, positive);
  const Value below_zero = w.compare("below_zero", "fcmp olt", x, zero);
  const Value finite = w.compare("finite", "fcmp one", a, w.number("own_infinity", infinity));
  const Value y_broken = w.compare("y_broken", "fcmp one", y_rounded, y);
  const Value no_result = w.binary("no_result", "and", w.binary("negative", "and", below_zero, finite), y_broken);
  const Value nan = w.number("nan", std::numeric_limits<double>::quiet_NaN());
  const Value general = w.select("general", no_result, nan, with_parity);

  const Value y_zero = w.compare("y_zero", "fcmp oeq", y, zero);
  const Value x_one = w.compare("x_one", "fcmp oeq", x, one);
  w.result(w.select("result", w.binary("always_one", "or", y_zero, x_one), one, general));
}

}  // namespace tigon::llvm
