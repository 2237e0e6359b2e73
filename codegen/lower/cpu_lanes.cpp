// Lanes loops on a CPU: the width of vectors, copies in flight, heads and tails, stores past the cache.
#include <fmt/format.h>

#include "codegen/loops/walk.hpp"
#include "codegen/lower/cpu_lowering.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::lower {

using loops::Expr;
using loops::ExprKind;

CpuLowering::LanePlan CpuLowering::plan_lanes(const loops::Loop& loop) {
  const auto known = plans_.find(loop.id);
  if (known != plans_.end()) return known->second;
  LanePlan plan;
  std::set<FoldId> inside;
  bool ordered = false;
  const auto monoid_of = [&](FoldId fold) -> const dsl::Monoid& { return nest_.monoids[nest_.folds[fold].monoid]; };
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
      if (merge->lifted) plan.together = std::max(plan.together, monoid_of(merge->fold).absorb_count);
      ordered = ordered || !monoid_of(merge->fold).commutative;
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
  const bool constant = begin.kind == ExprKind::constant && end.kind == ExprKind::constant;
  if (constant) count = std::max<std::int64_t>(end.integer - begin.integer, 1);
  while (plan.width > 1 && plan.width / 2 >= count) plan.width /= 2;
  // 64 elements in flight keep the depth of a sum within its contract and hide the latency of an addition.
  plan.copies = std::max({1, 64 / plan.width, plan.together});
  if (!plan.folds) plan.copies = std::min(plan.copies, 4);
  const int limit = plan.folds ? 2560 : 128;  // in units of the scalar table's cost
  while (plan.copies > 1 && (plan.copies * cost > limit || std::int64_t{plan.copies} * plan.width > count))
    plan.copies /= 2;
  if (ordered) plan.width = plan.copies = 1;
  if (plan.copies % plan.together != 0) plan.together = 1;
  // A rest that is known to fill a narrower vector needs no mask.
  if (plan.width > 1) plan.tail = machine_.has_masks ? 0 : 1;
  const auto rest = static_cast<int>(constant ? count % plan.width : 0);
  if (rest > 0 && (rest & (rest - 1)) == 0) plan.tail = rest;
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

void CpuLowering::lane_loop(const loops::Loop& loop, const LanePlan& plan, ValueId begin, ValueId end, bool tail) {
  if (emit_.is_constant(begin) && emit_.is_constant(end) &&
      emit_.constant_integer(begin) >= emit_.constant_integer(end))
    return;
  For f;
  f.begin = begin;
  f.end = end;
  f.step = std::int64_t{plan.width} * plan.copies;
  f.index = emit_.index_value(loop.name);
  open(f.body, written_in(loop.body));
  lane_bodies(loop, plan, f.index, tail);
  close();
  emit_.block().push_back({std::move(f)});
}

void CpuLowering::lane_bodies(const loops::Loop& loop, const LanePlan& plan, ValueId first, bool tail) {
  const int together = plan.jam ? plan.copies : plan.together;
  for (int round = 0; round < plan.copies; round += together) {
    open(emit_.block());
    Lanes lanes;
    lanes.loop = &loop;
    lanes.width = plan.width;
    lanes.copies = together;
    lanes.accumulator = round;
    lanes.tail = tail;
    lanes.depth = depth();
    for (int copy = 0; copy < lanes.copies; ++copy)
      lanes.first.push_back(emit_.add(first, emit_.integer(std::int64_t{round + copy} * plan.width)));
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
  single.copies = single.together = 1;
  lane_bodies(loop, single, first, false);
  masks_.clear();
  close();
  emit_.block().push_back({std::move(branch)});
}

// Stores of the body that may bypass the cache: consecutive, unmasked, and with an address known before the loop.
std::vector<CpuLowering::StreamTarget> CpuLowering::stream_targets(const loops::Loop& loop, const LanePlan& plan,
                                                                   ValueId begin) {
  std::vector<StreamTarget> targets;
  if (plan.width == 1) return targets;
  open(emit_.block());
  Lanes lanes;
  lanes.loop = &loop;
  lanes.width = plan.width;
  lanes.depth = depth();
  lanes.first = {begin};
  lanes_ = std::move(lanes);
  for (const loops::Statement& statement : loop.body) {
    const auto* store = std::get_if<loops::Store>(&statement.node);
    if (store == nullptr || !store->streaming || store->mode == loops::StoreMode::accumulate) continue;
    const loops::Parameter& p = nest_.parameters[store->parameter];
    const std::vector<ValueId> strides = parameter_strides(store->parameter);
    std::vector<Term> terms;
    for (std::size_t d = 0; d < store->index.size(); ++d) flatten(store->index[d], strides[d], terms);
    bool regular = plan.width * size_of(p.dtype) >= 16;
    std::int64_t stride = 0;
    for (const Term& term : terms) {
      const Stride s = lane_stride(term.expr);
      const bool constant = s.kind == Stride::constant && (s.value == 0 || emit_.is_constant(term.multiplier));
      regular = regular && constant;
      if (constant && s.value != 0) stride += s.value * emit_.constant_integer(term.multiplier);
    }
    if (!regular || stride != 1) continue;
    Instruction bits;
    bits.code = Code::pointer_bits;
    bits.type = {DType::i64};
    bits.payload = store->parameter;
    ValueId offset = emit_.integer(0);
    for (const Term& term : terms)
      offset = emit_.add(offset, emit_.mul(first_value(term.expr, 0).parts[0], term.multiplier));
    const ValueId bytes = emit_.mul(offset, emit_.integer(size_of(p.dtype)));
    const ValueId address = emit_.add(emit_.pure(bits, p.name + ".bits"), bytes);
    targets.push_back({store, address, plan.width * size_of(p.dtype), size_of(p.dtype)});
  }
  leave_lanes();
  close();
  return targets;
}

ValueId CpuLowering::bytes_past(const StreamTarget& target, ValueId elements) {
  const ValueId address = emit_.add(target.address, emit_.mul(elements, emit_.integer(target.element_bytes)));
  return emit_.operation(ScalarOp::bit_and, {address, emit_.integer(target.vector_bytes - 1)}, "past");
}

// Fewer elements than a vector has: a narrower vector that they fill, one masked vector, or a scalar loop.
void CpuLowering::partial_lanes(const loops::Loop& loop, const LanePlan& plan, ValueId first, ValueId end) {
  const ValueId rest = emit_.sub(end, first);
  const bool fills = emit_.is_constant(rest) && emit_.constant_integer(rest) == plan.tail;
  if (!fills && machine_.has_masks) return masked_tail(loop, plan, first, rest);
  LanePlan narrow;
  narrow.width = fills ? plan.tail : 1;
  narrow.jam = plan.jam;
  lane_loop(loop, narrow, first, end, true);
}

// The main loop. With several streaming stores, or folds whose order may not follow an address, it is written twice
// and their alignment decides.
void CpuLowering::blocks_loop(const loops::Loop& loop, const LanePlan& plan, ValueId begin, ValueId end,
                              const std::vector<StreamTarget>& targets, ValueId head) {
  ValueId past = no_value;
  for (const StreamTarget& target : targets) {
    const ValueId bytes = bytes_past(target, head);
    past = past == no_value ? bytes : emit_.operation(ScalarOp::bit_or, {past, bytes}, "past");
  }
  If branch;
  branch.condition = emit_.operation(ScalarOp::equal, {past, emit_.integer(0)}, "aligned");
  open(branch.body, written_in(loop.body));
  for (const StreamTarget& target : targets) streaming_.insert(target.store);
  lane_loop(loop, plan, begin, end, false);
  streaming_.clear();
  close();
  open(branch.otherwise, written_in(loop.body));
  lane_loop(loop, plan, begin, end, false);
  close();
  emit_.block().push_back({std::move(branch)});
}

void CpuLowering::lower_lanes(const loops::Loop& loop) {
  if (lanes_) lowering_error(nest_, fmt::format("lanes loop {} stands inside another", loop.name));
  const LanePlan plan = plan_lanes(loop);
  ValueId begin = scalar_value(loop.begin);
  const ValueId end = scalar_value(loop.end);
  open_folds(loop);
  enter_lanes(loop);
  emit_.comment(loop.comment.empty() ? fmt::format("{} by lanes: {} x {}", loop.name, plan.copies, plan.width)
                                     : loop.comment);
  ValueId count = emit_.sub(end, begin);
  if (!(non_negative(loop.end) && emit_.is_integer(begin, 0)))
    count = emit_.operation(ScalarOp::max, {count, emit_.integer(0)}, "count");
  const std::vector<StreamTarget> targets = stream_targets(loop, plan, begin);
  const bool peel = !targets.empty() && !plan.folds;
  ValueId head = emit_.integer(0);
  if (peel) {
    // Elements up to the first aligned address, at most all of them.
    const StreamTarget& target = targets[0];
    const ValueId past = bytes_past(target, head);
    const ValueId missing =
        emit_.operation(ScalarOp::bit_and, {emit_.sub(emit_.integer(0), past), emit_.integer(target.vector_bytes - 1)});
    const ValueId elements =
        emit_.operation(ScalarOp::floor_div, {missing, emit_.integer(target.element_bytes)}, "missing", true);
    head = emit_.operation(ScalarOp::min, {elements, count}, loop.name + ".head");
    const ValueId start = emit_.add(begin, head);
    partial_lanes(loop, plan, begin, start);
    begin = start;
    count = emit_.sub(count, head);
  }
  const auto round_down = [&](int lanes, const std::string& name) {
    return lanes == 1 ? count : emit_.operation(ScalarOp::bit_and, {count, emit_.integer(-lanes)}, name);
  };
  const ValueId whole = emit_.add(begin, round_down(plan.width * plan.copies, loop.name + ".blocks"));
  const ValueId vectors = emit_.add(begin, round_down(plan.width, loop.name + ".vectors"));
  const bool checked = !targets.empty() && (plan.folds || targets.size() > 1);
  if (peel && !checked) streaming_.insert(targets[0].store);
  if (checked)
    blocks_loop(loop, plan, begin, whole, targets, head);
  else
    lane_loop(loop, plan, begin, whole, false);
  if (plan.copies > 1) {
    LanePlan single = plan;
    single.copies = single.together = 1;
    lane_loop(loop, single, whole, vectors, false);
  }
  streaming_.clear();
  if (plan.width > 1) partial_lanes(loop, plan, vectors, end);
  close_folds(loop);
}

}  // namespace tigon::lower
