// erf, sin, cos and rsqrt.
#include <limits>
#include <numbers>

#include "codegen/llvm/prelude.hpp"
#include "codegen/llvm/prelude_coefficients.hpp"
#include "codegen/llvm/prelude_parts.hpp"
#include "codegen/llvm/prelude_writer.hpp"

namespace tigon::llvm {

// Near zero a + a q(a^2); beyond, 1 - exp(q(a)) with q the logarithm of 1 - erf, up to where erf rounds to 1.
void write_erf(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const Value a = w.absolute("a", x);
  const Value bound = w.number("bound", w.pick(4.0, 6.0));
  const Value bounded = w.select("bounded", w.compare("over", "fcmp ogt", a, bound), bound, a);
  const Value square = w.mul("square", a, a);
  const auto small_terms = w.pick<std::span<const double>>(coefficients::erf_small_f32, coefficients::erf_small_f64);
  const auto large_terms = w.pick<std::span<const double>>(coefficients::erf_large_f32, coefficients::erf_large_f64);
  const Value small = w.fma("small", a, w.polynomial("q_small", square, small_terms), a);
  const Value complement = w.call("complement", "exp", w.polynomial("q_large", bounded, large_terms));
  const Value large = w.sub("large", w.number("one", 1.0), complement);
  const Value near_zero = w.compare("near_zero", "fcmp olt", a, w.number("split", w.pick(0.925, 1.0)));
  w.result(w.copy_sign("result", w.select("magnitude", near_zero, small, large), x));
}

namespace {

// x = n pi/2 + r; the low two bits of `quadrant` are n's, in the dtype's integer.
struct Reduced {
  Value r;
  Value quadrant;
};

// pi / 2 in parts of 53 bits.
constexpr double half_pi_high = 1.5707963267948966;
constexpr double half_pi_middle = 6.123233995736766e-17;
constexpr double half_pi_low = -1.4973849048591698e-33;

// f32 reduces in f64: two parts of pi/2 leave an error below half a unit for |x| <= 2^40. f64 takes three parts; the
// first subtraction is exact by fma.
Reduced reduce(PreludeWriter& w, const Value& x) {
  const Value wide = w.is_f32() ? w.cast("wide", "fpext", x, Lane::f64) : x;
  const Value magic = w.number("magic", 6755399441055744.0, Lane::f64);
  const Value shifted = w.fma("shifted", wide, w.number("two_over_pi", 2 / std::numbers::pi, Lane::f64), magic);
  const Value n = w.sub("n", shifted, magic);
  const Value first = w.fma("r_first", n, w.number("minus_high", -half_pi_high, Lane::f64), wide);
  const Value second = w.fma("r_second", n, w.number("minus_middle", -half_pi_middle, Lane::f64), first);
  const Value low_bits = w.bits("n_bits", shifted);
  if (w.is_f32()) return {w.cast("r", "fptrunc", second, Lane::f32), w.cast("quadrant", "trunc", low_bits, Lane::i32)};
  return {w.fma("r", n, w.number("minus_low", -half_pi_low, Lane::f64), second), low_bits};
}

// sin(x + quarter_turns pi / 2).
Value sine(PreludeWriter& w, const Value& x, std::uint64_t quarter_turns) {
  const Reduced reduced = reduce(w, x);
  const Value& r = reduced.r;
  const Value z = w.mul("z", r, r);
  const auto sine_terms = w.pick<std::span<const double>>(coefficients::sin_f32, coefficients::sin_f64);
  const auto cosine_terms = w.pick<std::span<const double>>(coefficients::cos_f32, coefficients::cos_f64);
  const Value one = w.number("one", 1.0);
  const Value q_sin = w.polynomial("q_sin", z, sine_terms);
  const Value sin_r = w.fma("sin_r", w.mul("cube", z, r), q_sin, r);
  // 1 - z/2 in two parts: `head` rounded, `tail` what the rounding lost.
  const Value half_z = w.mul("half_z", z, w.number("half", 0.5));
  const Value head = w.sub("head", one, half_z);
  const Value tail = w.sub("tail", w.sub("lost", one, head), half_z);
  const Value q_cos = w.polynomial("q_cos", z, cosine_terms);
  const Value quartic = w.fma("quartic", w.mul("z_squared", z, z), q_cos, tail);
  const Value cos_r = w.add("cos_r", head, quartic);

  const Value turns = quarter_turns == 0
                          ? reduced.quadrant
                          : w.binary("turns", "add", reduced.quadrant, w.whole("quarter_turns", quarter_turns));
  const Value bit_one = w.whole("bit_one", 1);
  const Value odd = w.compare("odd", "icmp eq", w.binary("low_bit", "and", turns, bit_one), bit_one);
  const Value chosen = w.select("chosen", odd, cos_r, sin_r);
  // Bit 1 of the quadrant is the sign; moved to the top, it flips the value's.
  const Value to_top = w.binary("to_top", "shl", turns, w.whole("sign_shift", w.pick(30, 62)));
  const Value sign_mask = w.whole("sign_mask", w.pick<std::uint64_t>(0x80000000, 0x8000000000000000));
  const Value sign = w.binary("sign", "and", to_top, sign_mask);
  const Value signed_value = w.from_bits("signed", w.binary("signed_bits", "xor", w.bits("chosen_bits", chosen), sign));
  const Value limit = w.number("limit", sincos_limit);
  const Value within = w.compare("within", "fcmp ole", w.absolute("a", x), limit);
  return w.select("result", within, signed_value, w.number("nan", std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace

void write_sin(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const Value value = sine(w, x, 0);
  // Keeps the sign of zero, which r + r^3 q loses.
  const Value tiny_bound = w.number("tiny_bound", w.pick(0x1p-13, 0x1p-27));
  const Value tiny = w.compare("tiny", "fcmp olt", w.absolute("magnitude", x), tiny_bound);
  w.result(w.select("kept", tiny, x, value));
}

void write_cos(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  w.result(sine(w, x, 1));
}

void write_rsqrt(PreludeWriter& w) {
  const Value x = w.parameter("x", w.floating());
  const Value root = w.square_root("root", x);
  w.result(w.div("result", w.number("one", 1.0), root));
}

}  // namespace tigon::llvm
