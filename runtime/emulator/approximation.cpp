// Approximate functions: computed as exactly as the host can, and moved within their documented error on request.
//
// The hardware's results cannot be had bit by bit. What the PTX manual promises, and what `perturb` therefore stays in:
//   ex2.approx 2 ulp · lg2.approx 2^-22 absolute near 1, else 2^-22 relative · rcp.approx 1 ulp · sqrt.approx 2^-23
//   rel. rsqrt.approx 2^-22.9 relative · sin, cos.approx 2^-20.9 absolute · tanh.approx 2^-11 relative · div.approx,
//   .full 2 ulp
#include "runtime/emulator/approximation.hpp"

#include <cmath>
#include <cstring>

#include "runtime/emulator/half.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::Type;

// A number in [-1, 1] that depends on the seed, the function and the operand alone.
double stray(const Warp& warp, SpecialFunction function, double operand) {
  Random random(warp.launch->schedule.seed * 0x2545f4914f6cdd1d + static_cast<std::uint64_t>(function) * 0x9e3779b1 +
                std::bit_cast<std::uint64_t>(operand));
  return static_cast<double>(static_cast<std::int64_t>(random.next())) * 0x1p-63;
}

struct Error {
  double relative;
  double absolute;
};

constexpr Error error_of(SpecialFunction function) {
  switch (function) {
    case SpecialFunction::ex2:
      return {0x1p-22, 0};
    case SpecialFunction::lg2:
      return {0, 0x1p-22};
    case SpecialFunction::rcp:
    case SpecialFunction::sqrt:
      return {0x1p-23, 0};
    case SpecialFunction::rsqrt:
      return {0x1.1p-23, 0};
    case SpecialFunction::sin:
    case SpecialFunction::cos:
      return {0, 0x1.1p-21};
    case SpecialFunction::tanh:
      return {0x1p-11, 0};
    case SpecialFunction::none:
      break;
  }
  return {0x1p-22, 0};
}

double exact(SpecialFunction function, double x) {
  switch (function) {
    case SpecialFunction::ex2:
      return std::exp2(x);
    case SpecialFunction::lg2:
      return std::log2(x);
    case SpecialFunction::rcp:
      return 1 / x;
    case SpecialFunction::sqrt:
      return std::sqrt(x);
    case SpecialFunction::rsqrt:
      return 1 / std::sqrt(x);
    case SpecialFunction::sin:
      return std::sin(x);
    case SpecialFunction::cos:
      return std::cos(x);
    case SpecialFunction::tanh:
      return std::tanh(x);
    case SpecialFunction::none:
      break;
  }
  return x;
}

template <SpecialFunction What>
float approximate(const Warp& warp, const Instruction& instruction, float operand) {
  const float x = instruction.flush ? flush(operand) : operand;
  double value = 0;
  if (What == SpecialFunction::ex2 && !warp.launch->schedule.perturb) {
    value = std::exp2(x);  // the float function is exact to less than one place, and four times faster
  } else {
    value = exact(What, x);
  }
  if (warp.launch->schedule.perturb && std::isfinite(value) && value != 0) {
    constexpr auto error = error_of(What);
    const double move = stray(warp, What, x);
    const double before = value;
    value += move * (error.relative * std::fabs(value) + error.absolute);
    // Exact cases stay exact, and a bounded function stays inside its range.
    if (What == SpecialFunction::ex2 && x == std::floor(x)) value = before;
    if (What == SpecialFunction::lg2 && x == 1) value = before;
    if (What == SpecialFunction::sin || What == SpecialFunction::cos || What == SpecialFunction::tanh) {
      value = std::clamp(value, -1.0, 1.0);
    }
  }
  const auto result = static_cast<float>(value);
  return canonical(instruction.flush ? flush(result) : result);
}

template <SpecialFunction What>
void approximate_row(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<float>(instruction.operand[1]);
  each_lane<float>(warp, instruction.operand[0],
                   [&](unsigned lane) { return approximate<What>(warp, instruction, a[lane]); });
}

// Of f16, bf16 and their pairs: through f32, then rounded.
template <SpecialFunction What, bool Brain, bool Pair>
void approximate_narrow_row(Warp& warp, const Instruction& instruction) {
  using Word = std::conditional_t<Pair, std::uint32_t, std::uint16_t>;
  const auto* a = warp.row<Word>(instruction.operand[1]);
  each_lane<Word>(warp, instruction.operand[0], [&](unsigned lane) {
    const auto part = [&](unsigned shift) -> std::uint16_t {
      const auto bits = static_cast<std::uint16_t>(a[lane] >> shift);
      const float value = approximate<What>(warp, instruction, Brain ? bf16_to_float(bits) : half_to_float(bits));
      return Brain ? float_to_bf16(value) : float_to_half(value);
    };
    if constexpr (Pair) {
      return static_cast<Word>(part(0) | std::uint32_t{part(16)} << 16);
    } else {
      return part(0);
    }
  });
}

template <SpecialFunction What>
Handler approximate_narrow(Type type) {
  switch (type) {
    case Type::f16:
      return approximate_narrow_row<What, false, false>;
    case Type::f16x2:
      return approximate_narrow_row<What, false, true>;
    case Type::bf16:
      return approximate_narrow_row<What, true, false>;
    case Type::bf16x2:
      return approximate_narrow_row<What, true, true>;
    default:
      return nullptr;
  }
}

// rcp.rn, sqrt.rn and the other directions are exactly rounded.
template <bool Root>
void rounded_row(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<float>(instruction.operand[1]);
  each_lane<float>(warp, instruction.operand[0], [&](unsigned lane) {
    const float x = instruction.flush ? flush(a[lane]) : a[lane];
    const double value = Root ? root_to_odd(x) : quotient_to_odd(1, x);
    const auto result =
        std::bit_cast<float>(round_to_format(value, format_f32, static_cast<Rounding>(instruction.mode)));
    return instruction.flush ? flush(result) : result;
  });
}

template <bool Root>
struct RoundedDouble {
  static double of(double a) { return Root ? std::sqrt(a) : 1 / a; }
};

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 know the upper word of their operand and of their result only.
template <bool ReciprocalRoot>
struct CoarseDouble {
  static double of(double a) {
    auto bits = std::bit_cast<std::uint64_t>(a);
    if (a != a) return std::bit_cast<double>(0x7fffffff00000000);
    if ((bits >> 52 & 0x7ff) == 0) bits &= std::uint64_t{1} << 63;
    const double x = std::bit_cast<double>(bits & 0xffffffff00000000);
    const double value = ReciprocalRoot ? 1 / std::sqrt(x) : 1 / x;
    bits = std::bit_cast<std::uint64_t>(value);
    if (value != value) return std::bit_cast<double>(0x7fffffff00000000);
    if ((bits >> 52 & 0x7ff) == 0) return std::bit_cast<double>(bits & std::uint64_t{1} << 63);
    return std::bit_cast<double>(bits & 0xffffffff00000000);
  }
};

template <SpecialFunction What>
void decode_function(Encoder& encoder) {
  constexpr bool is_rcp = What == SpecialFunction::rcp;
  constexpr bool is_sqrt = What == SpecialFunction::sqrt;
  constexpr bool is_rsqrt = What == SpecialFunction::rsqrt;
  const bool approx = encoder.take("approx");
  const auto rounding = encoder.take_any({"rn", "rz", "rm", "rp"});
  encoder.out.flush = encoder.take("ftz");
  const auto type = encoder.take_type();
  encoder.expect_operands(2);
  encoder.out.operand[0] = encoder.row(0, type);
  encoder.out.operand[1] = encoder.row(1, type);
  encoder.out.mode = static_cast<std::uint8_t>(std::max(rounding, 0));
  if (type == Type::f64) {
    if (approx && (is_rcp || is_rsqrt)) {
      encoder.special = What;
      encoder.out.run = unary_row<double, double, CoarseDouble<is_rsqrt>>;
    } else if (rounding == 0 && (is_rcp || is_sqrt)) {
      encoder.out.run = unary_row<double, double, RoundedDouble<is_sqrt>>;
    } else {
      encoder.fail("this function of f64 is not known");
    }
    return;
  }
  if (rounding >= 0) {
    if (!is_rcp && !is_sqrt) encoder.fail("a rounded form is not known");
    encoder.out.run = rounded_row<is_sqrt>;
    return;
  }
  if (!approx) encoder.fail("approx or a rounding is missing");
  encoder.special = What;
  encoder.out.run = type == Type::f32 ? approximate_row<What> : approximate_narrow<What>(type);
  if (encoder.out.run == nullptr) encoder.fail("this function of that type is not known");
}

void quotient_row(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<float>(instruction.operand[1]);
  const auto* b = warp.row<float>(instruction.operand[2]);
  each_lane<float>(warp, instruction.operand[0], [&](unsigned lane) {
    const float x = instruction.flush ? flush(a[lane]) : a[lane];
    const float y = instruction.flush ? flush(b[lane]) : b[lane];
    double value = double{x} / double{y};
    // div.approx gives 0 for divisors of 2^126 and above (the reciprocal is flushed); the manual says so.
    if (instruction.mode == 1 && std::fabs(y) > 0x1p126F && std::isfinite(y)) {
      value = std::isinf(x) ? NAN : std::copysign(0.0, value);
    }
    if (warp.launch->schedule.perturb && std::isfinite(value)) {
      value *= 1 + 0x1p-22 * stray(warp, SpecialFunction::none, double{x} * 0x1.8p3 + y);
    }
    const auto result = static_cast<float>(value);
    return canonical(instruction.flush ? flush(result) : result);
  });
}

}  // namespace

void decode_approximate_quotient(Encoder& encoder) {
  encoder.out.mode = encoder.take("approx") ? 1 : 0;
  encoder.take("full");
  encoder.out.flush = encoder.take("ftz");
  encoder.expect_operands(3);
  for (std::size_t i = 0; i < 3; ++i) encoder.out.operand[i] = encoder.row(i, Type::f32);
  encoder.special = SpecialFunction::rcp;  // the hardware multiplies by an approximate reciprocal
  encoder.out.run = quotient_row;
}

void add_approximate_families(FamilyTable& table) {
  table["ex2"] = decode_function<SpecialFunction::ex2>;
  table["lg2"] = decode_function<SpecialFunction::lg2>;
  table["rcp"] = decode_function<SpecialFunction::rcp>;
  table["sqrt"] = decode_function<SpecialFunction::sqrt>;
  table["rsqrt"] = decode_function<SpecialFunction::rsqrt>;
  table["sin"] = decode_function<SpecialFunction::sin>;
  table["cos"] = decode_function<SpecialFunction::cos>;
  table["tanh"] = decode_function<SpecialFunction::tanh>;
}

}  // namespace tigon::emulator
