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
  let_names_.insert(nest_.names.begin(), nest_.names.end());
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

Lowered lower_cpu(const loops::Nest& nest, const CpuMachine& machine) {
  loops::verify(nest);
  const Prepared prepared = prepare(nest);
  return CpuLowering(prepared, machine).run();
}

}  // namespace tigon::lower
