// The loop-nest language: what one kernel does, independent of the target. Schedules build it, lowerings read it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "dsl/monoid.hpp"
#include "tigon/dtype.hpp"
#include "tigon/scalar_op.hpp"

namespace tigon::loops {

using ExprId = std::uint32_t;
using FoldId = std::uint32_t;
using StageId = std::uint32_t;
using LoopId = std::uint32_t;
using ParameterId = std::uint32_t;
inline constexpr ExprId no_expr = 0xffffffffu;
inline constexpr std::int64_t at_run_time = -1;

// An axis of the nest: a constant extent fixed in the text, or `at_run_time` (then a slot holds it).
struct Axis {
  std::string name;
  std::int64_t extent = at_run_time;
};

// The i64 numbers that a launch passes. Each is read by ExprKind::slot.
enum class SlotKind : std::uint8_t {
  extent,         // of `axis`, as this launch sees it (a chunk's length inside a chunk loop)
  origin,         // global index of this launch's first element along `axis`
  global_extent,  // of `axis`, whole
  stride,         // of dimension `dimension` of parameter `parameter`, in elements
  partitions,     // of part `part`: how many independent shares its grid loop has
};
struct Slot {
  SlotKind kind = SlotKind::extent;
  std::uint16_t axis = 0;
  std::uint16_t parameter = 0;
  std::uint16_t dimension = 0;
  std::uint16_t part = 0;
};

enum class Access : std::uint8_t { read, write, read_write };
struct Parameter {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::uint16_t> axes;    // dimensions, outermost first
  std::vector<std::int64_t> strides;  // in elements, by dimension; `at_run_time`: a stride slot holds it
  Access access = Access::read;
  std::string comment;  // for readers: "logits, kept for the gradient"
};
struct ScalarParameter {
  std::string name;
  DType dtype = DType::f32;
};

enum class ExprKind : std::uint8_t {
  constant,    // number (floats, booleans) or integer
  slot,        // payload: Nest::slots; dtype i64
  scalar,      // payload: Nest::scalars
  loop_index,  // payload: LoopId; dtype i64
  load,        // payload: ParameterId; args: one i64 index per dimension. Yields the parameter's dtype
  stage_load,  // payload: StageId; args: one i64 index per dimension
  fold_state,  // payload: FoldId; `slot_of_state`: which slot. Legal only after the fold's loop has ended
  operation,   // op on args; args have the dtype the scalar table asks for
  cast,        // to dtype, rounding to nearest even
};
struct Expr {
  ExprKind kind = ExprKind::constant;
  DType dtype = DType::f32;
  ScalarOp op = ScalarOp::add;
  std::uint8_t slot_of_state = 0;
  std::uint32_t payload = 0;
  std::uint32_t first_arg = 0;  // into Nest::expr_args
  std::uint16_t arg_count = 0;
  double number = 0;
  std::int64_t integer = 0;
};

// When expressions are evaluated. Within one block (the body of a loop or of a `when`) an expression has one value:
// that of its first use there or in an enclosing block; a store in the same block does not change it. A loop that
// stores to a parameter or stage reads it anew inside and after it, except for values that a Let has named. Arithmetic
// may be done outside the loops and branches where it stands, and a load outside loops that do not store to its
// parameter (then even if the loop has no iteration), but never outside a `when`.
struct Statement;
using Block = std::vector<Statement>;

enum class Bind : std::uint8_t { chunk, grid, cluster, rows, lanes, serial, unroll, tile };

// for (index = begin; index < end; index += step). Folds declared here start at their identity when the loop starts and
// are complete when it ends, whatever the binding; their updates may stand anywhere inside.
struct Loop {
  LoopId id = 0;
  std::string name;  // of the index variable
  Bind bind = Bind::serial;
  ExprId begin = no_expr, end = no_expr;
  std::int64_t step = 1;
  std::vector<FoldId> folds;
  Block body;
  std::string comment;
  int width = 0;    // of a lanes loop: elements that a vector holds; 0: the target decides
  int vectors = 0;  // of a lanes loop: vectors of one thread, written out one by one; 0: as many as it takes
};
// Names a value: printed as a variable at this place.
struct Let {
  std::string name;
  ExprId value = no_expr;
};
// state = merge(state, lift(operands, index))
struct Update {
  FoldId fold = 0;
  std::vector<ExprId> operands;
  ExprId index = no_expr;  // global index along the folded axis, for monoids whose lift reads it
};
// state = merge(state, given)
struct Merge {
  FoldId fold = 0;
  std::vector<ExprId> state;
  bool lifted = false;  // `given` is the lift of one element: the monoid may absorb several such at once
};
enum class StoreMode : std::uint8_t { write, accumulate, in_place };
// parameter[index] = value, or += value (accumulate: rounded once per store); in_place: what the block reads of the
// parameter, also behind the store, is its old value.
struct Store {
  ParameterId parameter = 0;
  std::vector<ExprId> index;
  ExprId value = no_expr;
  StoreMode mode = StoreMode::write;
  bool streaming = false;  // will not be read soon: bypass the cache where the target can
};
// Stores a whole state, one parameter per slot; accumulate: memory = merge(memory, state), once for each
// iteration also where the index does not move with the lanes.
struct StoreState {
  std::uint32_t monoid = 0;
  std::vector<ParameterId> parameters;
  std::vector<ExprId> index;
  std::vector<ExprId> state;
  StoreMode mode = StoreMode::write;
};
struct StageStore {
  StageId stage = 0;
  std::vector<ExprId> index;
  ExprId value = no_expr;
};
// Runs the body where the condition holds. In a lanes loop it masks the loads, stores and updates of lanes where it
// does not; a load at an index that is the same for all lanes is done regardless.
struct When {
  ExprId condition = no_expr;
  Block body;
};
struct Statement {
  std::variant<Loop, Let, Update, Merge, Store, StoreState, StageStore, When> node;
};

struct Fold {
  std::string name;
  std::uint32_t monoid = 0;  // Nest::monoids
  DType element = DType::f32;
  std::int64_t depth = 0;  // longest chain of merges the nest gives this fold; checked against the contract
};

// Values kept near between two places of one nest, e.g. a row between its passes. `lane`: each thread holds the
// elements that it meets in lanes loops of one geometry (bounds, width, vectors) and reads no others; its first pass
// stores them.
enum class Keep : std::uint8_t { lane, block, cluster, scratch };
struct Stage {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> extents;  // constant, row-major
  Keep keep = Keep::scratch;
  int depth = 1;
};

// A part is an independent piece of a kernel with a grid loop of its own: parts share one launch, nothing else.
struct Part {
  std::string name;
  std::uint16_t partitions_slot = 0;  // slot with the number of partitions
  Loop grid;                          // bind grid; index = partition in [0, partitions)
  // Where the target has threads; 0: the target decides. `threads` of them run a partition. Rows are dealt out to
  // groups of `group` threads (a power of two up to 32, or all), which share the lanes of their row; outside rows loops
  // all threads share the lanes.
  int threads = 0;
  int group = 0;
};

struct Nest {
  std::string name;
  std::string formula;  // for the head comment, as are the notes: a sentence each
  std::vector<std::string> notes;
  std::vector<Axis> axes;
  std::vector<Parameter> parameters;
  std::vector<ScalarParameter> scalars;
  std::vector<Slot> slots;
  std::vector<dsl::Monoid> monoids;
  std::vector<Fold> folds;
  std::vector<Stage> stages;
  std::vector<Expr> exprs;  // a DAG; args before users
  std::vector<ExprId> expr_args;
  std::map<ExprId, std::string> names;  // what values are called: by the user, or as what a fold finishes to
  std::vector<Part> parts;
  LoopId loop_count = 0;
};

// The kernel's parameter block, one layout for every target: 8-byte cells, first the pointers in order of ParameterId,
// then the slots, then the scalars (each in its own dtype, in the low bytes of its cell).
struct ParameterLayout {
  std::uint32_t pointers = 0, slots = 0, scalars = 0;
  [[nodiscard]] std::uint32_t pointer_cell(ParameterId id) const { return id; }
  [[nodiscard]] std::uint32_t slot_cell(std::uint32_t slot) const { return pointers + slot; }
  [[nodiscard]] std::uint32_t scalar_cell(std::uint32_t scalar) const { return pointers + slots + scalar; }
  [[nodiscard]] std::uint32_t cells() const { return pointers + slots + scalars; }
};
inline ParameterLayout parameter_layout(const Nest& nest) {
  return {static_cast<std::uint32_t>(nest.parameters.size()), static_cast<std::uint32_t>(nest.slots.size()),
          static_cast<std::uint32_t>(nest.scalars.size())};
}

// The contract on summation depth that the reference's bound is built on: an error bound of depth(n) * unit roundoff.
constexpr std::int64_t allowed_depth(std::int64_t n) {
  const std::int64_t blocked = 64 + (n + 63) / 64;
  return n < blocked ? n : blocked;
}

}  // namespace tigon::loops
