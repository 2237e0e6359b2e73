// Memory accesses of a warp: where each lane's bytes are, whether it may touch them, and what it costs.
#include "runtime/emulator/access.hpp"

#include <cstring>

#include "runtime/emulator/race.hpp"
#include "runtime/emulator/traffic.hpp"

namespace tigon::emulator {

namespace {

using ptx::Space;

bool writes(AccessKind kind) {
  return kind == AccessKind::store || kind == AccessKind::atomic || kind == AccessKind::strong_store ||
         kind == AccessKind::copy_target;
}
bool reads(AccessKind kind) {
  return kind == AccessKind::load || kind == AccessKind::atomic || kind == AccessKind::strong_load;
}

// The memory that some lanes access: a buffer, or the shared memory of a block.
struct Region {
  std::uint8_t* data;
  std::uint8_t* state;
  Shadow* shadow;
  std::string_view space;  // printed before the name
  std::string_view name;
  std::uint64_t origin = 0;  // where what is named begins in the region
};

std::string describe_thread(const Warp& warp, Stamp stamp) {
  const auto& launch = *warp.launch;
  const auto warps_per_block = warp.block->warp_count;
  const auto block = launch.first_blocks[stamp.gang() - launch.first_gang] + stamp.warp() / warps_per_block;
  return fmt::format("thread {} of block {}{}", stamp.warp() % warps_per_block * lanes_per_warp + stamp.lane(), block,
                     stamp.several_lanes() ? " and others of its warp" : "");
}

class Accessor {
 public:
  Accessor(Warp& warp, AccessKind kind, unsigned bytes, std::uint64_t oldest_gang)
      : warp_(warp), kind_(kind), bytes_(bytes), race_(warp, kind, oldest_gang) {}

  // All of `lanes` lie inside the region and are aligned; offsets are into the region.
  void touch(const Region& region, const Addresses& offset, Mask lanes, Pointers& pointers) {
    for (Mask left = lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      pointers[lane] = region.data + offset[lane];
    }
    if (kind_ == AccessKind::prefetch) return;
    check_state(region, offset, lanes);
    check_races(region, offset, lanes);
  }

 private:
  // One range instead of 32 when the lanes lie side by side.
  static bool contiguous(const Addresses& offset, Mask lanes, unsigned bytes) {
    if (lanes != all_lanes) return false;
    bool same = true;
    for (unsigned lane = 1; lane < lanes_per_warp; ++lane) same &= offset[lane] == offset[lane - 1] + bytes;
    return same;
  }

  void check_state(const Region& region, const Addresses& offset, Mask lanes) {
    const std::size_t all = std::size_t{bytes_} * lanes_per_warp;
    const bool whole = kind_ != AccessKind::copy_target && contiguous(offset, lanes, bytes_);
    if (whole && all_are(region.state + offset[0], all, state_initialized)) return;
    if (whole && !reads(kind_) && all_are(region.state + offset[0], all, 0)) {
      std::memset(region.state + offset[0], state_initialized, all);
      return;
    }
    for (Mask left = lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      auto* state = region.state + offset[lane];
      if (reads(kind_) && all_are(state, bytes_, state_initialized)) continue;
      check_lane_state(region, offset[lane], lane, state);
    }
  }

  void check_lane_state(const Region& region, std::uint64_t offset, unsigned lane, std::uint8_t* state) {
    std::uint8_t any = 0;
    std::uint8_t all = 0xff;
    for (unsigned i = 0; i < bytes_; ++i) {
      any |= state[i];
      all &= state[i];
    }
    const auto detail = [&] {
      return fmt::format("{} bytes at {}{} + {}", bytes_, region.space, region.name, offset - region.origin);
    };
    if ((any & state_forbidden) != 0) {
      warp_.launch->fault(warp_, Fault::forbidden, lane, detail);
    } else if ((any & state_pending) != 0) {
      warp_.launch->fault(warp_, Fault::copy_pending, lane, detail);
    } else if (reads(kind_) && (all & state_initialized) == 0) {
      warp_.launch->fault(warp_, Fault::uninitialized, lane, detail);
    }
    if (!writes(kind_)) return;
    for (unsigned i = 0; i < bytes_; ++i) {
      state[i] = static_cast<std::uint8_t>((state[i] & state_forbidden) |
                                           (kind_ == AccessKind::copy_target ? state_pending : state_initialized));
    }
  }

  static bool all_are(const std::uint8_t* state, std::size_t count, std::uint8_t value) {
    const std::uint64_t pattern = 0x0101010101010101 * value;
    std::uint64_t difference = 0;
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, state + i, 8);
      difference |= word ^ pattern;
    }
    for (; i < count; ++i) difference |= static_cast<std::uint64_t>(state[i] ^ value);
    return difference == 0;
  }

  void check_races(const Region& region, const Addresses& offset, Mask lanes) {
    auto& shadow = *region.shadow;
    shadow.refine(bytes_);
    const auto shift = shadow.shift();
    const auto cells_per_access = std::max(bytes_ >> shift, 1U);
    auto* cells = shadow.cells();
    const bool write = writes(kind_);
    for (Mask left = lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      const auto me = race_.stamp(lane);
      auto* cell = cells + (offset[lane] >> shift);
      for (unsigned i = 0; i < cells_per_access; ++i) {
        bool after_read = false;
        const auto conflict = write ? race_.write(cell[i], me, after_read) : race_.read(cell[i], me);
        if (conflict.gang() == 0) [[likely]] {
          continue;
        }
        const auto fault =
            !write ? Fault::race_write_read : (after_read ? Fault::race_read_write : Fault::race_write_write);
        warp_.launch->fault(warp_, fault, lane, [&] {
          return fmt::format("{} bytes at {}{} + {}, with {}", bytes_, region.space, region.name,
                             offset[lane] - region.origin, describe_thread(warp_, conflict));
        });
      }
    }
  }

  Warp& warp_;
  AccessKind kind_;
  unsigned bytes_;
  RaceCheck race_;
};

Mask check_alignment(Warp& warp, const Addresses& addresses, Mask lanes, unsigned bytes, const std::string& name) {
  Mask aligned = 0;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    aligned |= Mask{(addresses[lane] & (bytes - 1)) == 0} << lane;
  }
  const Mask wrong = lanes & ~aligned;
  for (Mask left = wrong; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    warp.launch->fault(warp, Fault::misaligned, lane,
                       [&] { return fmt::format("{} bytes at address {:#x} of {}", bytes, addresses[lane], name); });
  }
  return lanes & ~wrong;
}

// The lanes whose access lies wholly in [0, size), with their offsets.
Mask lanes_inside(const Addresses& addresses, std::uint64_t begin, std::uint64_t size, unsigned bytes,
                  Addresses& offset) {
  Mask inside = 0;
  if (size < bytes) return 0;
  const auto last = size - bytes;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    offset[lane] = addresses[lane] - begin;
    inside |= Mask{offset[lane] <= last} << lane;
  }
  return inside;
}

Mask access_global(Warp& warp, const Instruction& instruction, const Addresses& addresses, Mask lanes, unsigned bytes,
                   AccessKind kind, Pointers& pointers) {
  auto& launch = *warp.launch;
  Accessor accessor(warp, kind, bytes, launch.first_gang);
  Mask allowed = 0;
  Addresses offset;
  for (Mask left = lanes; left != 0;) {
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    Buffer*& buffer = launch.last_buffer[instruction.number];
    if (buffer == nullptr || buffer->freed || addresses[first] - buffer->address >= buffer->size) {
      buffer = launch.memory->nearest(addresses[first]);
    }
    const Mask inside = buffer == nullptr || buffer->freed
                            ? 0
                            : left & lanes_inside(addresses, buffer->address, buffer->size, bytes, offset);
    if ((inside >> first & 1) == 0) {
      const bool was_freed = buffer != nullptr && buffer->freed && addresses[first] - buffer->address < buffer->size;
      if (kind != AccessKind::prefetch) {
        launch.fault(warp, was_freed ? Fault::freed : Fault::out_of_bounds, first, [&] {
          if (buffer == nullptr) return fmt::format("{} bytes at address {:#x}", bytes, addresses[first]);
          return fmt::format("{} bytes at {} + {}, which has {} bytes", bytes, buffer->name,
                             static_cast<std::int64_t>(addresses[first] - buffer->address), buffer->size);
        });
      }
      left &= ~(Mask{1} << first);
      continue;
    }
    left &= ~inside;
    if (writes(kind) && buffer->read_only) {
      launch.fault(warp, Fault::read_only, first, [&] { return fmt::format("{}", buffer->name); });
      continue;
    }
    const Mask aligned = check_alignment(warp, addresses, inside, bytes, buffer->name);
    const Region region{buffer->data, buffer->state.data(), &buffer->shadow, "", buffer->name};
    accessor.touch(region, offset, aligned, pointers);
    allowed |= aligned;
    for (Mask touched = kind == AccessKind::prefetch ? 0 : aligned; touched != 0; touched &= touched - 1) {
      const std::uint64_t at = offset[static_cast<unsigned>(std::countr_zero(touched))];
      launch.counters.global_new_sectors += buffer->touch_sector(launch.first_gang, at, reads(kind), writes(kind));
    }
  }
  if (kind != AccessKind::prefetch) {
    count_global(launch.counters, addresses, allowed, bytes, reads(kind), writes(kind), kind == AccessKind::atomic);
  }
  return allowed;
}

// Shared addresses have 32 bits; the top byte names another block of the cluster by its rank plus one.
Mask access_shared(Warp& warp, const Addresses& addresses, Mask lanes, unsigned bytes, AccessKind kind,
                   Pointers& pointers) {
  auto& launch = *warp.launch;
  auto& gang = *warp.block->gang;
  Accessor accessor(warp, kind, bytes, gang.number);
  Mask allowed = 0;
  Addresses offset;
  Addresses local;
  for (Mask left = lanes; left != 0;) {
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    const auto rank_plus_one = static_cast<std::uint32_t>(addresses[first] >> 24 & 0xff);
    const auto rank = rank_plus_one == 0 ? warp.block->rank : rank_plus_one - 1;
    if (rank >= gang.blocks.size()) {
      launch.fault(warp, Fault::out_of_bounds, first,
                   [&] { return fmt::format("shared address {:#x}: no block {}", addresses[first], rank); });
      left &= ~(Mask{1} << first);
      continue;
    }
    auto& block = gang.blocks[rank];
    const auto window = addresses[first] & ~std::uint64_t{0xffffff};
    Mask same = 0;
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      same |= Mask{(addresses[lane] & ~std::uint64_t{0xffffff}) == window} << lane;
      local[lane] = addresses[lane] & 0xffffff;
    }
    const SharedArray* array = nullptr;
    for (const auto& candidate : launch.shared) {
      if (local[first] >= candidate.begin && local[first] - candidate.begin < candidate.size) array = &candidate;
    }
    const Mask inside =
        array == nullptr ? 0 : left & same & lanes_inside(local, array->begin, array->size, bytes, offset);
    if ((inside >> first & 1) == 0) {
      launch.fault(warp, Fault::out_of_bounds, first, [&] {
        const SharedArray* below = nullptr;
        for (const auto& candidate : launch.shared) {
          if (candidate.begin <= local[first]) below = &candidate;
        }
        if (below == nullptr) return fmt::format("{} bytes at shared address {:#x}", bytes, addresses[first]);
        return fmt::format("{} bytes at shared {} + {}, which has {} bytes", bytes, below->name,
                           local[first] - below->begin, below->size);
      });
      left &= ~(Mask{1} << first);
      continue;
    }
    left &= ~inside;
    if (&block != warp.block) {
      block.touched_remotely = true;
      if (block.exited) {
        launch.fault(warp, Fault::block_exited, first,
                     [&] { return fmt::format("block {} of the cluster has exited", rank); });
        continue;
      }
    }
    const Mask aligned = check_alignment(warp, local, inside, bytes, array->name);
    const Region region{block.shared.data(), block.shared_state.data(), &block.shadow, "shared ", array->name,
                        array->begin};
    accessor.touch(region, local, aligned, pointers);
    allowed |= aligned;
  }
  count_shared(launch.counters, addresses, allowed, bytes, reads(kind), writes(kind), kind == AccessKind::atomic);
  return allowed;
}

Mask access_local(Warp& warp, const Addresses& addresses, Mask lanes, unsigned bytes, Pointers& pointers) {
  const auto size = warp.launch->program->local_bytes;
  Mask allowed = 0;
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (addresses[lane] > size || bytes > size - addresses[lane]) {
      warp.launch->fault(warp, Fault::out_of_bounds, lane,
                         [&] { return fmt::format("{} bytes at local address {:#x}", bytes, addresses[lane]); });
      continue;
    }
    pointers[lane] = warp.block->local.data() + (warp.first_thread + lane) * size + addresses[lane];
    allowed |= Mask{1} << lane;
  }
  return check_alignment(warp, addresses, allowed, bytes, "local memory");
}

Mask access_parameter(Warp& warp, const Addresses& addresses, Mask lanes, unsigned bytes, AccessKind kind,
                      Pointers& pointers) {
  auto& parameters = warp.launch->parameters;
  Mask allowed = 0;
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const auto at = addresses[lane] - param_window;
    if (at > parameters.size() || bytes > parameters.size() - at || writes(kind)) {
      warp.launch->fault(warp, Fault::out_of_bounds, lane,
                         [&] { return fmt::format("{} bytes at parameter byte {}", bytes, at); });
      continue;
    }
    pointers[lane] = parameters.data() + at;
    allowed |= Mask{1} << lane;
  }
  return allowed;
}

}  // namespace

void compute_addresses(const Warp& warp, const Instruction& instruction, std::size_t slot, Addresses& addresses) {
  const auto immediate = static_cast<std::uint64_t>(instruction.immediate);
  const auto base = instruction.operand[slot];
  if (base == 0) {
    addresses.fill(immediate);
  } else if (instruction.stride == 4) {
    const auto* from = warp.row<std::uint32_t>(base);
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      addresses[lane] = static_cast<std::uint32_t>(from[lane] + static_cast<std::uint32_t>(immediate));
    }
  } else {
    const auto* from = warp.row<std::uint64_t>(base);
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) addresses[lane] = from[lane] + immediate;
  }
}

Mask prepare_access(Warp& warp, const Instruction& instruction, ptx::Space space, const Addresses& addresses,
                    Mask lanes, unsigned bytes, AccessKind kind, Pointers& pointers) {
  switch (space) {
    case Space::global:
    case Space::constant:
      return access_global(warp, instruction, addresses, lanes, bytes, kind, pointers);
    case Space::shared:
      return access_shared(warp, addresses, lanes, bytes, kind, pointers);
    case Space::local:
      return access_local(warp, addresses, lanes, bytes, pointers);
    case Space::param: {
      Mask kernel = 0;
      for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
        kernel |= Mask{addresses[lane] >= param_window} << lane;
      }
      Mask allowed = 0;
      if ((lanes & kernel) != 0) allowed |= access_parameter(warp, addresses, lanes & kernel, bytes, kind, pointers);
      if ((lanes & ~kernel) != 0) allowed |= access_local(warp, addresses, lanes & ~kernel, bytes, pointers);
      return allowed;
    }
    case Space::generic:
      break;
  }
  // A generic address lies in the window of its space; lanes may differ.
  Mask allowed = 0;
  Addresses inside;
  const auto part = [&](std::uint64_t window, Space of) {
    Mask here = 0;
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      inside[lane] = addresses[lane] - window;
      here |= Mask{inside[lane] < window_bytes} << lane;
    }
    here &= lanes;
    lanes &= ~here;
    if (here == 0) return;
    if (of == Space::param) {
      for (auto& address : inside) address += param_window;
    }
    allowed |= prepare_access(warp, instruction, of, inside, here, bytes, kind, pointers);
  };
  part(shared_window, Space::shared);
  part(local_window, Space::local);
  part(param_window, Space::param);
  if (lanes != 0) allowed |= access_global(warp, instruction, addresses, lanes, bytes, kind, pointers);
  return allowed;
}

void complete_copies(Warp& warp, std::uint32_t groups_kept) {
  std::size_t kept = 0;
  auto& block = *warp.block;
  for (auto& copy : warp.copies) {
    const bool mine = (warp.active >> copy.lane & 1) != 0;
    if (!mine || copy.group + groups_kept >= warp.copy_group[copy.lane]) {
      warp.copies[kept++] = copy;
      continue;
    }
    auto* to = block.shared.data() + copy.shared_offset;
    if (copy.source_bytes != 0) std::memcpy(to, copy.source, copy.source_bytes);
    std::memset(to + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
    std::memset(block.shared_state.data() + copy.shared_offset, state_initialized, copy.bytes);
  }
  warp.copies.resize(kept);
}

}  // namespace tigon::emulator
