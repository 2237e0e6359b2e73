// Runs a kernel: makes its blocks and warps, and lets them run in the order that the schedule says.
#include "runtime/emulator/launch.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/emulator/access.hpp"
#include "runtime/emulator/control.hpp"
#include "runtime/emulator/warp_barrier.hpp"

namespace tigon::emulator {

namespace {

// A warp that never reaches a barrier yields after this many instructions, for others may be what it spins on.
constexpr std::uint64_t slice = 1 << 12;
// Instructions after which a gang that is still running lets further gangs start beside it.
constexpr std::uint64_t patience = 1 << 20;

class GangRunner {
 public:
  GangRunner(Launch& launch, std::uint64_t first_block) : launch_(launch), random_(launch.schedule.seed) {
    const auto blocks = launch.cluster.count();
    const auto threads = static_cast<std::uint32_t>(launch.block.count());
    const auto warps = (threads + lanes_per_warp - 1) / lanes_per_warp;
    gang_.blocks.resize(blocks);
    gang_.warps.resize(blocks * warps);
    const auto arena = launch.program->arena_bytes;
    arenas_.reset(static_cast<std::uint8_t*>(::operator new(arena * gang_.warps.size(), std::align_val_t{64})));
    std::memset(arenas_.get(), 0, arena * gang_.warps.size());
    for (std::uint32_t w = 0; w < gang_.warps.size(); ++w) {
      auto& warp = gang_.warps[w];
      warp.launch = &launch;
      warp.block = &gang_.blocks[w / warps];
      warp.arena = arenas_.get() + static_cast<std::size_t>(arena) * w;
      warp.index = w;
      warp.first_thread = w % warps * lanes_per_warp;
      const auto count = std::min(threads - warp.first_thread, lanes_per_warp);
      warp.launched = count == lanes_per_warp ? all_lanes : (Mask{1} << count) - 1;
      for (const auto& row : launch.program->constants) fill_constant(warp, row);
    }
    for (std::uint32_t b = 0; b < blocks; ++b) {
      auto& block = gang_.blocks[b];
      block.gang = &gang_;
      block.rank = b;
      block.first_warp = b * warps;
      block.warp_count = warps;
      block.shared.resize(launch.shared_bytes + 16);
      block.shared_state.resize(launch.shared_bytes + 16);
      block.shadow.reset(launch.shared_bytes);
      block.local.resize(launch.program->local_bytes * threads);
    }
    start(first_block);
  }

  // Takes on another gang's blocks, reusing the memory.
  void start(std::uint64_t first_block) {
    const auto blocks_per_gang = gang_.blocks.size();
    // Numbers grow with time, so that stamps of a gang that ran before in this memory compare as smaller.
    gang_.number = launch_.first_gang + launch_.first_blocks.size();
    launch_.first_blocks.push_back(first_block);
    random_ = Random(launch_.schedule.seed * 0x9e3779b97f4a7c15 + first_block);
    for (auto& barrier : gang_.cluster_barriers) barrier = {};
    for (std::uint32_t b = 0; b < blocks_per_gang; ++b) {
      auto& block = gang_.blocks[b];
      place(block, first_block + b);
      // NaN in every float type, so that what is read without being written shows in results, too.
      std::memset(block.shared.data(), 0xff, block.shared.size());
      std::memset(block.shared_state.data(), 0, block.shared_state.size());
      block.exited = false;
      block.touched_remotely = false;
      for (auto& barrier : block.barriers) barrier = {};
    }
    for (auto& warp : gang_.warps) {
      warp.group = warp.launched;
      warp.alive = warp.launched;
      warp.at_barrier = 0;
      warp.at_convergence = 0;
      warp.forced = false;
      warp.stop = false;
      warp.split = false;
      warp.at_cluster_barrier = false;
      warp.cluster_phase = 0;
      warp.reduction = nullptr;
      warp.pc = launch_.program->entry;
      warp.merge = std::numeric_limits<std::uint32_t>::max();
      warp.epoch = 1;
      warp.clock.assign(gang_.warps.size(), 0);
      warp.lane_pc.fill(warp.pc);
      for (auto& stack : warp.returns) stack.clear();
      warp.copy_group.fill(0);
      warp.copies.clear();
      warp.acquired.clear();
      warp.fence_clock.clear();
      warp.fence_acquired.clear();
      for (const auto& row : launch_.program->specials) fill_special(warp, row);
    }
  }

  void give_up() {
    for (auto& warp : gang_.warps) {
      if (warp.alive == 0 || warp.stop) continue;
      const auto lane = static_cast<unsigned>(std::countr_zero(warp.alive));
      launch_.fault(warp, Fault::deadlock, lane, [&] {
        return fmt::format("no block has finished for {} instructions", launch_.schedule.instruction_limit);
      });
    }
  }

  // Runs until the gang has finished (true), or for about as many warp instructions.
  bool run(std::uint64_t instructions) {
    for (std::uint64_t done = 0; done < instructions && !launch_.aborted;) {
      Warp* warp = choose();
      if (warp == nullptr) {
        if (release_barriers(gang_)) continue;
        if (finished()) return true;
        report_deadlock();
        return true;
      }
      done += run_warp(*warp, launch_.schedule.order == Order::seeded ? 1 + random_.below(400) : slice);
      if (warp->stop) {
        if (warp->alive == 0) {
          finish_warp(*warp);
        } else {
          arrive(*warp);
        }
        release_barriers(gang_);
      }
    }
    return launch_.aborted || finished();
  }

 private:
  struct Free {
    void operator()(std::uint8_t* bytes) const { ::operator delete(bytes, std::align_val_t{64}); }
  };

  static bool runnable(const Warp& warp) { return warp.alive != 0 && !warp.stop; }

  [[nodiscard]] bool finished() const {
    return std::all_of(gang_.warps.begin(), gang_.warps.end(), [](const Warp& warp) { return warp.alive == 0; });
  }

  Warp* choose() {
    const auto count = gang_.warps.size();
    if (launch_.schedule.order == Order::seeded) {
      std::size_t ready = 0;
      for (const auto& warp : gang_.warps) ready += runnable(warp);
      if (ready == 0) return nullptr;
      auto pick = random_.below(ready);
      for (auto& warp : gang_.warps) {
        if (runnable(warp) && pick-- == 0) return &warp;
      }
    }
    const bool reverse = launch_.schedule.order == Order::reverse;
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = (turn_ + i) % count;
      auto& warp = gang_.warps[reverse ? count - 1 - at : at];
      if (!runnable(warp)) continue;
      turn_ = (at + 1) % count;
      return &warp;
    }
    turn_ = 0;
    return nullptr;
  }

  void report_deadlock() {
    for (auto& warp : gang_.warps) {
      if (warp.alive == 0) continue;
      const auto lane = static_cast<unsigned>(std::countr_zero(warp.alive));
      warp.pc = warp.lane_pc[lane] - 1;
      launch_.fault(warp, Fault::deadlock, lane, [&] {
        std::string waiting;
        for (const auto& other : gang_.warps) {
          if (other.alive != 0) waiting += fmt::format("{}{}", waiting.empty() ? "" : " ", other.index);
        }
        return fmt::format("warps {} wait, the others have exited", waiting);
      });
      warp.alive = 0;
    }
  }

  void finish_warp(Warp& warp) {
    auto& block = *warp.block;
    for (std::uint32_t w = 0; w < block.warp_count; ++w) {
      if (gang_.warps[block.first_warp + w].alive != 0) return;
    }
    block.exited = true;
    check_exit(block);
  }

  void place(Block& block, std::uint64_t index) const {
    // The blocks of a cluster are neighbours: those of rank r stand in the cluster's own order.
    const auto& grid = launch_.grid;
    const auto& cluster = launch_.cluster;
    const auto gang = index / cluster.count();
    const auto rank = static_cast<std::uint32_t>(index % cluster.count());
    const auto across = grid.x / cluster.x;
    const auto down = grid.y / cluster.y;
    block.position[0] = static_cast<std::uint32_t>(gang % across) * cluster.x + rank % cluster.x;
    block.position[1] = static_cast<std::uint32_t>(gang / across % down) * cluster.y + rank / cluster.x % cluster.y;
    block.position[2] = static_cast<std::uint32_t>(gang / across / down) * cluster.z + rank / cluster.x / cluster.y;
    block.index =
        block.position[0] + std::uint64_t{grid.x} * (block.position[1] + std::uint64_t{grid.y} * block.position[2]);
  }

  static void fill_constant(const Warp& warp, const ConstantRow& row) {
    auto* to = warp.arena + row.offset;
    if (row.bytes == 0) {
      *reinterpret_cast<Mask*>(to) = static_cast<Mask>(row.value);
      return;
    }
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      std::memcpy(to + std::size_t{lane} * row.bytes, &row.value, std::min<std::size_t>(row.bytes, 8));
    }
  }

  [[nodiscard]] std::uint64_t special_value(const Warp& warp, SpecialRegister kind, unsigned lane) const;

  void fill_special(const Warp& warp, const SpecialRow& row) const {
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      const auto value = special_value(warp, row.kind, lane);
      std::memcpy(warp.arena + row.offset + std::size_t{lane} * row.bytes, &value, row.bytes);
    }
  }

  Launch& launch_;
  Gang gang_;
  std::unique_ptr<std::uint8_t, Free> arenas_;
  Random random_;
  std::size_t turn_ = 0;
};

std::uint64_t GangRunner::special_value(const Warp& warp, SpecialRegister kind, unsigned lane) const {
  const auto& block = *warp.block;
  const auto& grid = launch_.grid;
  const auto& cluster = launch_.cluster;
  const auto thread = warp.first_thread + lane;
  const auto bit = std::uint32_t{1} << lane;
  switch (kind) {
    case SpecialRegister::tid_x:
      return thread % launch_.block.x;
    case SpecialRegister::tid_y:
      return thread / launch_.block.x % launch_.block.y;
    case SpecialRegister::tid_z:
      return thread / launch_.block.x / launch_.block.y;
    case SpecialRegister::ntid_x:
      return launch_.block.x;
    case SpecialRegister::ntid_y:
      return launch_.block.y;
    case SpecialRegister::ntid_z:
      return launch_.block.z;
    case SpecialRegister::ctaid_x:
      return block.position[0];
    case SpecialRegister::ctaid_y:
      return block.position[1];
    case SpecialRegister::ctaid_z:
      return block.position[2];
    case SpecialRegister::nctaid_x:
      return grid.x;
    case SpecialRegister::nctaid_y:
      return grid.y;
    case SpecialRegister::nctaid_z:
      return grid.z;
    case SpecialRegister::lane:
      return lane;
    case SpecialRegister::warp:
      return warp.first_thread / lanes_per_warp;
    case SpecialRegister::warp_count:
      return block.warp_count;
    case SpecialRegister::sm:
      return block.index % launch_.sm_count;
    case SpecialRegister::sm_count:
      return launch_.sm_count;
    case SpecialRegister::mask_eq:
      return bit;
    case SpecialRegister::mask_lt:
      return bit - 1;
    case SpecialRegister::mask_le:
      return bit | (bit - 1);
    case SpecialRegister::mask_gt:
      return ~(bit | (bit - 1));
    case SpecialRegister::mask_ge:
      return ~(bit - 1);
    case SpecialRegister::cluster_ctaid_x:
      return block.rank % cluster.x;
    case SpecialRegister::cluster_ctaid_y:
      return block.rank / cluster.x % cluster.y;
    case SpecialRegister::cluster_ctaid_z:
      return block.rank / cluster.x / cluster.y;
    case SpecialRegister::cluster_nctaid_x:
      return cluster.x;
    case SpecialRegister::cluster_nctaid_y:
      return cluster.y;
    case SpecialRegister::cluster_nctaid_z:
      return cluster.z;
    case SpecialRegister::clusterid_x:
      return block.position[0] / cluster.x;
    case SpecialRegister::clusterid_y:
      return block.position[1] / cluster.y;
    case SpecialRegister::clusterid_z:
      return block.position[2] / cluster.z;
    case SpecialRegister::nclusterid_x:
      return grid.x / cluster.x;
    case SpecialRegister::nclusterid_y:
      return grid.y / cluster.y;
    case SpecialRegister::nclusterid_z:
      return grid.z / cluster.z;
    case SpecialRegister::cluster_rank:
      return block.rank;
    case SpecialRegister::cluster_size:
      return cluster.count();
    case SpecialRegister::dynamic_shared:
      return launch_.dynamic_shared;
    case SpecialRegister::total_shared:
      return launch_.program->declared_shared + launch_.dynamic_shared;
    case SpecialRegister::grid:
    case SpecialRegister::zero:
      return 0;
  }
  return 0;
}

std::vector<std::uint64_t> gang_order(const Schedule& schedule, std::uint64_t count) {
  std::vector<std::uint64_t> order(count);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  if (schedule.order == Order::reverse) std::reverse(order.begin(), order.end());
  if (schedule.order == Order::seeded) {
    Random random(schedule.seed);
    for (std::uint64_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  }
  return order;
}

void run_gangs(Launch& launch) {
  const auto per_gang = launch.cluster.count();
  const auto order = gang_order(launch.schedule, launch.grid.count() / per_gang);
  std::vector<std::unique_ptr<GangRunner>> resident;  // gangs that did not finish in their first turn
  std::unique_ptr<GangRunner> current;
  for (const auto gang : order) {
    if (launch.aborted) return;
    if (current == nullptr) {
      current = std::make_unique<GangRunner>(launch, gang * per_gang);
    } else {
      current->start(gang * per_gang);
    }
    if (current->run(patience)) {
      std::erase_if(resident, [](auto& waiting) { return waiting->run(slice); });
    } else {
      resident.push_back(std::exchange(current, nullptr));
    }
  }
  constexpr std::uint64_t turn = patience / 16;
  for (std::uint64_t done = 0; !resident.empty() && !launch.aborted; done += turn * resident.size()) {
    const auto before = resident.size();
    std::erase_if(resident, [](auto& waiting) { return waiting->run(turn); });
    if (resident.size() != before) done = 0;
    if (done > launch.schedule.instruction_limit) {
      for (auto& waiting : resident) waiting->give_up();
      launch.aborted = true;
    }
  }
}

void sum_counters(Launch& launch) {
  auto& counters = launch.counters;
  counters.launches = 1;
  for (std::size_t i = 0; i < launch.executions.size(); ++i) {
    if (launch.executions[i] == 0) continue;
    const auto& source = launch.program->sources[i];
    counters.warp_instructions += launch.executions[i];
    counters.lane_instructions += launch.lane_executions[i];
    counters.opcodes[source.opcode] += launch.executions[i];
    const auto line = source.line.inlined_line != 0 ? source.line.inlined_line : source.line.line;
    if (line != 0) counters.lines[line] += launch.executions[i];
    if (source.special != SpecialFunction::none) {
      counters.special_functions[static_cast<std::size_t>(source.special)] += launch.lane_executions[i];
    }
  }
}

}  // namespace

Report* Launch::add_report(const Warp& warp, Fault kind, unsigned lane) {
  if (!any_fault) first_fault = kind;
  any_fault = true;
  auto* report = reports->add(kind, program, warp.pc);
  if (report == nullptr) return nullptr;
  const auto& source = program->sources[warp.pc];
  report->kernel = program->name;
  report->cuda_line = source.line.line != 0;
  report->file = report->cuda_line ? source.file : std::string();
  report->line = report->cuda_line ? source.line.line : source.line.ptx_line;
  report->called_from = source.line.inlined_line;
  report->block = warp.block->index;
  report->thread = warp.first_thread + lane;
  report->instruction = source.text;
  return report;
}

LaunchResult run_launch(const Program& program, const LaunchShape& shape, std::vector<std::uint8_t> parameters,
                        DeviceMemory& memory, Reports& reports, const Schedule& schedule, std::uint32_t sm_count,
                        std::uint64_t& gangs) {
  Launch launch;
  launch.program = &program;
  launch.grid = shape.grid;
  launch.block = shape.block;
  launch.cluster = shape.cluster;
  launch.dynamic_shared = shape.dynamic_shared;
  launch.shared_bytes = program.shared_bytes + shape.dynamic_shared;
  launch.sm_count = sm_count;
  launch.shared = program.shared;
  for (auto& array : launch.shared) {
    if (array.dynamic) array.size = shape.dynamic_shared;
  }
  launch.parameters = std::move(parameters);
  launch.schedule = schedule;
  launch.memory = &memory;
  launch.reports = &reports;
  const auto count = shape.grid.count() / shape.cluster.count();
  if (gangs + count >= Stamp::gang_limit) {
    memory.forget_stamps();
    gangs = 0;
  }
  launch.first_gang = gangs + 1;
  gangs += count;
  launch.executions.assign(program.code.size(), 0);
  launch.lane_executions.assign(program.code.size(), 0);
  launch.last_buffer.assign(program.code.size(), nullptr);
  run_gangs(launch);
  sum_counters(launch);
  return {launch.any_fault, launch.first_fault, std::move(launch.counters)};
}

}  // namespace tigon::emulator
