// Memory accesses of a warp: where each lane's bytes are, whether it may touch them, and what it costs.
#pragma once
#include "runtime/emulator/machine.hpp"

namespace tigon::emulator {

enum class AccessKind : std::uint8_t {
  load,
  store,
  atomic,       // reads and writes
  strong_load,  // volatile, relaxed or acquire: ordered enough not to race with other strong accesses
  strong_store,
  copy_target,  // of an asynchronous copy: a store whose bytes come later
  prefetch,     // no access at all, checked for bounds only
};

using Addresses = std::array<std::uint64_t, lanes_per_warp>;
using Pointers = std::array<std::uint8_t*, lanes_per_warp>;

// The addresses of a load or store: register operand[slot] (of `stride` bytes, 0 for none) plus the immediate.
void compute_addresses(const Warp& warp, const Instruction& instruction, std::size_t slot, Addresses& addresses);

// Checks an access of `bytes` bytes (a power of two) by each of `lanes` and records it in shadow memory and counters.
// The result are the lanes whose access is allowed; `pointers` says where their bytes are. Uninitialized reads and
// races are reported and carried out.
Mask prepare_access(Warp& warp, const Instruction& instruction, ptx::Space space, const Addresses& addresses,
                    Mask lanes, unsigned bytes, AccessKind kind, Pointers& pointers);

// Whether an access with this stamp is ordered before what the warp does now.
bool ordered_before(const Warp& warp, Stamp stamp);

// Fences and synchronizing words.
void fence_device(Warp& warp);
void synchronize_through(Warp& warp, std::uint64_t address, bool acquires, bool releases);

// Makes the bytes of asynchronous copies arrive: those of groups before `first_kept` of each active lane.
void complete_copies(Warp& warp, std::uint32_t groups_kept);

// When all warps of a block have exited: reports accesses of other blocks of the cluster that may come after it.
void check_exit(Block& block);

}  // namespace tigon::emulator
