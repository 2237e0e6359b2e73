// cp.async: copies from global to shared memory that arrive when they are waited for.
#include "runtime/emulator/access.hpp"
#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

// operand[0]: the shared address, [1]: the global one, each with its own offset; [2]: the bytes to read, or 0;
// bytes: the size; stride and mode: the sizes of the two address registers; immediate and target: the offsets.
void copy(Warp& warp, const Instruction& instruction) {
  Addresses to;
  Addresses from;
  Pointers targets;
  Pointers sources;
  compute_addresses(warp, instruction, 0, to);
  Instruction source = instruction;
  source.immediate = static_cast<std::int32_t>(instruction.target);
  source.stride = instruction.mode;
  compute_addresses(warp, source, 1, from);
  // A source of no bytes is not read at all; a shorter one is read as far as it goes, and checked for its first byte.
  Mask whole = warp.active;
  const auto* limit = instruction.operand[2] != 0 ? warp.row<std::uint32_t>(instruction.operand[2]) : nullptr;
  Mask partial = 0;
  if (limit != nullptr) {
    for (Mask left = warp.active; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      if (limit[lane] >= instruction.bytes) continue;
      whole &= ~(Mask{1} << lane);
      if (limit[lane] > 0) partial |= Mask{1} << lane;
    }
  }
  Mask readable =
      prepare_access(warp, source, ptx::Space::global, from, whole, instruction.bytes, AccessKind::load, sources);
  // Element by element, so that only what is read has to be there.
  Mask partially = partial;
  for (unsigned offset = 0; offset < instruction.bytes && partial != 0; offset += 2) {
    Mask lanes = 0;
    Addresses at = from;
    Pointers ignored;
    for (Mask left = partially; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      at[lane] += offset;
      if (limit[lane] > offset) lanes |= Mask{1} << lane;
    }
    if (lanes == 0) break;
    const Mask good = prepare_access(warp, source, ptx::Space::global, at, lanes, 2, AccessKind::load, ignored);
    partially &= ~(lanes & ~good);
    for (Mask left = good; left != 0 && offset == 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      sources[lane] = ignored[lane];
    }
  }
  readable |= partially;
  const Mask empty = warp.active & ~whole & ~partial;
  const Mask lanes = prepare_access(warp, instruction, ptx::Space::shared, to, warp.active & (readable | empty),
                                    instruction.bytes, AccessKind::copy_target, targets);
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    PendingCopy pending;
    pending.lane = lane;
    pending.group = warp.copy_group[lane];
    pending.shared_offset = static_cast<std::uint64_t>(targets[lane] - warp.block->shared.data());
    pending.bytes = instruction.bytes;
    pending.source_bytes =
        limit != nullptr ? std::min<std::uint32_t>(limit[lane], instruction.bytes) : instruction.bytes;
    pending.source = sources[lane];
    warp.copies.push_back(pending);
  }
}

void commit(Warp& warp, const Instruction&) {
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    ++warp.copy_group[static_cast<unsigned>(std::countr_zero(left))];
  }
}

void wait_group(Warp& warp, const Instruction& instruction) {
  complete_copies(warp, static_cast<std::uint32_t>(instruction.immediate));
}

void wait_all(Warp& warp, const Instruction& instruction) {
  commit(warp, instruction);
  complete_copies(warp, 0);
}

void decode_copy(Encoder& encoder) {
  if (!encoder.take("async")) encoder.fail("only cp.async is known");
  if (encoder.has("bulk") || encoder.has("mbarrier")) encoder.fail("bulk copies and mbarriers are not known");
  if (encoder.take("commit_group")) {
    encoder.out.run = commit;
    return;
  }
  if (encoder.take("wait_group")) {
    encoder.out.immediate = encoder.operand(0).integer;
    encoder.out.run = wait_group;
    return;
  }
  if (encoder.take("wait_all")) {
    encoder.out.run = wait_all;
    return;
  }
  if (encoder.take_any({"ca", "cg"}) < 0) encoder.fail("ca or cg is missing");
  encoder.take_any({"shared", "shared::cta"});
  encoder.take("global");
  if (encoder.has("L2::cache_hint")) encoder.fail("cache policies of copies are not known");
  encoder.take_any({"L2::64B", "L2::128B", "L2::256B"});
  encoder.expect_operands(3, 4);
  encoder.out.space = ptx::Space::global;
  encoder.address(1, 1, encoder.out.mode);
  const auto offset = encoder.out.immediate;
  if (offset != static_cast<std::int32_t>(offset)) encoder.fail("an offset of more than 31 bits");
  encoder.out.target = static_cast<std::uint32_t>(offset);
  encoder.out.space = ptx::Space::shared;
  encoder.address(0, 0, encoder.out.stride);
  const auto bytes = encoder.operand(2).integer;
  if (bytes != 4 && bytes != 8 && bytes != 16) encoder.fail("4, 8 or 16 bytes are copied");
  encoder.out.bytes = static_cast<std::uint8_t>(bytes);
  if (encoder.size() == 4) encoder.out.operand[2] = encoder.row(3, ptx::Type::u32);
  encoder.out.run = copy;
}

}  // namespace

void add_copy_families(FamilyTable& table) { table["cp"] = decode_copy; }

}  // namespace tigon::emulator
