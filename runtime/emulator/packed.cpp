// Arithmetic of f16 and bf16, alone and in pairs, and of pairs of 16-bit integers.
#include "runtime/emulator/packed.hpp"

#include "runtime/emulator/half.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::Type;

constexpr std::uint8_t option_relu = 1;       // negative results and NaN become 0
constexpr std::uint8_t option_propagate = 2;  // NaN operands give NaN

struct Half {
  static constexpr Format format = format_f16;
  static float widen(std::uint16_t bits) { return half_to_float(bits); }
};
struct Brain {
  static constexpr Format format = format_bf16;
  static float widen(std::uint16_t bits) { return bf16_to_float(bits); }
};

template <class Kind>
std::uint16_t extreme(std::uint16_t a, std::uint16_t b, bool smaller, bool propagate) {
  const float x = Kind::widen(a);
  const float y = Kind::widen(b);
  if (x != x || y != y) {
    if (propagate || (x != x && y != y)) return 0x7fff;
    return x != x ? b : a;
  }
  if (x == y) return smaller == ((a & 0x8000) != 0) ? a : b;  // -0 < +0
  return (x < y) == smaller ? a : b;
}

template <class Kind>
std::uint16_t flush_narrow(std::uint16_t bits) {
  constexpr auto exponent = static_cast<std::uint16_t>(((1U << Kind::format.exponent) - 1) << Kind::format.mantissa);
  return (bits & exponent) == 0 ? static_cast<std::uint16_t>(bits & 0x8000) : bits;
}

template <class Kind, NarrowOperation What>
std::uint16_t narrow(std::uint16_t a, std::uint16_t b, std::uint16_t c, const Instruction& instruction) {
  if (instruction.flush) {
    a = flush_narrow<Kind>(a);
    b = flush_narrow<Kind>(b);
    c = flush_narrow<Kind>(c);
  }
  std::uint16_t bits = 0;
  if constexpr (What == NarrowOperation::minimum || What == NarrowOperation::maximum) {
    bits = extreme<Kind>(a, b, What == NarrowOperation::minimum, (instruction.option & option_propagate) != 0);
  } else {
    const double x = Kind::widen(a);
    const double y = Kind::widen(b);
    double exact = 0;
    if constexpr (What == NarrowOperation::add) exact = sum_to_odd(x, y);
    if constexpr (What == NarrowOperation::subtract) exact = sum_to_odd(x, -y);
    if constexpr (What == NarrowOperation::multiply) exact = x * y;
    if constexpr (What == NarrowOperation::fused) exact = sum_to_odd(x * y, Kind::widen(c));
    if (instruction.saturate) exact = !(exact > 0) ? 0 : std::min(exact, 1.0);
    bits = static_cast<std::uint16_t>(round_to_format(exact, Kind::format, Rounding::nearest));
    if (instruction.flush) bits = flush_narrow<Kind>(bits);
  }
  if ((instruction.option & option_relu) != 0 && Kind::widen(bits) <= 0) bits = 0;
  return bits;
}

template <class Kind, NarrowOperation What, bool Pair>
void narrow_row(Warp& warp, const Instruction& instruction) {
  using Word = std::conditional_t<Pair, std::uint32_t, std::uint16_t>;
  const auto* a = warp.row<Word>(instruction.operand[1]);
  const auto* b = warp.row<Word>(instruction.operand[2]);
  const auto* c = warp.row<Word>(instruction.operand[3]);
  each_lane<Word>(warp, instruction.operand[0], [&](unsigned lane) {
    const auto part = [&](unsigned shift) {
      return narrow<Kind, What>(static_cast<std::uint16_t>(a[lane] >> shift),
                                static_cast<std::uint16_t>(b[lane] >> shift),
                                static_cast<std::uint16_t>(c[lane] >> shift), instruction);
    };
    if constexpr (Pair) {
      return static_cast<Word>(part(0) | std::uint32_t{part(16)} << 16);
    } else {
      return part(0);
    }
  });
}

template <class Kind, bool Pair>
Handler choose(NarrowOperation operation) {
  switch (operation) {
    case NarrowOperation::add:
      return narrow_row<Kind, NarrowOperation::add, Pair>;
    case NarrowOperation::subtract:
      return narrow_row<Kind, NarrowOperation::subtract, Pair>;
    case NarrowOperation::multiply:
      return narrow_row<Kind, NarrowOperation::multiply, Pair>;
    case NarrowOperation::fused:
      return narrow_row<Kind, NarrowOperation::fused, Pair>;
    case NarrowOperation::minimum:
      return narrow_row<Kind, NarrowOperation::minimum, Pair>;
    case NarrowOperation::maximum:
      return narrow_row<Kind, NarrowOperation::maximum, Pair>;
  }
  return nullptr;
}

template <class T, NarrowOperation What>
struct PairOfIntegers {
  static std::uint32_t of(std::uint32_t a, std::uint32_t b) {
    const auto part = [&](unsigned shift) {
      const auto x = static_cast<T>(a >> shift);
      const auto y = static_cast<T>(b >> shift);
      int result = 0;
      if (What == NarrowOperation::add) result = x + y;
      if (What == NarrowOperation::subtract) result = x - y;
      if (What == NarrowOperation::minimum) result = std::min(x, y);
      if (What == NarrowOperation::maximum) result = std::max(x, y);
      return static_cast<std::uint32_t>(static_cast<std::uint16_t>(result)) << shift;
    };
    return part(0) | part(16);
  }
};

template <class T>
Handler choose_integers(NarrowOperation operation) {
  using Word = std::uint32_t;
  switch (operation) {
    case NarrowOperation::add:
      return binary_row<Word, Word, PairOfIntegers<T, NarrowOperation::add>>;
    case NarrowOperation::subtract:
      return binary_row<Word, Word, PairOfIntegers<T, NarrowOperation::subtract>>;
    case NarrowOperation::minimum:
      return binary_row<Word, Word, PairOfIntegers<T, NarrowOperation::minimum>>;
    default:
      return binary_row<Word, Word, PairOfIntegers<T, NarrowOperation::maximum>>;
  }
}

}  // namespace

void decode_narrow(Encoder& encoder, ptx::Type type, NarrowOperation operation) {
  encoder.take("rn");
  encoder.out.flush = encoder.take("ftz");
  encoder.out.saturate = encoder.take("sat");
  if (encoder.take("relu")) encoder.out.option |= option_relu;
  if (encoder.take("NaN")) encoder.out.option |= option_propagate;
  const auto count = operation == NarrowOperation::fused ? 4U : 3U;
  encoder.expect_operands(count);
  for (std::size_t i = 0; i < count; ++i) encoder.out.operand[i] = encoder.row(i, type);
  if (type == Type::f16) encoder.out.run = choose<Half, false>(operation);
  if (type == Type::f16x2) encoder.out.run = choose<Half, true>(operation);
  if (type == Type::bf16) encoder.out.run = choose<Brain, false>(operation);
  if (type == Type::bf16x2) encoder.out.run = choose<Brain, true>(operation);
}

void decode_pair_of_integers(Encoder& encoder, ptx::Type type, NarrowOperation operation) {
  encoder.expect_operands(3);
  for (std::size_t i = 0; i < 3; ++i) encoder.out.operand[i] = encoder.row(i, type);
  encoder.out.run =
      type == Type::s16x2 ? choose_integers<std::int16_t>(operation) : choose_integers<std::uint16_t>(operation);
}

}  // namespace tigon::emulator
