// What a launch did, counted exactly: the same numbers under every schedule.
#include "runtime/emulator/counters.hpp"

#include <numeric>

namespace tigon::emulator {

std::uint64_t Counters::global_bytes() const {
  return std::accumulate(global_loaded.begin(), global_loaded.end(), std::uint64_t{0}) +
         std::accumulate(global_stored.begin(), global_stored.end(), std::uint64_t{0});
}

double Counters::wide_share() const {
  const auto all = global_bytes();
  const auto wide = global_loaded[4] + global_loaded[5] + global_stored[4] + global_stored[5];
  return all == 0 ? 0 : static_cast<double>(wide) / static_cast<double>(all);
}

void Counters::add(const Counters& other) {
  launches += other.launches;
  warp_instructions += other.warp_instructions;
  lane_instructions += other.lane_instructions;
  for (std::size_t i = 0; i < global_loaded.size(); ++i) {
    global_loaded[i] += other.global_loaded[i];
    global_stored[i] += other.global_stored[i];
    shared_loaded[i] += other.shared_loaded[i];
    shared_stored[i] += other.shared_stored[i];
  }
  global_requests += other.global_requests;
  global_sectors += other.global_sectors;
  global_ideal_sectors += other.global_ideal_sectors;
  global_new_sectors += other.global_new_sectors;
  shared_requests += other.shared_requests;
  shared_wavefronts += other.shared_wavefronts;
  shared_ideal_wavefronts += other.shared_ideal_wavefronts;
  atomics += other.atomics;
  barriers += other.barriers;
  for (std::size_t i = 0; i < special_functions.size(); ++i) special_functions[i] += other.special_functions[i];
  for (const auto& [opcode, count] : other.opcodes) opcodes[opcode] += count;
  for (const auto& [line, count] : other.lines) lines[line] += count;
}

}  // namespace tigon::emulator
