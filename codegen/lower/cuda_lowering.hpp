// The state of one lowering for GPUs; its methods are spread over cuda.cpp (statements), cuda_lanes.cpp (lanes loops),
// cuda_values.cpp (expressions), cuda_memory.cpp (addresses, loads and stores), cuda_folds.cpp (folds and exchanges)
// and cuda_order.cpp (barriers between accesses of different threads).
#pragma once
#include <map>
#include <optional>
#include <set>

#include "codegen/lower/cuda.hpp"
#include "codegen/lower/emitter.hpp"
#include "codegen/lower/fma.hpp"

namespace tigon::lower {

using loops::ExprId;
using loops::FoldId;
using loops::LoopId;

// Bounds of an integer expression; beyond `far` nothing is known.
struct Range {
  static constexpr std::int64_t far = std::int64_t{1} << 61;  // the sum of two is a number yet
  std::int64_t low = -far, high = far;
  [[nodiscard]] bool fits_i32() const { return low >= -(std::int64_t{1} << 31) && high < (std::int64_t{1} << 31); }
};

class CudaLowering {
 public:
  CudaLowering(const Prepared& prepared, const CudaClass& buffers);
  Lowered run();

 private:
  using Memory = std::set<std::uint32_t>;  // parameters, and stages from `first_stage_key` on
  using State = std::vector<ValueId>;      // by slot
  static constexpr std::uint32_t first_stage_key = 1u << 16;

  struct Scope {
    Memory written;      // by statements inside: their loads stay inside
    bool guard = false;  // inside a `when`: loads stay inside
    std::map<ExprId, ValueId> values;
    std::set<ExprId> pinned;  // named by a Let: stores do not make them stale
  };
  // A summand of an address in elements: expr * factor * stride.
  struct Term {
    ExprId expr = loops::no_expr;
    std::int64_t factor = 1;
    ValueId stride = no_value;
  };
  struct PackPlace {
    VariableId variable = 0;
    ValueId number = no_value;  // in an array of packs
  };
  // What a lanes loop writes as vectors: a Store, or one slot of a StoreState.
  struct VectorStore {
    const void* statement = nullptr;
    std::size_t slot = 0;
    loops::ParameterId parameter = 0;
    std::vector<ExprId> index;
    bool streaming = false;
  };
  using StoreKey = std::pair<const void*, std::size_t>;  // statement and slot
  // How a lanes loop is cut up.
  struct LanePlan {
    int width = 1;
    loops::ParameterId leader = 0;  // whose rows start anywhere: a head leads up to its first vector
    std::vector<ExprId> leader_index;
    std::vector<ExprId> loads;        // read as vectors
    std::vector<VectorStore> stores;  // written as vectors
    [[nodiscard]] bool has_head() const { return !leader_index.empty(); }
  };
  struct Lanes {
    const loops::Loop* loop = nullptr;
    ValueId index = no_value;
    int depth = 0;
    ValueId place = no_value;   // in the packs; no_value: elements one by one
    ValueId number = no_value;  // of the vector among those of this thread, in a loop that counts them
    std::map<ExprId, PackPlace> loads;
    std::map<StoreKey, PackPlace> stores;
  };
  struct OpenFold {
    std::vector<VariableId> state;
    int team = 1;             // threads whose states are merged when the loop ends
    bool own_thread = false;  // declared inside a lanes body
  };
  // A StoreState that merges all lanes into one place: they are merged with each other first.
  struct OnePlace {
    const loops::StoreState* store = nullptr;
    std::vector<VariableId> state;
  };
  struct Touch {
    std::uint32_t memory = 0;
    bool write = false;
    std::string owner;  // equal and not empty: the same thread touches the same elements
  };
  struct FusedInput {
    std::size_t input = 0;
    ValueId a = no_value, b = no_value;
  };

  const Prepared& prepared_;
  const loops::Nest& nest_;
  CudaClass buffers_;
  Lowered out_;
  Emitter emit_;
  std::vector<Scope> scopes_;
  std::optional<Lanes> lanes_;
  const loops::Part* part_ = nullptr;
  bool in_rows_ = false;
  std::map<LoopId, ValueId> loop_values_;
  std::map<LoopId, const loops::Loop*> loops_;
  std::map<FoldId, OpenFold> open_folds_;
  std::map<FoldId, State> fold_results_;
  std::vector<OnePlace> one_places_;
  std::vector<Memory> memory_of_;    // by expression: what its loads read
  std::vector<std::int8_t> varies_;  // by expression, in the present lanes loop: -1 unknown
  std::set<FoldId> per_lane_folds_;  // declared inside the present lanes loop
  std::map<ExprId, Range> ranges_;
  std::map<ExprId, std::string> let_names_;
  std::map<loops::StageId, VariableId> stages_;
  std::vector<Touch> pending_;                  // since the last barrier
  std::vector<std::vector<Touch>*> recorders_;  // of the open loops' bodies
  std::set<std::string> asserted_;

  // cuda.cpp
  void open(Block& block, Memory written = {}, bool guard = false);
  void close();
  [[nodiscard]] int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  void forget(const Memory& written);
  [[nodiscard]] Memory written_in(const loops::Block& block) const;
  void lower_part(std::size_t number, ValueId& start);
  void lower_block(const loops::Block& block);
  void lower_loop(const loops::Loop& loop);
  void lower_plain(const loops::Loop& loop);
  void lower_when(const loops::When& when);
  void declare_stages(const loops::Block& block);
  void assert_that(const std::string& condition, const std::string& why);
  // Runs `body` in the first thread of the team only, where a team does the same in all its threads.
  void by_leader(const std::function<void()>& body);
  [[nodiscard]] int team() const { return in_rows_ ? part_->group : part_->threads; }
  ValueId member();  // number in the team

  // cuda_lanes.cpp
  void lower_lanes(const loops::Loop& loop);
  LanePlan plan_lanes(const loops::Loop& loop);
  void counted_vectors(const loops::Loop& loop, const LanePlan& plan);
  void all_vectors(const loops::Loop& loop, const LanePlan& plan);
  void single_elements(const loops::Loop& loop, const std::string& name, ValueId begin, ValueId end,
                       const std::function<ValueId(ValueId)>& element);
  void vector_body(const loops::Loop& loop, const LanePlan& plan, ValueId first, ValueId number);
  void enter_lanes(const loops::Loop& loop, ValueId index, ValueId place, ValueId number);

  // cuda_values.cpp
  ValueId value(ExprId id);
  ValueId exact(ExprId id);  // in the expression's own dtype, also where a narrower one holds it
  ValueId compute(ExprId id);
  ValueId whole(ScalarOp op, ValueId a, ValueId b, const std::string& hint = {});  // on i32s or i64s, folded
  ValueId integer(std::int64_t value);                                             // i32 where it fits
  ValueId as(DType dtype, ValueId value) { return emit_.cast(dtype, value, out_.values[value].name); }
  Range range(ExprId id);
  // Where id is floor(p * n / partitions) with p a partition or the next one: {p, n}.
  std::optional<std::pair<ExprId, ExprId>> share(ExprId id) const;
  std::int64_t multiple_of(ExprId id) const;  // a number that divides it
  bool varies(ExprId id);
  std::string hint(ExprId id) const;
  State run_program(const ScalarProgram& program, const State& inputs, DType element,
                    const std::vector<FusedInput>& fused = {}, const std::vector<std::string>& names = {});

  // cuda_memory.cpp
  std::vector<Term> terms(loops::ParameterId id, std::span<const ExprId> index);
  void flatten(ExprId id, std::int64_t factor, ValueId stride, std::vector<Term>& terms);
  bool unit_stride(const std::vector<Term>& terms);  // moves by one element from lane to lane
  bool aligned(loops::ParameterId id, std::span<const ExprId> index, int width);
  ValueId pointer(loops::ParameterId id, std::span<const ExprId> index);
  ValueId row_pointer(loops::ParameterId id, std::span<const ExprId> index);  // without the lanes' part
  ValueId address_of(loops::ParameterId id, const std::vector<Term>& terms);
  ValueId parameter_stride(loops::ParameterId id, std::size_t dimension);
  ValueId load(ExprId id);
  ValueId load_now(loops::ParameterId id, std::span<const ExprId> index, const std::string& name);
  bool set_in_pack(const StoreKey& key, DType dtype, ValueId value);  // false: it is not written as a vector
  void store_now(loops::ParameterId id, std::span<const ExprId> index, ValueId value, bool streaming);
  void lower_store(const loops::Store& s);
  void lower_store_state(const loops::StoreState& s);
  void store_state_now(const loops::StoreState& s, State state);
  void lower_stage_store(const loops::StageStore& s);
  void read_before_in_place(const loops::Block& block, std::size_t position);
  int load_depth(std::uint32_t key) const;

  // cuda_folds.cpp
  void open_folds(const loops::Loop& loop);
  void close_folds(const loops::Loop& loop);
  void open_one_places(const loops::Loop& loop);
  void close_one_places();
  void lower_merge(const loops::Merge& merge);
  void merge_into(const std::vector<VariableId>& state, std::uint32_t monoid, DType element,
                  const std::vector<ExprId>& given, const std::string& name);
  std::vector<VariableId> state_variables(std::uint32_t monoid, DType element, const std::string& name);
  void need_merge(std::uint32_t monoid, DType element);
  void write_merges();
  void exchange(std::uint32_t monoid, DType element, int team, const std::vector<VariableId>& state);

  // cuda_order.cpp
  void order(const std::vector<Touch>& touches);  // a barrier first, where one of them meets a pending one
  std::vector<Touch> touches_of(const loops::Statement& statement);
  std::vector<Touch> touches_of_lanes(const loops::Loop& loop, const LanePlan& plan);
  void barrier();
  static bool conflict(const Touch& a, const Touch& b);
};

[[noreturn]] void lowering_error(const loops::Nest& nest, const std::string& sentence);

}  // namespace tigon::lower
