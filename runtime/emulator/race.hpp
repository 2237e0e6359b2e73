// The rules of races: two accesses of which one writes, by different threads, must be ordered.
#pragma once
#include "runtime/emulator/access.hpp"

namespace tigon::emulator {

class RaceCheck {
 public:
  // What happened before `oldest_gang` is over: the launch's first gang for global memory, its own for shared memory.
  RaceCheck(const Warp& warp, AccessKind kind, std::uint64_t oldest_gang)
      : warp_(warp),
        floor_(Stamp::floor(oldest_gang)),
        gang_(warp.block->gang->number),
        strong_(kind == AccessKind::atomic || kind == AccessKind::strong_load || kind == AccessKind::strong_store) {}

  [[nodiscard]] Stamp stamp(unsigned lane) const { return {gang_, warp_.index, warp_.epoch, lane, strong_}; }

  // Each returns the stamp that the access races with, or an empty one, and records the access.
  Stamp read(Cell& cell, Stamp me) const {
    Stamp conflict;
    if (unordered(cell.writer, me)) conflict = cell.writer;
    for (auto& reader : cell.readers) {
      if (reader.same_warp_and_epoch(me)) {
        if (reader.lane() != me.lane()) reader.add_lane(strong_);
        return conflict;
      }
    }
    for (auto& reader : cell.readers) {
      if (reader.before(floor_) || ordered_before(warp_, reader)) {
        reader = me;
        return conflict;
      }
    }
    return conflict;  // two readers that are not ordered are remembered, which finds most races with a third
  }

  Stamp write(Cell& cell, Stamp me, bool& after_read) const {
    Stamp conflict;
    after_read = false;
    if (unordered(cell.writer, me)) {
      conflict = cell.writer;
    } else {
      for (const auto& reader : cell.readers) {
        if (!unordered(reader, me)) continue;
        conflict = reader;
        after_read = true;
        break;
      }
    }
    cell.writer = me;
    cell.readers[0] = {};
    cell.readers[1] = {};
    return conflict;
  }

 private:
  [[nodiscard]] bool unordered(Stamp other, Stamp me) const {
    return !other.before(floor_) && !other.same_thread(me) && !(other.strong() && strong_) &&
           !ordered_before(warp_, other);
  }

  const Warp& warp_;
  Stamp floor_;
  std::uint64_t gang_;
  bool strong_;
};

}  // namespace tigon::emulator
