// Instructions of a whole warp: shuffles, votes, matches, reductions, and the warp's own barrier.
#include <bit>

#include "runtime/emulator/control.hpp"
#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::Type;

// The lanes that the active lanes' masks name; every active lane should name itself.
Mask named(const Warp& warp, std::uint32_t masks) {
  Mask result = 0;
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    result |= warp.row<Mask>(masks)[static_cast<unsigned>(std::countr_zero(left))];
  }
  return result;
}

// Runs `function(mask, lanes)` for each set of active lanes that name the same mask.
template <class Function>
void each_mask(const Warp& warp, std::uint32_t masks, const Function& function) {
  const auto* mask = warp.row<Mask>(masks);
  for (Mask left = warp.active; left != 0;) {
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    Mask lanes = 0;
    for (unsigned lane = first; lane < lanes_per_warp; ++lane) lanes |= Mask{mask[lane] == mask[first]} << lane;
    lanes &= left;
    function(mask[first], lanes);
    left &= ~lanes;
  }
}

enum class Shuffle : std::uint8_t { up, down, butterfly, index };

// operand: d, p or 0, a, b (lane or distance), c (clamp and segment), mask
void shuffle(Warp& warp, const Instruction& instruction) {
  if (!converge(warp, instruction, named(warp, instruction.operand[5]))) return;
  const auto* a = warp.row<std::uint32_t>(instruction.operand[2]);
  const auto* b = warp.row<std::uint32_t>(instruction.operand[3]);
  const auto* c = warp.row<std::uint32_t>(instruction.operand[4]);
  Row<std::uint32_t> result;
  Mask inside = 0;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    const int distance = static_cast<int>(b[lane] & 31);
    const int clamp = static_cast<int>(c[lane] & 31);
    const int segment = static_cast<int>(c[lane] >> 8 & 31);
    const int self = static_cast<int>(lane);
    const int highest = (self & segment) | (clamp & ~segment);
    const int lowest = self & segment;
    int from = self;
    bool valid = false;
    switch (static_cast<Shuffle>(instruction.mode)) {
      case Shuffle::up:
        from = self - distance;
        valid = from >= highest;
        break;
      case Shuffle::down:
        from = self + distance;
        valid = from <= highest;
        break;
      case Shuffle::butterfly:
        from = self ^ distance;
        valid = from <= highest;
        break;
      case Shuffle::index:
        from = lowest | (distance & ~segment);
        valid = from <= highest;
        break;
    }
    if (!valid) from = self;
    result.lane[lane] = a[from & 31];
    inside |= Mask{valid} << lane;
    const bool reads_absent = (warp.active >> lane & 1) != 0 && (warp.active >> (from & 31) & 1) == 0;
    if (reads_absent) {
      warp.launch->fault(warp, Fault::absent_lane, lane,
                         [&] { return fmt::format("lane {} reads lane {}, which does not take part", lane, from); });
    }
  }
  warp.put(instruction.operand[0], result.lane);
  if (instruction.operand[1] != 0) warp.set_predicate(instruction.operand[1], inside);
}

void decode_shuffle(Encoder& encoder) {
  if (!encoder.take("sync")) encoder.fail("shfl without .sync does not exist any more");
  const auto mode = encoder.take_any({"up", "down", "bfly", "idx"});
  if (mode < 0) encoder.fail("a mode is missing");
  encoder.take_type();
  encoder.expect_operands(5);
  encoder.out.mode = static_cast<std::uint8_t>(mode);
  encoder.out.operand[0] = encoder.row(0, Type::b32);
  encoder.out.operand[1] = encoder.second_predicate(0);
  for (std::size_t i = 0; i < 4; ++i) encoder.out.operand[2 + i] = encoder.row(1 + i, Type::b32);
  encoder.out.run = shuffle;
}

enum class Vote : std::uint8_t { all, any, uniform, ballot };

void vote(Warp& warp, const Instruction& instruction) {
  if (!converge(warp, instruction, named(warp, instruction.operand[2]))) return;
  const Mask predicate = warp.predicate(instruction.operand[1]) ^ ((instruction.negated & 1) != 0 ? all_lanes : 0);
  Row<std::uint32_t> ballots{};
  Mask truth = 0;
  each_mask(warp, instruction.operand[2], [&](Mask mask, Mask lanes) {
    const Mask present = mask & warp.active;
    const Mask yes = predicate & present;
    bool holds = false;
    switch (static_cast<Vote>(instruction.mode)) {
      case Vote::all:
        holds = yes == present;
        break;
      case Vote::any:
        holds = yes != 0;
        break;
      case Vote::uniform:
        holds = yes == 0 || yes == present;
        break;
      case Vote::ballot:
        break;
    }
    if (holds) truth |= lanes;
    for (Mask left = lanes; left != 0; left &= left - 1) {
      ballots.lane[static_cast<unsigned>(std::countr_zero(left))] = yes;
    }
  });
  if (static_cast<Vote>(instruction.mode) == Vote::ballot) {
    warp.put(instruction.operand[0], ballots.lane);
  } else {
    warp.set_predicate(instruction.operand[0], truth);
  }
}

void decode_vote(Encoder& encoder) {
  if (!encoder.take("sync")) encoder.fail("vote without .sync does not exist any more");
  const auto mode = encoder.take_any({"all", "any", "uni", "ballot"});
  if (mode < 0) encoder.fail("a mode is missing");
  encoder.take_type();
  encoder.expect_operands(3);
  encoder.out.mode = static_cast<std::uint8_t>(mode);
  encoder.out.operand[0] =
      static_cast<Vote>(mode) == Vote::ballot ? encoder.row(0, Type::b32) : encoder.predicate(encoder.operand(0));
  encoder.out.operand[1] = encoder.predicate(encoder.operand(1), 0);
  encoder.out.operand[2] = encoder.row(2, Type::b32);
  encoder.out.run = vote;
}

template <class T, bool All>
void match(Warp& warp, const Instruction& instruction) {
  if (!converge(warp, instruction, named(warp, instruction.operand[3]))) return;
  const auto* a = warp.row<T>(instruction.operand[2]);
  const auto* mask = warp.row<Mask>(instruction.operand[3]);
  Mask truth = 0;
  Row<std::uint32_t> result{};
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    Mask equal = 0;
    for (unsigned other = 0; other < lanes_per_warp; ++other) equal |= Mask{a[other] == a[lane]} << other;
    const Mask present = mask[lane] & warp.active;
    equal &= present;
    const bool all = equal == present;
    if (all) truth |= Mask{1} << lane;
    result.lane[lane] = All ? (all ? present : 0) : equal;
  }
  warp.put(instruction.operand[0], result.lane);
  if (instruction.operand[1] != 0) warp.set_predicate(instruction.operand[1], truth);
}

void decode_match(Encoder& encoder) {
  const bool all = encoder.take("all");
  if (!all && !encoder.take("any")) encoder.fail("any or all is missing");
  encoder.take("sync");
  const auto type = encoder.take_type();
  encoder.expect_operands(3);
  encoder.out.operand[0] = encoder.row(0, Type::b32);
  encoder.out.operand[1] = encoder.second_predicate(0);
  encoder.out.operand[2] = encoder.row(1, type);
  encoder.out.operand[3] = encoder.row(2, Type::b32);
  if (ptx::type_bytes(type) == 8) {
    encoder.out.run = all ? match<std::uint64_t, true> : match<std::uint64_t, false>;
  } else {
    encoder.out.run = all ? match<std::uint32_t, true> : match<std::uint32_t, false>;
  }
}

enum class Reduction : std::uint8_t { add, minimum, maximum, conjunction, disjunction, exclusive };

void reduce(Warp& warp, const Instruction& instruction) {
  if (!converge(warp, instruction, named(warp, instruction.operand[2]))) return;
  const auto* a = warp.row<std::uint32_t>(instruction.operand[1]);
  Row<std::uint32_t> result{};
  const auto smaller = [&](std::uint32_t x, std::uint32_t y) {
    return instruction.sign ? static_cast<std::int32_t>(x) < static_cast<std::int32_t>(y) : x < y;
  };
  each_mask(warp, instruction.operand[2], [&](Mask mask, Mask lanes) {
    const Mask present = mask & warp.active;
    bool first = true;
    std::uint32_t value = 0;
    for (Mask left = present; left != 0; left &= left - 1) {
      const auto x = a[static_cast<unsigned>(std::countr_zero(left))];
      if (first) {
        value = x;
        first = false;
        continue;
      }
      switch (static_cast<Reduction>(instruction.mode)) {
        case Reduction::add:
          value += x;
          break;
        case Reduction::minimum:
          value = smaller(x, value) ? x : value;
          break;
        case Reduction::maximum:
          value = smaller(value, x) ? x : value;
          break;
        case Reduction::conjunction:
          value &= x;
          break;
        case Reduction::disjunction:
          value |= x;
          break;
        case Reduction::exclusive:
          value ^= x;
          break;
      }
    }
    for (Mask left = lanes; left != 0; left &= left - 1) {
      result.lane[static_cast<unsigned>(std::countr_zero(left))] = value;
    }
  });
  warp.put(instruction.operand[0], result.lane);
}

void decode_reduce(Encoder& encoder) {
  encoder.take("sync");
  const auto mode = encoder.take_any({"add", "min", "max", "and", "or", "xor"});
  if (mode < 0) encoder.fail("an operation is missing");
  const auto type = encoder.take_type();
  if (ptx::is_float(type)) encoder.fail("redux of floats is not known");
  encoder.expect_operands(3);
  encoder.out.mode = static_cast<std::uint8_t>(mode);
  encoder.out.sign = ptx::is_signed(type);
  encoder.out.operand[0] = encoder.row(0, type);
  encoder.out.operand[1] = encoder.row(1, type);
  encoder.out.operand[2] = encoder.row(2, Type::b32);
  encoder.out.run = reduce;
}

void active_mask(Warp& warp, const Instruction& instruction) {
  Row<std::uint32_t> result;
  for (auto& value : result.lane) value = warp.active;
  warp.put(instruction.operand[0], result.lane);
}

// elect.sync d|p, mask: the lowest lane of the mask is elected.
void elect(Warp& warp, const Instruction& instruction) {
  if (!converge(warp, instruction, named(warp, instruction.operand[2]))) return;
  const auto leader = static_cast<unsigned>(std::countr_zero(warp.active));
  Row<std::uint32_t> result;
  for (auto& value : result.lane) value = leader;
  if (instruction.operand[0] != 0) warp.put(instruction.operand[0], result.lane);
  warp.set_predicate(instruction.operand[1], Mask{1} << leader);
}

// Lanes are ordered by this barrier when all that are alive take part; for fewer nothing is assumed.
void synchronize_warp(Warp& warp, const Instruction& instruction) {
  const Mask wanted = named(warp, instruction.operand[0]);
  if (!converge(warp, instruction, wanted)) return;
  if ((warp.alive & ~warp.active) != 0) return;
  warp.clock[warp.index] = warp.epoch;
  ++warp.epoch;
}

}  // namespace

void add_warp_families(FamilyTable& table) {
  table["shfl"] = decode_shuffle;
  table["vote"] = decode_vote;
  table["match"] = decode_match;
  table["redux"] = decode_reduce;
  table["activemask"] = [](Encoder& encoder) {
    encoder.take_type();
    encoder.out.operand[0] = encoder.row(0, Type::b32);
    encoder.out.run = active_mask;
  };
  table["elect"] = [](Encoder& encoder) {
    encoder.take("sync");
    encoder.expect_operands(2);
    encoder.out.operand[0] = encoder.is_sink(0) ? 0 : encoder.row(0, Type::b32);
    encoder.out.operand[1] = encoder.second_predicate(0);
    encoder.out.operand[2] = encoder.row(1, Type::b32);
    encoder.out.run = elect;
  };
  table["bar"] = [](Encoder& encoder) {
    if (!encoder.take("warp")) {
      decode_barrier(encoder);
      return;
    }
    if (!encoder.take("sync")) encoder.fail("sync is missing");
    encoder.expect_operands(1);
    encoder.out.operand[0] = encoder.row(0, Type::b32);
    encoder.out.run = synchronize_warp;
  };
}

}  // namespace tigon::emulator
