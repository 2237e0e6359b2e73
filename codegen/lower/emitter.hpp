// Appends instructions to the scope where their operands live: code that does not depend on a loop lands outside it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "codegen/lower/lowered.hpp"

namespace tigon::lower {

class Emitter {
 public:
  explicit Emitter(Lowered& lowered);

  // Scopes. `open` starts one that appends to `block`; several open scopes may share one block.
  void open(Block& block);
  void close();
  [[nodiscard]] int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  [[nodiscard]] Block& block() { return *scopes_.back().block; }

  // A pure instruction: placed as far out as its operands allow, found again when it exists there.
  ValueId pure(Instruction instruction, const std::string& hint);
  // An instruction that reads or writes memory or variables, at the given depth (the innermost scope: -1).
  ValueId effect(Instruction instruction, const std::string& hint, int depth = -1);
  // Of a For about to be opened; belongs to the next scope.
  ValueId index_value(const std::string& hint, DType dtype = DType::i64);
  void comment(const std::string& text) { block().push_back({Comment{text}}); }

  ValueId constant(Type type, double number, std::int64_t integer);
  ValueId entry_value(Code code);  // `first` or `last`
  ValueId integer(std::int64_t value) { return constant({DType::i64}, 0, value); }
  ValueId number(Type type, double value);
  // Lanes are made equal by broadcasting; i64 scalars are folded.
  ValueId operation(ScalarOp op, std::vector<ValueId> args, const std::string& hint = {}, bool non_negative = false);
  ValueId cast(DType dtype, ValueId value, const std::string& hint = {});
  ValueId broadcast(ValueId value, int lanes);
  ValueId slice(ValueId value, int from, int lanes);
  ValueId add(ValueId a, ValueId b) { return operation(ScalarOp::add, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return operation(ScalarOp::sub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return operation(ScalarOp::mul, {a, b}); }
  ValueId address(ValueId pointer, ValueId offset, DType memory, const std::string& hint);
  ValueId lane_numbers(DType dtype, int lanes);

  VariableId variable(const std::string& hint, Type type);
  ValueId read(VariableId variable, const std::string& hint);
  void write(VariableId variable, ValueId value);

  [[nodiscard]] const Type& type(ValueId value) const { return lowered_.values[value].type; }
  [[nodiscard]] int lanes(ValueId value) const { return type(value).lanes; }
  [[nodiscard]] int depth_of(ValueId value) const { return depths_[value]; }
  [[nodiscard]] bool is_constant(ValueId value) const { return is_constant_[value]; }
  [[nodiscard]] std::int64_t constant_integer(ValueId value) const { return integers_[value]; }
  [[nodiscard]] bool is_integer(ValueId value, std::int64_t wanted) const {
    return is_constant(value) && !type(value).pointer && !is_floating(type(value).dtype) && integers_[value] == wanted;
  }
  void rename(ValueId value, const std::string& hint);

  [[nodiscard]] Lowered& lowered() { return lowered_; }

 private:
  struct Scope {
    Block* block = nullptr;
    std::map<std::string, ValueId> known;
  };
  Lowered& lowered_;
  std::vector<Scope> scopes_;
  std::vector<int> depths_;             // by value
  std::vector<bool> is_constant_;       // by value: every lane holds integers_ or numbers_
  std::vector<std::int64_t> integers_;  // by value
  std::vector<double> numbers_;         // by value

  ValueId new_value(Type type, const std::string& hint, int depth);
};

// Makes the names of values and variables unique, in the order of their definition.
void settle_names(Lowered& lowered);
// Drops pure instructions and reads whose result nobody uses.
void remove_dead(Lowered& lowered);

}  // namespace tigon::lower
