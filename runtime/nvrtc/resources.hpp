// What a kernel needs of a multiprocessor and how it touches memory, read from its cubin.
#pragma once
#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace tigon::runtime {

// Instructions by the bytes that a thread moves: 1, 2, 4, 8 and 16.
using InstructionsByWidth = std::array<int, 5>;

struct KernelResources {
  int registers = 0;     // of a thread
  int stack_bytes = 0;   // of a thread: spilled registers and arrays indexed at run time
  int shared_bytes = 0;  // of a block, static; architectures from sm_90 on count 1024 reserved bytes in
  int threads = 0;       // of a block, as __launch_bounds__ says; 0 where it does not
  int barriers = 0;      // of a block
  int instructions = 0;  // without padding
  // Bytes of a thread that spills move and that all accesses to local memory move, added up over the instructions in
  // the text. Which ones are spills is the compiler's own word; without a stack both are 0.
  int spill_stores = 0, spill_loads = 0;
  int local_stores = 0, local_loads = 0;
  InstructionsByWidth global_loads{}, global_stores{};
};

// By kernel. Throws Error{compile} for bytes that are no cubin.
std::map<std::string, KernelResources> cubin_resources(std::span<const std::byte> cubin);

}  // namespace tigon::runtime
