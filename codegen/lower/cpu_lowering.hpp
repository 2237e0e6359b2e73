// The state of one CPU lowering; its methods are spread over cpu.cpp (statements), cpu_lanes.cpp (lanes loops),
// cpu_values.cpp (expressions), cpu_memory.cpp (loads and stores) and cpu_folds.cpp (accumulators and their merging).
#pragma once
#include <map>
#include <optional>
#include <set>

#include "codegen/lower/cpu.hpp"
#include "codegen/lower/emitter.hpp"
#include "codegen/lower/fma.hpp"

namespace tigon::lower {

using loops::ExprId;
using loops::FoldId;
using loops::LoopId;
using Parts = std::vector<ValueId>;  // one value; or one per copy of the lanes body, where it differs between lanes

class CpuLowering {
 public:
  CpuLowering(const Prepared& prepared, const CpuMachine& machine);
  Lowered run();

 private:
  static constexpr LoopId no_loop = 0xffffffffu;

  struct Emitted {
    Parts parts;
    int depth = 0;        // the scope it holds in
    bool pinned = false;  // by a Let: stores do not make it stale
  };
  using Memory = std::set<std::uint32_t>;  // parameters, and stages from `first_stage_key` on
  static constexpr std::uint32_t first_stage_key = 1u << 16;
  struct Scope {
    Memory written;      // by statements inside: their loads stay inside
    bool guard = false;  // inside a `when`: loads stay inside
    std::map<ExprId, Emitted> values;
    std::map<std::pair<ExprId, int>, Emitted> first_values;
  };
  // How a lanes loop is cut up.
  struct LanePlan {
    int width = 1;       // lanes of a vector
    int copies = 1;      // vectors per iteration of the main loop
    int tail = 0;        // lanes of the narrower vectors that do the rest; 0: one masked vector does
    bool jam = false;    // copies advance together, statement by statement (there are loops inside)
    int together = 1;    // copies that advance so for the sake of folds that absorb several elements at once
    bool folds = false;  // it updates folds that outlive an iteration
  };
  struct Lanes {
    const loops::Loop* loop = nullptr;
    int width = 1;
    int copies = 1;
    int accumulator = 0;  // number of the first copy
    bool tail = false;    // the rest of a vector loop, in narrower vectors
    int depth = 0;        // scope of the body
    Parts first;          // index of the first lane, by copy
  };
  // The accumulators that one lanes loop, or the code outside lanes loops, uses for a fold.
  struct Group {
    LoopId lanes = no_loop;
    int width = 1;
    int absorbs = 1;                              // copies that share an accumulator
    std::vector<std::vector<VariableId>> copies;  // by accumulator, by state slot
    int tail_width = 0;
    std::vector<VariableId> tail;  // of that width, where the rest is done in narrower vectors
  };
  struct OpenFold {
    std::vector<Group> groups;
    bool per_lane = false;  // declared inside a lanes body: every lane has a state of its own
    Parts masks_at_start;
  };
  using State = std::vector<ValueId>;  // by slot
  // How an index moves from lane to lane.
  struct Stride {
    enum Kind : std::uint8_t { constant, run_time, irregular } kind = constant;
    std::int64_t value = 0;
    ValueId factor = no_value;  // kind run_time
  };
  struct Term {
    ExprId expr;
    ValueId multiplier;
  };
  // A store that bypasses the cache: its address in the loop's first lane, to be a multiple of `vector_bytes`.
  struct StreamTarget {
    const loops::Store* store = nullptr;
    ValueId address = no_value;
    int vector_bytes = 0;
    int element_bytes = 0;
  };
  struct Access {
    enum Kind : std::uint8_t { uniform, consecutive, reversed, scattered } kind = uniform;
    Parts pointers;  // by copy; vectors of pointers for `scattered`
    int depth = 0;
  };

  const Prepared& prepared_;
  const loops::Nest& nest_;
  CpuMachine machine_;
  Lowered out_;
  Emitter emit_;
  std::vector<Scope> scopes_;
  std::optional<Lanes> lanes_;
  Parts masks_;  // by copy; empty: all lanes run
  std::map<LoopId, Emitted> loop_values_;
  std::map<LoopId, const loops::Loop*> loops_;
  std::map<LoopId, LanePlan> plans_;
  std::map<FoldId, OpenFold> open_folds_;
  std::map<FoldId, std::vector<Emitted>> fold_results_;
  std::vector<Memory> memory_of_;          // by expression: what its loads read
  std::vector<std::int8_t> varies_;        // by expression, in the present lanes loop: -1 unknown
  std::set<FoldId> per_lane_folds_;        // declared inside the present lanes loop
  std::vector<std::int8_t> non_negative_;  // by expression: -1 unknown
  std::map<ExprId, std::string> let_names_;
  std::vector<std::int64_t> stage_offsets_;
  std::set<const loops::Store*> streaming_;  // stores whose address is aligned where the present code runs

  // Scopes.
  void open(Block& block, Memory written = {}, bool guard = false);
  void close();
  [[nodiscard]] int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  void forget(const Memory& written);
  [[nodiscard]] Memory written_in(const loops::Block& block) const;

  // cpu.cpp
  void lower_part(std::size_t number, ValueId& start);
  void lower_block(const loops::Block& block);
  void lower_loop(const loops::Loop& loop);
  void lower_serial(const loops::Loop& loop, ValueId begin, ValueId end);
  void lower_unrolled(const loops::Loop& loop, std::int64_t begin, std::int64_t end);
  void lower_lanes(const loops::Loop& loop);
  void lane_loop(const loops::Loop& loop, const LanePlan& plan, ValueId begin, ValueId end, bool tail);
  void lane_bodies(const loops::Loop& loop, const LanePlan& plan, ValueId first, bool tail);
  void masked_tail(const loops::Loop& loop, const LanePlan& plan, ValueId first, ValueId rest);
  void blocks_loop(const loops::Loop& loop, const LanePlan& plan, ValueId begin, ValueId end,
                   const std::vector<StreamTarget>& targets, ValueId head);
  void partial_lanes(const loops::Loop& loop, const LanePlan& plan, ValueId first, ValueId end);
  std::vector<StreamTarget> stream_targets(const loops::Loop& loop, const LanePlan& plan, ValueId begin);
  ValueId bytes_past(const StreamTarget& target, ValueId elements);  // past alignment, that many elements on
  void lower_when(const loops::When& when);
  LanePlan plan_lanes(const loops::Loop& loop);
  void enter_lanes(const loops::Loop& loop);
  void leave_lanes();

  // cpu_values.cpp
  Emitted value(ExprId id);
  Emitted compute(ExprId id);
  std::optional<Emitted> compare_position(ExprId id);
  ValueId scalar_value(ExprId id);  // throws where it differs between lanes
  ValueId part(const Emitted& value, int copy) const;
  Emitted first_value(ExprId id, int copy);
  bool varies(ExprId id);
  bool non_negative(ExprId id);
  Stride lane_stride(ExprId id);
  std::string hint(ExprId id) const;
  // The program's results on values of one copy. `product`: input `fused` is this product, added by fma.
  struct FusedInput {
    std::size_t input = 0;
    ValueId a = no_value, b = no_value;
  };
  State run_program(const ScalarProgram& program, const State& inputs, DType element,
                    const std::vector<FusedInput>& fused = {}, const std::vector<std::string>& names = {});

  // cpu_memory.cpp
  Emitted load(ExprId id);
  void store(DType dtype, const Access& access, const Emitted& value, bool streaming);
  Access access(ValueId base, DType dtype, const std::string& name, std::span<const ExprId> index,
                const std::vector<ValueId>& strides);
  void flatten(ExprId id, ValueId multiplier, std::vector<Term>& terms);
  Emitted load_from(const Access& access, DType dtype, const std::string& name, int depth);
  int load_depth(std::uint32_t key) const;
  ValueId parameter_pointer(loops::ParameterId id);
  ValueId stage_pointer(loops::StageId id);
  std::vector<ValueId> parameter_strides(loops::ParameterId id);
  std::vector<ValueId> stage_strides(loops::StageId id);
  void lower_store(const loops::Store& s);
  void lower_store_state(const loops::StoreState& s);
  std::vector<Emitted> merge_lanes(const dsl::Monoid& monoid, DType element, const std::vector<Emitted>& states);
  void lower_stage_store(const loops::StageStore& s);
  void read_before_in_place(const loops::Block& block, std::size_t position);
  ValueId mask(int copy) const { return masks_.empty() ? no_value : masks_[static_cast<std::size_t>(copy)]; }

  // cpu_folds.cpp
  void open_folds(const loops::Loop& loop);
  void close_folds(const loops::Loop& loop);
  void collect_groups(const loops::Block& block, FoldId fold, LoopId lanes, std::vector<Group>& groups);
  void add_variables(Group& group, FoldId fold, const LanePlan& plan);
  void lower_merge(const loops::Merge& merge);
  void absorb(const loops::Merge& merge, const Group& group);
  [[nodiscard]] int absorb_count(FoldId fold, const LanePlan& plan) const;
  State merge_states(FoldId fold, const State& earlier, const State& later);
  State reduce_lanes(FoldId fold, State state, int width);
  State reduce_group(FoldId fold, const Group& group);
  State read_state(const std::vector<VariableId>& variables, const std::string& name);
  DType slot_dtype(FoldId fold, std::size_t slot) const;
};

[[noreturn]] void lowering_error(const loops::Nest& nest, const std::string& sentence);

}  // namespace tigon::lower
