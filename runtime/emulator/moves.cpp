// Moves: mov of registers, addresses and packed vectors, conversions of addresses, and register-only odds and ends.
#include <cstring>

#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/memory.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::OperandKind;
using ptx::Type;

struct Same {
  template <class T>
  static T of(T a) {
    return a;
  }
};

struct Wide {  // 16 bytes
  std::uint64_t low;
  std::uint64_t high;
};

void move_predicate(Warp& warp, const Instruction& instruction) {
  const Mask a = warp.predicate(instruction.operand[1]) ^ ((instruction.negated & 1) != 0 ? all_lanes : 0);
  warp.set_predicate(instruction.operand[0], a);
}

// mov.b64 d, {a, b, …}: `count` parts of `stride` bytes into one of `bytes`.
void pack_row(Warp& warp, const Instruction& instruction) {
  auto* to = warp.arena + instruction.operand[0];
  const unsigned part = instruction.stride;
  alignas(16) std::uint8_t whole[lanes_per_warp * 16];
  for (unsigned i = 0; i < instruction.count; ++i) {
    const auto* from = warp.arena + instruction.operand[1 + i];
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      std::memcpy(whole + std::size_t{lane} * instruction.bytes + std::size_t{i} * part,
                  from + std::size_t{lane} * part, part);
    }
  }
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    std::memcpy(to + std::size_t{lane} * instruction.bytes, whole + std::size_t{lane} * instruction.bytes,
                instruction.bytes);
  }
}

void unpack_row(Warp& warp, const Instruction& instruction) {
  const unsigned part = instruction.stride;
  alignas(16) std::uint8_t whole[lanes_per_warp * 16];
  std::memcpy(whole, warp.arena + instruction.operand[0], std::size_t{lanes_per_warp} * instruction.bytes);
  for (unsigned i = 0; i < instruction.count; ++i) {
    auto* to = warp.arena + instruction.operand[1 + i];
    for (Mask left = warp.active; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      std::memcpy(to + std::size_t{lane} * part, whole + std::size_t{lane} * instruction.bytes + std::size_t{i} * part,
                  part);
    }
  }
}

Type bits_of(unsigned bytes) {
  return bytes == 1 ? Type::b8
                    : (bytes == 2 ? Type::b16 : (bytes == 4 ? Type::b32 : (bytes == 8 ? Type::b64 : Type::b128)));
}

void decode_vector_move(Encoder& encoder, Type type, bool packs) {
  const auto& vector = encoder.operand(packs ? 1 : 0);
  const auto bytes = static_cast<unsigned>(ptx::type_bytes(type));
  const auto count = static_cast<unsigned>(vector.parts.size());
  if (count == 0 || bytes % count != 0 || bytes / count < 2) encoder.fail("a vector of this size is not known");
  encoder.out.bytes = static_cast<std::uint8_t>(bytes);
  encoder.out.count = static_cast<std::uint8_t>(count);
  encoder.out.stride = static_cast<std::uint8_t>(bytes / count);
  encoder.out.operand[0] = encoder.row(packs ? 0 : 1, type);
  for (unsigned i = 0; i < count; ++i) {
    encoder.out.operand[1 + i] = encoder.row(vector.parts[i], bits_of(bytes / count));
  }
  encoder.out.run = packs ? pack_row : unpack_row;
}

// Clocks only have to grow.
void clock_row(Warp& warp, const Instruction& instruction) {
  std::uint64_t now = 0;
  for (const auto count : warp.launch->executions) now += count;
  each_lane<std::uint64_t>(warp, instruction.operand[0], [&](unsigned) { return now; });
}
void short_clock_row(Warp& warp, const Instruction& instruction) {
  std::uint64_t now = 0;
  for (const auto count : warp.launch->executions) now += count;
  each_lane<std::uint32_t>(warp, instruction.operand[0], [&](unsigned) { return static_cast<std::uint32_t>(now); });
}

void decode_move(Encoder& encoder) {
  const auto type = encoder.take_type();
  encoder.expect_operands(2);
  if (type == Type::pred) {
    encoder.out.operand[0] = encoder.predicate(encoder.operand(0));
    encoder.out.operand[1] = encoder.predicate(encoder.operand(1), 0);
    encoder.out.run = move_predicate;
    return;
  }
  if (encoder.operand(0).kind == OperandKind::vector || encoder.operand(1).kind == OperandKind::vector) {
    decode_vector_move(encoder, type, encoder.operand(1).kind == OperandKind::vector);
    return;
  }
  encoder.out.operand[0] = encoder.row(0, type);
  const auto& from = encoder.operand(1);
  if (from.kind == OperandKind::special &&
      (from.symbol.starts_with("%clock") || from.symbol.starts_with("%globaltimer"))) {
    encoder.out.run = ptx::type_bytes(type) == 8 ? clock_row : short_clock_row;
    return;
  }
  encoder.out.operand[1] = encoder.row(1, type);
  switch (ptx::type_bytes(type)) {
    case 2:
      encoder.out.run = unary_row<std::uint16_t, std::uint16_t, Same>;
      break;
    case 4:
      encoder.out.run = unary_row<std::uint32_t, std::uint32_t, Same>;
      break;
    case 8:
      encoder.out.run = unary_row<std::uint64_t, std::uint64_t, Same>;
      break;
    default:
      encoder.out.run = unary_row<Wide, Wide, Same>;
  }
}

// immediate: what is added to an address of the one space to get one of the other.
template <class To, class From>
void convert_address(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<From>(instruction.operand[1]);
  Row<To> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    result.lane[lane] = static_cast<To>(a[lane] + static_cast<std::uint64_t>(instruction.immediate));
  }
  warp.put(instruction.operand[0], result.lane);
}

void decode_convert_address(Encoder& encoder) {
  const bool to_space = encoder.take("to");
  const auto space = encoder.take_space();
  const auto type = encoder.take_type();
  if (type != Type::u64) encoder.fail("only 64-bit addresses are known");
  std::uint64_t window = 0;
  if (space == ptx::Space::shared) window = shared_window;
  if (space == ptx::Space::local) window = local_window;
  encoder.out.immediate = static_cast<std::int64_t>(to_space ? std::uint64_t{0} - window : window);
  encoder.expect_operands(2);
  encoder.out.operand[0] = encoder.row(0, type);
  encoder.out.operand[1] = encoder.row(1, type);
  encoder.out.run = convert_address<std::uint64_t, std::uint64_t>;
}

void is_in_space(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<std::uint64_t>(instruction.operand[1]);
  Mask result = 0;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    const bool shared = a[lane] - shared_window < window_bytes;
    const bool local = a[lane] - local_window < window_bytes;
    const bool param = a[lane] - param_window < window_bytes;
    bool in = false;
    if (instruction.space == ptx::Space::shared) in = shared;
    if (instruction.space == ptx::Space::local) in = local;
    if (instruction.space == ptx::Space::param) in = param;
    if (instruction.space == ptx::Space::global) in = !shared && !local && !param;
    result |= Mask{in} << lane;
  }
  warp.set_predicate(instruction.operand[0], result);
}

void nothing(Warp&, const Instruction&) {}

}  // namespace

void add_move_families(FamilyTable& table) {
  table["mov"] = decode_move;
  table["cvta"] = decode_convert_address;
  table["isspacep"] = [](Encoder& encoder) {
    encoder.out.space = encoder.take_space();
    encoder.out.operand[0] = encoder.predicate(encoder.operand(0));
    encoder.out.operand[1] = encoder.row(1, Type::u64);
    encoder.out.run = is_in_space;
  };
  // Promises to an optimiser.
  const auto hint = [](Encoder& encoder) {
    while (encoder.has("global") || encoder.has("L2") || encoder.has("evict_last") || encoder.has("evict_normal") ||
           encoder.has("level::eviction_priority")) {
      encoder.take_next();
    }
    encoder.out.run = nothing;
  };
  table["applypriority"] = hint;
  table["discard"] = hint;
}

}  // namespace tigon::emulator
