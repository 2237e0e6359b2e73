// Statements of a nest on a CPU: parts, loops, branches.
#include "codegen/lower/cpu.hpp"

#include <fmt/format.h>

#include "codegen/loops/verify.hpp"
#include "codegen/loops/walk.hpp"
#include "codegen/lower/cpu_lowering.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::lower {

using loops::Bind;
using loops::Expr;
using loops::ExprKind;

namespace {

constexpr std::int64_t unroll_limit = 64;  // iterations of an `unroll` loop that are written out

}  // namespace

CpuLowering::CpuLowering(const Prepared& prepared, const CpuMachine& machine)
    : prepared_(prepared), nest_(prepared.nest), machine_(machine), emit_(out_) {
  out_.name = nest_.name;
  out_.formula = nest_.formula;
  out_.axes = nest_.axes;
  out_.parameters = nest_.parameters;
  out_.scalars = nest_.scalars;
  out_.slots = nest_.slots;
  out_.layout = loops::parameter_layout(nest_);
  for (const loops::Stage& stage : nest_.stages) {
    stage_offsets_.push_back(out_.scratch_bytes);
    std::int64_t elements = 1;
    for (const std::int64_t extent : stage.extents) elements *= extent;
    out_.scratch_bytes += (elements * size_of(stage.dtype) + 63) / 64 * 64;
  }
  varies_.assign(nest_.exprs.size(), -1);
  non_negative_.assign(nest_.exprs.size(), -1);
  memory_of_.resize(nest_.exprs.size());
  for (std::size_t i = 0; i < nest_.exprs.size(); ++i) {
    const Expr& e = nest_.exprs[i];
    if (e.kind == ExprKind::load) memory_of_[i].insert(e.payload);
    if (e.kind == ExprKind::stage_load) memory_of_[i].insert(first_stage_key + e.payload);
    for (const ExprId arg : loops::args_of(nest_, static_cast<ExprId>(i)))
      memory_of_[i].insert(memory_of_[arg].begin(), memory_of_[arg].end());
  }
  for (const loops::Part& part : nest_.parts) {
    loops_[part.grid.id] = &part.grid;
    loops::each_statement(part.grid.body, [&](const loops::Statement& s) {
      if (const auto* loop = std::get_if<loops::Loop>(&s.node)) loops_[loop->id] = loop;
      if (const auto* let = std::get_if<loops::Let>(&s.node)) let_names_.emplace(let->value, let->name);
    });
  }
}

void CpuLowering::open(Block& block, Memory written, bool guard) {
  forget(written);
  emit_.open(block);
  Scope scope;
  scope.written = std::move(written);
  scope.guard = guard;
  scopes_.push_back(std::move(scope));
}

void CpuLowering::close() {
  emit_.close();
  scopes_.pop_back();
}

// Values read from memory that is about to be written hold no longer, but where a Let named them.
void CpuLowering::forget(const Memory& written) {
  if (written.empty()) return;
  for (Scope& scope : scopes_)
    std::erase_if(scope.values, [&](const auto& entry) {
      if (entry.second.pinned) return false;
      return std::any_of(written.begin(), written.end(),
                         [&](std::uint32_t key) { return memory_of_[entry.first].count(key) != 0; });
    });
}

CpuLowering::Memory CpuLowering::written_in(const loops::Block& block) const {
  Memory result;
  loops::each_statement(block, [&](const loops::Statement& s) {
    if (const auto* store = std::get_if<loops::Store>(&s.node)) result.insert(store->parameter);
    if (const auto* store = std::get_if<loops::StageStore>(&s.node)) result.insert(first_stage_key + store->stage);
    if (const auto* store = std::get_if<loops::StoreState>(&s.node))
      result.insert(store->parameters.begin(), store->parameters.end());
  });
  return result;
}

Lowered CpuLowering::run() {
  open(out_.body);
  ValueId start = emit_.integer(0);
  for (std::size_t part = 0; part < nest_.parts.size(); ++part) lower_part(part, start);
  close();
  out_.notes.push_back(fmt::format("CPU, vectors of {} bytes{}", machine_.vector_bytes,
                                   machine_.has_masks ? ", masked tails" : ", scalar tails"));
  if (out_.scratch_bytes != 0) out_.notes.push_back(fmt::format("{} bytes of scratch per worker", out_.scratch_bytes));
  remove_dead(out_);
  settle_names(out_);
  return std::move(out_);
}

// The part's share of [first, last): its partitions follow those of the parts before it.
void CpuLowering::lower_part(std::size_t number, ValueId& start) {
  const loops::Part& part = nest_.parts[number];
  const ValueId first = emit_.entry_value(Code::first);
  const ValueId last = emit_.entry_value(Code::last);
  Instruction i;
  i.type = {DType::i64};
  i.code = Code::slot;
  i.payload = part.partitions_slot;
  const ValueId count = emit_.pure(i, "partitions");
  const ValueId next = emit_.add(start, count);
  const ValueId begin = emit_.sub(number == 0 ? first : emit_.operation(ScalarOp::max, {first, start}), start);
  const ValueId end = emit_.sub(emit_.operation(ScalarOp::min, {last, next}), start);
  If branch;
  branch.condition = emit_.operation(ScalarOp::less, {begin, end});
  open(branch.body, written_in(part.grid.body));
  if (!part.name.empty()) emit_.comment("part " + part.name);
  lower_serial(part.grid, begin, end);
  close();
  emit_.block().push_back({std::move(branch)});
  start = next;
}

void CpuLowering::lower_block(const loops::Block& block) {
  for (std::size_t position = 0; position < block.size(); ++position) {
    const loops::Statement& s = block[position];
    if (const auto* loop = std::get_if<loops::Loop>(&s.node)) lower_loop(*loop);
    if (const auto* merge = std::get_if<loops::Merge>(&s.node)) lower_merge(*merge);
    if (const auto* state = std::get_if<loops::StoreState>(&s.node)) lower_store_state(*state);
    if (const auto* stage = std::get_if<loops::StageStore>(&s.node)) lower_stage_store(*stage);
    if (const auto* when = std::get_if<loops::When>(&s.node)) lower_when(*when);
    if (const auto* let = std::get_if<loops::Let>(&s.node)) {
      const Emitted named = value(let->value);
      for (const ValueId v : named.parts) emit_.rename(v, let->name);
      scopes_[static_cast<std::size_t>(named.depth)].values[let->value].pinned = true;
    }
    if (const auto* store = std::get_if<loops::Store>(&s.node)) {
      if (store->mode == loops::StoreMode::in_place) read_before_in_place(block, position);
      lower_store(*store);
    }
  }
}

void CpuLowering::lower_loop(const loops::Loop& loop) {
  if (loop.bind == Bind::tile)
    lowering_error(nest_, "tiles are not lowered on a CPU: the plan's Matmul step does them");
  if (loop.bind == Bind::chunk) lowering_error(nest_, "a chunk loop belongs to the plan, not into a kernel");
  if (loop.bind == Bind::lanes) return lower_lanes(loop);
  const ValueId begin = scalar_value(loop.begin);
  const ValueId end = scalar_value(loop.end);
  if (loop.bind == Bind::unroll && emit_.is_constant(begin) && emit_.is_constant(end)) {
    const std::int64_t from = emit_.constant_integer(begin);
    const std::int64_t to = emit_.constant_integer(end);
    if ((to - from + loop.step - 1) / loop.step <= unroll_limit) return lower_unrolled(loop, from, to);
  }
  lower_serial(loop, begin, end);
}

void CpuLowering::lower_serial(const loops::Loop& loop, ValueId begin, ValueId end) {
  open_folds(loop);
  For f;
  f.begin = begin;
  f.end = end;
  f.step = loop.step;
  if (!loop.comment.empty()) emit_.comment(loop.comment);
  f.index = emit_.index_value(loop.name);
  open(f.body, written_in(loop.body));
  loop_values_[loop.id] = {{f.index}, depth()};
  lower_block(loop.body);
  close();
  emit_.block().push_back({std::move(f)});
  close_folds(loop);
}

void CpuLowering::lower_unrolled(const loops::Loop& loop, std::int64_t begin, std::int64_t end) {
  open_folds(loop);
  for (std::int64_t index = begin; index < end; index += loop.step) {
    open(emit_.block(), written_in(loop.body));
    loop_values_[loop.id] = {{emit_.integer(index)}, depth()};
    lower_block(loop.body);
    close();
  }
  close_folds(loop);
}

void CpuLowering::lower_when(const loops::When& when) {
  const Emitted condition = value(when.condition);
  const bool by_lane = emit_.lanes(condition.parts[0]) > 1;
  if (!by_lane && condition.parts.size() == 1) {
    If branch;
    branch.condition = condition.parts[0];
    open(branch.body, written_in(when.body), true);
    lower_block(when.body);
    close();
    emit_.block().push_back({std::move(branch)});
    return;
  }
  const Parts outer = masks_;
  Parts inner;
  for (int copy = 0; copy < lanes_->copies; ++copy) {
    const ValueId here = part(condition, copy);
    inner.push_back(outer.empty() ? here : emit_.operation(ScalarOp::logical_and, {mask(copy), here}, "mask"));
  }
  open(emit_.block(), written_in(when.body), true);
  masks_ = std::move(inner);
  lower_block(when.body);
  masks_ = outer;
  close();
}

CpuLowering::LanePlan CpuLowering::plan_lanes(const loops::Loop& loop) {
  const auto known = plans_.find(loop.id);
  if (known != plans_.end()) return known->second;
  LanePlan plan;
  std::set<FoldId> inside;
  bool ordered = false;
  loops::each_statement(loop.body, [&](const loops::Statement& s) {
    if (const auto* inner = std::get_if<loops::Loop>(&s.node)) {
      inside.insert(inner->folds.begin(), inner->folds.end());
      plan.jam = true;
    }
  });
  int bytes = 0;
  const auto widen = [&](DType dtype) {
    // i64 beside narrower numbers (positions, indices) lives in two registers instead of halving every vector.
    if (dtype == DType::i64 || dtype == DType::boolean) return;
    bytes = std::max(bytes, dtype == DType::f64 ? 8 : 4);
  };
  bool whole = false;
  loops::each_statement(loop.body, [&](const loops::Statement& s) {
    if (const auto* merge = std::get_if<loops::Merge>(&s.node); merge != nullptr && inside.count(merge->fold) == 0) {
      plan.folds = true;
      ordered = ordered || !nest_.monoids[nest_.folds[merge->fold].monoid].commutative;
    }
    if (const auto* store = std::get_if<loops::Store>(&s.node)) {
      widen(nest_.parameters[store->parameter].dtype);
      whole = whole || nest_.parameters[store->parameter].dtype == DType::i64;
    }
  });
  // What varies with this loop's lanes, known before the loop is entered.
  std::vector<bool> moves(nest_.exprs.size(), false);
  int cost = 0;
  for (const ExprId id : loops::reached(nest_, loop.body)) {
    const Expr& e = nest_.exprs[id];
    bool moving = (e.kind == ExprKind::loop_index && e.payload == loop.id) ||
                  (e.kind == ExprKind::fold_state && inside.count(e.payload) != 0);
    for (const ExprId arg : loops::args_of(nest_, id)) moving = moving || moves[arg];
    moves[id] = moving;
    if (!moving) continue;
    widen(e.dtype);
    if (e.kind == ExprKind::load) whole = whole || e.dtype == DType::i64;
    if (e.kind == ExprKind::operation) cost += dsl::info(e.op).cost;
    if (e.kind == ExprKind::cast && (is_16_bit_float(e.dtype) || e.dtype == DType::f64)) cost += 2;
  }
  if (bytes == 0) bytes = whole ? 8 : 4;
  plan.width = machine_.vector_bytes / bytes;
  const Expr& begin = nest_.exprs[loop.begin];
  const Expr& end = nest_.exprs[loop.end];
  std::int64_t count = std::int64_t{1} << 40;
  if (begin.kind == ExprKind::constant && end.kind == ExprKind::constant)
    count = std::max<std::int64_t>(end.integer - begin.integer, 1);
  while (plan.width > 1 && plan.width / 2 >= count) plan.width /= 2;
  // 64 elements in flight keep the depth of a sum within its contract and hide the latency of an addition.
  plan.copies = std::max(1, 64 / plan.width);
  if (!plan.folds) plan.copies = std::min(plan.copies, 4);
  const int limit = plan.folds ? 640 : 128;
  while (plan.copies > 1 && (plan.copies * cost > limit || std::int64_t{plan.copies} * plan.width > count))
    plan.copies /= 2;
  if (ordered) plan = {1, 1, plan.jam, plan.folds};
  plans_[loop.id] = plan;
  return plan;
}

void CpuLowering::enter_lanes(const loops::Loop& loop) {
  varies_.assign(nest_.exprs.size(), -1);
  per_lane_folds_.clear();
  loops::each_statement(loop.body, [&](const loops::Statement& s) {
    if (const auto* inner = std::get_if<loops::Loop>(&s.node))
      per_lane_folds_.insert(inner->folds.begin(), inner->folds.end());
  });
}

void CpuLowering::leave_lanes() { lanes_.reset(); }

void CpuLowering::lower_lanes(const loops::Loop& loop) {
  if (lanes_) lowering_error(nest_, fmt::format("lanes loop {} stands inside another", loop.name));
  if (loop.step != 1) lowering_error(nest_, fmt::format("lanes loop {} has step {}", loop.name, loop.step));
  const LanePlan plan = plan_lanes(loop);
  const ValueId begin = scalar_value(loop.begin);
  const ValueId end = scalar_value(loop.end);
  open_folds(loop);
  enter_lanes(loop);
  emit_.comment(loop.comment.empty() ? fmt::format("{} by lanes: {} x {}", loop.name, plan.copies, plan.width)
                                     : loop.comment);
  ValueId count = emit_.sub(end, begin);
  if (!(non_negative(loop.end) && emit_.is_integer(begin, 0)))
    count = emit_.operation(ScalarOp::max, {count, emit_.integer(0)}, "count");
  const auto round_down = [&](int lanes, const std::string& name) {
    return lanes == 1 ? count : emit_.operation(ScalarOp::bit_and, {count, emit_.integer(-lanes)}, name);
  };
  const ValueId whole = emit_.add(begin, round_down(plan.width * plan.copies, loop.name + ".blocks"));
  const ValueId vectors = emit_.add(begin, round_down(plan.width, loop.name + ".vectors"));
  lane_loop(loop, plan, begin, whole, false);
  if (plan.copies > 1) {
    LanePlan single = plan;
    single.copies = 1;
    lane_loop(loop, single, whole, vectors, false);
  }
  if (plan.width > 1) {
    if (machine_.has_masks) {
      masked_tail(loop, plan, vectors, emit_.sub(end, vectors));
    } else {
      LanePlan scalar;
      scalar.jam = plan.jam;
      lane_loop(loop, scalar, vectors, end, true);
    }
  }
  close_folds(loop);
}

void CpuLowering::lane_loop(const loops::Loop& loop, const LanePlan& plan, ValueId begin, ValueId end,
                            bool scalar_tail) {
  if (emit_.is_constant(begin) && emit_.is_constant(end) &&
      emit_.constant_integer(begin) >= emit_.constant_integer(end))
    return;
  For f;
  f.begin = begin;
  f.end = end;
  f.step = plan.width * plan.copies;
  f.index = emit_.index_value(loop.name);
  open(f.body, written_in(loop.body));
  lane_bodies(loop, plan, f.index, scalar_tail);
  close();
  emit_.block().push_back({std::move(f)});
}

void CpuLowering::lane_bodies(const loops::Loop& loop, const LanePlan& plan, ValueId first, bool scalar_tail) {
  const int rounds = plan.jam ? 1 : plan.copies;
  for (int round = 0; round < rounds; ++round) {
    open(emit_.block());
    Lanes lanes;
    lanes.loop = &loop;
    lanes.width = plan.width;
    lanes.copies = plan.jam ? plan.copies : 1;
    lanes.accumulator = round;
    lanes.scalar_tail = scalar_tail;
    lanes.depth = depth();
    for (int copy = 0; copy < lanes.copies; ++copy)
      lanes.first.push_back(emit_.add(first, emit_.integer((round + copy) * plan.width)));
    lanes_ = std::move(lanes);
    lower_block(loop.body);
    leave_lanes();
    close();
  }
}

void CpuLowering::masked_tail(const loops::Loop& loop, const LanePlan& plan, ValueId first, ValueId rest) {
  if (emit_.is_constant(rest) && emit_.constant_integer(rest) <= 0) return;
  If branch;
  branch.condition = emit_.operation(ScalarOp::less, {emit_.integer(0), rest});
  open(branch.body, written_in(loop.body));
  const ValueId bound = emit_.cast(DType::i32, rest, "rest");
  masks_ = {emit_.operation(ScalarOp::less, {emit_.lane_numbers(DType::i32, plan.width), bound}, loop.name + ".mask")};
  LanePlan single = plan;
  single.copies = 1;
  lane_bodies(loop, single, first, false);
  masks_.clear();
  close();
  emit_.block().push_back({std::move(branch)});
}

Lowered lower_cpu(const loops::Nest& nest, const CpuMachine& machine) {
  loops::verify(nest);
  const Prepared prepared = prepare(nest);
  return CpuLowering(prepared, machine).run();
}

}  // namespace tigon::lower
