// Expressions of a nest as one thread's scalars: each once, in the outermost scope where it holds; whole numbers that
// fit are 32-bit ones.
#include <fmt/format.h>

#include "codegen/loops/walk.hpp"
#include "codegen/lower/cuda_lowering.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::lower {

using loops::Expr;
using loops::ExprKind;

namespace {

constexpr std::int64_t largest_extent = largest_cuda_extent;
constexpr std::int64_t most_partitions = (1 << 15) - 1;  // squared, they fit into 32 bits

std::int64_t bounded(__int128 x) {
  if (x > Range::far) return Range::far;
  if (x < -Range::far) return -Range::far;
  return static_cast<std::int64_t>(x);
}

bool fits_i32(std::int64_t x) { return Range{x, x}.fits_i32(); }

}  // namespace

ValueId CudaLowering::integer(std::int64_t value) {
  return emit_.constant({fits_i32(value) ? DType::i32 : DType::i64}, 0, value);
}

bool CudaLowering::varies(ExprId id) {
  if (!lanes_) return false;
  std::int8_t& known = varies_[id];
  if (known >= 0) return known != 0;
  const Expr& e = nest_.exprs[id];
  bool result = false;
  if (e.kind == ExprKind::loop_index) result = e.payload == lanes_->loop->id;
  if (e.kind == ExprKind::stage_load) result = true;
  if (e.kind == ExprKind::fold_state) result = per_lane_folds_.count(e.payload) != 0;
  for (const ExprId arg : loops::args_of(nest_, id)) result = varies(arg) || result;
  varies_[id] = result ? 1 : 0;
  return result;
}

Range CudaLowering::range(ExprId id) {
  if (const auto known = ranges_.find(id); known != ranges_.end()) return known->second;
  const Expr& e = nest_.exprs[id];
  const auto args = loops::args_of(nest_, id);
  Range result;
  if (e.dtype == DType::i32) result = {-(std::int64_t{1} << 31), (std::int64_t{1} << 31) - 1};
  if (e.dtype == DType::boolean) result = {0, 1};
  switch (e.kind) {
    case ExprKind::constant:
      if (!is_floating(e.dtype) && e.dtype != DType::boolean) result = {e.integer, e.integer};
      break;
    case ExprKind::slot: {
      const loops::SlotKind kind = nest_.slots[e.payload].kind;
      if (kind == loops::SlotKind::partitions)
        result = {1, most_partitions};
      else if (kind != loops::SlotKind::stride)
        result = {0, largest_extent};
      break;
    }
    case ExprKind::loop_index: {
      const loops::Loop* loop = loops_.at(e.payload);
      if (loop->bind == loops::Bind::grid)
        result = {0, most_partitions - 1};
      else
        result = {range(loop->begin).low, bounded(static_cast<__int128>(range(loop->end).high) - 1)};
      break;
    }
    case ExprKind::cast:
      if (e.dtype == DType::i64 && !is_floating(nest_.exprs[args[0]].dtype)) result = range(args[0]);
      break;
    case ExprKind::operation: {
      if (e.dtype != DType::i64) break;
      if (const auto parts = share(id)) {
        result = {0, range(parts->second).high};
        break;
      }
      const Range a = range(args[0]);
      const Range b = args.size() > 1 ? range(args[1]) : Range{};
      const auto wide = [](std::int64_t x) { return static_cast<__int128>(x); };
      switch (e.op) {
        case ScalarOp::add:
          result = {bounded(wide(a.low) + b.low), bounded(wide(a.high) + b.high)};
          break;
        case ScalarOp::sub:
          result = {bounded(wide(a.low) - b.high), bounded(wide(a.high) - b.low)};
          break;
        case ScalarOp::neg:
          result = {bounded(-wide(a.high)), bounded(-wide(a.low))};
          break;
        case ScalarOp::mul: {
          const __int128 ends[] = {wide(a.low) * b.low, wide(a.low) * b.high, wide(a.high) * b.low,
                                   wide(a.high) * b.high};
          result = {bounded(*std::min_element(ends, ends + 4)), bounded(*std::max_element(ends, ends + 4))};
          break;
        }
        case ScalarOp::min:
          result = {std::min(a.low, b.low), std::min(a.high, b.high)};
          break;
        case ScalarOp::max:
          result = {std::max(a.low, b.low), std::max(a.high, b.high)};
          break;
        case ScalarOp::floor_div:
          if (a.low >= 0 && b.low >= 0) result = {0, b.low > 0 ? a.high / b.low : a.high};
          break;
        case ScalarOp::rem:
          if (a.low >= 0 && b.low > 0)
            result = {0, std::min(a.high, b.high - 1)};
          else if (a.low >= 0 && b.low >= 0)
            result = {0, a.high};
          break;
        case ScalarOp::where: {
          const Range c = range(args[2]);
          result = {std::min(b.low, c.low), std::max(b.high, c.high)};
          break;
        }
        default:
          break;
      }
      break;
    }
    default:
      break;
  }
  ranges_[id] = result;
  return result;
}

std::optional<std::pair<ExprId, ExprId>> CudaLowering::share(ExprId id) const {
  const auto is_operation = [&](ExprId at, ScalarOp op) {
    return nest_.exprs[at].kind == ExprKind::operation && nest_.exprs[at].op == op;
  };
  if (!is_operation(id, ScalarOp::floor_div)) return std::nullopt;
  const auto args = loops::args_of(nest_, id);
  const Expr& divisor = nest_.exprs[args[1]];
  const bool by_partitions =
      divisor.kind == ExprKind::slot && nest_.slots[divisor.payload].kind == loops::SlotKind::partitions;
  if (!by_partitions || !is_operation(args[0], ScalarOp::mul)) return std::nullopt;
  const auto is_partition = [&](ExprId at) {
    const Expr& e = nest_.exprs[at];
    return e.kind == ExprKind::loop_index && loops_.at(e.payload)->bind == loops::Bind::grid;
  };
  const auto factors = loops::args_of(nest_, args[0]);
  for (std::size_t side = 0; side < 2; ++side) {
    const ExprId p = factors[side];
    bool own = is_partition(p);
    if (is_operation(p, ScalarOp::add)) {
      const auto sum = loops::args_of(nest_, p);
      own = is_partition(sum[0]) && nest_.exprs[sum[1]].kind == ExprKind::constant && nest_.exprs[sum[1]].integer == 1;
    }
    if (own) return std::pair(p, factors[1 - side]);
  }
  return std::nullopt;
}

std::int64_t CudaLowering::multiple_of(ExprId id) const {
  const Expr& e = nest_.exprs[id];
  constexpr std::int64_t any = std::int64_t{1} << 20;
  if (e.kind == ExprKind::constant) return e.integer == 0 ? any : std::min(any, e.integer & -e.integer);
  if (e.kind != ExprKind::operation) return 1;
  const auto args = loops::args_of(nest_, id);
  if (e.op == ScalarOp::mul) return std::min(any, multiple_of(args[0]) * multiple_of(args[1]));
  if (e.op == ScalarOp::add || e.op == ScalarOp::sub) return std::min(multiple_of(args[0]), multiple_of(args[1]));
  return 1;
}

std::string CudaLowering::hint(ExprId id) const {
  if (const auto named = let_names_.find(id); named != let_names_.end()) return named->second;
  const Expr& e = nest_.exprs[id];
  switch (e.kind) {
    case ExprKind::scalar:
      return nest_.scalars[e.payload].name;
    case ExprKind::load:
      return nest_.parameters[e.payload].name;
    case ExprKind::stage_load:
      return nest_.stages[e.payload].name;
    case ExprKind::fold_state:
      return nest_.folds[e.payload].name;
    case ExprKind::cast:
      return hint(loops::args_of(nest_, id)[0]);
    case ExprKind::slot: {
      const loops::Slot& slot = nest_.slots[e.payload];
      if (slot.kind == loops::SlotKind::stride)
        return fmt::format("{}_stride_{}", nest_.parameters[slot.parameter].name, slot.dimension);
      if (slot.kind == loops::SlotKind::partitions) return "partitions";
      return nest_.axes[slot.axis].name;
    }
    case ExprKind::operation:
      return std::string(dsl::name(e.op));
    default:
      return "value";
  }
}

ValueId CudaLowering::value(ExprId id) {
  for (std::size_t d = scopes_.size(); d-- > 0;) {
    const auto found = scopes_[d].values.find(id);
    if (found != scopes_[d].values.end()) return found->second;
  }
  const ValueId result = compute(id);
  if (const auto named = nest_.names.find(id); named != nest_.names.end()) emit_.rename(result, named->second);
  scopes_[static_cast<std::size_t>(emit_.depth_of(result))].values[id] = result;
  return result;
}

ValueId CudaLowering::exact(ExprId id) { return as(nest_.exprs[id].dtype, value(id)); }

// Neutral operands are dropped; a 64-bit operand makes the operation a 64-bit one.
ValueId CudaLowering::whole(ScalarOp op, ValueId a, ValueId b, const std::string& hint) {
  const auto constant = [&](ValueId v) { return emit_.is_constant(v); };
  const auto is = [&](ValueId v, std::int64_t wanted) { return emit_.is_integer(v, wanted); };
  if (constant(a) && constant(b)) {
    const std::int64_t x = emit_.constant_integer(a);
    const std::int64_t y = emit_.constant_integer(b);
    if (op == ScalarOp::add) return integer(x + y);
    if (op == ScalarOp::sub) return integer(x - y);
    if (op == ScalarOp::mul) return integer(x * y);
    if (op == ScalarOp::min) return integer(std::min(x, y));
    if (op == ScalarOp::max) return integer(std::max(x, y));
    if (op == ScalarOp::floor_div && x >= 0 && y > 0) return integer(x / y);
    if (op == ScalarOp::rem && x >= 0 && y > 0) return integer(x % y);
  }
  if ((op == ScalarOp::add || op == ScalarOp::sub) && is(b, 0)) return a;
  if (op == ScalarOp::add && is(a, 0)) return b;
  if ((op == ScalarOp::mul || op == ScalarOp::floor_div) && is(b, 1)) return a;
  if (op == ScalarOp::mul && is(a, 1)) return b;
  if (op == ScalarOp::mul && (is(a, 0) || is(b, 0))) return integer(0);
  if (emit_.type(a).dtype != emit_.type(b).dtype) {
    a = as(DType::i64, a);
    b = as(DType::i64, b);
  }
  const bool plain = op == ScalarOp::floor_div || op == ScalarOp::rem;
  return emit_.operation(op, {a, b}, hint, plain);
}

ValueId CudaLowering::compute(ExprId id) {
  const Expr& e = nest_.exprs[id];
  Instruction instruction;
  switch (e.kind) {
    case ExprKind::constant:
      if (e.dtype == DType::i64) return integer(e.integer);
      return emit_.constant({e.dtype}, e.number, e.dtype == DType::boolean ? (e.number != 0) : e.integer);
    case ExprKind::slot:
    case ExprKind::scalar:
      instruction.code = e.kind == ExprKind::slot ? Code::slot : Code::scalar;
      instruction.type = {e.kind == ExprKind::slot && range(id).fits_i32() ? DType::i32 : e.dtype};
      instruction.payload = e.payload;
      return emit_.pure(instruction, hint(id));
    case ExprKind::loop_index: {
      if (lanes_ && e.payload == lanes_->loop->id) return lanes_->index;
      const auto found = loop_values_.find(e.payload);
      if (found == loop_values_.end()) lowering_error(nest_, "a loop index is read outside its loop");
      return found->second;
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
  const auto args = loops::args_of(nest_, id);
  if (e.kind == ExprKind::cast) {
    const ValueId inner = value(args[0]);
    // Held in 32 bits where that is enough.
    if (e.dtype == DType::i64 && !is_floating(nest_.exprs[args[0]].dtype) && range(id).fits_i32())
      return as(DType::i32, inner);
    return emit_.cast(e.dtype, inner, hint(id));
  }
  if (const auto parts = share(id)) {
    // floor(p n / P) = p floor(n / P) + floor(p (n mod P) / P), all of it in 32 bits where n is.
    const ValueId p = value(parts->first);
    const ValueId n = value(parts->second);
    const ValueId count = value(args[1]);
    const ValueId quotient = whole(ScalarOp::floor_div, n, count, "each");
    const ValueId rest = whole(ScalarOp::rem, n, count, "more");
    const ValueId uneven = whole(ScalarOp::floor_div, whole(ScalarOp::mul, p, as(DType::i32, rest)), count);
    return whole(ScalarOp::add, whole(ScalarOp::mul, p, quotient), uneven, hint(id));
  }
  std::vector<ValueId> operands;
  for (const ExprId arg : args) operands.push_back(value(arg));
  const DType operand_dtype = nest_.exprs[args.back()].dtype;
  if (operand_dtype != DType::i64) {
    for (std::size_t i = 0; i < args.size(); ++i) operands[i] = as(nest_.exprs[args[i]].dtype, operands[i]);
    return emit_.operation(e.op, std::move(operands), hint(id));
  }
  const std::size_t first_number = e.op == ScalarOp::where ? 1 : 0;
  bool narrow = e.dtype != DType::i64 || range(id).fits_i32();
  bool all_narrow = narrow;
  for (std::size_t i = first_number; i < operands.size(); ++i)
    all_narrow = all_narrow && emit_.type(operands[i]).dtype == DType::i32;
  if (!all_narrow)
    for (std::size_t i = first_number; i < operands.size(); ++i) operands[i] = as(DType::i64, operands[i]);
  bool plain = false;
  if (e.op == ScalarOp::floor_div || e.op == ScalarOp::rem) {
    // An extent that divides is not 0 where anything runs.
    const bool divides = range(args[1]).low > 0 || nest_.exprs[args[1]].kind == ExprKind::slot;
    plain = range(args[0]).low >= 0 && divides;
  }
  ValueId result = no_value;
  const bool folds =
      e.op == ScalarOp::add || e.op == ScalarOp::sub || e.op == ScalarOp::mul || (plain && operands.size() == 2);
  if (folds)
    result = whole(e.op, operands[0], operands[1], hint(id));
  else
    result = emit_.operation(e.op, std::move(operands), hint(id), plain);
  return e.dtype == DType::i64 && narrow ? as(DType::i32, result) : result;
}

CudaLowering::State CudaLowering::run_program(const ScalarProgram& program, const State& inputs, DType element,
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
