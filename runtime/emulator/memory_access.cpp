// ld, st and prefetch.
#include <cstring>

#include "runtime/emulator/access.hpp"
#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::OperandKind;

constexpr std::uint8_t option_strong = 1;
constexpr std::uint8_t option_acquire = 2;
constexpr std::uint8_t option_release = 4;

template <class Memory, class Register>
void copy_in(Register* to, const Pointers& from, unsigned offset, Mask lanes) {
  if (lanes == all_lanes) {
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      Memory value;
      std::memcpy(&value, from[lane] + offset, sizeof value);
      to[lane] = static_cast<Register>(value);  // NOLINT(bugprone-signed-char-misuse): bytes with a sign are meant
    }
    return;
  }
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    Memory value;
    std::memcpy(&value, from[lane] + offset, sizeof value);
    to[lane] = static_cast<Register>(value);  // NOLINT(bugprone-signed-char-misuse): bytes with a sign are meant
  }
}

template <class Memory>
void copy_in_extended(Warp& warp, std::uint32_t row, unsigned stride, const Pointers& from, unsigned offset,
                      Mask lanes) {
  // A narrower value is extended by its sign or by zeros, as the type of the template says.
  switch (stride) {
    case 2:
      if constexpr (sizeof(Memory) <= 2) {
        copy_in<Memory>(warp.row<std::conditional_t<std::is_signed_v<Memory>, std::int16_t, std::uint16_t>>(row), from,
                        offset, lanes);
      }
      break;
    case 4:
      if constexpr (sizeof(Memory) <= 4) {
        copy_in<Memory>(warp.row<std::conditional_t<std::is_signed_v<Memory>, std::int32_t, std::uint32_t>>(row), from,
                        offset, lanes);
      }
      break;
    default:
      copy_in<Memory>(warp.row<std::conditional_t<std::is_signed_v<Memory>, std::int64_t, std::uint64_t>>(row), from,
                      offset, lanes);
  }
}

void load_element(Warp& warp, const Instruction& instruction, std::uint32_t row, const Pointers& from, unsigned offset,
                  Mask lanes) {
  const unsigned stride = instruction.mode;
  switch (instruction.bytes) {
    case 1:
      instruction.sign ? copy_in_extended<std::int8_t>(warp, row, stride, from, offset, lanes)
                       : copy_in_extended<std::uint8_t>(warp, row, stride, from, offset, lanes);
      break;
    case 2:
      instruction.sign ? copy_in_extended<std::int16_t>(warp, row, stride, from, offset, lanes)
                       : copy_in_extended<std::uint16_t>(warp, row, stride, from, offset, lanes);
      break;
    case 4:
      instruction.sign ? copy_in_extended<std::int32_t>(warp, row, stride, from, offset, lanes)
                       : copy_in_extended<std::uint32_t>(warp, row, stride, from, offset, lanes);
      break;
    case 8:
      copy_in<std::uint64_t>(warp.row<std::uint64_t>(row), from, offset, lanes);
      break;
    default:
      for (Mask left = lanes; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        std::memcpy(warp.arena + row + std::size_t{lane} * 16, from[lane] + offset, 16);
      }
  }
}

template <class Memory, class Register>
void copy_out(const Register* from, const Pointers& to, unsigned offset, Mask lanes) {
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const auto value = static_cast<Memory>(from[lane]);
    std::memcpy(to[lane] + offset, &value, sizeof value);
  }
}

template <class Memory>
void copy_out_cut(const Warp& warp, std::uint32_t row, unsigned stride, const Pointers& to, unsigned offset,
                  Mask lanes) {
  switch (stride) {
    case 2:
      copy_out<Memory>(warp.row<std::uint16_t>(row), to, offset, lanes);
      break;
    case 4:
      copy_out<Memory>(warp.row<std::uint32_t>(row), to, offset, lanes);
      break;
    default:
      copy_out<Memory>(warp.row<std::uint64_t>(row), to, offset, lanes);
  }
}

void store_element(const Warp& warp, const Instruction& instruction, std::uint32_t row, const Pointers& to,
                   unsigned offset, Mask lanes) {
  const unsigned stride = instruction.mode;
  switch (instruction.bytes) {
    case 1:
      copy_out_cut<std::uint8_t>(warp, row, stride, to, offset, lanes);
      break;
    case 2:
      copy_out_cut<std::uint16_t>(warp, row, stride, to, offset, lanes);
      break;
    case 4:
      copy_out_cut<std::uint32_t>(warp, row, stride, to, offset, lanes);
      break;
    case 8:
      copy_out<std::uint64_t>(warp.row<std::uint64_t>(row), to, offset, lanes);
      break;
    default:
      for (Mask left = lanes; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        std::memcpy(to[lane] + offset, warp.arena + row + std::size_t{lane} * 16, 16);
      }
  }
}

// operand[0]: the address; from operand[1]: the elements, whose registers have `mode` bytes.
void load(Warp& warp, const Instruction& instruction) {
  Addresses addresses;
  Pointers pointers;
  compute_addresses(warp, instruction, 0, addresses);
  const auto kind = (instruction.option & option_strong) != 0 ? AccessKind::strong_load : AccessKind::load;
  const unsigned bytes = unsigned{instruction.bytes} * instruction.count;
  const Mask lanes =
      prepare_access(warp, instruction, instruction.space, addresses, warp.active, bytes, kind, pointers);
  if ((instruction.option & option_strong) != 0) {
    for (Mask left = lanes; left != 0; left &= left - 1) {
      synchronize_through(warp, addresses[static_cast<unsigned>(std::countr_zero(left))], true, false);
    }
  }
  if (lanes == 0) return;
  for (unsigned i = 0; i < instruction.count; ++i) {
    load_element(warp, instruction, instruction.operand[1 + i], pointers, i * instruction.bytes, lanes);
  }
}

void store(Warp& warp, const Instruction& instruction) {
  Addresses addresses;
  Pointers pointers;
  compute_addresses(warp, instruction, 0, addresses);
  if ((instruction.option & option_release) != 0) fence_device(warp);
  const auto kind = (instruction.option & option_strong) != 0 ? AccessKind::strong_store : AccessKind::store;
  const unsigned bytes = unsigned{instruction.bytes} * instruction.count;
  const Mask lanes =
      prepare_access(warp, instruction, instruction.space, addresses, warp.active, bytes, kind, pointers);
  if ((instruction.option & option_strong) != 0) {
    for (Mask left = lanes; left != 0; left &= left - 1) {
      synchronize_through(warp, addresses[static_cast<unsigned>(std::countr_zero(left))], false, true);
    }
  }
  for (unsigned i = 0; i < instruction.count; ++i) {
    store_element(warp, instruction, instruction.operand[1 + i], pointers, i * instruction.bytes, lanes);
  }
}

void prefetch(Warp& warp, const Instruction& instruction) {
  Addresses addresses;
  Pointers pointers;
  compute_addresses(warp, instruction, 0, addresses);
  prepare_access(warp, instruction, instruction.space, addresses, warp.active, 1, AccessKind::prefetch, pointers);
}

void decode_access(Encoder& encoder) {
  const bool is_load = encoder.source().opcode != "st";
  if (encoder.take("volatile") || encoder.take("relaxed") || encoder.take("mmio")) encoder.out.option |= option_strong;
  if (encoder.take("acquire")) encoder.out.option |= option_strong | option_acquire;
  if (encoder.take("release")) encoder.out.option |= option_strong | option_release;
  encoder.take("weak");
  encoder.take_any({"cta", "cluster", "gpu", "sys"});
  encoder.out.space = encoder.take_space();
  encoder.take("nc");
  // Hints for caches change nothing here.
  encoder.take_any({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  encoder.take_any({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
  encoder.take_any({"L2::64B", "L2::128B", "L2::256B"});
  const bool policy = encoder.take("L2::cache_hint");
  const auto vector = encoder.take_any({"v2", "v4", "v8"});
  const auto type = encoder.take_type();
  const unsigned count = vector < 0 ? 1 : 2U << vector;
  encoder.out.bytes = static_cast<std::uint8_t>(ptx::type_bytes(type));
  encoder.out.count = static_cast<std::uint8_t>(count);
  encoder.out.sign = ptx::is_signed(type);
  encoder.expect_operands(2, policy ? 3 : 2);
  if (encoder.out.bytes == 0 || encoder.out.bytes * count > 32) encoder.fail("a vector of this size is not known");
  encoder.address(is_load ? 1 : 0, 0, encoder.out.stride);
  const auto& data = encoder.operand(is_load ? 0 : 1);
  const auto element = [&](unsigned i) -> const ptx::Operand& {
    if (count == 1 && data.kind != OperandKind::vector) return data;
    if (data.kind != OperandKind::vector || data.parts.size() != count) encoder.fail("another number of elements");
    return data.parts[i];
  };
  for (unsigned i = 0; i < count; ++i) {
    std::uint8_t register_bytes = 0;
    encoder.out.operand[1 + i] = encoder.any_row(element(i), encoder.out.bytes, register_bytes);
    if (element(i).kind == OperandKind::sink) continue;
    if (encoder.out.mode != 0 && encoder.out.mode != register_bytes) encoder.fail("elements of several sizes");
    encoder.out.mode = register_bytes;
  }
  if (encoder.out.mode == 0) encoder.out.mode = std::max<std::uint8_t>(encoder.out.bytes, 2);
  encoder.out.run = is_load ? load : store;
}

void decode_prefetch(Encoder& encoder) {
  encoder.out.space = encoder.take_space();
  encoder.take_any({"L1", "L2", "L2::evict_last", "L2::evict_normal"});
  encoder.address(0, 0, encoder.out.stride);
  encoder.out.run = prefetch;
}

}  // namespace

void add_memory_families(FamilyTable& table) {
  table["ld"] = decode_access;
  table["ldu"] = decode_access;
  table["st"] = decode_access;
  table["prefetch"] = decode_prefetch;
  table["prefetchu"] = decode_prefetch;
}

}  // namespace tigon::emulator
