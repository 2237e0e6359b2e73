// Threads for rows, widths for vectors, registers for what would be read twice.
#include "codegen/schedule/gpu.hpp"

#include <map>

#include "codegen/loops/walk.hpp"
#include "codegen/schedule/formula.hpp"
#include "codegen/schedule/gpu_folds.hpp"

namespace tigon::schedule {

using loops::Bind;
using loops::Block;
using loops::Expr;
using loops::ExprId;
using loops::ExprKind;
using loops::Loop;
using loops::Statement;

namespace {

constexpr int vector_bytes = 16;         // of the widest access to memory
constexpr int vectors_in_flight = 4;     // per thread and row, before a row gets more threads
constexpr int most_vectors = 8;          // held in registers by one thread
constexpr int most_elements = 32;        // of those: 16-bit ones are often held widened
constexpr int most_held_bytes = 128;     // of a thread's registers for rows, and as many for sums over rows
constexpr int working_registers = 48;    // of a thread, for everything else
constexpr int block_registers = 65536;   // of a multiprocessor, which one block may have alone
constexpr std::int64_t short_row = 256;  // elements; longer rows keep wide vectors and a ragged end

std::int64_t power_at_least(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

class ThreadBinder {
 public:
  ThreadBinder(const KernelRequest& request, const DeviceModel& device, loops::NestBuilder& builder, Scheduled& result)
      : request_(request), device_(device), builder_(builder), nest_(builder.nest), result_(result) {}

  void run() {
    spread_folds(builder_);
    std::vector<Wish> wishes;
    int threads = 64;
    for (std::size_t part = 0; part < nest_.parts.size(); ++part) {
      wishes.push_back(wish(nest_.parts[part]));
      threads = std::max(threads, wishes.back().threads);
    }
    for (std::size_t number = 0; number < nest_.parts.size(); ++number) {
      loops::Part& part = nest_.parts[number];
      part.threads = threads;
      part.group = wishes[number].whole_block ? threads : wishes[number].group;
      count_blocks(part, number, wishes[number]);
      held_ = 0;
      hold_sums(part);
      each_rows_loop(part.grid.body, [&](Loop& rows) { hold_rows(part, rows); });
    }
    describe();
  }

 private:
  struct Wish {
    int threads = 128;
    int group = 1;
    bool whole_block = false;
    bool has_rows = false;
    int width = 1;  // of the widest lanes loop
  };
  struct Lanes {
    Loop* loop;
    bool in_rows;
  };

  const KernelRequest& request_;
  const DeviceModel& device_;
  loops::NestBuilder& builder_;
  loops::Nest& nest_;
  Scheduled& result_;

  // The nest's name says dtype, family and threads; its notes how the work is dealt out and what it moves.
  void describe() {
    nest_.formula = formula_of(request_.graph);
    const loops::Part& first = nest_.parts.front();
    std::string family;
    for (const char c : result_.family) {
      if (c >= 'a' && c <= 'z')
        family += c;
      else if (!family.empty() && family.back() != '_')
        family += '_';
    }
    const std::string dtype = nest_.parameters.empty() ? "" : fmt::format("_{}", name(nest_.parameters[0].dtype));
    nest_.name += fmt::format("{}_{}{}", dtype, family, first.threads);
    std::string fixed, free;
    for (const loops::Axis& axis : nest_.axes) {
      if (axis.extent == loops::at_run_time)
        free += (free.empty() ? "" : ", ") + axis.name;
      else
        fixed += fmt::format("{}{} = {}", fixed.empty() ? "" : ", ", axis.name, axis.extent);
    }
    nest_.notes.push_back((fixed.empty() ? "" : fixed + " fixed, ") + (free.empty() ? "nothing" : free) +
                          " at run time.");
    for (const loops::Part& part : nest_.parts) {
      std::string note = nest_.parts.size() > 1 ? fmt::format("Part {}: blocks", part.name) : "Blocks";
      note += fmt::format(" of {} threads", part.threads);
      bool rows = false;
      for (const Statement& s : part.grid.body) {
        const auto* loop = std::get_if<Loop>(&s.node);
        if (loop == nullptr || loop->bind != Bind::rows) continue;
        rows = true;
      }
      if (rows)
        note += part.group == part.threads ? ", all of them on one row at a time"
                : part.group == 1          ? ", a row for each"
                                           : fmt::format(", {} for a row", part.group);
      nest_.notes.push_back(note + ".");
    }
    std::string held;
    for (const loops::Stage& stage : nest_.stages) held += (held.empty() ? "" : ", ") + stage.name;
    if (!held.empty()) nest_.notes.push_back("In registers: " + held + ".");
    double read = 0, written = 0;
    for (const loops::Parameter& parameter : nest_.parameters) {
      double bytes = size_of(parameter.dtype);
      double looked_up = -1;
      for (std::size_t i = 0; i < result_.input_parameters.size(); ++i) {
        const auto& slots = result_.input_parameters[i];
        const auto id = static_cast<loops::ParameterId>(&parameter - nest_.parameters.data());
        if (std::find(slots.begin(), slots.end(), id) != slots.end()) looked_up = elements_looked_up(i);
      }
      for (const std::uint16_t axis : parameter.axes) {
        const dsl::AxisId id = result_.nest_axes[axis];
        bytes *= id == dsl::no_axis ? static_cast<double>(result_.partitions[0].count(request_.extents))
                                    : static_cast<double>(request_.extents[id]);
      }
      if (looked_up >= 0) bytes = std::min(bytes, looked_up * size_of(parameter.dtype));
      if (parameter.access != loops::Access::write) read += bytes;
      if (parameter.access != loops::Access::read) written += bytes;
    }
    nest_.notes.push_back(
        fmt::format("Reads {} and writes {} at the planned extents, each once.", amount(read), amount(written)));
  }
  // Elements of an input that only lookups read, as many as they look up; -1 for any other input.
  double elements_looked_up(std::size_t input) const {
    const dsl::Graph& graph = request_.graph;
    const dsl::NodeId table = graph.inputs[input].node;
    double elements = 0;
    for (dsl::NodeId id = 0; id < graph.nodes.size(); ++id) {
      const auto operands = graph.operands(id);
      if (std::find(operands.begin(), operands.end(), table) == operands.end()) continue;
      if (graph.node(id).kind != dsl::NodeKind::gather || operands[0] != table || operands[1] == table) return -1;
      double looked_up = 1;
      for (const dsl::AxisId axis : graph.node(id).axes) looked_up *= static_cast<double>(request_.extents[axis]);
      elements += looked_up;
    }
    return elements > 0 ? elements : -1;
  }
  static std::string amount(double bytes) {
    constexpr std::string_view units[] = {"bytes", "KiB", "MiB", "GiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 3) {
      bytes /= 1024;
      ++unit;
    }
    return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
  }

  static void collect(Block& block, bool in_rows, std::vector<Lanes>& found) {
    for (Statement& s : block) {
      auto* loop = std::get_if<Loop>(&s.node);
      if (loop != nullptr && loop->bind == Bind::lanes) {
        found.push_back({loop, in_rows});
        continue;
      }
      if (Block* body = loops::body_of(s))
        collect(*body, in_rows || (loop != nullptr && loop->bind == Bind::rows), found);
    }
  }
  template <class Visit>
  static void each_rows_loop(Block& block, Visit&& visit) {
    for (Statement& s : block) {
      auto* loop = std::get_if<Loop>(&s.node);
      if (loop != nullptr && loop->bind == Bind::rows) visit(*loop);
    }
  }

  // At the planned extents, in the first partition.
  double planned(ExprId id) const {
    const Expr& e = nest_.exprs[id];
    const auto args = loops::args_of(nest_, id);
    switch (e.kind) {
      case ExprKind::constant:
        return static_cast<double>(e.integer);
      case ExprKind::slot: {
        const loops::Slot& slot = nest_.slots[e.payload];
        if (slot.kind == loops::SlotKind::extent || slot.kind == loops::SlotKind::global_extent)
          return static_cast<double>(request_.extents[result_.nest_axes[slot.axis]]);
        if (slot.kind == loops::SlotKind::partitions)
          return static_cast<double>(result_.partitions[slot.part].count(request_.extents));
        return 0;
      }
      case ExprKind::operation: {
        const double a = planned(args[0]);
        const double b = args.size() > 1 ? planned(args[1]) : 0;
        if (e.op == ScalarOp::add) return a + b;
        if (e.op == ScalarOp::sub) return a - b;
        if (e.op == ScalarOp::mul) return a * b;
        if (e.op == ScalarOp::min) return std::min(a, b);
        if (e.op == ScalarOp::max) return std::max(a, b);
        if (e.op == ScalarOp::floor_div) return b == 0 ? 0 : std::floor(a / b);
        return 0;
      }
      default:
        return 0;
    }
  }
  bool is_constant(ExprId id) const { return nest_.exprs[id].kind == ExprKind::constant; }
  bool is_index_of(ExprId id, const Loop& loop) const {
    return nest_.exprs[id].kind == ExprKind::loop_index && nest_.exprs[id].payload == loop.id;
  }

  static bool has_inner(const Loop& loop) {
    return std::any_of(loop.body.begin(), loop.body.end(),
                       [](const Statement& s) { return loops::body_of(s) != nullptr; });
  }

  // Elements that fill an access to memory, of the narrowest dtype that lies along the lanes.
  int natural_width(const Loop& loop) const {
    if (has_inner(loop)) return 1;
    int width = 1;
    const auto consider = [&](loops::ParameterId id, std::span<const ExprId> index) {
      const int size = size_of(nest_.parameters[id].dtype);
      if (index.empty() || size < 2) return;
      const bool along = std::any_of(index.begin(), index.end(), [&](ExprId i) { return is_index_of(i, loop); });
      if (along && (is_index_of(index.back(), loop) || nest_.parameters[id].strides.back() == 1))
        width = std::max(width, std::min(8, vector_bytes / size));
    };
    for (const ExprId id : loops::reached(nest_, loop.body))
      if (nest_.exprs[id].kind == ExprKind::load) consider(nest_.exprs[id].payload, loops::args_of(nest_, id));
    for (const Statement& s : loop.body) {
      if (const auto* store = std::get_if<loops::Store>(&s.node)) consider(store->parameter, store->index);
      if (const auto* store = std::get_if<loops::StoreState>(&s.node))
        for (const loops::ParameterId id : store->parameters) consider(id, store->index);
    }
    if (is_constant(loop.end)) {
      const std::int64_t extent = nest_.exprs[loop.end].integer;
      if (extent < short_row)
        while (width > 1 && extent % width != 0) width /= 2;
    }
    return width;
  }

  Wish wish(loops::Part& part) {
    Wish result;
    std::vector<Lanes> all;
    collect(part.grid.body, false, all);
    each_rows_loop(part.grid.body, [&](Loop&) { result.has_rows = true; });
    std::map<std::pair<ExprId, ExprId>, int> widths;  // loops of equal bounds are cut up alike
    for (const Lanes& lanes : all) {
      int& width = widths[{lanes.loop->begin, lanes.loop->end}];
      width = std::max(width, natural_width(*lanes.loop));
    }
    double units = 0;
    bool merges_into_memory = false, folds = false;
    for (const Lanes& lanes : all) {
      lanes.loop->width = has_inner(*lanes.loop) ? 1 : widths[{lanes.loop->begin, lanes.loop->end}];
      result.width = std::max(result.width, lanes.loop->width);
      if (result.has_rows && !lanes.in_rows) continue;
      units = std::max(units, std::ceil((planned(lanes.loop->end) - planned(lanes.loop->begin)) / lanes.loop->width));
    }
    loops::each_statement(part.grid.body, [&](const Statement& s) {
      const auto* store = std::get_if<loops::StoreState>(&s.node);
      const auto* loop = std::get_if<Loop>(&s.node);
      folds = folds || (loop != nullptr && !loop->folds.empty());
      merges_into_memory = merges_into_memory || (store != nullptr && store->mode == loops::StoreMode::accumulate);
    });
    const auto needed = static_cast<std::int64_t>(units);
    result.whole_block = !result.has_rows || merges_into_memory || needed > 32 * vectors_in_flight;
    if (result.whole_block) {
      const std::int64_t threads = power_at_least((needed + vectors_in_flight - 1) / vectors_in_flight);
      result.threads = static_cast<int>(std::clamp<std::int64_t>(threads, 64, folds ? 512 : 256));
      result.group = result.threads;
    } else {
      result.group = static_cast<int>(std::min<std::int64_t>(32, power_at_least(std::max<std::int64_t>(1, needed))));
    }
    return result;
  }

  // As many blocks as are resident at once; fewer where each leaves a sum behind.
  void count_blocks(const loops::Part& part, std::size_t number, const Wish& wish) {
    PartitionCount& count = result_.partitions[number];
    bool partial = false;
    for (const int output : request_.parts[number])
      partial = partial || result_.outputs[static_cast<std::size_t>(output)].partial;
    const int resident = std::max(1, device_.resident_threads / part.threads);
    count.limit = static_cast<std::int64_t>(device_.multiprocessors) * (partial ? std::min(resident, 2) : resident);
    if (wish.has_rows)
      count.unit = part.threads / part.group;
    else if (count.unit > 1)
      count.unit = std::max<std::int64_t>(count.unit, static_cast<std::int64_t>(part.threads) * wish.width);
  }

  // Vectors of each thread, if they are few and known; 0 otherwise.
  int counted(const Loop& loop, int team) const {
    if (!is_constant(loop.begin) || !is_constant(loop.end) || nest_.exprs[loop.begin].integer != 0) return 0;
    const std::int64_t extent = nest_.exprs[loop.end].integer;
    if (extent <= 0 || extent % loop.width != 0 || has_inner(loop)) return 0;
    const std::int64_t places = static_cast<std::int64_t>(team) * loop.width;
    const std::int64_t vectors = (extent + places - 1) / places;
    return vectors <= most_vectors && vectors * loop.width <= most_elements ? static_cast<int>(vectors) : 0;
  }

  void replace(Block& block, std::map<ExprId, ExprId> known) {
    for (Statement& s : block) loops::each_own_expr(s, [&](ExprId& id) { id = rebuild(builder_, id, known); });
  }

  // Parameters that several passes over a row read are kept from the first pass on.
  void hold_rows(const loops::Part& part, Loop& rows) {
    struct Reading {
      std::vector<std::size_t> passes;  // positions in the body
      std::vector<ExprId> loads;        // one for each pass
    };
    std::map<std::pair<loops::ParameterId, std::vector<ExprId>>, Reading> readings;  // by index, lanes left out
    for (std::size_t at = 0; at < rows.body.size(); ++at) {
      const auto* loop = std::get_if<Loop>(&rows.body[at].node);
      if (loop == nullptr || loop->bind != Bind::lanes || counted(*loop, part.group) == 0) continue;
      for (const ExprId id : loops::reached(nest_, loop->body)) {
        const Expr& e = nest_.exprs[id];
        if (e.kind != ExprKind::load || e.arg_count < 2) continue;
        std::vector<ExprId> index{loop->end};
        int along = 0;
        bool plain = true;
        for (const ExprId i : loops::args_of(nest_, id)) {
          const bool own = is_index_of(i, *loop);
          along += own ? 1 : 0;
          index.push_back(own ? loops::no_expr : i);
          for (const ExprId inner : loops::reached(nest_, {Statement{loops::Let{"", i}}}))
            plain = plain && (own || !is_index_of(inner, *loop));
        }
        if (along != 1 || !plain) continue;
        Reading& reading = readings[{e.payload, index}];
        reading.passes.push_back(at);
        reading.loads.push_back(id);
      }
    }
    int held = 0;  // by this loop
    for (const auto& [key, reading] : readings) {
      if (reading.passes.size() < 2) continue;
      const loops::Parameter& parameter = nest_.parameters[key.first];
      const std::string name = parameter.name + "_held";
      const DType dtype = parameter.dtype;
      const Loop first = std::get<Loop>(rows.body[reading.passes[0]].node);
      const int vectors = counted(first, part.group);
      const int bytes = vectors * first.width * size_of(dtype);
      if (held + bytes > most_held_bytes || bytes > room(part) ||
          !stored_late(rows.body, key.first, reading.passes.back()))
        continue;
      const bool alike = std::all_of(reading.passes.begin(), reading.passes.end(), [&](std::size_t at) {
        return std::get<Loop>(rows.body[at].node).width == first.width;
      });
      if (!alike) continue;
      held += bytes;
      held_ += bytes;
      const loops::StageId stage = builder_.stage(
          {.name = name, .dtype = dtype, .extents = {nest_.exprs[first.end].integer}, .keep = loops::Keep::lane});
      for (std::size_t pass = 0; pass < reading.passes.size(); ++pass) {
        Loop& loop = std::get<Loop>(rows.body[reading.passes[pass]].node);
        loop.vectors = vectors;
        const ExprId index = builder_.loop_index(loop.id);
        replace(loop.body, {{reading.loads[pass], builder_.stage_load(stage, {index})}});
        if (pass == 0) loop.body.insert(loop.body.begin(), loops::stage_store(stage, {index}, reading.loads[pass]));
      }
    }
  }

  // Whether nothing in the block stores to the parameter before the statement at `last`.
  static bool stored_late(const Block& block, loops::ParameterId parameter, std::size_t last) {
    for (std::size_t at = 0; at < last; ++at) {
      bool stores = false;
      loops::each_statement({block[at]}, [&](const Statement& s) {
        if (const auto* store = std::get_if<loops::Store>(&s.node)) stores = stores || store->parameter == parameter;
        if (const auto* store = std::get_if<loops::StoreState>(&s.node))
          for (const loops::ParameterId id : store->parameters) stores = stores || id == parameter;
      });
      if (stores) return false;
    }
    return true;
  }

  // States that a block merges over its rows, one for each lane, are held in registers and stored once.
  void hold_sums(loops::Part& part) {
    Block& grid = part.grid.body;
    int held = 0;
    const std::size_t statements = grid.size();  // what is added here stands behind them
    for (std::size_t at = 0; at < statements; ++at) {
      auto* start = std::get_if<Loop>(&grid[at].node);
      if (start == nullptr || start->bind != Bind::lanes || start->body.size() != 1) continue;
      const auto* identity = std::get_if<loops::StoreState>(&start->body[0].node);
      if (identity == nullptr || identity->mode != loops::StoreMode::write || identity->index.size() != 2 ||
          !is_index_of(identity->index[1], *start) ||
          !std::all_of(identity->state.begin(), identity->state.end(), [&](ExprId id) { return is_constant(id); }))
        continue;
      const int vectors = counted(*start, part.threads);
      if (vectors == 0 || part.group != part.threads) continue;
      const loops::StoreState target = *identity;
      int bytes = 0;
      for (const loops::ParameterId id : target.parameters)
        bytes += vectors * start->width * size_of(nest_.parameters[id].dtype);
      std::vector<Loop*> updates;
      if (held + bytes > most_held_bytes || bytes > room(part) || !find_updates(grid, target, *start, updates))
        continue;
      held += bytes;
      held_ += bytes;
      hold(*start, target, vectors, updates);
      // Stored when the rows are done.
      Loop end = builder_.loop(start->name, Bind::lanes, start->begin, start->end);
      end.width = start->width;
      end.vectors = vectors;
      loops::StoreState store = target;
      store.index[1] = builder_.loop_index(end.id);
      for (std::size_t slot = 0; slot < target.parameters.size(); ++slot)
        store.state[slot] = builder_.stage_load(stages_[slot], {store.index[1]});
      end.body.push_back({store});
      grid.push_back({std::move(end)});
    }
  }

  int held_ = 0;  // bytes of a thread's registers, in this part
  // Bytes that a thread of a block this large can still hold.
  int room(const loops::Part& part) const {
    return std::min(2 * most_held_bytes, (block_registers / part.threads - working_registers) * 4) - held_;
  }

  std::vector<loops::StageId> stages_;  // of the states being held, by slot

  // The loops that merge into the target, all of the same geometry and inside rows; false if it is used otherwise.
  bool find_updates(Block& grid, const loops::StoreState& target, const Loop& start, std::vector<Loop*>& updates) {
    bool clean = true;
    each_rows_loop(grid, [&](Loop& rows) {
      for (Statement& s : rows.body) {
        auto* loop = std::get_if<Loop>(&s.node);
        if (loop == nullptr) continue;
        for (const Statement& inner : loop->body) {
          const auto* store = std::get_if<loops::StoreState>(&inner.node);
          if (store == nullptr || store->parameters != target.parameters) continue;
          const bool same = loop->bind == Bind::lanes && loop->begin == start.begin && loop->end == start.end &&
                            loop->width == start.width && !has_inner(*loop) && store->index.size() == 2 &&
                            store->index[0] == target.index[0] && is_index_of(store->index[1], *loop) &&
                            store->mode == loops::StoreMode::accumulate;
          if (!same) clean = false;
          updates.push_back(loop);
        }
      }
    });
    int uses = 0;
    loops::each_statement(grid, [&](const Statement& s) {
      const auto* store = std::get_if<loops::StoreState>(&s.node);
      uses += store != nullptr && store->parameters == target.parameters ? 1 : 0;
    });
    return clean && uses == static_cast<int>(updates.size()) + 1;
  }

  void hold(Loop& start, const loops::StoreState& target, int vectors, const std::vector<Loop*>& updates) {
    const dsl::Monoid monoid = nest_.monoids[target.monoid];
    stages_.clear();
    for (const loops::ParameterId id : target.parameters) {
      loops::Stage stage;
      stage.name = nest_.parameters[id].name + "_held";
      stage.dtype = nest_.parameters[id].dtype;
      stage.extents = {nest_.exprs[start.end].integer};
      stage.keep = loops::Keep::lane;
      stages_.push_back(builder_.stage(std::move(stage)));
    }
    start.vectors = vectors;
    Block body;
    for (std::size_t slot = 0; slot < stages_.size(); ++slot)
      body.push_back(loops::stage_store(stages_[slot], {target.index[1]}, target.state[slot]));
    start.body = std::move(body);
    for (Loop* loop : updates) {
      loop->vectors = vectors;
      const ExprId index = builder_.loop_index(loop->id);
      Block rewritten;
      for (Statement& s : loop->body) {
        const auto* store = std::get_if<loops::StoreState>(&s.node);
        if (store == nullptr || store->parameters != target.parameters) {
          rewritten.push_back(std::move(s));
          continue;
        }
        DType element = DType::f32;
        for (std::size_t slot = 0; slot < stages_.size(); ++slot)
          if (monoid.state[slot] == ValueClass::element) element = builder_.dtype(store->state[slot]);
        std::vector<ExprId> inputs;
        for (const loops::StageId stage : stages_) inputs.push_back(builder_.stage_load(stage, {index}));
        inputs.insert(inputs.end(), store->state.begin(), store->state.end());
        const std::vector<ExprId> merged = builder_.inline_program(monoid.merge, inputs, element);
        if (stages_.size() > 1)
          for (std::size_t slot = 0; slot < stages_.size(); ++slot)
            rewritten.push_back(loops::let(nest_.stages[stages_[slot]].name + "_next", merged[slot]));
        for (std::size_t slot = 0; slot < stages_.size(); ++slot)
          rewritten.push_back(loops::stage_store(stages_[slot], {index},
                                                 builder_.cast(nest_.stages[stages_[slot]].dtype, merged[slot])));
      }
      loop->body = std::move(rewritten);
    }
  }
};

}  // namespace

void bind_threads(const KernelRequest& request, const DeviceModel& device, loops::NestBuilder& builder,
                  Scheduled& result) {
  ThreadBinder(request, device, builder, result).run();
}

}  // namespace tigon::schedule
