// Runs a kernel: makes its blocks and warps, and lets them run in the order that the schedule says.
#pragma once
#include "runtime/emulator/machine.hpp"

namespace tigon::emulator {

struct LaunchShape {
  Dimensions grid;
  Dimensions block;
  Dimensions cluster;
  std::uint64_t dynamic_shared = 0;
};

struct LaunchResult {
  bool failed = false;  // at least one report
  Fault first_fault = Fault::trap;
  Counters counters;
};

// `parameters` holds the kernel's parameter bytes as Program::parameters lays them out; `gangs` is the number of gangs
// run so far in this memory, which the launch advances.
LaunchResult run_launch(const Program& program, const LaunchShape& shape, std::vector<std::uint8_t> parameters,
                        DeviceMemory& memory, Reports& reports, const Schedule& schedule, std::uint32_t sm_count,
                        std::uint64_t& gangs);

// Wakes what waits at barriers that are complete; true if any warp was woken.
bool release_barriers(Gang& gang);

}  // namespace tigon::emulator
