// Barriers of blocks and clusters, fences, and addresses in other blocks' shared memory.
#include <algorithm>

#include "runtime/emulator/access.hpp"
#include "runtime/emulator/control.hpp"
#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/launch.hpp"
#include "runtime/emulator/warp_barrier.hpp"

namespace tigon::emulator {

namespace {

enum class Vote : std::uint8_t { none, count, all, any };

void join(std::vector<std::uint32_t>& into, const std::vector<std::uint32_t>& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

// The active lanes go on behind the barrier once it is complete; the others of the group go on now.
void wait_here(Warp& warp) {
  if (warp.active != warp.alive) {
    const Mask arrived = warp.at_barrier | warp.active;
    // A warp whose parts reach the barrier one after another is reported once, at its first part.
    if (warp.at_barrier == 0) {
      warp.launch->fault(warp, Fault::divergent_barrier, static_cast<unsigned>(std::countr_zero(warp.active)),
                         [&] { return fmt::format("lanes {:#010x} of {:#010x}", arrived, warp.alive); });
    }
  }
  for (Mask left = warp.group; left != 0; left &= left - 1) {
    warp.lane_pc[static_cast<unsigned>(std::countr_zero(left))] = warp.pc + 1;
  }
  warp.at_barrier |= warp.active;
  warp.split = true;
}

// operand[0], [1]: the barrier and the number of threads (0: all); [2]: a predicate; [3]: the result of bar.red.
void block_barrier(Warp& warp, const Instruction& instruction) {
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.active));
  warp.barrier = warp.row<std::uint32_t>(instruction.operand[0])[lane] & 15;
  warp.barrier_threads = instruction.operand[1] == 0 ? 0 : warp.row<std::uint32_t>(instruction.operand[1])[lane];
  warp.reduction = nullptr;
  if (static_cast<Vote>(instruction.mode) != Vote::none) {
    const Mask predicate = warp.predicate(instruction.operand[2]) ^ (instruction.negated != 0 ? all_lanes : 0);
    const auto holds = static_cast<std::uint32_t>(std::popcount(predicate & warp.active));
    auto& barrier = warp.block->barriers[warp.barrier];
    barrier.votes += holds;
    warp.reduction = &instruction;
  }
  wait_here(warp);
}

void block_arrive(Warp& warp, const Instruction& instruction) {
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.active));
  auto& barrier = warp.block->barriers[warp.row<std::uint32_t>(instruction.operand[0])[lane] & 15];
  barrier.arrived += lanes_per_warp;
  release_into(warp, barrier);
}

void cluster_arrive(Warp& warp, const Instruction&) {
  if (warp.active != warp.alive) {
    warp.launch->fault(warp, Fault::divergent_barrier, static_cast<unsigned>(std::countr_zero(warp.active)),
                       [&] { return fmt::format("lanes {:#010x} of {:#010x}", warp.active, warp.alive); });
  }
  ++warp.cluster_phase;
  release_into(warp, warp.block->gang->cluster_barriers[warp.cluster_phase & 1]);
}

void cluster_wait(Warp& warp, const Instruction&) {
  warp.at_cluster_barrier = true;
  wait_here(warp);
}

void fence(Warp& warp, const Instruction&) { fence_device(warp); }
void nothing(Warp&, const Instruction&) {}

void stop_kernel(Warp& warp, const Instruction&) {
  warp.launch->fault(warp, Fault::trap, static_cast<unsigned>(std::countr_zero(warp.active)),
                     [] { return "the kernel executed trap"; });
  warp.launch->aborted = true;
  warp.alive &= ~warp.active;
  warp.split = true;
}

void map_shared(Warp& warp, const Instruction& instruction) {
  const auto* rank = warp.row<std::uint32_t>(instruction.operand[2]);
  if (instruction.bytes == 4) {
    const auto* address = warp.row<std::uint32_t>(instruction.operand[1]);
    std::uint32_t result[lanes_per_warp];
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      result[lane] = (address[lane] & 0xffffff) | ((rank[lane] + 1) & 0xff) << 24;
    }
    warp.put(instruction.operand[0], result);
    return;
  }
  // A generic address of the shared window.
  const auto* address = warp.row<std::uint64_t>(instruction.operand[1]);
  std::uint64_t result[lanes_per_warp];
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    result[lane] = (address[lane] & ~std::uint64_t{0xff000000}) | std::uint64_t{(rank[lane] + 1) & 0xff} << 24;
  }
  warp.put(instruction.operand[0], result);
}

void rank_of_shared(Warp& warp, const Instruction& instruction) {
  std::uint32_t result[lanes_per_warp];
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    const auto address = instruction.bytes == 4 ? warp.row<std::uint32_t>(instruction.operand[1])[lane]
                                                : warp.row<std::uint64_t>(instruction.operand[1])[lane];
    const auto top = static_cast<std::uint32_t>(address >> 24 & 0xff);
    result[lane] = top == 0 ? warp.block->rank : top - 1;
  }
  warp.put(instruction.operand[0], result);
}

void decode_block_barrier(Encoder& encoder) {
  encoder.take("cta");
  encoder.take("aligned");
  if (encoder.take("warp")) encoder.fail("internal: bar.warp is a family of its own");
  if (encoder.take("cluster")) {
    if (encoder.take("arrive")) {
      encoder.take_any({"release", "relaxed"});
      encoder.out.run = cluster_arrive;
    } else if (encoder.take("wait")) {
      encoder.take("acquire");
      encoder.out.run = cluster_wait;
    } else {
      encoder.fail("arrive or wait was expected");
    }
    encoder.take("aligned");
    return;
  }
  std::size_t at = 0;
  if (encoder.take("red")) {
    encoder.out.run = block_barrier;
    const auto operation = encoder.take_any({"popc", "and", "or"});
    if (operation < 0) encoder.fail("an operation is missing");
    encoder.out.mode = static_cast<std::uint8_t>(operation + 1);
    encoder.take_type();
    encoder.out.operand[3] = operation == 0 ? encoder.row(0, ptx::Type::u32) : encoder.predicate(encoder.operand(0));
    at = 1;
  } else if (encoder.take("arrive")) {
    encoder.out.run = block_arrive;
  } else if (encoder.take("sync")) {
    encoder.out.run = block_barrier;
  } else {
    encoder.fail("sync, red or arrive was expected");
  }
  encoder.take("aligned");
  encoder.out.operand[0] = encoder.row(at, ptx::Type::u32);
  const auto last = encoder.size() - (encoder.out.mode != 0 ? 1 : 0);
  if (last > at + 1) encoder.out.operand[1] = encoder.row(at + 1, ptx::Type::u32);
  if (encoder.out.mode != 0) encoder.out.operand[2] = encoder.predicate(encoder.operand(last), 0);
}

void decode_fence(Encoder& encoder) {
  if (encoder.take("proxy")) {
    encoder.take_any({"async", "alias", "tensormap::generic"});
    encoder.take_space();
    encoder.out.run = nothing;
    return;
  }
  encoder.take_any({"sc", "acq_rel", "acquire", "release"});
  if (encoder.take_any({"cta", "cluster", "gl", "gpu", "sys"}) < 0) encoder.fail("a scope is missing");
  encoder.out.run = fence;
}

void decode_map(Encoder& encoder) {
  encoder.take_space();
  const auto type = encoder.take_type();
  encoder.out.bytes = static_cast<std::uint8_t>(ptx::type_bytes(type));
  encoder.out.operand[0] = encoder.row(0, type);
  encoder.out.operand[1] = encoder.row(1, type);
  encoder.out.operand[2] = encoder.row(2, ptx::Type::u32);
  encoder.out.run = map_shared;
}

void decode_rank(Encoder& encoder) {
  encoder.take_space();
  const auto type = encoder.take_type();
  encoder.out.bytes = static_cast<std::uint8_t>(ptx::type_bytes(type));
  encoder.out.operand[0] = encoder.row(0, ptx::Type::u32);
  encoder.out.operand[1] = encoder.row(1, type);
  encoder.out.run = rank_of_shared;
}

void wake(Warp& warp, const Barrier& barrier, std::uint32_t votes, std::uint32_t voters) {
  acquire_from(warp, barrier);
  if (warp.reduction != nullptr) {
    const auto& instruction = *warp.reduction;
    warp.active = warp.at_barrier;
    const auto vote = static_cast<Vote>(instruction.mode);
    if (vote == Vote::count) {
      std::uint32_t result[lanes_per_warp];
      std::fill_n(result, lanes_per_warp, votes);
      warp.put(instruction.operand[3], result);
    } else {
      const bool holds = vote == Vote::any ? votes != 0 : votes == voters;
      warp.set_predicate(instruction.operand[3], holds ? all_lanes : 0);
    }
    warp.reduction = nullptr;
  }
  warp.at_barrier = 0;
  warp.at_cluster_barrier = false;
  warp.stop = false;
  regroup(warp);
}

bool waits_at(const Warp& warp, std::uint32_t barrier) {
  return warp.alive != 0 && warp.stop && !warp.at_cluster_barrier && warp.barrier == barrier;
}

bool release_block(Gang& gang, Block& block) {
  bool any = false;
  const auto first = gang.warps.begin() + block.first_warp;
  const auto last = first + block.warp_count;
  for (auto warp = first; warp != last; ++warp) {
    if (warp->alive == 0 || !warp->stop || warp->at_cluster_barrier) continue;
    const auto number = warp->barrier;
    auto& barrier = block.barriers[number];
    const bool complete =
        warp->barrier_threads != 0
            ? barrier.arrived >= warp->barrier_threads
            : std::all_of(first, last, [&](const Warp& other) { return other.alive == 0 || waits_at(other, number); });
    if (!complete) continue;
    std::uint32_t voters = 0;
    for (auto other = first; other != last; ++other) {
      if (waits_at(*other, number)) voters += static_cast<std::uint32_t>(std::popcount(other->at_barrier));
    }
    const auto done = std::move(barrier);
    barrier = {};
    for (auto other = first; other != last; ++other) {
      if (waits_at(*other, number)) wake(*other, done, done.votes, voters);
    }
    any = true;
  }
  return any;
}

}  // namespace

void release_into(Warp& warp, Barrier& barrier) {
  join(barrier.clock, warp.clock);
  barrier.clock[warp.index] = std::max(barrier.clock[warp.index], warp.epoch);
  join(barrier.acquired, warp.acquired);
  warp.clock[warp.index] = warp.epoch;
  ++warp.epoch;
}

void acquire_from(Warp& warp, const Barrier& barrier) {
  join(warp.clock, barrier.clock);
  join(warp.acquired, barrier.acquired);
}

void arrive(Warp& warp) {
  ++warp.launch->counters.barriers;
  if (warp.at_cluster_barrier) return;
  auto& barrier = warp.block->barriers[warp.barrier];
  barrier.arrived += lanes_per_warp;
  release_into(warp, barrier);
}

bool release_barriers(Gang& gang) {
  bool any = false;
  for (auto& block : gang.blocks) any |= release_block(gang, block);
  for (auto& warp : gang.warps) {
    if (warp.alive == 0 || !warp.stop || !warp.at_cluster_barrier) continue;
    const bool complete = std::all_of(gang.warps.begin(), gang.warps.end(), [&](const Warp& other) {
      return other.alive == 0 || other.cluster_phase >= warp.cluster_phase;
    });
    if (!complete) continue;
    wake(warp, gang.cluster_barriers[warp.cluster_phase & 1], 0, 0);
    any = true;
  }
  return any;
}

void add_barrier_families(FamilyTable& table) {
  table["barrier"] = decode_block_barrier;
  table["membar"] = decode_fence;
  table["fence"] = decode_fence;
  table["mapa"] = decode_map;
  table["getctarank"] = decode_rank;
  table["trap"] = [](Encoder& encoder) { encoder.out.run = stop_kernel; };
  table["nanosleep"] = [](Encoder& encoder) {
    encoder.take_type();
    encoder.out.run = nothing;
  };
  table["griddepcontrol"] = [](Encoder& encoder) {
    encoder.take_any({"wait", "launch_dependents"});
    encoder.out.run = nothing;
  };
}

void decode_barrier(Encoder& encoder) { decode_block_barrier(encoder); }

}  // namespace tigon::emulator
