// cvt between every pair of types, and cvt.pack.
#include <cmath>
#include <limits>

#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/half.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::Type;

// Reads element `lane` of a row of the type; the row's register may be wider than the type.
std::int64_t read_integer(const std::uint8_t* row, unsigned stride, unsigned lane, Type type) {
  const auto* from = row + std::size_t{lane} * stride;
  switch (type) {
    case Type::s8:
      return *reinterpret_cast<const std::int8_t*>(from);
    case Type::s16:
      return *reinterpret_cast<const std::int16_t*>(from);
    case Type::s32:
      return *reinterpret_cast<const std::int32_t*>(from);
    default:
      break;
  }
  switch (ptx::type_bytes(type)) {
    case 1:
      return *from;
    case 2:
      return *reinterpret_cast<const std::uint16_t*>(from);
    case 4:
      return *reinterpret_cast<const std::uint32_t*>(from);
    default:
      return *reinterpret_cast<const std::int64_t*>(from);
  }
}

double read_float(const std::uint8_t* row, unsigned stride, unsigned lane, Type type) {
  const auto* from = row + std::size_t{lane} * stride;
  switch (type) {
    case Type::f16:
      return half_to_float(*reinterpret_cast<const std::uint16_t*>(from));
    case Type::bf16:
      return bf16_to_float(*reinterpret_cast<const std::uint16_t*>(from));
    case Type::f32:
    case Type::tf32:
      return *reinterpret_cast<const float*>(from);
    default:
      return *reinterpret_cast<const double*>(from);
  }
}

// Writes the low bytes of `value`, extended by its sign or zeros to the register's width, which `value` already is.
void write_lane(std::uint8_t* row, unsigned stride, unsigned lane, std::uint64_t value) {
  auto* to = row + std::size_t{lane} * stride;
  switch (stride) {
    case 2:
      *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(value);
      break;
    case 4:
      *reinterpret_cast<std::uint32_t*>(to) = static_cast<std::uint32_t>(value);
      break;
    default:
      *reinterpret_cast<std::uint64_t*>(to) = value;
  }
}

struct Limits {
  double low;
  double high;
  std::int64_t lowest;
  std::int64_t highest;  // as bits for u64
};

Limits limits_of(Type type) {
  const auto bits = 8 * ptx::type_bytes(type);
  if (ptx::is_signed(type)) {
    const auto highest = static_cast<std::int64_t>((std::uint64_t{1} << (bits - 1)) - 1);
    return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1), -highest - 1, highest};
  }
  return {0, std::ldexp(1.0, bits), 0,
          bits == 64 ? std::int64_t{-1} : static_cast<std::int64_t>((std::uint64_t{1} << bits) - 1)};
}

double round_to_integer(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::zero:
      return std::trunc(value);
    case Rounding::down:
      return std::floor(value);
    case Rounding::up:
      return std::ceil(value);
    default:
      return std::nearbyint(value);
  }
}

// Out of range values become the nearest limit, NaN becomes 0 (for 64-bit results the top bit alone).
std::uint64_t float_to_integer(double value, Type to, Rounding rounding, const Limits& limits, bool nan_is_zero) {
  if (std::isnan(value)) {
    if (nan_is_zero) return 0;
    return to == Type::s64 || to == Type::u64 ? std::uint64_t{1} << 63 : 0;
  }
  const double whole = round_to_integer(value, rounding);
  if (whole < limits.low) return static_cast<std::uint64_t>(limits.lowest);
  if (whole >= limits.high) return static_cast<std::uint64_t>(limits.highest);
  return ptx::is_signed(to) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(whole))
                            : static_cast<std::uint64_t>(whole);
}

Type type_of(std::uint32_t value) { return static_cast<Type>(value); }

// operand[2], [3]: the types of the result and of the operand; bytes and stride: the sizes of their registers.
void integer_to_integer(Warp& warp, const Instruction& instruction) {
  const auto to = type_of(instruction.operand[2]);
  const auto from = type_of(instruction.operand[3]);
  const auto* source = warp.arena + instruction.operand[1];
  auto* target = warp.arena + instruction.operand[0];
  const auto limits = limits_of(to);
  std::int64_t values[lanes_per_warp];
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    values[lane] = read_integer(source, instruction.stride, lane, from);
  }
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    auto value = values[lane];
    if (instruction.saturate) {
      // Everything but u64 fits an int64, and u64 saturates from below only.
      if (from == Type::u64 && value < 0) {
        value = to == Type::u64 ? value : limits.highest;
      } else if (to == Type::u64) {
        value = std::max<std::int64_t>(value, 0);
      } else {
        value = std::clamp(value, limits.lowest, limits.highest);
      }
    }
    switch (ptx::type_bytes(to)) {
      case 1:
        value = ptx::is_signed(to) ? static_cast<std::int8_t>(value) : std::int64_t{static_cast<std::uint8_t>(value)};
        break;
      case 2:
        value = ptx::is_signed(to) ? static_cast<std::int16_t>(value) : std::int64_t{static_cast<std::uint16_t>(value)};
        break;
      case 4:
        value = ptx::is_signed(to) ? static_cast<std::int32_t>(value) : std::int64_t{static_cast<std::uint32_t>(value)};
        break;
      default:
        break;
    }
    write_lane(target, instruction.bytes, lane, static_cast<std::uint64_t>(value));
  }
}

std::uint64_t pack_float(double value, Type to, const Instruction& instruction) {
  const auto rounding = static_cast<Rounding>(instruction.mode);
  switch (to) {
    case Type::f16:
      return round_to_format(value, format_f16, rounding);
    case Type::bf16:
      return round_to_format(value, format_bf16, rounding);
    case Type::tf32:
      return std::isnan(value) ? 0x7fffffffU : round_to_format(value, format_tf32, rounding) << 13;
    case Type::f32:
      return round_to_format(value, format_f32, rounding);
    default:
      return std::bit_cast<std::uint64_t>(value);
  }
}

void integer_to_float(Warp& warp, const Instruction& instruction) {
  const auto to = type_of(instruction.operand[2]);
  const auto from = type_of(instruction.operand[3]);
  const auto* source = warp.arena + instruction.operand[1];
  auto* target = warp.arena + instruction.operand[0];
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const auto value = read_integer(source, instruction.stride, lane, from);
    // 64-bit integers do not fit a double: the last bit says that something was cut off, so that rounding is right.
    double exact = 0;
    const bool negative = from != Type::u64 && value < 0;
    auto magnitude =
        negative ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    if (to == Type::f64) {
      exact = from == Type::u64 ? static_cast<double>(static_cast<std::uint64_t>(value)) : static_cast<double>(value);
      write_lane(target, instruction.bytes, lane, std::bit_cast<std::uint64_t>(exact));
      continue;
    }
    if (magnitude >> 53 != 0) magnitude = (magnitude & ~std::uint64_t{0xfff}) | ((magnitude & 0xfff) != 0 ? 0x800 : 0);
    exact = static_cast<double>(magnitude);
    write_lane(target, instruction.bytes, lane, pack_float(negative ? -exact : exact, to, instruction));
  }
}

void float_to_integer_row(Warp& warp, const Instruction& instruction) {
  const auto to = type_of(instruction.operand[2]);
  const auto from = type_of(instruction.operand[3]);
  const auto* source = warp.arena + instruction.operand[1];
  auto* target = warp.arena + instruction.operand[0];
  const auto limits = limits_of(to);
  const bool nan_is_zero = from != Type::f64 && ptx::type_bytes(to) < 8;
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    double value = read_float(source, instruction.stride, lane, from);
    if (instruction.flush) value = flush(static_cast<float>(value));
    auto bits = float_to_integer(value, to, static_cast<Rounding>(instruction.mode), limits, nan_is_zero);
    write_lane(target, instruction.bytes, lane, bits);
  }
}

void float_to_float(Warp& warp, const Instruction& instruction) {
  const auto to = type_of(instruction.operand[2]);
  const auto from = type_of(instruction.operand[3]);
  const auto* source = warp.arena + instruction.operand[1];
  auto* target = warp.arena + instruction.operand[0];
  const bool integral = instruction.option == 1;
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    double value = read_float(source, instruction.stride, lane, from);
    if (instruction.flush && from == Type::f32) value = flush(static_cast<float>(value));
    if (integral) value = round_to_integer(value, static_cast<Rounding>(instruction.mode));
    if (instruction.saturate) value = !(value > 0) ? 0.0 : std::min(value, 1.0);
    if (instruction.sign && !(value > 0)) value = std::isnan(value) ? value : 0.0;  // relu
    auto bits = pack_float(value, to, instruction);
    if (instruction.flush && to == Type::f32) {
      bits = std::bit_cast<std::uint32_t>(flush(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
    }
    write_lane(target, instruction.bytes, lane, bits);
  }
}

// The conversions that generated kernels live on, as plain loops.
struct IntegerToFloat {
  template <class T>
  static float of(T a) {
    return static_cast<float>(a);
  }
};
struct FloatToBrain {
  static std::uint16_t of(float a) { return float_to_bf16(a); }
};
struct BrainToFloat {
  static float of(std::uint16_t a) { return bf16_to_float(a); }
};
struct FloatToDouble {
  static double of(float a) { return a; }
};
struct DoubleToFloat {
  static float of(double a) { return canonical(static_cast<float>(a)); }
};
template <class To>
struct Extend {
  template <class T>
  static To of(T a) {
    return static_cast<To>(a);
  }
};

Handler fast_path(const Instruction& instruction, Type to, Type from) {
  if (instruction.flush || instruction.saturate || instruction.sign || instruction.mode != 0 ||
      instruction.option != 0) {
    return nullptr;
  }
  const auto plain = [&](Type wanted_to, Type wanted_from) {
    return to == wanted_to && from == wanted_from && instruction.bytes == ptx::type_bytes(to) &&
           instruction.stride == ptx::type_bytes(from);
  };
  if (plain(Type::f32, Type::s32)) return unary_row<float, std::int32_t, IntegerToFloat>;
  if (plain(Type::f32, Type::u32)) return unary_row<float, std::uint32_t, IntegerToFloat>;
  if (plain(Type::bf16, Type::f32)) return unary_row<std::uint16_t, float, FloatToBrain>;
  if (plain(Type::f32, Type::bf16)) return unary_row<float, std::uint16_t, BrainToFloat>;
  if (plain(Type::f64, Type::f32)) return unary_row<double, float, FloatToDouble>;
  if (plain(Type::f32, Type::f64)) return unary_row<float, double, DoubleToFloat>;
  if (plain(Type::s64, Type::s32)) return unary_row<std::int64_t, std::int32_t, Extend<std::int64_t>>;
  if (plain(Type::u64, Type::u32)) return unary_row<std::uint64_t, std::uint32_t, Extend<std::uint64_t>>;
  if (plain(Type::u32, Type::u64)) return unary_row<std::uint32_t, std::uint64_t, Extend<std::uint32_t>>;
  if (plain(Type::u32, Type::u16)) return unary_row<std::uint32_t, std::uint16_t, Extend<std::uint32_t>>;
  if (plain(Type::u16, Type::u32)) return unary_row<std::uint16_t, std::uint32_t, Extend<std::uint16_t>>;
  if (plain(Type::s32, Type::s16)) return unary_row<std::int32_t, std::int16_t, Extend<std::int32_t>>;
  return nullptr;
}

const Format* format_of(Type pair) {
  switch (pair) {
    case Type::f16x2:
      return &format_f16;
    case Type::bf16x2:
      return &format_bf16;
    case Type::e4m3x2:
      return &format_e4m3;
    case Type::e5m2x2:
      return &format_e5m2;
    default:
      return nullptr;
  }
}

// d = { a in the upper half, b in the lower } in a narrow format.
void pair_row(Warp& warp, const Instruction& instruction) {
  const auto& format = *format_of(type_of(instruction.operand[3]));
  const auto shift = static_cast<unsigned>(format.mantissa + format.exponent + 1);
  const auto* a = warp.row<float>(instruction.operand[1]);
  const auto* b = warp.row<float>(instruction.operand[2]);
  auto* target = warp.arena + instruction.operand[0];
  const auto convert = [&](float value) {
    if (instruction.flush) value = flush(value);
    if (instruction.sign && !(value > 0) && value == value) value = 0;  // relu
    return round_to_format(value, format, static_cast<Rounding>(instruction.mode), instruction.saturate);
  };
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    write_lane(target, instruction.bytes, lane, convert(a[lane]) << shift | convert(b[lane]));
  }
}

void brain_pair_row(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<float>(instruction.operand[1]);
  const auto* b = warp.row<float>(instruction.operand[2]);
  Row<std::uint32_t> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    result.lane[lane] = std::uint32_t{float_to_bf16(a[lane])} << 16 | float_to_bf16(b[lane]);
  }
  warp.put(instruction.operand[0], result.lane);
}

// f16x2 out of a pair of 8-bit floats.
void widen_pair_row(Warp& warp, const Instruction& instruction) {
  const auto& format = *format_of(type_of(instruction.operand[3]));
  const auto* a = warp.row<std::uint16_t>(instruction.operand[1]);
  each_lane<std::uint32_t>(warp, instruction.operand[0], [&](unsigned lane) {
    const auto part = [&](unsigned shift) {
      return round_to_format(format_to_double(a[lane] >> shift & 0xffU, format), format_f16, Rounding::nearest);
    };
    return part(0) | part(8) << 16;
  });
}

Rounding take_rounding(Encoder& encoder, bool& integral) {
  const auto integer = encoder.take_any({"rni", "rzi", "rmi", "rpi"});
  if (integer >= 0) {
    integral = true;
    return static_cast<Rounding>(integer);
  }
  integral = false;
  const auto rounding = encoder.take_any({"rn", "rz", "rm", "rp", "rna"});
  return static_cast<Rounding>(std::max(rounding, 0));
}

void decode_pair(Encoder& encoder, Type to, Type from) {
  encoder.out.saturate = encoder.take("satfinite") || to == Type::e4m3x2 || to == Type::e5m2x2;
  encoder.out.sign = encoder.take("relu");
  if (from == Type::e4m3x2 || from == Type::e5m2x2) {
    if (to != Type::f16x2) encoder.fail("8-bit floats convert to .f16x2 only");
    encoder.expect_operands(2);
    encoder.out.operand[0] = encoder.row(0, Type::b32);
    encoder.out.operand[1] = encoder.row(1, Type::b16);
    encoder.out.operand[3] = static_cast<std::uint32_t>(from);
    encoder.out.run = widen_pair_row;
    return;
  }
  if (from != Type::f32) encoder.fail("pairs are made of .f32");
  encoder.expect_operands(3);
  const auto bytes = static_cast<unsigned>(ptx::type_bytes(to));
  encoder.out.operand[0] = encoder.row(0, bytes == 2 ? Type::b16 : Type::b32);
  encoder.out.bytes = static_cast<std::uint8_t>(bytes);
  encoder.out.operand[1] = encoder.row(1, Type::f32);
  encoder.out.operand[2] = encoder.row(2, Type::f32);
  encoder.out.operand[3] = static_cast<std::uint32_t>(to);
  const bool simple =
      to == Type::bf16x2 && encoder.out.mode == 0 && !encoder.out.sign && !encoder.out.saturate && !encoder.out.flush;
  encoder.out.run = simple ? brain_pair_row : pair_row;
}

void decode_convert(Encoder& encoder) {
  if (encoder.has("pack")) encoder.fail("cvt.pack is not known");
  bool integral = false;
  encoder.out.mode = static_cast<std::uint8_t>(take_rounding(encoder, integral));
  encoder.out.flush = encoder.take("ftz");
  encoder.out.saturate = encoder.take("sat");
  const auto to = encoder.take_type();
  const auto from = encoder.take_type();
  if (format_of(to) != nullptr || format_of(from) != nullptr) {
    decode_pair(encoder, to, from);
    return;
  }
  encoder.out.sign = encoder.take("relu");
  encoder.take("satfinite");
  encoder.expect_operands(2);
  encoder.out.operand[0] =
      encoder.any_row(encoder.operand(0), static_cast<unsigned>(ptx::type_bytes(to)), encoder.out.bytes);
  encoder.out.operand[1] =
      encoder.any_row(encoder.operand(1), static_cast<unsigned>(ptx::type_bytes(from)), encoder.out.stride);
  encoder.out.operand[2] = static_cast<std::uint32_t>(to);
  encoder.out.operand[3] = static_cast<std::uint32_t>(from);
  encoder.out.option = integral && ptx::is_float(to) ? 1 : 0;
  if (ptx::is_float(from)) {
    encoder.out.run = ptx::is_float(to) ? float_to_float : float_to_integer_row;
    // Without a rounding, a conversion to the same or a wider float type is exact.
  } else {
    encoder.out.run = ptx::is_float(to) ? integer_to_float : integer_to_integer;
  }
  if (auto* fast = fast_path(encoder.out, to, from)) encoder.out.run = fast;
}

}  // namespace

void add_conversion_families(FamilyTable& table) { table["cvt"] = decode_convert; }

}  // namespace tigon::emulator
