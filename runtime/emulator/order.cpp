// What is ordered before what: clocks of warps, and words of global memory through which blocks synchronize.
#include <algorithm>

#include "runtime/emulator/access.hpp"

namespace tigon::emulator {

namespace {

bool covers(const std::vector<std::uint32_t>& clock, Stamp stamp) {
  return stamp.warp() < clock.size() && clock[stamp.warp()] >= stamp.epoch();
}

// Whether what was acquired through synchronizing words includes the stamp, directly or through other blocks.
bool acquired_covers(const Launch& launch, const std::vector<std::uint32_t>& acquired, Stamp stamp,
                     std::vector<std::uint32_t>& seen) {
  seen.resize(launch.sync_words.size());
  for (std::size_t word = 0; word < acquired.size(); ++word) {
    const auto& releases = launch.sync_words[word].second.releases;
    while (seen[word] < acquired[word]) {
      const auto& release = releases[seen[word]++];
      if (release.gang == stamp.gang() && covers(release.clock, stamp)) return true;
      if (acquired_covers(launch, release.acquired, stamp, seen)) return true;
    }
  }
  return false;
}

}  // namespace

bool ordered_before(const Warp& warp, Stamp stamp) {
  if (stamp.gang() == warp.block->gang->number) {
    if (stamp.warp() == warp.index) return stamp.epoch() < warp.epoch;
    if (covers(warp.clock, stamp)) return true;
  }
  if (warp.acquired.empty()) return false;
  std::vector<std::uint32_t> seen;
  return acquired_covers(*warp.launch, warp.acquired, stamp, seen);
}

void fence_device(Warp& warp) {
  warp.fence_clock = warp.clock;
  warp.fence_clock[warp.index] = warp.epoch;
  warp.fence_acquired = warp.acquired;
  ++warp.epoch;
  warp.clock[warp.index] = warp.epoch - 1;
}

void synchronize_through(Warp& warp, std::uint64_t address, bool acquires, bool releases) {
  auto& words = warp.launch->sync_words;
  releases = releases && !warp.fence_clock.empty();
  if (words.empty() && !releases) return;
  std::size_t word = 0;
  while (word < words.size() && words[word].first != address) ++word;
  if (word == words.size()) {
    if (!releases) return;
    words.emplace_back(address, SyncWord{});
  }
  auto& known = words[word].second.releases;
  if (acquires) {
    if (warp.acquired.size() <= word) warp.acquired.resize(word + 1);
    warp.acquired[word] = static_cast<std::uint32_t>(known.size());
  }
  if (releases) known.push_back({warp.block->gang->number, warp.fence_clock, warp.fence_acquired});
}

void check_exit(Block& block) {
  if (!block.touched_remotely) return;
  auto& gang = *block.gang;
  const auto inside = [&](std::uint32_t warp) {
    return warp >= block.first_warp && warp < block.first_warp + block.warp_count;
  };
  const auto safe = [&](Stamp stamp) {
    if (stamp.gang() != gang.number || inside(stamp.warp())) return true;
    for (std::uint32_t w = 0; w < block.warp_count; ++w) {
      if (covers(gang.warps[block.first_warp + w].clock, stamp)) return true;
    }
    return false;
  };
  auto& shadow = block.shadow;
  for (std::size_t i = 0; i < shadow.size(); ++i) {
    const auto& cell = shadow.cells()[i];
    for (const auto stamp : {cell.writer, cell.readers[0], cell.readers[1]}) {
      if (safe(stamp)) continue;
      auto& warp = gang.warps[block.first_warp];
      warp.launch->fault(warp, Fault::block_exited, 0, [&] {
        return fmt::format("block {} of the cluster may exit before warp {} of the cluster touches its byte {}",
                           block.rank, stamp.warp(), i << shadow.shift());
      });
      return;
    }
  }
}

}  // namespace tigon::emulator
