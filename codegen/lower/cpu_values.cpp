// Expressions of a nest as values: each once, in the outermost scope where it holds.
#include <bit>

#include <fmt/format.h>

#include "codegen/loops/walk.hpp"
#include "codegen/lower/cpu_lowering.hpp"
#include "dsl/scalar_table.hpp"
#include "tigon/error.hpp"

namespace tigon::lower {

using loops::Expr;
using loops::ExprKind;

void lowering_error(const loops::Nest& nest, const std::string& sentence) {
  throw Error({.kind = ErrorKind::internal, .function = nest.name}, sentence);
}

bool CpuLowering::varies(ExprId id) {
  if (!lanes_) return false;
  std::int8_t& known = varies_[id];
  if (known >= 0) return known != 0;
  const Expr& e = nest_.exprs[id];
  bool result = false;
  if (e.kind == ExprKind::loop_index) result = e.payload == lanes_->loop->id;
  if (e.kind == ExprKind::fold_state) result = per_lane_folds_.count(e.payload) != 0;
  for (const ExprId arg : loops::args_of(nest_, id)) result = varies(arg) || result;
  varies_[id] = result ? 1 : 0;
  return result;
}

bool CpuLowering::non_negative(ExprId id) {
  std::int8_t& known = non_negative_[id];
  if (known >= 0) return known != 0;
  const Expr& e = nest_.exprs[id];
  const auto args = loops::args_of(nest_, id);
  bool result = false;
  switch (e.kind) {
    case ExprKind::constant:
      result = !is_floating(e.dtype) && e.integer >= 0;
      break;
    case ExprKind::slot:
      result = nest_.slots[e.payload].kind != loops::SlotKind::stride;
      break;
    case ExprKind::loop_index: {
      const auto loop = loops_.find(e.payload);
      result = loop != loops_.end() && loop->second->step > 0 &&
               (loop->second->bind == loops::Bind::grid || non_negative(loop->second->begin));
      break;
    }
    case ExprKind::cast:
      result = !is_floating(e.dtype) && !is_floating(nest_.exprs[args[0]].dtype) && e.dtype == DType::i64 &&
               non_negative(args[0]);
      break;
    case ExprKind::operation: {
      const auto both = [&] { return non_negative(args[0]) && non_negative(args[1]); };
      if (is_floating(e.dtype)) break;
      if (e.op == ScalarOp::add || e.op == ScalarOp::mul || e.op == ScalarOp::min || e.op == ScalarOp::floor_div ||
          e.op == ScalarOp::rem)
        result = both();
      if (e.op == ScalarOp::max) result = non_negative(args[0]) || non_negative(args[1]);
      if (e.op == ScalarOp::sub) {  // one less than the partitions, of which a running part has at least one
        const Expr& whole = nest_.exprs[args[0]];
        const Expr& less = nest_.exprs[args[1]];
        result = whole.kind == ExprKind::slot && nest_.slots[whole.payload].kind == loops::SlotKind::partitions &&
                 less.kind == ExprKind::constant && less.integer <= 1;
      }
      if (e.op == ScalarOp::where) result = non_negative(args[1]) && non_negative(args[2]);
      break;
    }
    default:
      break;
  }
  non_negative_[id] = result ? 1 : 0;
  return result;
}

std::string CpuLowering::hint(ExprId id) const {
  const auto named = let_names_.find(id);
  if (named != let_names_.end()) return named->second;
  const Expr& e = nest_.exprs[id];
  switch (e.kind) {
    case ExprKind::load:
      return nest_.parameters[e.payload].name;
    case ExprKind::stage_load:
      return nest_.stages[e.payload].name;
    case ExprKind::fold_state:
      return nest_.folds[e.payload].name;
    case ExprKind::scalar:
      return nest_.scalars[e.payload].name;
    case ExprKind::cast: {
      // A widened load keeps the parameter's name.
      const ExprId inner = loops::args_of(nest_, id)[0];
      return nest_.exprs[inner].kind == ExprKind::operation ? std::string(name(e.dtype)) : hint(inner);
    }
    case ExprKind::slot: {
      const loops::Slot& slot = nest_.slots[e.payload];
      switch (slot.kind) {
        case loops::SlotKind::extent:
          return nest_.axes[slot.axis].name;
        case loops::SlotKind::origin:
          return nest_.axes[slot.axis].name + ".origin";
        case loops::SlotKind::global_extent:
          return nest_.axes[slot.axis].name + ".whole";
        case loops::SlotKind::stride:
          return fmt::format("{}.stride{}", nest_.parameters[slot.parameter].name, slot.dimension);
        case loops::SlotKind::partitions:
          return "partitions";
      }
      return "slot";
    }
    case ExprKind::operation:
      return std::string(dsl::name(e.op));
    default:
      return "value";
  }
}

ValueId CpuLowering::part(const Emitted& value, int copy) const {
  return value.parts.size() == 1 ? value.parts[0] : value.parts[static_cast<std::size_t>(copy)];
}

CpuLowering::Emitted CpuLowering::value(ExprId id) {
  for (std::size_t d = scopes_.size(); d-- > 0;) {
    const auto found = scopes_[d].values.find(id);
    if (found != scopes_[d].values.end()) return found->second;
  }
  Emitted result = compute(id);
  scopes_[static_cast<std::size_t>(result.depth)].values[id] = result;
  return result;
}

ValueId CpuLowering::scalar_value(ExprId id) {
  const Emitted result = value(id);
  if (emit_.lanes(result.parts[0]) != 1 || result.parts.size() != 1)
    lowering_error(nest_, "a loop bound or a branch differs between lanes");
  return result.parts[0];
}

CpuLowering::Emitted CpuLowering::compute(ExprId id) {
  const Expr& e = nest_.exprs[id];
  Emitted result;
  Instruction instruction;
  switch (e.kind) {
    case ExprKind::constant:
      result.parts = {emit_.constant({e.dtype}, e.number, e.dtype == DType::boolean ? (e.number != 0) : e.integer)};
      return result;
    case ExprKind::slot:
    case ExprKind::scalar:
      instruction.code = e.kind == ExprKind::slot ? Code::slot : Code::scalar;
      instruction.type = {e.dtype};
      instruction.payload = e.payload;
      result.parts = {emit_.pure(instruction, hint(id))};
      return result;
    case ExprKind::loop_index: {
      if (!lanes_ || e.payload != lanes_->loop->id) {
        const auto found = loop_values_.find(e.payload);
        if (found == loop_values_.end()) lowering_error(nest_, "a loop index is read outside its loop");
        return found->second;
      }
      result.depth = lanes_->depth;
      for (const ValueId first : lanes_->first)
        result.parts.push_back(
            emit_.operation(ScalarOp::add, {first, emit_.lane_numbers(DType::i64, lanes_->width)}, lanes_->loop->name));
      return result;
    }
    case ExprKind::load:
    case ExprKind::stage_load:
      return load(id);
    case ExprKind::fold_state: {
      const auto found = fold_results_.find(e.payload);
      if (found == fold_results_.end())
        lowering_error(nest_, fmt::format("fold {} is read before its loop ends", nest_.folds[e.payload].name));
      return found->second[e.slot_of_state];
    }
    case ExprKind::operation:
    case ExprKind::cast:
      break;
  }
  if (std::optional<Emitted> compared = compare_position(id)) return *std::move(compared);
  std::vector<Emitted> args;
  std::size_t copies = 1;
  bool unsigned_ok = e.op == ScalarOp::floor_div || e.op == ScalarOp::rem;
  for (const ExprId arg : loops::args_of(nest_, id)) {
    args.push_back(value(arg));
    copies = std::max(copies, args.back().parts.size());
    result.depth = std::max(result.depth, args.back().depth);
    unsigned_ok = unsigned_ok && e.dtype == DType::i64 && non_negative(arg);
  }
  for (std::size_t copy = 0; copy < copies; ++copy) {
    if (e.kind == ExprKind::cast) {
      result.parts.push_back(emit_.cast(e.dtype, part(args[0], static_cast<int>(copy)), hint(id)));
      continue;
    }
    std::vector<ValueId> operands;
    for (const Emitted& arg : args) operands.push_back(part(arg, static_cast<int>(copy)));
    result.parts.push_back(emit_.operation(e.op, std::move(operands), hint(id), unsigned_ok));
  }
  return result;
}

// A position that moves by one from lane to lane, compared with a number that all lanes share: the lane's own number is
// compared with their distance, in 32 bits where the position has 64.
std::optional<CpuLowering::Emitted> CpuLowering::compare_position(ExprId id) {
  const Expr& e = nest_.exprs[id];
  const bool equality = e.op == ScalarOp::equal || e.op == ScalarOp::not_equal;
  const bool order = e.op == ScalarOp::less || e.op == ScalarOp::less_equal;
  if (e.kind != ExprKind::operation || !(equality || order) || !lanes_ || lanes_->width == 1) return std::nullopt;
  const auto args = loops::args_of(nest_, id);
  if (nest_.exprs[args[0]].dtype != DType::i64 || nest_.exprs[args[1]].dtype != DType::i64) return std::nullopt;
  const std::size_t moving = varies(args[0]) ? 0 : 1;
  if (!varies(args[moving]) || varies(args[1 - moving])) return std::nullopt;
  const Stride stride = lane_stride(args[moving]);
  if (stride.kind != Stride::constant || stride.value != 1) return std::nullopt;
  // A distance that wraps around equals no lane's number, but may be on its wrong side.
  if (order && !(non_negative(args[0]) && non_negative(args[1]))) return std::nullopt;
  Emitted result;
  const Emitted shared = value(args[1 - moving]);
  result.depth = std::max(lanes_->depth, shared.depth);
  for (int copy = 0; copy < lanes_->copies; ++copy) {
    const Emitted first = first_value(args[moving], copy);
    result.depth = std::max(result.depth, first.depth);
    ValueId distance = emit_.sub(shared.parts[0], first.parts[0]);
    distance = emit_.operation(ScalarOp::max, {distance, emit_.integer(-1)});
    distance = emit_.operation(ScalarOp::min, {distance, emit_.integer(lanes_->width)});
    std::vector<ValueId> operands(2);
    operands[moving] = emit_.lane_numbers(DType::i32, lanes_->width);
    operands[1 - moving] = emit_.broadcast(emit_.cast(DType::i32, distance, "distance"), lanes_->width);
    result.parts.push_back(emit_.operation(e.op, std::move(operands), hint(id)));
  }
  return result;
}

// The value in the first lane of a copy: what addresses of consecutive elements start from.
CpuLowering::Emitted CpuLowering::first_value(ExprId id, int copy) {
  if (!varies(id)) return value(id);
  if (lanes_->width == 1) {
    Emitted result = value(id);
    result.parts = {part(result, copy)};
    return result;
  }
  for (std::size_t d = scopes_.size(); d-- > 0;) {
    const auto found = scopes_[d].first_values.find({id, copy});
    if (found != scopes_[d].first_values.end()) return found->second;
  }
  const Expr& e = nest_.exprs[id];
  Emitted result;
  if (e.kind == ExprKind::loop_index) {
    result = {{lanes_->first[static_cast<std::size_t>(copy)]}, lanes_->depth};
  } else {
    std::vector<ValueId> operands;
    for (const ExprId arg : loops::args_of(nest_, id)) {
      const Emitted a = first_value(arg, copy);
      operands.push_back(a.parts[0]);
      result.depth = std::max(result.depth, a.depth);
    }
    result.parts = {emit_.operation(e.op, std::move(operands))};
  }
  scopes_[static_cast<std::size_t>(result.depth)].first_values[{id, copy}] = result;
  return result;
}

CpuLowering::Stride CpuLowering::lane_stride(ExprId id) {
  Stride result;
  if (!varies(id)) return result;
  const Expr& e = nest_.exprs[id];
  const auto args = loops::args_of(nest_, id);
  result.kind = Stride::irregular;
  if (e.kind == ExprKind::loop_index) return {Stride::constant, 1, no_value};
  if (e.kind != ExprKind::operation) return result;
  if (e.op == ScalarOp::neg) {
    const Stride a = lane_stride(args[0]);
    if (a.kind == Stride::constant) return {Stride::constant, -a.value, no_value};
  }
  if (e.op == ScalarOp::add || e.op == ScalarOp::sub) {
    const Stride a = lane_stride(args[0]);
    const Stride b = lane_stride(args[1]);
    const std::int64_t sign = e.op == ScalarOp::add ? 1 : -1;
    if (a.kind == Stride::constant && b.kind == Stride::constant)
      return {Stride::constant, a.value + sign * b.value, no_value};
    if (a.kind == Stride::run_time && b.kind == Stride::constant && b.value == 0) return a;
    if (b.kind == Stride::run_time && a.kind == Stride::constant && a.value == 0 && sign > 0) return b;
  }
  if (e.op == ScalarOp::mul) {
    const ExprId moving = varies(args[0]) ? args[0] : args[1];
    const ExprId factor = moving == args[0] ? args[1] : args[0];
    if (varies(factor)) return result;
    const Stride a = lane_stride(moving);
    if (a.kind != Stride::constant) return result;
    const ValueId f = value(factor).parts[0];
    if (emit_.is_constant(f)) return {Stride::constant, a.value * emit_.constant_integer(f), no_value};
    return {Stride::run_time, 0, emit_.mul(f, emit_.integer(a.value))};
  }
  return result;
}

CpuLowering::State CpuLowering::run_program(const ScalarProgram& program, const State& inputs, DType element,
                                            const std::vector<FusedInput>& fused,
                                            const std::vector<std::string>& names) {
  std::vector<int> uses(program.values.size(), 0);
  for (const ProgramValue& v : program.values)
    if (v.kind == ProgramValue::Kind::operation)
      for (int i = 0; i < dsl::info(v.op).arity; ++i) ++uses[v.args[static_cast<std::size_t>(i)]];
  for (const std::uint16_t result : program.results) ++uses[result];
  std::vector<ValueId> values;
  // The factors of a product that is only added: a merged product of the caller's, or one of the program's own.
  const auto product_at = [&](std::uint16_t number) -> std::optional<std::pair<ValueId, ValueId>> {
    const ProgramValue& v = program.values[number];
    if (v.kind == ProgramValue::Kind::input)
      for (const FusedInput& f : fused)
        if (f.input == v.input) return std::pair(f.a, f.b);
    if (v.kind == ProgramValue::Kind::operation && v.op == ScalarOp::mul && uses[number] == 1 &&
        v.value_class == ValueClass::element && is_floating(element))
      return std::pair(values[v.args[0]], values[v.args[1]]);
    return std::nullopt;
  };
  for (std::size_t number = 0; number < program.values.size(); ++number) {
    const ProgramValue& v = program.values[number];
    const DType wanted = dtype_of_class(v.value_class, element);
    if (v.kind == ProgramValue::Kind::input) {
      values.push_back(inputs.at(v.input));
      continue;
    }
    if (v.kind == ProgramValue::Kind::constant) {
      values.push_back(emit_.number({wanted}, v.constant));
      continue;
    }
    std::string name;
    for (std::size_t r = 0; r < program.results.size(); ++r)
      if (program.results[r] == number && r < names.size()) name = names[r];
    if (v.op == ScalarOp::add || v.op == ScalarOp::sub) {
      bool done = false;
      for (std::size_t side = 0; side < 2 && !done; ++side) {
        auto product = product_at(v.args[side]);
        if (!product) continue;
        ValueId other = values[v.args[1 - side]];
        if (v.op == ScalarOp::sub && side == 0) other = emit_.operation(ScalarOp::neg, {other});
        if (v.op == ScalarOp::sub && side == 1) product->first = emit_.operation(ScalarOp::neg, {product->first});
        values.push_back(emit_.operation(ScalarOp::fma, {product->first, product->second, other}, name));
        done = true;
      }
      if (done) continue;
    }
    std::vector<ValueId> args;
    for (int i = 0; i < dsl::info(v.op).arity; ++i) args.push_back(values.at(v.args[static_cast<std::size_t>(i)]));
    std::vector<DType> dtypes;
    for (const ValueId arg : args) dtypes.push_back(emit_.type(arg).dtype);
    for (std::size_t i = 0; i < args.size(); ++i)
      args[i] = emit_.cast(dsl::operand_dtype(v.op, dtypes, static_cast<int>(i)), args[i]);
    values.push_back(emit_.cast(wanted, emit_.operation(v.op, std::move(args), name)));
  }
  State results;
  for (const std::uint16_t result : program.results) results.push_back(values.at(result));
  return results;
}

}  // namespace tigon::lower
