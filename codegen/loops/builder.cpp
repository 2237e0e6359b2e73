// Hash-consing, index folding and dtype rules of nest expressions.
#include "codegen/loops/builder.hpp"

#include <array>
#include <bit>

#include <fmt/format.h>

#include "dsl/scalar_table.hpp"
#include "dsl/whole.hpp"
#include "tigon/error.hpp"

namespace tigon::loops {
namespace {

[[noreturn]] void fail(const std::string& sentence) { throw Error({.kind = ErrorKind::internal}, sentence); }

bool is_whole(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }

}  // namespace

DType operation_dtype(ScalarOp op, std::span<const DType> operands) {
  if (static_cast<int>(operands.size()) != dsl::info(op).arity)
    fail(fmt::format("{} takes {} operands and is given {}", dsl::name(op), dsl::info(op).arity, operands.size()));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const DType wanted = dsl::operand_dtype(op, operands, static_cast<int>(i));
    if (operands[i] != wanted)
      fail(fmt::format("operand {} of {} is {}, not {}", i, dsl::name(op), name(operands[i]), name(wanted)));
  }
  return dsl::result_dtype(op, operands);
}

std::uint16_t NestBuilder::axis(std::string name, std::int64_t extent) {
  nest.axes.push_back({std::move(name), extent});
  return static_cast<std::uint16_t>(nest.axes.size() - 1);
}

ParameterId NestBuilder::parameter(Parameter parameter) {
  if (parameter.strides.size() != parameter.axes.size())
    fail(fmt::format("parameter {} has {} axes and {} strides", parameter.name, parameter.axes.size(),
                     parameter.strides.size()));
  nest.parameters.push_back(std::move(parameter));
  return static_cast<ParameterId>(nest.parameters.size() - 1);
}

std::uint32_t NestBuilder::scalar_parameter(std::string name, DType dtype) {
  nest.scalars.push_back({std::move(name), dtype});
  return static_cast<std::uint32_t>(nest.scalars.size() - 1);
}

int NestBuilder::monoid(const dsl::Monoid& monoid) {
  for (std::size_t i = 0; i < nest.monoids.size(); ++i)
    if (nest.monoids[i].name == monoid.name) return static_cast<int>(i);
  nest.monoids.push_back(monoid);
  return static_cast<int>(nest.monoids.size() - 1);
}

FoldId NestBuilder::fold(std::string name, int monoid, DType element, std::int64_t depth) {
  nest.folds.push_back({std::move(name), static_cast<std::uint32_t>(monoid), element, depth});
  return static_cast<FoldId>(nest.folds.size() - 1);
}

StageId NestBuilder::stage(Stage stage) {
  nest.stages.push_back(std::move(stage));
  return static_cast<StageId>(nest.stages.size() - 1);
}

Loop NestBuilder::loop(std::string name, Bind bind, ExprId begin, ExprId end, std::int64_t step) {
  Loop result;
  result.id = new_loop();
  result.name = std::move(name);
  result.bind = bind;
  result.begin = begin;
  result.end = end;
  result.step = step;
  return result;
}

std::size_t NestBuilder::part(std::string name, std::string index_name) {
  const auto number = static_cast<std::uint16_t>(nest.parts.size());
  const ExprId count = partitions(number);
  Part part;
  part.name = std::move(name);
  part.partitions_slot = static_cast<std::uint16_t>(nest.exprs[count].payload);
  part.grid = loop(std::move(index_name), Bind::grid, integer(0), count);
  nest.parts.push_back(std::move(part));
  return number;
}

ExprId NestBuilder::make(Expr expr, const std::vector<ExprId>& args) {
  for (const ExprId arg : args)
    if (arg >= nest.exprs.size()) fail("an expression's argument does not exist");
  Key key{static_cast<int>(expr.kind),
          static_cast<int>(expr.dtype),
          static_cast<int>(expr.op),
          expr.slot_of_state,
          expr.payload,
          args,
          std::bit_cast<std::uint64_t>(expr.number),
          expr.integer};
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  expr.first_arg = static_cast<std::uint32_t>(nest.expr_args.size());
  expr.arg_count = static_cast<std::uint16_t>(args.size());
  nest.expr_args.insert(nest.expr_args.end(), args.begin(), args.end());
  nest.exprs.push_back(expr);
  const auto id = static_cast<ExprId>(nest.exprs.size() - 1);
  known_.emplace(std::move(key), id);
  return id;
}

ExprId NestBuilder::integer(std::int64_t value) {
  Expr expr;
  expr.dtype = DType::i64;
  expr.integer = value;
  return make(expr, {});
}

ExprId NestBuilder::number(DType dtype, double value) {
  Expr expr;
  expr.dtype = dtype;
  if (is_whole(dtype))
    expr.integer = dsl::nearest_integer(dtype, value);
  else
    expr.number = value;
  return make(expr, {});
}

ExprId NestBuilder::truth(bool value) { return number(DType::boolean, value ? 1 : 0); }

ExprId NestBuilder::slot(const Slot& slot) {
  std::uint32_t index = 0;
  for (; index < nest.slots.size(); ++index) {
    const Slot& s = nest.slots[index];
    if (s.kind == slot.kind && s.axis == slot.axis && s.parameter == slot.parameter && s.dimension == slot.dimension &&
        s.part == slot.part)
      break;
  }
  if (index == nest.slots.size()) nest.slots.push_back(slot);
  Expr expr;
  expr.kind = ExprKind::slot;
  expr.dtype = DType::i64;
  expr.payload = index;
  return make(expr, {});
}

ExprId NestBuilder::extent(std::uint16_t axis) {
  const std::int64_t known = nest.axes.at(axis).extent;
  return known != at_run_time ? integer(known) : slot({.kind = SlotKind::extent, .axis = axis});
}
ExprId NestBuilder::origin(std::uint16_t axis) { return slot({.kind = SlotKind::origin, .axis = axis}); }
ExprId NestBuilder::global_extent(std::uint16_t axis) {
  const std::int64_t known = nest.axes.at(axis).extent;
  return known != at_run_time ? integer(known) : slot({.kind = SlotKind::global_extent, .axis = axis});
}
ExprId NestBuilder::stride(ParameterId parameter, std::uint16_t dimension) {
  const std::int64_t known = nest.parameters.at(parameter).strides.at(dimension);
  return known != at_run_time ? integer(known)
                              : slot({.kind = SlotKind::stride,
                                      .parameter = static_cast<std::uint16_t>(parameter),
                                      .dimension = dimension});
}
ExprId NestBuilder::partitions(std::uint16_t part) { return slot({.kind = SlotKind::partitions, .part = part}); }

ExprId NestBuilder::scalar(std::uint32_t scalar) {
  Expr expr;
  expr.kind = ExprKind::scalar;
  expr.dtype = nest.scalars.at(scalar).dtype;
  expr.payload = scalar;
  return make(expr, {});
}

ExprId NestBuilder::loop_index(LoopId loop) {
  Expr expr;
  expr.kind = ExprKind::loop_index;
  expr.dtype = DType::i64;
  expr.payload = loop;
  return make(expr, {});
}

void NestBuilder::check_index(const std::vector<ExprId>& index, std::size_t dimensions, const std::string& of) {
  if (index.size() != dimensions)
    fail(fmt::format("{} has {} dimensions and is read with {} indices", of, dimensions, index.size()));
  for (const ExprId i : index)
    if (dtype(i) != DType::i64) fail(fmt::format("{} is indexed by {}, not by i64", of, name(dtype(i))));
}

ExprId NestBuilder::load(ParameterId parameter, const std::vector<ExprId>& index) {
  const Parameter& p = nest.parameters.at(parameter);
  check_index(index, p.axes.size(), p.name);
  Expr expr;
  expr.kind = ExprKind::load;
  expr.dtype = p.dtype;
  expr.payload = parameter;
  return make(expr, index);
}

ExprId NestBuilder::stage_load(StageId stage, const std::vector<ExprId>& index) {
  const Stage& s = nest.stages.at(stage);
  check_index(index, s.extents.size(), s.name);
  Expr expr;
  expr.kind = ExprKind::stage_load;
  expr.dtype = s.dtype;
  expr.payload = stage;
  return make(expr, index);
}

ExprId NestBuilder::fold_state(FoldId fold, int state_slot) {
  const Fold& f = nest.folds.at(fold);
  Expr expr;
  expr.kind = ExprKind::fold_state;
  expr.dtype = dtype_of_class(nest.monoids.at(f.monoid).state.at(static_cast<std::size_t>(state_slot)), f.element);
  expr.slot_of_state = static_cast<std::uint8_t>(state_slot);
  expr.payload = fold;
  return make(expr, {});
}

bool NestBuilder::is_integer(ExprId id, std::int64_t value) const {
  const Expr& e = nest.exprs[id];
  return e.kind == ExprKind::constant && is_whole(e.dtype) && e.integer == value;
}

ExprId NestBuilder::cast(DType to, ExprId value) {
  const Expr& e = nest.exprs[value];
  if (e.dtype == to) return value;
  if (e.kind == ExprKind::constant && is_whole(e.dtype) && to == DType::i64) return integer(e.integer);
  Expr expr;
  expr.kind = ExprKind::cast;
  expr.dtype = to;
  return make(expr, {value});
}

// Folds i64 arithmetic on constants and drops neutral operands; `no_expr` where nothing can be said.
ExprId NestBuilder::fold_integers(ScalarOp op, const std::vector<ExprId>& args) {
  bool known = true;
  std::vector<std::int64_t> values;
  for (const ExprId arg : args) {
    known = known && nest.exprs[arg].kind == ExprKind::constant;
    values.push_back(nest.exprs[arg].integer);
  }
  if (known) {
    const std::optional<std::int64_t> result = dsl::whole_result(op, DType::i64, values);
    if (!result) return no_expr;
    const std::array operands{DType::i64, DType::i64, DType::i64};
    const DType dtype = dsl::result_dtype(op, std::span(operands.data(), args.size()));
    return dtype == DType::boolean ? truth(*result != 0) : integer(*result);
  }
  if (args.size() != 2) return no_expr;
  if (op == ScalarOp::add && is_integer(args[0], 0)) return args[1];
  if ((op == ScalarOp::add || op == ScalarOp::sub) && is_integer(args[1], 0)) return args[0];
  if (op == ScalarOp::sub && args[0] == args[1]) return integer(0);
  if (op == ScalarOp::mul && (is_integer(args[0], 0) || is_integer(args[1], 0))) return integer(0);
  if (op == ScalarOp::mul && is_integer(args[0], 1)) return args[1];
  if ((op == ScalarOp::mul || op == ScalarOp::floor_div) && is_integer(args[1], 1)) return args[0];
  if (op == ScalarOp::rem && is_integer(args[1], 1)) return integer(0);
  if ((op == ScalarOp::min || op == ScalarOp::max) && args[0] == args[1]) return args[0];
  return no_expr;
}

ExprId NestBuilder::op(ScalarOp op, std::vector<ExprId> args) {
  std::vector<DType> dtypes;
  for (const ExprId arg : args) dtypes.push_back(dtype(arg));
  if (static_cast<int>(args.size()) != dsl::info(op).arity)
    fail(fmt::format("{} takes {} operands and is given {}", dsl::name(op), dsl::info(op).arity, args.size()));
  std::vector<DType> wanted;
  for (std::size_t i = 0; i < args.size(); ++i) wanted.push_back(dsl::operand_dtype(op, dtypes, static_cast<int>(i)));
  bool indices = true;
  for (std::size_t i = 0; i < args.size(); ++i) {
    args[i] = cast(wanted[i], args[i]);
    indices = indices && wanted[i] == DType::i64;
  }
  if (indices) {
    const ExprId folded = fold_integers(op, args);
    if (folded != no_expr) return folded;
    if (dsl::info(op).commutative && nest.exprs[args[0]].kind == ExprKind::constant) std::swap(args[0], args[1]);
  }
  Expr expr;
  expr.kind = ExprKind::operation;
  expr.dtype = dsl::result_dtype(op, wanted);
  expr.op = op;
  return make(expr, args);
}

ExprId NestBuilder::ceil_div(ExprId a, ExprId b) { return floor_div(add(a, sub(b, integer(1))), b); }

std::vector<ExprId> NestBuilder::inline_program(const ScalarProgram& program, std::span<const ExprId> inputs,
                                                DType element) {
  std::vector<ExprId> values;
  for (const ProgramValue& v : program.values) {
    const DType wanted = dtype_of_class(v.value_class, element);
    switch (v.kind) {
      case ProgramValue::Kind::input:
        // An index that the caller left out must not be read by the program; a use of it would fail in `op`.
        if (v.input >= inputs.size()) fail("a scalar program reads an input that it is not given");
        values.push_back(inputs[v.input] == no_expr ? no_expr : cast(wanted, inputs[v.input]));
        break;
      case ProgramValue::Kind::constant:
        values.push_back(number(wanted, v.constant));
        break;
      case ProgramValue::Kind::operation: {
        std::vector<ExprId> args;
        for (int i = 0; i < dsl::info(v.op).arity; ++i) {
          const ExprId arg = values.at(v.args[static_cast<std::size_t>(i)]);
          if (arg == no_expr) fail("a scalar program computes with an index that it is not given");
          args.push_back(arg);
        }
        values.push_back(cast(wanted, op(v.op, args)));
        break;
      }
    }
  }
  std::vector<ExprId> results;
  for (const std::uint16_t result : program.results) results.push_back(values.at(result));
  return results;
}

ExprId NestBuilder::finish(FoldId fold, std::size_t finish) {
  const Fold& f = nest.folds.at(fold);
  std::vector<ExprId> state;
  for (std::size_t i = 0; i < nest.monoids.at(f.monoid).state.size(); ++i)
    state.push_back(fold_state(fold, static_cast<int>(i)));
  return finish_state(static_cast<int>(f.monoid), state, f.element, finish);
}

ExprId NestBuilder::finish_state(int monoid, std::span<const ExprId> state, DType element, std::size_t finish) {
  const ScalarProgram program = nest.monoids.at(static_cast<std::size_t>(monoid)).finishes.at(finish).program;
  return inline_program(program, state, element).at(0);
}

std::vector<ExprId> NestBuilder::identity(int monoid, DType element) {
  const dsl::Monoid& m = nest.monoids.at(static_cast<std::size_t>(monoid));
  std::vector<ExprId> state;
  for (std::size_t i = 0; i < m.state.size(); ++i)
    state.push_back(number(dtype_of_class(m.state[i], element), m.identity.at(i)));
  return state;
}

}  // namespace tigon::loops
