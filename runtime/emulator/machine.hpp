// The state of a launch: its gangs of blocks, their warps, and what they share.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/emulator/counters.hpp"
#include "runtime/emulator/memory.hpp"
#include "runtime/emulator/program.hpp"
#include "runtime/emulator/report.hpp"
#include "runtime/emulator/schedule.hpp"

namespace tigon::emulator {

struct Launch;
struct Gang;
struct Block;

// A copy from global to shared memory that was issued; its bytes arrive when it is waited for, as late as is allowed.
struct PendingCopy {
  std::uint32_t lane = 0;
  std::uint32_t group = 0;
  std::uint64_t shared_offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t source_bytes = 0;  // the rest is filled with zeros
  const std::uint8_t* source = nullptr;
};

struct Warp {
  Launch* launch = nullptr;
  Block* block = nullptr;
  std::uint8_t* arena = nullptr;
  Mask active = 0;  // lanes that execute the current instruction
  Mask group = 0;   // lanes at `pc`, which run together
  Mask alive = 0;   // lanes that exist and did not exit
  Mask at_barrier = 0;
  Mask at_convergence = 0;  // lanes that wait at a warp-wide instruction for those that its mask names
  std::uint32_t pc = 0;
  std::uint32_t next = 0;          // where the group goes after the current instruction
  std::uint32_t merge = 0;         // the lowest pc of runnable lanes outside the group
  bool stop = false;               // nothing can run before others do something
  bool forced = false;             // lanes at a warp-wide instruction go on without those they waited for
  bool split = false;              // the lanes of the group go separate ways: `lane_pc` says where
  std::uint32_t index = 0;         // in the gang
  std::uint32_t first_thread = 0;  // the linear thread number of lane 0 in the block
  Mask launched = 0;               // lanes that exist
  std::uint32_t epoch = 1;
  std::uint32_t barrier = 0;               // of the lanes at_barrier
  std::uint32_t barrier_threads = 0;       // 0: all of the block
  const Instruction* reduction = nullptr;  // the bar.red that the warp waits at
  bool at_cluster_barrier = false;
  std::uint32_t cluster_phase = 0;   // barrier.cluster arrivals of this warp
  std::vector<std::uint32_t> clock;  // by warp of the gang: the last epoch known to be over
  std::array<std::uint32_t, lanes_per_warp> lane_pc{};
  std::array<std::vector<std::uint32_t>, lanes_per_warp> returns;
  std::array<std::uint32_t, lanes_per_warp> copy_group{};  // the asynchronous copies committed so far
  std::vector<PendingCopy> copies;
  std::vector<std::uint32_t> acquired;     // by synchronizing word: how many of its releases are known
  std::vector<std::uint32_t> fence_clock;  // what a device-wide fence made known to others, empty before the first
  std::vector<std::uint32_t> fence_acquired;

  template <class T>
  [[nodiscard]] T* row(std::uint32_t offset) const {
    return reinterpret_cast<T*>(arena + offset);
  }
  [[nodiscard]] Mask predicate(std::uint32_t offset) const { return *reinterpret_cast<const Mask*>(arena + offset); }
  void set_predicate(std::uint32_t offset, Mask value) const {
    auto& mask = *reinterpret_cast<Mask*>(arena + offset);
    mask = (mask & ~active) | (value & active);
  }
  // Writes the active lanes of a row.
  template <class T>
  void put(std::uint32_t offset, const T* values) const {
    T* to = row<T>(offset);
    if (active == all_lanes) {
      for (unsigned lane = 0; lane < lanes_per_warp; ++lane) to[lane] = values[lane];
    } else {
      for (Mask left = active; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        to[lane] = values[lane];
      }
    }
  }
};

struct Barrier {
  std::uint32_t arrived = 0;         // threads
  std::vector<std::uint32_t> clock;  // joined clocks of those that arrived
  std::vector<std::uint32_t> acquired;
  std::uint32_t votes = 0;  // of bar.red: threads whose predicate holds
};

struct Block {
  Gang* gang = nullptr;
  std::uint32_t rank = 0;   // in the cluster
  std::uint64_t index = 0;  // linear in the grid
  std::array<std::uint32_t, 3> position{};
  std::vector<std::uint8_t> shared;
  std::vector<std::uint8_t> shared_state;
  Shadow shadow;
  bool touched_remotely = false;
  bool exited = false;
  std::vector<std::uint8_t> local;
  std::array<Barrier, 16> barriers;
  std::uint32_t first_warp = 0;
  std::uint32_t warp_count = 0;
};

// Blocks that run together: one, or those of a cluster.
struct Gang {
  std::uint64_t number = 0;  // through all launches
  std::vector<Block> blocks;
  std::vector<Warp> warps;
  std::array<Barrier, 2> cluster_barriers;  // by parity of the phase
};

struct Dimensions {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  [[nodiscard]] std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

// A word of global memory through which blocks synchronize: each fence before an atomic access of it is a release.
struct SyncWord {
  struct Release {
    std::uint64_t gang = 0;
    std::vector<std::uint32_t> clock;
    std::vector<std::uint32_t> acquired;
  };
  std::vector<Release> releases;
};

struct Launch {
  const Program* program = nullptr;
  Dimensions grid;
  Dimensions block;
  Dimensions cluster;
  std::uint64_t dynamic_shared = 0;
  std::uint64_t shared_bytes = 0;
  std::uint32_t sm_count = 1;
  std::vector<SharedArray> shared;
  std::vector<std::uint8_t> parameters;
  Schedule schedule;
  DeviceMemory* memory = nullptr;
  Reports* reports = nullptr;
  std::uint64_t first_gang = 0;
  std::vector<std::uint64_t> first_blocks;  // of each gang, in the order in which they started
  Counters counters;
  std::vector<std::uint64_t> executions;  // warps, by instruction
  std::vector<std::uint64_t> lane_executions;
  std::vector<Buffer*> last_buffer;                            // by instruction: where it found its address
  std::vector<std::pair<std::uint64_t, SyncWord>> sync_words;  // by address
  bool aborted = false;
  Fault first_fault = Fault::trap;
  bool any_fault = false;

  // Records a fault of the active lanes at the warp's instruction; `detail` is called for the first of its kind.
  template <class Detail>
  void fault(const Warp& warp, Fault kind, unsigned lane, Detail&& detail) {
    if (Report* report = add_report(warp, kind, lane)) report->detail = detail();
  }
  Report* add_report(const Warp& warp, Fault kind, unsigned lane);
};

}  // namespace tigon::emulator
