// Placement, value numbering and folding of lowered instructions.
#include "codegen/lower/emitter.hpp"

#include <bit>

#include <fmt/format.h>

#include "dsl/printable.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::lower {
namespace {

bool has_effect(const Instruction& i) {
  switch (i.code) {
    case Code::store:
    case Code::scatter:
    case Code::write:
    case Code::declare:
    case Code::load_pack:
    case Code::store_pack:
    case Code::set_element:
    case Code::barrier:
      return true;
    default:
      return false;
  }
}

std::string key_of(const Instruction& i) {
  std::string key =
      fmt::format("{}:{}:{}:{}:{}:{}:{}:{:x}:{}", static_cast<int>(i.code), static_cast<int>(i.type.dtype),
                  i.type.lanes, i.type.pointer, static_cast<int>(i.op), static_cast<int>(i.memory), i.payload,
                  std::bit_cast<std::uint64_t>(i.number), i.integer);
  for (const ValueId arg : i.args) key += fmt::format(",{}", arg);
  return key;
}

}  // namespace

Emitter::Emitter(Lowered& lowered) : lowered_(lowered) {}

void Emitter::open(Block& block) { scopes_.push_back({&block, {}}); }
void Emitter::close() { scopes_.pop_back(); }

ValueId Emitter::new_value(Type type, const std::string& hint, int depth) {
  lowered_.values.push_back({type, hint});
  depths_.push_back(depth);
  is_constant_.push_back(false);
  integers_.push_back(0);
  numbers_.push_back(0);
  return static_cast<ValueId>(lowered_.values.size() - 1);
}

ValueId Emitter::pure(Instruction instruction, const std::string& hint) {
  int depth = 0;
  for (const ValueId arg : instruction.args) depth = std::max(depth, depths_[arg]);
  Scope& scope = scopes_[static_cast<std::size_t>(depth)];
  std::string key = key_of(instruction);
  const auto found = scope.known.find(key);
  if (found != scope.known.end()) return found->second;
  const ValueId value = new_value(instruction.type, hint, depth);
  instruction.result = value;
  scope.known.emplace(std::move(key), value);
  scope.block->push_back({std::move(instruction)});
  return value;
}

ValueId Emitter::effect(Instruction instruction, const std::string& hint, int depth) {
  if (depth < 0) depth = this->depth();
  if (!has_effect(instruction)) instruction.result = new_value(instruction.type, hint, depth);
  const ValueId result = instruction.result;
  scopes_[static_cast<std::size_t>(depth)].block->push_back({std::move(instruction)});
  return result;
}

ValueId Emitter::index_value(const std::string& hint, DType dtype) { return new_value({dtype}, hint, depth() + 1); }

ValueId Emitter::constant(Type type, double number, std::int64_t integer) {
  Instruction instruction;
  instruction.type = type;
  instruction.number = number;
  instruction.integer = integer;
  std::string key = key_of(instruction);
  Scope& scope = scopes_.front();
  const auto found = scope.known.find(key);
  if (found != scope.known.end()) return found->second;
  const bool scalar = type.lanes == 1;
  std::string hint;
  if (!scalar)
    hint = is_floating(type.dtype) ? fmt::format("const_{}", static_cast<float>(number))
                                   : fmt::format("const_{}", integer);
  for (char& c : hint)
    if (c == '-' || c == '+') c = 'm';
  const ValueId value = new_value(type, hint, 0);
  is_constant_[value] = true;
  integers_[value] = integer;
  numbers_[value] = number;
  instruction.result = value;
  scope.known.emplace(std::move(key), value);
  if (scalar)
    lowered_.constants.push_back(std::move(instruction));
  else
    scope.block->push_back({std::move(instruction)});
  return value;
}

ValueId Emitter::entry_value(Code code) {
  Instruction instruction;
  instruction.code = code;
  instruction.type = {DType::i64};
  std::string key = key_of(instruction);
  Scope& scope = scopes_.front();
  const auto found = scope.known.find(key);
  if (found != scope.known.end()) return found->second;
  const ValueId value = new_value(instruction.type, {}, 0);
  instruction.result = value;
  scope.known.emplace(std::move(key), value);
  lowered_.constants.push_back(std::move(instruction));
  return value;
}

ValueId Emitter::number(Type type, double value) {
  if (is_floating(type.dtype)) return constant(type, value, 0);
  return constant(type, 0.0, type.dtype == DType::boolean ? value != 0 : dsl::nearest_integer(type.dtype, value));
}

ValueId Emitter::broadcast(ValueId value, int lanes) {
  if (this->lanes(value) == lanes) return value;
  Type type = this->type(value);
  type.lanes = static_cast<std::uint16_t>(lanes);
  if (is_constant(value)) return constant(type, numbers_[value], integers_[value]);
  Instruction instruction;
  instruction.code = Code::broadcast;
  instruction.type = type;
  instruction.args = {value};
  const std::string hint = lowered_.values[value].name;
  return pure(std::move(instruction), hint.empty() ? "all" : hint + ".all");
}

ValueId Emitter::slice(ValueId value, int from, int lanes) {
  Instruction instruction;
  instruction.code = Code::slice;
  instruction.type = type(value);
  instruction.type.lanes = static_cast<std::uint16_t>(lanes);
  instruction.integer = from;
  instruction.args = {value};
  return pure(std::move(instruction), lanes == 1 ? "lane" : from == 0 ? "low" : "high");
}

ValueId Emitter::operation(ScalarOp op, std::vector<ValueId> args, const std::string& hint, bool non_negative) {
  int lanes = 1;
  bool constants = true;
  for (const ValueId arg : args) {
    lanes = std::max(lanes, this->lanes(arg));
    constants = constants && is_constant(arg);
  }
  const bool whole = type(args.back()).dtype == DType::i64;
  if (whole && args.size() == 2) {
    const ValueId a = args[0];
    const ValueId b = args[1];
    if (constants && lanes == 1) {
      const std::int64_t x = integers_[a];
      const std::int64_t y = integers_[b];
      if (op == ScalarOp::add) return integer(x + y);
      if (op == ScalarOp::sub) return integer(x - y);
      if (op == ScalarOp::mul) return integer(x * y);
      if (op == ScalarOp::min) return integer(std::min(x, y));
      if (op == ScalarOp::max) return integer(std::max(x, y));
      if (op == ScalarOp::bit_and) return integer(x & y);
      if (op == ScalarOp::less) return constant({DType::boolean}, 0, x < y ? 1 : 0);
      if ((op == ScalarOp::floor_div || op == ScalarOp::rem) && x >= 0 && y > 0)
        return integer(op == ScalarOp::rem ? x % y : x / y);
    }
    if ((op == ScalarOp::add || op == ScalarOp::sub) && is_integer(b, 0)) return broadcast(a, lanes);
    if (op == ScalarOp::add && is_integer(a, 0)) return broadcast(b, lanes);
    if (op == ScalarOp::mul && is_integer(b, 1)) return broadcast(a, lanes);
    if (op == ScalarOp::mul && is_integer(a, 1)) return broadcast(b, lanes);
    if (op == ScalarOp::mul && (is_integer(a, 0) || is_integer(b, 0)))
      return constant({DType::i64, static_cast<std::uint16_t>(lanes)}, 0, 0);
    if (op == ScalarOp::floor_div && is_integer(b, 1)) return broadcast(a, lanes);
    if (op == ScalarOp::rem && is_integer(b, 1)) return constant({DType::i64, static_cast<std::uint16_t>(lanes)}, 0, 0);
  }
  std::vector<DType> dtypes;
  for (ValueId& arg : args) {
    arg = broadcast(arg, lanes);
    dtypes.push_back(type(arg).dtype);
  }
  Instruction instruction;
  instruction.code = Code::operation;
  instruction.op = op;
  instruction.type = {dsl::result_dtype(op, dtypes), static_cast<std::uint16_t>(lanes)};
  instruction.non_negative = non_negative;
  instruction.args = std::move(args);
  return pure(std::move(instruction), hint.empty() ? std::string(dsl::name(op)) : hint);
}

ValueId Emitter::cast(DType dtype, ValueId value, const std::string& hint) {
  const Type from = type(value);
  if (from.dtype == dtype) return value;
  if (is_constant(value) && !is_16_bit_float(dtype) && !is_16_bit_float(from.dtype)) {
    const bool wide = is_floating(from.dtype);
    const double x = wide ? numbers_[value] : static_cast<double>(integers_[value]);
    if (is_floating(dtype) && dtype == DType::f64 && !wide) return constant({dtype, from.lanes}, x, 0);
    if (dtype == DType::f64 && from.dtype == DType::f32) return constant({dtype, from.lanes}, static_cast<float>(x), 0);
    if (dtype == DType::f32) return constant({dtype, from.lanes}, static_cast<float>(x), 0);
    if (!wide && (dtype == DType::i64 || dtype == DType::i32))
      return constant({dtype, from.lanes}, 0,
                      dtype == DType::i32 ? static_cast<std::int32_t>(integers_[value]) : integers_[value]);
  }
  Instruction instruction;
  instruction.code = Code::cast;
  instruction.type = {dtype, from.lanes};
  instruction.args = {value};
  return pure(std::move(instruction), hint.empty() ? std::string(name(dtype)) : hint);
}

ValueId Emitter::address(ValueId pointer, ValueId offset, DType memory, const std::string& hint) {
  if (is_integer(offset, 0) && lanes(offset) == 1) return pointer;
  Instruction instruction;
  instruction.code = Code::address;
  instruction.type = {DType::i64, static_cast<std::uint16_t>(lanes(offset)), true};
  instruction.memory = memory;
  instruction.args = {pointer, offset};
  return pure(std::move(instruction), hint);
}

ValueId Emitter::lane_numbers(DType dtype, int lanes) {
  if (lanes == 1) return constant({dtype}, 0, 0);
  Instruction instruction;
  instruction.code = Code::lane_numbers;
  instruction.type = {dtype, static_cast<std::uint16_t>(lanes)};
  return pure(std::move(instruction), "lanes");
}

VariableId Emitter::variable(const std::string& hint, Type type) {
  lowered_.variables.push_back({hint, type});
  return static_cast<VariableId>(lowered_.variables.size() - 1);
}

ValueId Emitter::read(VariableId variable, const std::string& hint) {
  Instruction instruction;
  instruction.code = Code::read;
  instruction.type = lowered_.variables[variable].type;
  instruction.payload = variable;
  return effect(std::move(instruction), hint);
}

void Emitter::write(VariableId variable, ValueId value) {
  Instruction instruction;
  instruction.code = Code::write;
  instruction.payload = variable;
  instruction.args = {broadcast(value, lowered_.variables[variable].type.lanes)};
  effect(std::move(instruction), {});
}

void Emitter::rename(ValueId value, const std::string& hint) {
  if (is_constant(value)) return;
  lowered_.values[value].name = hint;
  lowered_.values[value].named = true;
}

namespace {

template <class Visit>
void each_instruction(Block& block, Visit&& visit) {
  for (Item& item : block) {
    if (auto* instruction = std::get_if<Instruction>(&item.node)) visit(*instruction);
    if (auto* loop = std::get_if<For>(&item.node)) {
      Instruction index;
      index.result = loop->index;
      index.args = {loop->begin, loop->end};
      visit(index);
      each_instruction(loop->body, visit);
    }
    if (const auto* merge = std::get_if<MergeState>(&item.node)) {
      Instruction given;
      given.args = merge->given;
      visit(given);
    }
    if (auto* branch = std::get_if<If>(&item.node)) {
      Instruction condition;
      condition.args = {branch->condition};
      visit(condition);
      each_instruction(branch->body, visit);
      each_instruction(branch->otherwise, visit);
    }
  }
}

void drop_unused(Block& block, const std::vector<std::uint32_t>& uses, bool& changed) {
  Block kept;
  for (Item& item : block) {
    if (const auto* i = std::get_if<Instruction>(&item.node); i != nullptr && !has_effect(*i) && uses[i->result] == 0) {
      changed = true;
      continue;
    }
    if (auto* loop = std::get_if<For>(&item.node)) drop_unused(loop->body, uses, changed);
    if (auto* branch = std::get_if<If>(&item.node)) {
      drop_unused(branch->body, uses, changed);
      drop_unused(branch->otherwise, uses, changed);
    }
    kept.push_back(std::move(item));
  }
  block = std::move(kept);
}

}  // namespace

void remove_dead(Lowered& lowered) {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<std::uint32_t> uses(lowered.values.size(), 0);
    each_instruction(lowered.body, [&](const Instruction& i) {
      for (const ValueId arg : i.args) ++uses[arg];
    });
    for (MergeFunction& merge : lowered.merges)
      each_instruction(merge.body, [&](const Instruction& i) {
        for (const ValueId arg : i.args) ++uses[arg];
      });
    drop_unused(lowered.body, uses, changed);
    for (MergeFunction& merge : lowered.merges) drop_unused(merge.body, uses, changed);
  }
}

void settle_names(Lowered& lowered) {
  std::map<std::string, int> taken = {{"parameters", 1}, {"first", 1}, {"last", 1}, {"scratch", 1}};
  const auto unique = [&](const std::string& hint) {
    std::string base;
    for (const char c : hint)
      base +=
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ? c : '_';
    if (base.empty() || (base[0] >= '0' && base[0] <= '9')) base = "v" + base;
    if (base.size() > dsl::longest_name) base.resize(dsl::longest_name);
    int& count = taken[base];
    std::string result = count == 0 ? base : fmt::format("{}.{}", base, count);
    while (count != 0 && taken.count(result) != 0) result = fmt::format("{}.{}", base, ++count);
    ++count;
    if (result != base) taken[result] = 1;
    return result;
  };
  for (Variable& variable : lowered.variables) variable.name = unique(variable.name);
  std::vector<bool> named(lowered.values.size(), false);
  each_instruction(lowered.body, [&](const Instruction& i) {
    if (i.result == no_value || named[i.result]) return;
    named[i.result] = true;
    lowered.values[i.result].name = unique(lowered.values[i.result].name);
  });
}

}  // namespace tigon::lower
