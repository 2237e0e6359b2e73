// Branches, calls and exits, and how lanes that went separate ways come together again.
#include "runtime/emulator/control.hpp"

#include <cstring>

namespace tigon::emulator {

namespace {
constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

void send(Warp& warp, Mask lanes, std::uint32_t to) {
  for (Mask left = lanes; left != 0; left &= left - 1) {
    warp.lane_pc[static_cast<unsigned>(std::countr_zero(left))] = to;
  }
}
}  // namespace

void branch(Warp& warp, const Instruction& instruction) {
  if (warp.active == warp.group) {
    warp.next = instruction.target;
    return;
  }
  send(warp, warp.active, instruction.target);
  send(warp, warp.group & ~warp.active, warp.pc + 1);
  warp.split = true;
}

void branch_indexed(Warp& warp, const Instruction& instruction) {
  const auto* index = warp.row<std::uint32_t>(instruction.operand[0]);
  send(warp, warp.group, warp.pc + 1 + static_cast<std::uint32_t>(instruction.immediate));
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (index[lane] >= static_cast<std::uint64_t>(instruction.immediate)) {
      warp.launch->fault(warp, Fault::trap, lane, [] { return "a branch table is left"; });
      continue;
    }
    warp.lane_pc[lane] = warp.pc + 1 + index[lane];
  }
  warp.split = true;
}

void leave(Warp& warp, const Instruction&) {
  warp.alive &= ~warp.active;
  send(warp, warp.group & ~warp.active, warp.pc + 1);
  warp.split = true;
}

void give_back(Warp& warp, const Instruction&) {
  send(warp, warp.group & ~warp.active, warp.pc + 1);
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    warp.lane_pc[lane] = warp.returns[lane].back();
    warp.returns[lane].pop_back();
  }
  warp.split = true;
}

void call_function(Warp& warp, const Instruction& instruction) {
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    warp.returns[static_cast<unsigned>(std::countr_zero(left))].push_back(warp.pc + 1);
  }
  branch(warp, instruction);
}

void copy_parameter(Warp& warp, const Instruction& instruction) {
  const auto frame = warp.launch->program->local_bytes;
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    auto* bytes = warp.block->local.data() + (warp.first_thread + lane) * frame;
    std::memcpy(bytes + instruction.operand[0], bytes + instruction.operand[1],
                static_cast<std::size_t>(instruction.immediate));
  }
}

void regroup(Warp& warp) {
  for (;;) {
    const Mask runnable = warp.alive & ~warp.at_barrier & ~warp.at_convergence;
    if (runnable == 0) {
      const Mask waiting = warp.alive & warp.at_convergence;
      if (waiting == 0) {
        warp.group = 0;
        warp.stop = true;
        return;
      }
      // Those that they wait for will not come: the lowest go on and report it.
      std::uint32_t lowest = nowhere;
      for (Mask left = waiting; left != 0; left &= left - 1) {
        lowest = std::min(lowest, warp.lane_pc[static_cast<unsigned>(std::countr_zero(left))]);
      }
      for (Mask left = waiting; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        if (warp.lane_pc[lane] == lowest) warp.at_convergence &= ~(Mask{1} << lane);
      }
      warp.forced = true;
      continue;
    }
    std::uint32_t lowest = nowhere;
    std::uint32_t following = nowhere;
    Mask group = 0;
    for (Mask left = runnable; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      const auto at = warp.lane_pc[lane];
      if (at < lowest) {
        following = lowest;
        lowest = at;
        group = Mask{1} << lane;
      } else if (at == lowest) {
        group |= Mask{1} << lane;
      } else {
        following = std::min(following, at);
      }
    }
    warp.pc = lowest;
    warp.merge = following;
    warp.group = group;
    return;
  }
}

bool converge(Warp& warp, const Instruction& instruction, Mask wanted) {
  Mask here = 0;
  for (Mask left = warp.at_convergence; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (warp.lane_pc[lane] == warp.pc) here |= Mask{1} << lane;
  }
  if (here != 0) {
    warp.at_convergence &= ~here;
    warp.group |= here;
    Mask active = warp.group;
    if (instruction.guard != 0) {
      const Mask guard = warp.predicate(instruction.guard);
      active &= instruction.guard_negated ? ~guard : guard;
    }
    warp.active = active;
  }
  if (!warp.forced && (wanted & warp.alive & ~warp.group) != 0) {
    --warp.launch->executions[instruction.number];
    warp.launch->lane_executions[instruction.number] -= static_cast<unsigned>(std::popcount(warp.active & ~here));
    send(warp, warp.group, warp.pc);
    warp.at_convergence |= warp.group;
    warp.split = true;
    return false;
  }
  if (here != 0) {
    warp.launch->lane_executions[instruction.number] += static_cast<unsigned>(std::popcount(warp.active & here));
  }
  warp.forced = false;
  const Mask absent = wanted & warp.launched & ~warp.active;
  if (absent != 0) {
    warp.launch->fault(warp, Fault::absent_lane, static_cast<unsigned>(std::countr_zero(warp.active)), [&] {
      return fmt::format("mask {:#010x}, present {:#010x}, exited {:#010x}", wanted, warp.active,
                         warp.launched & ~warp.alive);
    });
  }
  return true;
}

std::uint64_t run_warp(Warp& warp, std::uint64_t budget) {
  auto& launch = *warp.launch;
  const auto* code = launch.program->code.data();
  auto* executions = launch.executions.data();
  auto* lane_executions = launch.lane_executions.data();
  warp.stop = false;
  const auto given = budget;
  while (budget != 0) {
    --budget;
    const auto& instruction = code[warp.pc];
    Mask active = warp.group;
    if (instruction.guard != 0) {
      const Mask guard = warp.predicate(instruction.guard);
      active &= instruction.guard_negated ? ~guard : guard;
    }
    warp.active = active;
    warp.next = warp.pc + 1;
    ++executions[warp.pc];
    lane_executions[warp.pc] += static_cast<unsigned>(std::popcount(active));
    if (active != 0) instruction.run(warp, instruction);
    if (warp.split) {
      warp.split = false;
      regroup(warp);
      if (warp.stop || launch.aborted) break;
      continue;
    }
    warp.pc = warp.next;
    if (warp.pc >= warp.merge) {
      send(warp, warp.group, warp.pc);
      regroup(warp);
    }
  }
  return given - budget;
}

}  // namespace tigon::emulator
