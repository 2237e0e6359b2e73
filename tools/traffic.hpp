// What an op's kernels ask of memory, counted by the emulated device, and what they need of a multiprocessor, read from
// their machine code; with the first quality bar that both are held to.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "choice.hpp"

namespace tigon::tools {

inline constexpr std::array<const char*, 6> architectures = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"};

// The kernels of one op for one architecture, together.
struct KernelNeeds {
  int kernels = 0;
  int registers = 0;    // the most of any kernel
  int local_bytes = 0;  // of a thread's loads and stores, over all instructions
  int spill_bytes = 0;  // the part of them that the compiler says it spills
};

struct Traffic {
  std::string name, dtype, extents, compiled_extents;
  // Bytes: of the 32-byte sectors that warps ask for; of those that each launch touches, counted once for reading and
  // once for writing; of arguments and results once. Fills by the driver are in both of the first.
  double asked = 0, moved = 0, minimum = 0;
  double wide_share = 0;  // of bytes: in accesses of 16 bytes or more a lane
  std::uint64_t shared_accesses = 0;
  double conflicts = 0;             // passes over the banks of shared memory beyond the fewest, per access
  double exponentials = 0;          // of the hardware, per element of the largest argument or result
  double needed_exponentials = -1;  // -1: not known
  bool rows_read_again = false;     // as the plan says
  bool has_products = false;        // matrix products are the library's, and not counted
  std::array<KernelNeeds, architectures.size()> needs{};  // at compiled_extents
};

struct Bar {
  const char* name;
  bool met;
};
// Bytes moved and bytes asked for, wide share, conflicts, exponentials where the need is known, spills.
std::vector<Bar> bars(const Traffic& traffic);

// Runs the op once on the emulated device. Throws Error{internal} where its checks find a fault.
Traffic count_traffic(const Choice& choice);

// Compiles the ops' kernels for every architecture, on all cores; binaries are kept in the kernel cache.
void read_needs(const std::vector<Choice>& choices, std::vector<Traffic>& all);

}  // namespace tigon::tools
