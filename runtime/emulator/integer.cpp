// Integer arithmetic: sums with and without carry, products, quotients, and the dot products of bytes.
#include <limits>
#include <type_traits>

#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::Type;

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
struct Wider;
template <>
struct Wider<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct Wider<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct Wider<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct Wider<std::int32_t> {
  using type = std::int64_t;
};
template <>
struct Wider<std::uint64_t> {
  using type = unsigned __int128;
};
template <>
struct Wider<std::int64_t> {
  using type = __int128;
};

// Sums and products wrap, which only unsigned numbers may do.
template <class T>
T wrapped_product(T a, T b) {
  using Word = std::conditional_t<sizeof(T) == 2, std::uint32_t, Unsigned<T>>;
  return static_cast<T>(static_cast<Word>(a) * static_cast<Word>(b));
}

template <class T>
struct Divide {
  static T of(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
    }
    return static_cast<T>(a / b);
  }
};
template <class T>
struct Remainder {
  static T of(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
template <class T>
struct MultiplyAddLow {
  static T of(T a, T b, T c) {
    using Word = std::conditional_t<sizeof(T) == 2, std::uint32_t, Unsigned<T>>;
    return static_cast<T>(static_cast<Word>(a) * static_cast<Word>(b) + static_cast<Word>(c));
  }
};
template <class T>
struct MultiplyHigh {
  static T of(T a, T b) {
    using Wide = typename Wider<T>::type;
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b) >> (8 * sizeof(T)));
  }
};
template <class T>
struct MultiplyAddHigh {
  static T of(T a, T b, T c) {
    return static_cast<T>(static_cast<Unsigned<T>>(MultiplyHigh<T>::of(a, b)) + static_cast<Unsigned<T>>(c));
  }
};
template <class T>
struct MultiplyWide {
  using Wide = typename Wider<T>::type;
  static Wide of(T a, T b) { return static_cast<Wide>(static_cast<Wide>(a) * static_cast<Wide>(b)); }
};
template <class T>
struct MultiplyAddWide {
  using Wide = typename Wider<T>::type;
  static Wide of(T a, T b, Wide c) {
    using Word = std::make_unsigned_t<Wide>;
    return static_cast<Wide>(static_cast<Word>(MultiplyWide<T>::of(a, b)) + static_cast<Word>(c));
  }
};
template <class T>
struct SumOfDifference {
  static T of(T a, T b, T c) {
    const auto difference = a < b ? static_cast<Unsigned<T>>(b) - static_cast<Unsigned<T>>(a)
                                  : static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b);
    return static_cast<T>(difference + static_cast<Unsigned<T>>(c));
  }
};
template <class T>
struct Multiply24 {
  static T of(T a, T b) {
    if constexpr (std::is_signed_v<T>) {
      return wrapped_product<T>(static_cast<T>(a << 8) >> 8, static_cast<T>(b << 8) >> 8);
    } else {
      return (a & 0xffffff) * (b & 0xffffff);
    }
  }
};
template <class T>
struct MultiplyAdd24 {
  static T of(T a, T b, T c) {
    return static_cast<T>(static_cast<std::uint32_t>(Multiply24<T>::of(a, b)) + static_cast<std::uint32_t>(c));
  }
};

template <template <class> class F>
Handler binary_of(Type type) {
  switch (type) {
    case Type::u16:
      return binary_row<std::uint16_t, std::uint16_t, F<std::uint16_t>>;
    case Type::s16:
      return binary_row<std::int16_t, std::int16_t, F<std::int16_t>>;
    case Type::u32:
      return binary_row<std::uint32_t, std::uint32_t, F<std::uint32_t>>;
    case Type::s32:
      return binary_row<std::int32_t, std::int32_t, F<std::int32_t>>;
    case Type::u64:
      return binary_row<std::uint64_t, std::uint64_t, F<std::uint64_t>>;
    case Type::s64:
      return binary_row<std::int64_t, std::int64_t, F<std::int64_t>>;
    default:
      return nullptr;
  }
}

template <template <class> class F>
Handler ternary_of(Type type) {
  switch (type) {
    case Type::u16:
      return ternary_row<std::uint16_t, std::uint16_t, std::uint16_t, F<std::uint16_t>>;
    case Type::s16:
      return ternary_row<std::int16_t, std::int16_t, std::int16_t, F<std::int16_t>>;
    case Type::u32:
      return ternary_row<std::uint32_t, std::uint32_t, std::uint32_t, F<std::uint32_t>>;
    case Type::s32:
      return ternary_row<std::int32_t, std::int32_t, std::int32_t, F<std::int32_t>>;
    case Type::u64:
      return ternary_row<std::uint64_t, std::uint64_t, std::uint64_t, F<std::uint64_t>>;
    case Type::s64:
      return ternary_row<std::int64_t, std::int64_t, std::int64_t, F<std::int64_t>>;
    default:
      return nullptr;
  }
}

template <class T>
constexpr Handler wide_product = binary_row<typename Wider<T>::type, T, MultiplyWide<T>>;
template <class T>
constexpr Handler wide_multiply_add =
    ternary_row<typename Wider<T>::type, T, typename Wider<T>::type, MultiplyAddWide<T>>;

Type doubled(Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    default:
      return Type::s64;
  }
}

void set(Encoder& encoder, Handler handler, Type type) {
  if (handler == nullptr) {
    encoder.fail(fmt::format("{} of .{} is not known", encoder.source().opcode, ptx::type_name(type)));
  }
  encoder.out.run = handler;
}

void rows(Encoder& encoder, Type type, std::size_t count) {
  encoder.expect_operands(count);
  for (std::size_t i = 0; i < count; ++i) encoder.out.operand[i] = encoder.row(i, type);
}

void decode_divide(Encoder& encoder) {
  const auto type = encoder.take_type();
  set(encoder, encoder.source().opcode == "rem" ? binary_of<Remainder>(type) : binary_of<Divide>(type), type);
  rows(encoder, type, 3);
}

// A carry flag of each lane, kept as a predicate: add.cc sets it, addc and subc use it.
template <class T, bool Subtract, bool Use, bool Set>
void with_carry(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<T>(instruction.operand[1]);
  const auto* b = warp.row<T>(instruction.operand[2]);
  const Mask carry = warp.predicate(instruction.operand[4]);
  Row<T> result;
  Mask out = 0;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    using Wide = unsigned __int128;
    const Wide in = Use ? carry >> lane & 1 : 0;
    const Wide value = Subtract ? Wide{a[lane]} - Wide{b[lane]} - in : Wide{a[lane]} + Wide{b[lane]} + in;
    result.lane[lane] = static_cast<T>(value);
    out |= static_cast<Mask>(value >> (8 * sizeof(T)) & 1) << lane;
  }
  warp.put(instruction.operand[0], result.lane);
  if (Set) warp.set_predicate(instruction.operand[4], out);
}

// mad.lo.cc and madc.hi.cc of 32 and 64 bits: the product is formed first, then summed with carry.
template <class T, bool High, bool Use, bool Set>
void multiply_with_carry(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<T>(instruction.operand[1]);
  const auto* b = warp.row<T>(instruction.operand[2]);
  const auto* c = warp.row<T>(instruction.operand[3]);
  const Mask carry = warp.predicate(instruction.operand[4]);
  Row<T> result;
  Mask out = 0;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    using Wide = unsigned __int128;
    const auto product = static_cast<T>(Wide{a[lane]} * b[lane] >> (High ? 8 * sizeof(T) : 0));
    const Wide value = Wide{product} + Wide{c[lane]} + (Use ? carry >> lane & 1 : 0);
    result.lane[lane] = static_cast<T>(value);
    out |= static_cast<Mask>(value >> (8 * sizeof(T)) & 1) << lane;
  }
  warp.put(instruction.operand[0], result.lane);
  if (Set) warp.set_predicate(instruction.operand[4], out);
}

template <class T, bool Use>
Handler carry_product(bool high, bool set_carry) {
  if (high) return set_carry ? multiply_with_carry<T, true, Use, true> : multiply_with_carry<T, true, Use, false>;
  return set_carry ? multiply_with_carry<T, false, Use, true> : multiply_with_carry<T, false, Use, false>;
}

void decode_mad(Encoder& encoder) {
  const bool use = encoder.source().opcode == "madc";
  const bool high = encoder.take("hi");
  const bool wide = !high && encoder.take("wide");
  if (!high && !wide && !encoder.take("lo")) {
    encoder.fail("hi, lo or wide is missing");
  }
  const bool carry = encoder.take("cc");
  const auto type = encoder.take_type();
  if (use || carry) {
    const bool large = ptx::type_bytes(type) == 8;
    if (high && ptx::is_signed(type)) encoder.fail("a signed high product with carry is not known");
    if (large) {
      encoder.out.run =
          use ? carry_product<std::uint64_t, true>(high, carry) : carry_product<std::uint64_t, false>(high, carry);
    } else {
      encoder.out.run =
          use ? carry_product<std::uint32_t, true>(high, carry) : carry_product<std::uint32_t, false>(high, carry);
    }
    rows(encoder, type, 4);
    encoder.out.operand[4] = encoder.carry_flag();
    return;
  }
  if (wide) {
    switch (type) {
      case Type::u16:
        encoder.out.run = wide_multiply_add<std::uint16_t>;
        break;
      case Type::s16:
        encoder.out.run = wide_multiply_add<std::int16_t>;
        break;
      case Type::u32:
        encoder.out.run = wide_multiply_add<std::uint32_t>;
        break;
      case Type::s32:
        encoder.out.run = wide_multiply_add<std::int32_t>;
        break;
      default:
        encoder.fail("a wide product of this type is not known");
    }
    encoder.expect_operands(4);
    encoder.out.operand[0] = encoder.row(0, doubled(type));
    encoder.out.operand[1] = encoder.row(1, type);
    encoder.out.operand[2] = encoder.row(2, type);
    encoder.out.operand[3] = encoder.row(3, doubled(type));
    return;
  }
  set(encoder, high ? ternary_of<MultiplyAddHigh>(type) : ternary_of<MultiplyAddLow>(type), type);
  rows(encoder, type, 4);
}

void decode_carry(Encoder& encoder) {
  const bool subtract = encoder.source().opcode == "subc";
  const bool carry = encoder.take("cc");
  const auto type = encoder.take_type();
  if (ptx::type_bytes(type) == 8) {
    encoder.out.run =
        subtract
            ? (carry ? with_carry<std::uint64_t, true, true, true> : with_carry<std::uint64_t, true, true, false>)
            : (carry ? with_carry<std::uint64_t, false, true, true> : with_carry<std::uint64_t, false, true, false>);
  } else {
    encoder.out.run =
        subtract
            ? (carry ? with_carry<std::uint32_t, true, true, true> : with_carry<std::uint32_t, true, true, false>)
            : (carry ? with_carry<std::uint32_t, false, true, true> : with_carry<std::uint32_t, false, true, false>);
  }
  rows(encoder, type, 3);
  encoder.out.operand[4] = encoder.carry_flag();
}

void decode_24(Encoder& encoder) {
  if (!encoder.take("lo")) encoder.fail("only .lo is known");
  const auto type = encoder.take_type();
  const bool add = encoder.source().opcode == "mad24";
  const bool sign = type == Type::s32;
  if (add) {
    encoder.out.run = sign ? ternary_row<std::int32_t, std::int32_t, std::int32_t, MultiplyAdd24<std::int32_t>>
                           : ternary_row<std::uint32_t, std::uint32_t, std::uint32_t, MultiplyAdd24<std::uint32_t>>;
  } else {
    encoder.out.run = sign ? binary_row<std::int32_t, std::int32_t, Multiply24<std::int32_t>>
                           : binary_row<std::uint32_t, std::uint32_t, Multiply24<std::uint32_t>>;
  }
  rows(encoder, type, add ? 4 : 3);
}

template <bool SignedA, bool SignedB>
struct DotBytes {
  static std::uint32_t of(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      const auto x = a >> shift & 0xff;
      const auto y = b >> shift & 0xff;
      const auto left = SignedA ? static_cast<std::int8_t>(x) : static_cast<int>(x);
      const auto right = SignedB ? static_cast<std::int8_t>(y) : static_cast<int>(y);
      c += static_cast<std::uint32_t>(left * right);
    }
    return c;
  }
};

void decode_dot(Encoder& encoder) {
  const bool a = encoder.take_type() == Type::s32;
  const bool b = encoder.take_type() == Type::s32;
  using Word = std::uint32_t;
  encoder.out.run = a ? (b ? ternary_row<Word, Word, Word, DotBytes<true, true>>
                           : ternary_row<Word, Word, Word, DotBytes<true, false>>)
                      : (b ? ternary_row<Word, Word, Word, DotBytes<false, true>>
                           : ternary_row<Word, Word, Word, DotBytes<false, false>>);
  rows(encoder, Type::b32, 4);
}

}  // namespace

// mul of integers; add, sub, min, … are in the arithmetic families, which know every type.
void decode_integer_product(Encoder& encoder, Type type) {
  if (encoder.take("wide")) {
    switch (type) {
      case Type::u16:
        encoder.out.run = wide_product<std::uint16_t>;
        break;
      case Type::s16:
        encoder.out.run = wide_product<std::int16_t>;
        break;
      case Type::u32:
        encoder.out.run = wide_product<std::uint32_t>;
        break;
      case Type::s32:
        encoder.out.run = wide_product<std::int32_t>;
        break;
      default:
        encoder.fail("a wide product of this type is not known");
    }
    encoder.expect_operands(3);
    encoder.out.operand[0] = encoder.row(0, doubled(type));
    encoder.out.operand[1] = encoder.row(1, type);
    encoder.out.operand[2] = encoder.row(2, type);
    return;
  }
  if (encoder.take("hi")) {
    set(encoder, binary_of<MultiplyHigh>(type), type);
    rows(encoder, type, 3);
    return;
  }
  if (!encoder.take("lo")) encoder.fail("hi, lo or wide is missing");
  switch (ptx::type_bytes(type)) {
    case 2:
      encoder.out.run = [](Warp& warp, const Instruction& instruction) {
        struct Low {
          static std::uint16_t of(std::uint16_t a, std::uint16_t b) { return wrapped_product(a, b); }
        };
        binary_row<std::uint16_t, std::uint16_t, Low>(warp, instruction);
      };
      break;
    case 4:
      encoder.out.run = [](Warp& warp, const Instruction& instruction) {
        struct Low {
          static std::uint32_t of(std::uint32_t a, std::uint32_t b) { return a * b; }
        };
        binary_row<std::uint32_t, std::uint32_t, Low>(warp, instruction);
      };
      break;
    default:
      encoder.out.run = [](Warp& warp, const Instruction& instruction) {
        struct Low {
          static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a * b; }
        };
        binary_row<std::uint64_t, std::uint64_t, Low>(warp, instruction);
      };
  }
  rows(encoder, type, 3);
}

void decode_integer_quotient(Encoder& encoder, Type type) {
  set(encoder, binary_of<Divide>(type), type);
  rows(encoder, type, 3);
}

void decode_sum_with_carry(Encoder& encoder, Type type, bool subtract) {
  const bool large = ptx::type_bytes(type) == 8;
  encoder.out.run =
      large ? (subtract ? with_carry<std::uint64_t, true, false, true> : with_carry<std::uint64_t, false, false, true>)
            : (subtract ? with_carry<std::uint32_t, true, false, true> : with_carry<std::uint32_t, false, false, true>);
  rows(encoder, type, 3);
  encoder.out.operand[4] = encoder.carry_flag();
}

void add_integer_families(FamilyTable& table) {
  table["rem"] = decode_divide;
  table["mad"] = decode_mad;
  table["madc"] = decode_mad;
  table["addc"] = decode_carry;
  table["subc"] = decode_carry;
  table["mul24"] = decode_24;
  table["mad24"] = decode_24;
  table["dp4a"] = decode_dot;
  table["sad"] = [](Encoder& encoder) {
    const auto type = encoder.take_type();
    set(encoder, ternary_of<SumOfDifference>(type), type);
    rows(encoder, type, 4);
  };
}

}  // namespace tigon::emulator
