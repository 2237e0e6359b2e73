// Counts what a warp's access costs: sectors of global memory, passes over the banks of shared memory.
#pragma once
#include "runtime/emulator/access.hpp"

namespace tigon::emulator {

void count_global(Counters& counters, const Addresses& addresses, Mask lanes, unsigned bytes, bool reads, bool writes,
                  bool atomic);
void count_shared(Counters& counters, const Addresses& addresses, Mask lanes, unsigned bytes, bool reads, bool writes,
                  bool atomic);

}  // namespace tigon::emulator
