// How a run on the emulated device is made: order of warps, limits on memory, where buffers start.
#pragma once
#include "runtime/emulator/schedule.hpp"

namespace tigon::testing {

struct RunClass {
  emulator::Schedule schedule{};
  double memory_budget = 0;  // bytes; 0: no limit
  bool unfused = false;
  int shift = 0;  // elements by which every buffer's start is off its alignment
};

}  // namespace tigon::testing
