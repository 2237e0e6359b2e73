// Counts what a warp's access costs: sectors of global memory, passes over the banks of shared memory.
#include "runtime/emulator/traffic.hpp"

#include <algorithm>

namespace tigon::emulator {

namespace {

void count_bytes(BytesByWidth& loaded, BytesByWidth& stored, Mask lanes, unsigned bytes, bool reads, bool writes) {
  const auto width = static_cast<unsigned>(std::countr_zero(bytes));
  const auto moved = static_cast<std::uint64_t>(std::popcount(lanes)) * bytes;
  if (reads) loaded[width] += moved;
  if (writes) stored[width] += moved;
}

bool side_by_side(const Addresses& addresses, unsigned bytes) {
  bool same = true;
  for (unsigned lane = 1; lane < lanes_per_warp; ++lane) same &= addresses[lane] == addresses[lane - 1] + bytes;
  return same;
}

// The distinct addresses of the lanes, in order. Aligned accesses of one size are equal or do not overlap.
unsigned distinct(const Addresses& addresses, Mask lanes, Addresses& sorted) {
  unsigned count = 0;
  bool ordered = true;
  for (Mask left = lanes; left != 0; left &= left - 1) {
    sorted[count] = addresses[static_cast<unsigned>(std::countr_zero(left))];
    ordered &= count == 0 || sorted[count] >= sorted[count - 1];
    ++count;
  }
  if (!ordered) std::sort(sorted.begin(), sorted.begin() + count);
  return static_cast<unsigned>(std::unique(sorted.begin(), sorted.begin() + count) - sorted.begin());
}

}  // namespace

void count_global(Counters& counters, const Addresses& addresses, Mask lanes, unsigned bytes, bool reads, bool writes,
                  bool atomic) {
  if (lanes == 0) return;
  ++counters.global_requests;
  if (atomic) counters.atomics += static_cast<unsigned>(std::popcount(lanes));
  count_bytes(counters.global_loaded, counters.global_stored, lanes, bytes, reads, writes);
  if (lanes == all_lanes && side_by_side(addresses, bytes)) {
    const auto last = addresses[0] + std::uint64_t{bytes} * lanes_per_warp - 1;
    counters.global_sectors += (last >> 5) - (addresses[0] >> 5) + 1;
    counters.global_ideal_sectors += bytes;
    return;
  }
  Addresses sorted;
  const auto count = distinct(addresses, lanes, sorted);
  std::uint64_t sectors = 0;
  auto last = std::numeric_limits<std::uint64_t>::max();
  for (unsigned i = 0; i < count; ++i) {
    const auto sector = sorted[i] >> 5;  // an aligned access of at most 32 bytes lies in one
    sectors += sector != last;
    last = sector;
  }
  counters.global_sectors += sectors;
  counters.global_ideal_sectors += (std::uint64_t{count} * bytes + 31) / 32;
}

void count_shared(Counters& counters, const Addresses& addresses, Mask lanes, unsigned bytes, bool reads, bool writes,
                  bool atomic) {
  if (lanes == 0) return;
  ++counters.shared_requests;
  if (atomic) counters.atomics += static_cast<unsigned>(std::popcount(lanes));
  count_bytes(counters.shared_loaded, counters.shared_stored, lanes, bytes, reads, writes);
  // Accesses of 8 and 16 bytes are served in groups of 16 and 8 lanes, each of which can use all 32 banks.
  const unsigned group = bytes <= 4 ? 32 : (bytes == 8 ? 16 : 8);
  if (lanes == all_lanes && bytes >= 4 && side_by_side(addresses, bytes)) {
    counters.shared_wavefronts += lanes_per_warp / group;
    counters.shared_ideal_wavefronts += lanes_per_warp / group;
    return;
  }
  for (unsigned begin = 0; begin < lanes_per_warp; begin += group) {
    const Mask part = lanes & (group == 32 ? all_lanes : ((Mask{1} << group) - 1) << begin);
    if (part == 0) continue;
    Addresses words;
    unsigned count = 0;
    for (Mask left = part; left != 0; left &= left - 1) {
      const auto address = addresses[static_cast<unsigned>(std::countr_zero(left))];
      for (unsigned at = 0; at < bytes; at += 4) words[count++] = (address + at) >> 2;
    }
    std::sort(words.begin(), words.begin() + count);
    count = static_cast<unsigned>(std::unique(words.begin(), words.begin() + count) - words.begin());
    std::array<std::uint8_t, 32> load{};
    std::uint8_t most = 0;
    for (unsigned i = 0; i < count; ++i) most = std::max(most, ++load[words[i] & 31]);
    counters.shared_wavefronts += most;
    counters.shared_ideal_wavefronts += 1;
  }
}

}  // namespace tigon::emulator
