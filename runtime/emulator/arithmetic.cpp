// add, sub, mul, fma, div, min, max, abs, neg and their like: one entry per opcode, whose type chooses the loop.
#include <cfenv>
#include <cmath>

#include "runtime/emulator/approximation.hpp"
#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/half.hpp"
#include "runtime/emulator/packed.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::Type;

// Arithmetic of f32 with .ftz flushes subnormal operands and results, and every NaN result is the canonical one.
template <bool Flush>
float operand_of(float a) {
  return Flush ? flush(a) : a;
}
template <bool Flush>
float result_of(float a) {
  return canonical(Flush ? flush(a) : a);
}
float clamp_to_unit(float a) { return !(a > 0) ? 0.0F : (a > 1 ? 1.0F : a); }  // NaN becomes +0

template <bool Flush>
struct AddFloat {
  static float of(float a, float b) { return result_of<Flush>(operand_of<Flush>(a) + operand_of<Flush>(b)); }
};
template <bool Flush>
struct SubtractFloat {
  static float of(float a, float b) { return result_of<Flush>(operand_of<Flush>(a) - operand_of<Flush>(b)); }
};
template <bool Flush>
struct MultiplyFloat {
  static float of(float a, float b) { return result_of<Flush>(operand_of<Flush>(a) * operand_of<Flush>(b)); }
};
template <bool Flush>
struct DivideFloat {
  static float of(float a, float b) { return result_of<Flush>(operand_of<Flush>(a) / operand_of<Flush>(b)); }
};
template <bool Flush, bool Propagate>
struct MinFloat {
  static float of(float a, float b) {
    a = operand_of<Flush>(a);
    b = operand_of<Flush>(b);
    if (a != a || b != b) return Propagate ? canonical(NAN) : canonical(a != a ? b : a);
    return a < b || (a == b && std::signbit(a)) ? a : b;
  }
};
template <bool Flush, bool Propagate>
struct MaxFloat {
  static float of(float a, float b) {
    a = operand_of<Flush>(a);
    b = operand_of<Flush>(b);
    if (a != a || b != b) return Propagate ? canonical(NAN) : canonical(a != a ? b : a);
    return a > b || (a == b && !std::signbit(a)) ? a : b;
  }
};
struct AddDouble {
  static double of(double a, double b) { return a + b; }
};
struct SubtractDouble {
  static double of(double a, double b) { return a - b; }
};
struct MultiplyDouble {
  static double of(double a, double b) { return a * b; }
};
struct DivideDouble {
  static double of(double a, double b) { return a / b; }
};
struct MinDouble {
  static double of(double a, double b) {
    if (a != a || b != b) return a != a ? b : a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  }
};
struct MaxDouble {
  static double of(double a, double b) {
    if (a != a || b != b) return a != a ? b : a;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
  }
};

struct AddInteger {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct SubtractInteger {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a - b);
  }
};
struct MinInteger {
  template <class T>
  static T of(T a, T b) {
    return a < b ? a : b;
  }
};
struct MaxInteger {
  template <class T>
  static T of(T a, T b) {
    return a > b ? a : b;
  }
};
struct NegateInteger {
  template <class T>
  static T of(T a) {
    using Word = std::make_unsigned_t<T>;
    return static_cast<T>(Word{0} - static_cast<Word>(a));
  }
};
struct AbsoluteInteger {
  template <class T>
  static T of(T a) {
    using Word = std::make_unsigned_t<T>;
    return a < 0 ? static_cast<T>(Word{0} - static_cast<Word>(a)) : a;
  }
};

// Rounding directions other than to nearest, and saturation: exact in double, then rounded once.
enum class Operation : std::uint8_t { add, subtract, multiply, divide, fused };

float round_float(double value, const Instruction& instruction) {
  float result = std::bit_cast<float>(round_to_format(value, format_f32, static_cast<Rounding>(instruction.mode)));
  if (instruction.flush) result = flush(result);
  if (instruction.saturate) result = clamp_to_unit(result);
  return result;
}

template <Operation What>
void rounded_float(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<float>(instruction.operand[1]);
  const auto* b = warp.row<float>(instruction.operand[2]);
  const auto* c = warp.row<float>(instruction.operand[3]);
  each_lane<float>(warp, instruction.operand[0], [&](unsigned lane) {
    const double x = instruction.flush ? flush(a[lane]) : a[lane];
    const double y = instruction.flush ? flush(b[lane]) : b[lane];
    double exact = 0;
    switch (What) {
      case Operation::add:
        exact = sum_to_odd(x, y);
        break;
      case Operation::subtract:
        exact = sum_to_odd(x, -y);
        break;
      case Operation::multiply:
        exact = x * y;
        break;
      case Operation::divide:
        exact = quotient_to_odd(x, y);
        break;
      case Operation::fused:
        exact = sum_to_odd(x * y, instruction.flush ? flush(c[lane]) : c[lane]);
        break;
    }
    if (exact == 0 && What != Operation::multiply && What != Operation::divide &&
        static_cast<Rounding>(instruction.mode) == Rounding::down && (What == Operation::fused ? x * y : x) != 0) {
      exact = -0.0;  // x - x rounded down is -0
    }
    return round_float(exact, instruction);
  });
}

template <Operation What>
void rounded_double(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<double>(instruction.operand[1]);
  const auto* b = warp.row<double>(instruction.operand[2]);
  const auto* c = warp.row<double>(instruction.operand[3]);
  constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const int before = std::fegetround();
  std::fesetround(modes[instruction.mode]);
  each_lane<double>(warp, instruction.operand[0], [&](unsigned lane) {
    // Volatile: the compiler may not move the arithmetic out of the changed rounding mode.
    volatile double x = a[lane];
    volatile double y = b[lane];
    volatile double result = 0;
    switch (What) {
      case Operation::add:
        result = x + y;
        break;
      case Operation::subtract:
        result = x - y;
        break;
      case Operation::multiply:
        result = x * y;
        break;
      case Operation::divide:
        result = x / y;
        break;
      case Operation::fused:
        result = std::fma(x, y, c[lane]);
        break;
    }
    return result;
  });
  std::fesetround(before);
}

// fma is the instruction that generated kernels use most, and a call of the library per lane without hardware support.
template <class T>
inline __attribute__((always_inline)) void fused_loop(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<T>(instruction.operand[1]);
  const auto* b = warp.row<T>(instruction.operand[2]);
  const auto* c = warp.row<T>(instruction.operand[3]);
  Row<T> result;
  if constexpr (sizeof(T) == 4) {
    if (instruction.flush) {
      for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
        result.lane[lane] = result_of<true>(__builtin_fmaf(flush(a[lane]), flush(b[lane]), flush(c[lane])));
      }
    } else {
      for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
        result.lane[lane] = canonical(__builtin_fmaf(a[lane], b[lane], c[lane]));
      }
    }
    if (instruction.saturate) {
      for (auto& value : result.lane) value = clamp_to_unit(value);
    }
  } else {
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      result.lane[lane] = __builtin_fma(a[lane], b[lane], c[lane]);
    }
  }
  warp.put(instruction.operand[0], result.lane);
}

template <class T>
void fused_portable(Warp& warp, const Instruction& instruction) {
  fused_loop<T>(warp, instruction);
}

#if defined(__x86_64__)
template <class T>
__attribute__((target("avx2,fma"))) void fused_with_hardware(Warp& warp, const Instruction& instruction) {
  fused_loop<T>(warp, instruction);
}
template <class T>
Handler fused_row() {
  static const bool present = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return present ? fused_with_hardware<T> : fused_portable<T>;
}
#else
template <class T>
Handler fused_row() {
  return fused_portable<T>;
}
#endif

// Saturated integer sums (add.sat.s32).
template <bool Subtract>
struct SaturatedSum {
  static std::int32_t of(std::int32_t a, std::int32_t b) {
    const auto wide = Subtract ? std::int64_t{a} - b : std::int64_t{a} + b;
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(wide, std::numeric_limits<std::int32_t>::min(),
                                                              std::numeric_limits<std::int32_t>::max()));
  }
};

template <class F>
Handler integer_binary(Type type, bool sign_matters) {
  const bool sign = sign_matters && ptx::is_signed(type);
  switch (ptx::type_bytes(type)) {
    case 2:
      return sign ? binary_row<std::int16_t, std::int16_t, F> : binary_row<std::uint16_t, std::uint16_t, F>;
    case 4:
      return sign ? binary_row<std::int32_t, std::int32_t, F> : binary_row<std::uint32_t, std::uint32_t, F>;
    default:
      return sign ? binary_row<std::int64_t, std::int64_t, F> : binary_row<std::uint64_t, std::uint64_t, F>;
  }
}

void rows(Encoder& encoder, Type type, std::size_t count) {
  encoder.expect_operands(count);
  for (std::size_t i = 0; i < count; ++i) encoder.out.operand[i] = encoder.row(i, type);
}

Rounding take_rounding(Encoder& encoder) {
  const auto mode = encoder.take_any({"rn", "rz", "rm", "rp"});
  return static_cast<Rounding>(std::max(mode, 0));
}

template <template <bool> class F, Operation What>
void decode_float(Encoder& encoder, Type type) {
  const auto rounding = take_rounding(encoder);
  encoder.out.mode = static_cast<std::uint8_t>(rounding);
  encoder.out.flush = encoder.take("ftz");
  encoder.out.saturate = encoder.take("sat");
  rows(encoder, type, 3);
  if (rounding != Rounding::nearest || encoder.out.saturate) {
    encoder.out.run = rounded_float<What>;
  } else {
    encoder.out.run = encoder.out.flush ? binary_row<float, float, F<true>> : binary_row<float, float, F<false>>;
  }
}

template <class F, Operation What>
void decode_double(Encoder& encoder, Type type) {
  const auto rounding = take_rounding(encoder);
  encoder.out.mode = static_cast<std::uint8_t>(rounding);
  rows(encoder, type, 3);
  encoder.out.run = rounding == Rounding::nearest ? binary_row<double, double, F> : rounded_double<What>;
}

bool is_narrow(Type type) {
  return type == Type::f16 || type == Type::bf16 || type == Type::f16x2 || type == Type::bf16x2;
}

void decode_add(Encoder& encoder) {
  const bool subtract = encoder.source().opcode == "sub";
  const bool carry = encoder.take("cc");
  const auto type = encoder.take_type();
  if (carry) {
    decode_sum_with_carry(encoder, type, subtract);
  } else if (is_narrow(type)) {
    decode_narrow(encoder, type, subtract ? NarrowOperation::subtract : NarrowOperation::add);
  } else if (type == Type::f32) {
    subtract ? decode_float<SubtractFloat, Operation::subtract>(encoder, type)
             : decode_float<AddFloat, Operation::add>(encoder, type);
  } else if (type == Type::f64) {
    subtract ? decode_double<SubtractDouble, Operation::subtract>(encoder, type)
             : decode_double<AddDouble, Operation::add>(encoder, type);
  } else if (type == Type::u16x2 || type == Type::s16x2) {
    decode_pair_of_integers(encoder, type, subtract ? NarrowOperation::subtract : NarrowOperation::add);
  } else {
    rows(encoder, type, 3);
    if (encoder.take("sat")) {
      encoder.out.run = subtract ? binary_row<std::int32_t, std::int32_t, SaturatedSum<true>>
                                 : binary_row<std::int32_t, std::int32_t, SaturatedSum<false>>;
    } else {
      encoder.out.run =
          subtract ? integer_binary<SubtractInteger>(type, false) : integer_binary<AddInteger>(type, false);
    }
  }
}

void decode_multiply(Encoder& encoder) {
  const auto type = encoder.take_type();
  if (is_narrow(type)) {
    decode_narrow(encoder, type, NarrowOperation::multiply);
  } else if (type == Type::f32) {
    decode_float<MultiplyFloat, Operation::multiply>(encoder, type);
  } else if (type == Type::f64) {
    decode_double<MultiplyDouble, Operation::multiply>(encoder, type);
  } else {
    decode_integer_product(encoder, type);
  }
}

void decode_fused(Encoder& encoder) {
  const auto type = encoder.take_type();
  if (is_narrow(type)) {
    decode_narrow(encoder, type, NarrowOperation::fused);
    return;
  }
  const auto rounding = take_rounding(encoder);
  encoder.out.mode = static_cast<std::uint8_t>(rounding);
  encoder.out.flush = encoder.take("ftz");
  encoder.out.saturate = encoder.take("sat");
  rows(encoder, type, 4);
  if (type == Type::f32) {
    encoder.out.run = rounding == Rounding::nearest ? fused_row<float>() : rounded_float<Operation::fused>;
  } else if (type == Type::f64) {
    encoder.out.run = rounding == Rounding::nearest ? fused_row<double>() : rounded_double<Operation::fused>;
  } else {
    encoder.fail("fma of this type is not known");
  }
}

void decode_divide(Encoder& encoder) {
  const auto type = encoder.take_type();
  if (type == Type::f32) {
    if (encoder.has("approx") || encoder.has("full")) {
      decode_approximate_quotient(encoder);
    } else {
      decode_float<DivideFloat, Operation::divide>(encoder, type);
    }
  } else if (type == Type::f64) {
    decode_double<DivideDouble, Operation::divide>(encoder, type);
  } else {
    decode_integer_quotient(encoder, type);
  }
}

template <template <bool, bool> class F, class D, class I>
void decode_extreme(Encoder& encoder, NarrowOperation narrow) {
  const auto type = encoder.take_type();
  if (is_narrow(type)) {
    decode_narrow(encoder, type, narrow);
    return;
  }
  if (type == Type::u16x2 || type == Type::s16x2) {
    decode_pair_of_integers(encoder, type, narrow);
    return;
  }
  if (encoder.size() == 4) encoder.fail("min and max of three are not known");
  rows(encoder, type, 3);
  if (type == Type::f32) {
    const bool flushes = encoder.take("ftz");
    const bool propagate = encoder.take("NaN");
    encoder.out.run =
        flushes ? (propagate ? binary_row<float, float, F<true, true>> : binary_row<float, float, F<true, false>>)
                : (propagate ? binary_row<float, float, F<false, true>> : binary_row<float, float, F<false, false>>);
  } else if (type == Type::f64) {
    encoder.out.run = binary_row<double, double, D>;
  } else {
    encoder.out.run = integer_binary<I>(type, true);
  }
}

// neg and abs of floats change the sign bit; neg of NaN is the canonical NaN with .ftz only, so bits are kept.
template <class T, bool Clear>
void sign_bit_row(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<T>(instruction.operand[1]);
  constexpr T top = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
  Row<T> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    T bits = a[lane];
    if (sizeof(T) == 4 && instruction.flush && (bits & 0x7f800000U) == 0) bits &= top;
    result.lane[lane] = static_cast<T>(Clear ? bits & ~top : bits ^ top);
  }
  warp.put(instruction.operand[0], result.lane);
}

template <bool Clear>
void decode_sign(Encoder& encoder) {
  const auto type = encoder.take_type();
  rows(encoder, type, 2);
  if (type == Type::f16x2 || type == Type::bf16x2) {
    encoder.take("ftz");
    encoder.out.run = [](Warp& warp, const Instruction& instruction) {
      struct Pair {
        static std::uint32_t of(std::uint32_t a) { return Clear ? a & 0x7fff7fff : a ^ 0x80008000; }
      };
      unary_row<std::uint32_t, std::uint32_t, Pair>(warp, instruction);
    };
  } else if (ptx::is_float(type)) {
    encoder.out.flush = encoder.take("ftz");
    encoder.out.run = ptx::type_bytes(type) == 2   ? sign_bit_row<std::uint16_t, Clear>
                      : ptx::type_bytes(type) == 4 ? sign_bit_row<std::uint32_t, Clear>
                                                   : sign_bit_row<std::uint64_t, Clear>;
  } else {
    using F = std::conditional_t<Clear, AbsoluteInteger, NegateInteger>;
    encoder.out.run = ptx::type_bytes(type) == 2   ? unary_row<std::int16_t, std::int16_t, F>
                      : ptx::type_bytes(type) == 4 ? unary_row<std::int32_t, std::int32_t, F>
                                                   : unary_row<std::int64_t, std::int64_t, F>;
  }
}

template <class T>
void copy_sign_row(Warp& warp, const Instruction& instruction) {
  const auto* sign = warp.row<T>(instruction.operand[1]);
  const auto* a = warp.row<T>(instruction.operand[2]);
  constexpr T top = T{1} << (8 * sizeof(T) - 1);
  Row<T> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) result.lane[lane] = (sign[lane] & top) | (a[lane] & ~top);
  warp.put(instruction.operand[0], result.lane);
}

void test_property(Warp& warp, const Instruction& instruction) {
  Mask result = 0;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    const double value = instruction.bytes == 4 ? warp.row<float>(instruction.operand[1])[lane]
                                                : warp.row<double>(instruction.operand[1])[lane];
    const auto kind = instruction.bytes == 4 ? std::fpclassify(static_cast<float>(value)) : std::fpclassify(value);
    const bool truth[] = {std::isfinite(value), std::isinf(value), !std::isnan(value),
                          std::isnan(value),    kind == FP_NORMAL, kind == FP_SUBNORMAL};
    result |= Mask{truth[instruction.mode]} << lane;
  }
  warp.set_predicate(instruction.operand[0], result);
}

}  // namespace

void add_arithmetic_families(FamilyTable& table) {
  table["add"] = decode_add;
  table["sub"] = decode_add;
  table["mul"] = decode_multiply;
  table["fma"] = decode_fused;
  table["div"] = decode_divide;
  table["min"] = [](Encoder& encoder) {
    decode_extreme<MinFloat, MinDouble, MinInteger>(encoder, NarrowOperation::minimum);
  };
  table["max"] = [](Encoder& encoder) {
    decode_extreme<MaxFloat, MaxDouble, MaxInteger>(encoder, NarrowOperation::maximum);
  };
  table["neg"] = decode_sign<false>;
  table["abs"] = decode_sign<true>;
  table["copysign"] = [](Encoder& encoder) {
    const auto type = encoder.take_type();
    rows(encoder, type, 3);
    encoder.out.run = ptx::type_bytes(type) == 8 ? copy_sign_row<std::uint64_t> : copy_sign_row<std::uint32_t>;
  };
  table["testp"] = [](Encoder& encoder) {
    const auto property = encoder.take_any({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
    if (property < 0) encoder.fail("a property is missing");
    const auto type = encoder.take_type();
    encoder.out.mode = static_cast<std::uint8_t>(property);
    encoder.out.bytes = static_cast<std::uint8_t>(ptx::type_bytes(type));
    encoder.out.operand[0] = encoder.predicate(encoder.operand(0));
    encoder.out.operand[1] = encoder.row(1, type);
    encoder.out.run = test_property;
  };
}

}  // namespace tigon::emulator
