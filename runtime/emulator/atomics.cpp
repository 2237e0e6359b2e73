// atom and red: read, change and write back, lane after lane.
#include <cstring>

#include "runtime/emulator/access.hpp"
#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/half.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::Type;

enum class Atomic : std::uint8_t {
  add,
  minimum,
  maximum,
  conjunction,
  disjunction,
  exclusive,
  exchange,
  compare,
  increment,
  decrement
};

constexpr std::uint8_t option_release = 1;

template <class T>
T change_integer(Atomic operation, T old, T b, T c) {
  using Word = std::make_unsigned_t<T>;
  switch (operation) {
    case Atomic::add:
      return static_cast<T>(static_cast<Word>(old) + static_cast<Word>(b));
    case Atomic::minimum:
      return std::min(old, b);
    case Atomic::maximum:
      return std::max(old, b);
    case Atomic::conjunction:
      return static_cast<T>(old & b);
    case Atomic::disjunction:
      return static_cast<T>(old | b);
    case Atomic::exclusive:
      return static_cast<T>(old ^ b);
    case Atomic::exchange:
      return b;
    case Atomic::compare:
      return old == b ? c : old;
    case Atomic::increment:
      return static_cast<Word>(old) >= static_cast<Word>(b) ? T{0} : static_cast<T>(old + 1);
    case Atomic::decrement:
      return old == 0 || static_cast<Word>(old) > static_cast<Word>(b) ? b : static_cast<T>(old - 1);
  }
  return old;
}

float add_floats(float a, float b, bool flushes) { return canonical(flushes ? flush(flush(a) + flush(b)) : a + b); }

template <bool Brain>
std::uint16_t add_narrow(std::uint16_t a, std::uint16_t b) {
  const double x = Brain ? bf16_to_float(a) : half_to_float(a);
  const double y = Brain ? bf16_to_float(b) : half_to_float(b);
  return static_cast<std::uint16_t>(
      round_to_format(sum_to_odd(x, y), Brain ? format_bf16 : format_f16, Rounding::nearest));
}

template <bool Brain, bool Pair>
struct NarrowAdd {
  template <class T>
  static T of(Atomic, T old, T b, T, const Instruction&) {
    if constexpr (Pair) {
      const auto low = add_narrow<Brain>(static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(b));
      const auto high = add_narrow<Brain>(static_cast<std::uint16_t>(old >> 16), static_cast<std::uint16_t>(b >> 16));
      return static_cast<T>(low | std::uint32_t{high} << 16);
    } else {
      return add_narrow<Brain>(old, b);
    }
  }
};
struct Integer {
  template <class T>
  static T of(Atomic operation, T old, T b, T c, const Instruction&) {
    return change_integer(operation, old, b, c);
  }
};
struct FloatAdd {
  // Global additions of f32 flush nothing, those in shared memory neither; .noftz is for the narrow types.
  static float of(Atomic, float old, float b, float, const Instruction& instruction) {
    return add_floats(old, b, instruction.flush);
  }
};
struct DoubleAdd {
  static double of(Atomic, double old, double b, double, const Instruction&) { return old + b; }
};

// operand[0]: the result, or 0; [1]: the address; from [2]: the operands of each element, then, of cas, the new value.
template <class T, class F>
void atomic_row(Warp& warp, const Instruction& instruction) {
  Addresses addresses;
  Pointers pointers;
  compute_addresses(warp, instruction, 1, addresses);
  if ((instruction.option & option_release) != 0) fence_device(warp);
  const unsigned bytes = static_cast<unsigned>(sizeof(T)) * instruction.count;
  const Mask lanes =
      prepare_access(warp, instruction, instruction.space, addresses, warp.active, bytes, AccessKind::atomic, pointers);
  const auto operation = static_cast<Atomic>(instruction.mode);
  for (unsigned i = 0; i < instruction.count; ++i) {
    const auto* b = warp.row<T>(instruction.operand[8 + i]);
    const auto* c = warp.row<T>(instruction.operand[16]);
    Row<T> before;
    // The order of lanes is nobody's promise; the reverse schedule takes the last one first.
    const bool reverse = warp.launch->schedule.order == Order::reverse;
    for (unsigned step = 0; step < lanes_per_warp; ++step) {
      const unsigned lane = reverse ? lanes_per_warp - 1 - step : step;
      if ((lanes >> lane & 1) == 0) continue;
      T old;
      std::memcpy(&old, pointers[lane] + i * sizeof(T), sizeof old);
      before.lane[lane] = old;
      const T value = F::of(operation, old, b[lane], c[lane], instruction);
      std::memcpy(pointers[lane] + i * sizeof(T), &value, sizeof value);
    }
    if (instruction.operand[2 + i] != 0) {
      auto* to = warp.row<T>(instruction.operand[2 + i]);
      for (Mask left = lanes; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        to[lane] = before.lane[lane];
      }
    }
  }
  for (Mask left = lanes; left != 0; left &= left - 1) {
    synchronize_through(warp, addresses[static_cast<unsigned>(std::countr_zero(left))], true, true);
  }
}

Handler choose(Encoder& encoder, Atomic operation, Type type) {
  const bool adds = operation == Atomic::add;
  switch (type) {
    case Type::f32:
      if (adds) return atomic_row<float, FloatAdd>;
      break;
    case Type::f64:
      if (adds) return atomic_row<double, DoubleAdd>;
      break;
    case Type::f16:
      if (adds) return atomic_row<std::uint16_t, NarrowAdd<false, false>>;
      break;
    case Type::bf16:
      if (adds) return atomic_row<std::uint16_t, NarrowAdd<true, false>>;
      break;
    case Type::f16x2:
      if (adds) return atomic_row<std::uint32_t, NarrowAdd<false, true>>;
      break;
    case Type::bf16x2:
      if (adds) return atomic_row<std::uint32_t, NarrowAdd<true, true>>;
      break;
    case Type::b16:
      if (operation == Atomic::compare) return atomic_row<std::uint16_t, Integer>;
      break;
    case Type::s32:
      return atomic_row<std::int32_t, Integer>;
    case Type::u32:
    case Type::b32:
      return atomic_row<std::uint32_t, Integer>;
    case Type::s64:
      return atomic_row<std::int64_t, Integer>;
    case Type::u64:
    case Type::b64:
      return atomic_row<std::uint64_t, Integer>;
    default:
      break;
  }
  encoder.fail(fmt::format("an atomic operation of .{} that is not known", ptx::type_name(type)));
}

void decode_atomic(Encoder& encoder) {
  const bool reduction = encoder.source().opcode == "red";
  if (encoder.take_any({"release", "acq_rel"}) >= 0) encoder.out.option |= option_release;
  encoder.take_any({"relaxed", "acquire"});
  encoder.take_any({"cta", "cluster", "gpu", "sys"});
  encoder.out.space = encoder.take_space();
  const auto operation = encoder.take_any({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"});
  if (operation < 0) encoder.fail("an operation is missing");
  encoder.out.mode = static_cast<std::uint8_t>(operation);
  encoder.take("noftz");
  const auto vector = encoder.take_any({"v2", "v4", "v8"});
  const auto type = encoder.take_type();
  const unsigned count = vector < 0 ? 1 : 2U << vector;
  if (count > 4) encoder.fail("a vector of this size is not known");
  encoder.out.count = static_cast<std::uint8_t>(count);
  encoder.out.run = choose(encoder, static_cast<Atomic>(operation), type);
  const std::size_t first = reduction ? 0 : 1;
  encoder.expect_operands(first + 2, first + 3);
  encoder.address(first, 1, encoder.out.stride);
  const auto part = [&](std::size_t index, unsigned i) -> const ptx::Operand& {
    const auto& operand = encoder.operand(index);
    if (operand.kind != ptx::OperandKind::vector) return operand;
    if (operand.parts.size() != count) encoder.fail("another number of elements");
    return operand.parts[i];
  };
  for (unsigned i = 0; i < count; ++i) {
    encoder.out.operand[8 + i] = encoder.row(part(first + 1, i), type);
    if (!reduction && !encoder.is_sink(0)) encoder.out.operand[2 + i] = encoder.row(part(0, i), type);
  }
  if (static_cast<Atomic>(operation) == Atomic::compare) encoder.out.operand[16] = encoder.row(first + 2, type);
}

}  // namespace

void add_atomic_families(FamilyTable& table) {
  table["atom"] = decode_atomic;
  table["red"] = decode_atomic;
}

}  // namespace tigon::emulator
