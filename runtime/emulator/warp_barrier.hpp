// Barriers of blocks and clusters: who has arrived, and what is ordered once all have.
#pragma once
#include "runtime/emulator/machine.hpp"

namespace tigon::emulator {

// A warp whose living lanes all wait: counts it at its barrier.
void arrive(Warp& warp);

// Orders what the warp did so far before what is done after the barrier's knowledge is acquired.
void release_into(Warp& warp, Barrier& barrier);
void acquire_from(Warp& warp, const Barrier& barrier);

}  // namespace tigon::emulator
