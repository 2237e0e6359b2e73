// Builds nests: expressions are hash-consed, index arithmetic is folded, dtypes are checked as each operation is made.
#pragma once
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/loops/nest.hpp"

namespace tigon::loops {

// The dtype that an operation on operands of these dtypes yields; throws Error{internal} where the operands do not fit.
DType operation_dtype(ScalarOp op, std::span<const DType> operands);

class NestBuilder {
 public:
  Nest nest;

  // Tables. Each returns the new entry's index.
  std::uint16_t axis(std::string name, std::int64_t extent = at_run_time);
  ParameterId parameter(Parameter parameter);
  std::uint32_t scalar_parameter(std::string name, DType dtype);
  int monoid(const dsl::Monoid& monoid);  // finds by name or adds
  FoldId fold(std::string name, int monoid, DType element, std::int64_t depth = 0);
  StageId stage(Stage stage);
  LoopId new_loop() { return nest.loop_count++; }
  // A loop over [begin, end) with a fresh id; its body and folds are the caller's to fill.
  Loop loop(std::string name, Bind bind, ExprId begin, ExprId end, std::int64_t step = 1);
  // Adds an empty part with its partitions slot and its grid loop over [0, partitions).
  std::size_t part(std::string name, std::string index_name = "partition");

  // Leaves.
  ExprId integer(std::int64_t value);        // i64
  ExprId number(DType dtype, double value);  // of any dtype
  ExprId truth(bool value);
  ExprId slot(const Slot& slot);      // finds or adds
  ExprId extent(std::uint16_t axis);  // the constant, if the axis has one
  ExprId origin(std::uint16_t axis);
  ExprId global_extent(std::uint16_t axis);                       // the constant, if the axis has one
  ExprId stride(ParameterId parameter, std::uint16_t dimension);  // the constant, if the parameter has one
  ExprId partitions(std::uint16_t part);
  ExprId scalar(std::uint32_t scalar);
  ExprId loop_index(LoopId loop);
  ExprId load(ParameterId parameter, const std::vector<ExprId>& index);
  ExprId stage_load(StageId stage, const std::vector<ExprId>& index);
  ExprId fold_state(FoldId fold, int state_slot = 0);

  ExprId copy(const Expr& expr, const std::vector<ExprId>& args) {
    return make(expr, args);
  }  // of a nest with equal tables

  // Operands of unequal dtypes are promoted; 16-bit floats widen to f32 wherever they are computed with.
  ExprId op(ScalarOp op, std::vector<ExprId> args);
  ExprId cast(DType dtype, ExprId value);  // the value itself where nothing changes
  ExprId add(ExprId a, ExprId b) { return op(ScalarOp::add, {a, b}); }
  ExprId sub(ExprId a, ExprId b) { return op(ScalarOp::sub, {a, b}); }
  ExprId mul(ExprId a, ExprId b) { return op(ScalarOp::mul, {a, b}); }
  ExprId div(ExprId a, ExprId b) { return op(ScalarOp::div, {a, b}); }
  ExprId floor_div(ExprId a, ExprId b) { return op(ScalarOp::floor_div, {a, b}); }
  ExprId rem(ExprId a, ExprId b) { return op(ScalarOp::rem, {a, b}); }
  ExprId min(ExprId a, ExprId b) { return op(ScalarOp::min, {a, b}); }
  ExprId max(ExprId a, ExprId b) { return op(ScalarOp::max, {a, b}); }
  ExprId less(ExprId a, ExprId b) { return op(ScalarOp::less, {a, b}); }
  ExprId ceil_div(ExprId a, ExprId b);  // of non-negative i64s

  // The program's results with `inputs` in place of its inputs; `element` is the dtype it runs on.
  std::vector<ExprId> inline_program(const ScalarProgram& program, std::span<const ExprId> inputs, DType element);
  // Finish number `finish` of a completed fold, or of a given state of one of the nest's monoids.
  ExprId finish(FoldId fold, std::size_t finish);
  ExprId finish_state(int monoid, std::span<const ExprId> state, DType element, std::size_t finish);
  // The identity of a monoid as constants.
  std::vector<ExprId> identity(int monoid, DType element);

  [[nodiscard]] DType dtype(ExprId id) const { return nest.exprs[id].dtype; }
  [[nodiscard]] bool is_integer(ExprId id, std::int64_t value) const;  // an integer constant of this value

 private:
  using Key = std::tuple<int, int, int, int, std::uint32_t, std::vector<ExprId>, std::uint64_t, std::int64_t>;
  std::map<Key, ExprId> known_;

  ExprId make(Expr expr, const std::vector<ExprId>& args);
  ExprId fold_integers(ScalarOp op, const std::vector<ExprId>& args);
  void check_index(const std::vector<ExprId>& index, std::size_t dimensions, const std::string& of);
};

// Statements, spelled shortly.
inline Statement statement(Loop loop) { return {std::move(loop)}; }
inline Statement let(std::string name, ExprId value) { return {Let{std::move(name), value}}; }
inline Statement update(FoldId fold, std::vector<ExprId> operands, ExprId index = no_expr) {
  return {Update{fold, std::move(operands), index}};
}
inline Statement merge(FoldId fold, std::vector<ExprId> state) { return {Merge{fold, std::move(state)}}; }
inline Statement store(ParameterId parameter, std::vector<ExprId> index, ExprId value,
                       StoreMode mode = StoreMode::write, bool streaming = false) {
  return {Store{parameter, std::move(index), value, mode, streaming}};
}
inline Statement stage_store(StageId stage, std::vector<ExprId> index, ExprId value) {
  return {StageStore{stage, std::move(index), value}};
}
inline Statement when(ExprId condition, Block body) { return {When{condition, std::move(body)}}; }

}  // namespace tigon::loops
