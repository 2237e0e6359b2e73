// What a launch did, counted exactly: the same numbers under every schedule.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "runtime/emulator/program.hpp"

namespace tigon::emulator {

// Accesses of one kind by the bytes that a lane moves: index 0 to 5 for 1, 2, 4, 8, 16 and 32 bytes.
using BytesByWidth = std::array<std::uint64_t, 6>;

struct Counters {
  std::uint64_t launches = 0;
  std::uint64_t warp_instructions = 0;
  std::uint64_t lane_instructions = 0;
  BytesByWidth global_loaded{};
  BytesByWidth global_stored{};
  BytesByWidth shared_loaded{};
  BytesByWidth shared_stored{};
  std::uint64_t global_requests = 0;       // warp instructions that touch global memory
  std::uint64_t global_sectors = 0;        // distinct 32-byte segments, per warp instruction
  std::uint64_t global_ideal_sectors = 0;  // distinct bytes / 32, rounded up, per warp instruction
  std::uint64_t global_new_sectors = 0;    // each that a launch reads once, and each that it writes once
  std::uint64_t shared_requests = 0;
  std::uint64_t shared_wavefronts = 0;  // passes over the 32 banks
  std::uint64_t shared_ideal_wavefronts = 0;
  std::uint64_t atomics = 0;                                              // lanes
  std::uint64_t barriers = 0;                                             // warps that waited at one
  std::array<std::uint64_t, special_function_count> special_functions{};  // lanes, by SpecialFunction
  std::map<std::string, std::uint64_t> opcodes;                           // warp instructions
  std::map<std::uint32_t, std::uint64_t> lines;  // warp instructions by the kernel's CUDA line, when the PTX has .loc

  [[nodiscard]] std::uint64_t global_bytes() const;
  // Share of global bytes that move 16 or more bytes per lane.
  [[nodiscard]] double wide_share() const;
  void add(const Counters& other);
};

}  // namespace tigon::emulator
