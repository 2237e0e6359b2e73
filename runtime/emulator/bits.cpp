// Bits: logic, shifts, permutes, fields, counts.
#include <bit>
#include <type_traits>

#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::Type;

struct And {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// Shift counts have 32 bits; larger ones than the type's width count as the width.
template <class T>
struct ShiftLeft {
  static T of(T a, std::uint32_t n) { return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << n); }
};
template <class T>
struct ShiftRight {
  static T of(T a, std::uint32_t n) {
    if (n >= 8 * sizeof(T)) return static_cast<T>(a < 0 ? -1 : 0);
    return static_cast<T>(a >> n);
  }
};

template <class T, class F>
void shift_row(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<T>(instruction.operand[1]);
  const auto* n = warp.row<std::uint32_t>(instruction.operand[2]);
  Row<T> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) result.lane[lane] = F::of(a[lane], n[lane]);
  warp.put(instruction.operand[0], result.lane);
}

template <class F>
void logic_of_predicates(Warp& warp, const Instruction& instruction) {
  const Mask a = warp.predicate(instruction.operand[1]) ^ ((instruction.negated & 1) != 0 ? all_lanes : 0);
  const Mask b = warp.predicate(instruction.operand[2]) ^ ((instruction.negated & 2) != 0 ? all_lanes : 0);
  warp.set_predicate(instruction.operand[0], F::of(a, b));
}

template <class F>
void decode_logic(Encoder& encoder) {
  const auto type = encoder.take_type();
  encoder.expect_operands(3);
  if (type == Type::pred) {
    encoder.out.operand[0] = encoder.predicate(encoder.operand(0));
    encoder.out.operand[1] = encoder.predicate(encoder.operand(1), 0);
    encoder.out.operand[2] = encoder.predicate(encoder.operand(2), 1);
    encoder.out.run = logic_of_predicates<F>;
    return;
  }
  for (std::size_t i = 0; i < 3; ++i) encoder.out.operand[i] = encoder.row(i, type);
  switch (ptx::type_bytes(type)) {
    case 2:
      encoder.out.run = binary_row<std::uint16_t, std::uint16_t, F>;
      break;
    case 4:
      encoder.out.run = binary_row<std::uint32_t, std::uint32_t, F>;
      break;
    default:
      encoder.out.run = binary_row<std::uint64_t, std::uint64_t, F>;
  }
}

template <class T>
struct Complement {
  static T of(T a) { return static_cast<T>(~a); }
};
template <class T>
struct LogicalNot {
  static T of(T a) { return a == 0 ? 1 : 0; }
};

template <template <class> class F>
void decode_complement(Encoder& encoder) {
  const auto type = encoder.take_type();
  encoder.expect_operands(2);
  if (type == Type::pred) {
    encoder.out.operand[0] = encoder.predicate(encoder.operand(0));
    encoder.out.operand[1] = encoder.predicate(encoder.operand(1), 0);
    encoder.out.run = [](Warp& warp, const Instruction& instruction) {
      const Mask a = warp.predicate(instruction.operand[1]) ^ (instruction.negated != 0 ? all_lanes : 0);
      warp.set_predicate(instruction.operand[0], ~a);
    };
    return;
  }
  encoder.out.operand[0] = encoder.row(0, type);
  encoder.out.operand[1] = encoder.row(1, type);
  switch (ptx::type_bytes(type)) {
    case 2:
      encoder.out.run = unary_row<std::uint16_t, std::uint16_t, F<std::uint16_t>>;
      break;
    case 4:
      encoder.out.run = unary_row<std::uint32_t, std::uint32_t, F<std::uint32_t>>;
      break;
    default:
      encoder.out.run = unary_row<std::uint64_t, std::uint64_t, F<std::uint64_t>>;
  }
}

void decode_shift(Encoder& encoder) {
  const bool left = encoder.source().opcode == "shl";
  const auto type = encoder.take_type();
  encoder.expect_operands(3);
  encoder.out.operand[0] = encoder.row(0, type);
  encoder.out.operand[1] = encoder.row(1, type);
  encoder.out.operand[2] = encoder.row(2, Type::u32);
  const auto bytes = ptx::type_bytes(type);
  if (left) {
    encoder.out.run = bytes == 2   ? shift_row<std::uint16_t, ShiftLeft<std::uint16_t>>
                      : bytes == 4 ? shift_row<std::uint32_t, ShiftLeft<std::uint32_t>>
                                   : shift_row<std::uint64_t, ShiftLeft<std::uint64_t>>;
  } else if (ptx::is_signed(type)) {
    encoder.out.run = bytes == 2   ? shift_row<std::int16_t, ShiftRight<std::int16_t>>
                      : bytes == 4 ? shift_row<std::int32_t, ShiftRight<std::int32_t>>
                                   : shift_row<std::int64_t, ShiftRight<std::int64_t>>;
  } else {
    encoder.out.run = bytes == 2   ? shift_row<std::uint16_t, ShiftRight<std::uint16_t>>
                      : bytes == 4 ? shift_row<std::uint32_t, ShiftRight<std::uint32_t>>
                                   : shift_row<std::uint64_t, ShiftRight<std::uint64_t>>;
  }
}

template <bool Left, bool Wrap>
struct FunnelShift {
  static std::uint32_t of(std::uint32_t low, std::uint32_t high, std::uint32_t n) {
    n = Wrap ? n & 31 : (n > 32 ? 32 : n);
    const auto both = std::uint64_t{high} << 32 | low;
    return static_cast<std::uint32_t>(Left ? (n == 0 ? high : both >> (32 - n)) : both >> n);
  }
};

void decode_funnel_shift(Encoder& encoder) {
  const bool left = encoder.take("l");
  if (!left && !encoder.take("r")) encoder.fail("l or r is missing");
  const bool wrap = encoder.take("wrap");
  if (!wrap && !encoder.take("clamp")) encoder.fail("wrap or clamp is missing");
  const auto type = encoder.take_type();
  encoder.expect_operands(4);
  for (std::size_t i = 0; i < 4; ++i) encoder.out.operand[i] = encoder.row(i, type);
  using Word = std::uint32_t;
  encoder.out.run = left ? (wrap ? ternary_row<Word, Word, Word, FunnelShift<true, true>>
                                 : ternary_row<Word, Word, Word, FunnelShift<true, false>>)
                         : (wrap ? ternary_row<Word, Word, Word, FunnelShift<false, true>>
                                 : ternary_row<Word, Word, Word, FunnelShift<false, false>>);
}

// immediate: the truth table of three inputs.
void logic_of_three(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<std::uint32_t>(instruction.operand[1]);
  const auto* b = warp.row<std::uint32_t>(instruction.operand[2]);
  const auto* c = warp.row<std::uint32_t>(instruction.operand[3]);
  Row<std::uint32_t> result{};
  for (unsigned row = 0; row < 8; ++row) {
    if ((instruction.immediate >> row & 1) == 0) continue;
    const std::uint32_t flip_a = (row & 4) != 0 ? 0 : ~0U;
    const std::uint32_t flip_b = (row & 2) != 0 ? 0 : ~0U;
    const std::uint32_t flip_c = (row & 1) != 0 ? 0 : ~0U;
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      result.lane[lane] |= (a[lane] ^ flip_a) & (b[lane] ^ flip_b) & (c[lane] ^ flip_c);
    }
  }
  warp.put(instruction.operand[0], result.lane);
}

void decode_logic_of_three(Encoder& encoder) {
  encoder.take_type();
  encoder.expect_operands(5);
  for (std::size_t i = 0; i < 4; ++i) encoder.out.operand[i] = encoder.row(i, Type::b32);
  encoder.out.immediate = encoder.operand(4).integer;
  encoder.out.run = logic_of_three;
}

void permute(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<std::uint32_t>(instruction.operand[1]);
  const auto* b = warp.row<std::uint32_t>(instruction.operand[2]);
  const auto* c = warp.row<std::uint32_t>(instruction.operand[3]);
  Row<std::uint32_t> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    const auto both = std::uint64_t{b[lane]} << 32 | a[lane];
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const auto choice = c[lane] >> (4 * i) & 15;
      auto byte = static_cast<std::uint32_t>(both >> (8 * (choice & 7)) & 0xff);
      if ((choice & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;  // the sign, repeated
      value |= byte << (8 * i);
    }
    result.lane[lane] = value;
  }
  warp.put(instruction.operand[0], result.lane);
}

// prmt's named modes pick by the low two bits of c.
void permute_mode(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<std::uint32_t>(instruction.operand[1]);
  const auto* b = warp.row<std::uint32_t>(instruction.operand[2]);
  const auto* c = warp.row<std::uint32_t>(instruction.operand[3]);
  static constexpr std::uint16_t selections[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
      {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
      {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
      {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
      {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
      {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
  };
  each_lane<std::uint32_t>(warp, instruction.operand[0], [&](unsigned lane) {
    const auto selection = selections[instruction.mode][c[lane] & 3];
    const auto both = std::uint64_t{b[lane]} << 32 | a[lane];
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i) {
      value |= static_cast<std::uint32_t>(both >> (8 * (selection >> (4 * i) & 7)) & 0xff) << (8 * i);
    }
    return value;
  });
}

void decode_permute(Encoder& encoder) {
  encoder.take_type();
  const auto mode = encoder.take_any({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  encoder.expect_operands(4);
  for (std::size_t i = 0; i < 4; ++i) encoder.out.operand[i] = encoder.row(i, Type::b32);
  encoder.out.mode = static_cast<std::uint8_t>(std::max(mode, 0));
  encoder.out.run = mode < 0 ? permute : permute_mode;
}

template <class T>
void extract_field(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<T>(instruction.operand[1]);
  const auto* position = warp.row<std::uint32_t>(instruction.operand[2]);
  const auto* length = warp.row<std::uint32_t>(instruction.operand[3]);
  constexpr unsigned width = 8 * sizeof(T);
  each_lane<T>(warp, instruction.operand[0], [&](unsigned lane) -> T {
    const auto from = position[lane] & 0xff;
    const auto count = length[lane] & 0xff;
    if (count == 0) return 0;
    const auto last = std::min(from + count - 1, width - 1);
    const bool fill = std::is_signed_v<T> && (a[lane] >> last & 1) != 0;
    using Word = std::make_unsigned_t<T>;
    Word value = from < width ? static_cast<Word>(static_cast<Word>(a[lane]) >> from) : Word{0};
    const auto kept = from < width ? std::min(count, width - from) : 0U;
    if (kept < width) {
      const auto mask = static_cast<Word>((Word{1} << kept) - 1);
      value = static_cast<Word>(fill ? value | static_cast<Word>(~mask) : value & mask);
    }
    return static_cast<T>(value);
  });
}

template <class T>
void insert_field(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<T>(instruction.operand[1]);
  const auto* b = warp.row<T>(instruction.operand[2]);
  const auto* position = warp.row<std::uint32_t>(instruction.operand[3]);
  const auto* length = warp.row<std::uint32_t>(instruction.operand[4]);
  constexpr unsigned width = 8 * sizeof(T);
  each_lane<T>(warp, instruction.operand[0], [&](unsigned lane) -> T {
    const auto from = position[lane] & 0xff;
    const auto count = std::min(length[lane] & 0xff, width);
    if (from >= width || count == 0) return b[lane];
    const T ones = count >= width ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << count) - 1);
    const T mask = static_cast<T>(ones << from);
    return static_cast<T>((b[lane] & ~mask) | (a[lane] << from & mask));
  });
}

void decode_field(Encoder& encoder) {
  const bool insert = encoder.source().opcode == "bfi";
  const auto type = encoder.take_type();
  const bool large = ptx::type_bytes(type) == 8;
  std::size_t at = 0;
  for (; at < (insert ? 3U : 2U); ++at) encoder.out.operand[at] = encoder.row(at, type);
  encoder.expect_operands(at + 2);
  encoder.out.operand[at] = encoder.row(at, Type::u32);
  encoder.out.operand[at + 1] = encoder.row(at + 1, Type::u32);
  if (insert) {
    encoder.out.run = large ? insert_field<std::uint64_t> : insert_field<std::uint32_t>;
  } else if (ptx::is_signed(type)) {
    encoder.out.run = large ? extract_field<std::int64_t> : extract_field<std::int32_t>;
  } else {
    encoder.out.run = large ? extract_field<std::uint64_t> : extract_field<std::uint32_t>;
  }
}

struct CountOnes {
  template <class T>
  static std::uint32_t of(T a) {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct CountLeadingZeros {
  template <class T>
  static std::uint32_t of(T a) {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};
struct ReverseBits {
  template <class T>
  static T of(T a) {
    T result = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i) {
      result = static_cast<T>(result << 1 | (a & 1));
      a = static_cast<T>(a >> 1);
    }
    return result;
  }
};
template <bool Signed, bool Amount>
struct FindLeadingBit {
  template <class T>
  static std::uint32_t of(T a) {
    if (Signed && (a >> (8 * sizeof(T) - 1) & 1) != 0) a = static_cast<T>(~a);
    if (a == 0) return ~0U;
    const auto zeros = static_cast<std::uint32_t>(std::countl_zero(a));
    return Amount ? zeros : static_cast<std::uint32_t>(8 * sizeof(T)) - 1 - zeros;
  }
};

template <class F>
void decode_count(Encoder& encoder) {
  const auto type = encoder.take_type();
  encoder.expect_operands(2);
  encoder.out.operand[0] = encoder.row(0, Type::u32);
  encoder.out.operand[1] = encoder.row(1, type);
  encoder.out.run = ptx::type_bytes(type) == 8 ? unary_row<std::uint32_t, std::uint64_t, F>
                                               : unary_row<std::uint32_t, std::uint32_t, F>;
}

void decode_find(Encoder& encoder) {
  const bool amount = encoder.take("shiftamt");
  const bool sign = encoder.has("s32") || encoder.has("s64");
  if (sign) {
    amount ? decode_count<FindLeadingBit<true, true>>(encoder) : decode_count<FindLeadingBit<true, false>>(encoder);
  } else {
    amount ? decode_count<FindLeadingBit<false, true>>(encoder) : decode_count<FindLeadingBit<false, false>>(encoder);
  }
}

// The position of the n-th set bit from a base, or all ones.
void find_nth(Warp& warp, const Instruction& instruction) {
  const auto* mask = warp.row<std::uint32_t>(instruction.operand[1]);
  const auto* base = warp.row<std::uint32_t>(instruction.operand[2]);
  const auto* offset = warp.row<std::int32_t>(instruction.operand[3]);
  each_lane<std::uint32_t>(warp, instruction.operand[0], [&](unsigned lane) {
    const int step = offset[lane] >= 0 ? 1 : -1;
    int left = offset[lane] == 0 ? 1 : std::abs(offset[lane]);
    for (int at = static_cast<int>(base[lane]); at >= 0 && at < 32; at += step) {
      if ((mask[lane] >> at & 1) != 0 && --left == 0) return static_cast<std::uint32_t>(at);
      if (offset[lane] == 0) break;
    }
    return ~0U;
  });
}

}  // namespace

void add_bit_families(FamilyTable& table) {
  table["and"] = decode_logic<And>;
  table["or"] = decode_logic<Or>;
  table["xor"] = decode_logic<Xor>;
  table["not"] = decode_complement<Complement>;
  table["cnot"] = decode_complement<LogicalNot>;
  table["shl"] = decode_shift;
  table["shr"] = decode_shift;
  table["shf"] = decode_funnel_shift;
  table["lop3"] = decode_logic_of_three;
  table["prmt"] = decode_permute;
  table["bfe"] = decode_field;
  table["bfi"] = decode_field;
  table["popc"] = decode_count<CountOnes>;
  table["clz"] = decode_count<CountLeadingZeros>;
  table["bfind"] = decode_find;
  table["brev"] = [](Encoder& encoder) {
    const auto type = encoder.take_type();
    encoder.expect_operands(2);
    encoder.out.operand[0] = encoder.row(0, type);
    encoder.out.operand[1] = encoder.row(1, type);
    encoder.out.run = ptx::type_bytes(type) == 8 ? unary_row<std::uint64_t, std::uint64_t, ReverseBits>
                                                 : unary_row<std::uint32_t, std::uint32_t, ReverseBits>;
  };
  table["fns"] = [](Encoder& encoder) {
    encoder.take_type();
    encoder.expect_operands(4);
    for (std::size_t i = 0; i < 4; ++i) encoder.out.operand[i] = encoder.row(i, Type::b32);
    encoder.out.run = find_nth;
  };
}

}  // namespace tigon::emulator
