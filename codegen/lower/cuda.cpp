// Statements of a nest on a GPU: parts become ranges of blocks, rows are dealt out to groups of threads.
#include "codegen/lower/cuda.hpp"

#include <fmt/format.h>

#include "codegen/loops/verify.hpp"
#include "codegen/loops/walk.hpp"
#include "codegen/lower/cuda_lowering.hpp"

namespace tigon::lower {
namespace {

// A name for one element of an axis: "tokens" gives "token".
std::string one_of(const std::string& axis) {
  const bool plural = axis.size() > 3 && axis.ends_with('s') && !axis.ends_with("ss");
  return plural ? axis.substr(0, axis.size() - 1) : axis;
}

}  // namespace

using loops::Bind;
using loops::Expr;
using loops::ExprKind;

CudaLowering::CudaLowering(const Prepared& prepared, const CudaClass& buffers)
    : prepared_(prepared), nest_(prepared.nest), buffers_(buffers), emit_(out_) {
  out_.name = nest_.name;
  out_.formula = nest_.formula;
  out_.notes = nest_.notes;
  out_.axes = nest_.axes;
  out_.parameters = nest_.parameters;
  out_.scalars = nest_.scalars;
  out_.slots = nest_.slots;
  out_.monoids = nest_.monoids;
  out_.layout = loops::parameter_layout(nest_);
  varies_.assign(nest_.exprs.size(), -1);
  memory_of_.resize(nest_.exprs.size());
  for (std::size_t i = 0; i < nest_.exprs.size(); ++i) {
    const Expr& e = nest_.exprs[i];
    if (e.kind == ExprKind::load) memory_of_[i].insert(e.payload);
    if (e.kind == ExprKind::stage_load) memory_of_[i].insert(first_stage_key + e.payload);
    for (const ExprId arg : loops::args_of(nest_, static_cast<ExprId>(i)))
      memory_of_[i].insert(memory_of_[arg].begin(), memory_of_[arg].end());
  }
  for (const loops::Part& part : nest_.parts) {
    if (part.threads == 0) lowering_error(nest_, fmt::format("part {} does not say its threads", part.name));
    out_.threads = std::max(out_.threads, part.threads);
    loops_[part.grid.id] = &part.grid;
    loops::each_statement(part.grid.body, [&](const loops::Statement& s) {
      if (const auto* loop = std::get_if<loops::Loop>(&s.node)) loops_[loop->id] = loop;
      if (const auto* let = std::get_if<loops::Let>(&s.node)) let_names_.emplace(let->value, let->name);
    });
  }
  let_names_.insert(nest_.names.begin(), nest_.names.end());
  for (const loops::Part& part : nest_.parts)
    if (part.threads != out_.threads)
      lowering_error(nest_,
                     fmt::format("part {} has {} threads, another has {}", part.name, part.threads, out_.threads));
}

void CudaLowering::open(Block& block, Memory written, bool guard) {
  forget(written);
  emit_.open(block);
  Scope scope;
  scope.written = std::move(written);
  scope.guard = guard;
  scopes_.push_back(std::move(scope));
}

void CudaLowering::close() {
  emit_.close();
  scopes_.pop_back();
}

void CudaLowering::forget(const Memory& written) {
  if (written.empty()) return;
  for (Scope& scope : scopes_)
    std::erase_if(scope.values, [&](const auto& entry) {
      if (scope.pinned.count(entry.first) != 0) return false;
      return std::any_of(written.begin(), written.end(),
                         [&](std::uint32_t key) { return memory_of_[entry.first].count(key) != 0; });
    });
}

CudaLowering::Memory CudaLowering::written_in(const loops::Block& block) const {
  Memory result;
  loops::each_statement(block, [&](const loops::Statement& s) {
    if (const auto* store = std::get_if<loops::Store>(&s.node)) result.insert(store->parameter);
    if (const auto* store = std::get_if<loops::StageStore>(&s.node)) result.insert(first_stage_key + store->stage);
    if (const auto* store = std::get_if<loops::StoreState>(&s.node))
      result.insert(store->parameters.begin(), store->parameters.end());
  });
  return result;
}

void CudaLowering::assert_that(const std::string& condition, const std::string& why) {
  if (asserted_.insert(condition).second)
    out_.assertions.push_back(fmt::format("static_assert({}, \"host planned: {}\");", condition, why));
}

Lowered CudaLowering::run() {
  open(out_.body);
  ValueId start = integer(0);
  for (std::size_t part = 0; part < nest_.parts.size(); ++part) lower_part(part, start);
  close();
  write_merges();
  remove_dead(out_);
  return std::move(out_);
}

// The part's blocks follow those of the parts before it.
void CudaLowering::lower_part(std::size_t number, ValueId& start) {
  part_ = &nest_.parts[number];
  pending_.clear();
  Instruction i;
  i.type = {DType::i32};
  i.code = Code::block;
  const ValueId block = emit_.pure(i, "block");
  i.code = Code::slot;
  i.payload = part_->partitions_slot;
  const ValueId count = emit_.pure(i, "partitions");
  const ValueId next = whole(ScalarOp::add, start, count);
  const ValueId partition = whole(ScalarOp::sub, block, start, part_->grid.name);
  const bool only = nest_.parts.size() == 1;
  If branch;
  Block& body = only ? emit_.block() : branch.body;
  if (!only) {
    const ValueId below = emit_.operation(ScalarOp::less, {block, next});
    branch.condition = number == 0 ? below
                                   : emit_.operation(ScalarOp::logical_and,
                                                     {emit_.operation(ScalarOp::less_equal, {start, block}), below});
  }
  open(body, written_in(part_->grid.body));
  if (!only) emit_.comment("part " + part_->name);
  loop_values_[part_->grid.id] = partition;
  declare_stages(part_->grid.body);
  lower_block(part_->grid.body);
  close();
  if (!only) emit_.block().push_back({std::move(branch)});
  start = next;
}

// Stages in lanes are arrays of packs, declared where all of their uses see them.
void CudaLowering::declare_stages(const loops::Block& block) {
  const auto uses = [&](const loops::Block& inside, loops::StageId stage) {
    bool found = false;
    loops::each_statement(inside, [&](const loops::Statement& s) {
      if (const auto* store = std::get_if<loops::StageStore>(&s.node)) found = found || store->stage == stage;
    });
    return found;
  };
  for (loops::StageId id = 0; id < nest_.stages.size(); ++id) {
    if (stages_.count(id) != 0 || !uses(block, id)) continue;
    const loops::Stage& stage = nest_.stages[id];
    if (stage.keep != loops::Keep::lane)
      lowering_error(nest_, fmt::format("stage {} is not kept in lanes", stage.name));
    // Not here if one statement of the block holds them all and it is no lanes loop.
    int holders = 0;
    const loops::Loop* only = nullptr;
    for (const loops::Statement& s : block) {
      if (!uses({s}, id)) continue;
      ++holders;
      only = std::get_if<loops::Loop>(&s.node);
    }
    bool read_elsewhere = false;
    for (const loops::Statement& s : block) {
      if (const auto* loop = std::get_if<loops::Loop>(&s.node); loop != nullptr && loop == only) continue;
      for (const ExprId e : loops::reached(nest_, {s}))
        read_elsewhere =
            read_elsewhere || (nest_.exprs[e].kind == ExprKind::stage_load && nest_.exprs[e].payload == id);
    }
    if (holders == 1 && only != nullptr && only->bind != Bind::lanes && !read_elsewhere) continue;
    int width = 1, vectors = 1;
    loops::each_statement(block, [&](const loops::Statement& s) {
      const auto* loop = std::get_if<loops::Loop>(&s.node);
      if (loop == nullptr || loop->bind != Bind::lanes || !uses(loop->body, id)) return;
      width = loop->width;
      vectors = loop->vectors;
    });
    const VariableId variable = emit_.variable(stage.name, {stage.dtype});
    out_.variables[variable].pack = width;
    out_.variables[variable].count = vectors;
    stages_[id] = variable;
    Instruction declare;
    declare.code = Code::declare;
    declare.payload = variable;
    emit_.effect(declare, {});
  }
}

ValueId CudaLowering::member() {
  Instruction i;
  i.type = {DType::i32};
  i.code = Code::thread;
  const ValueId thread = emit_.pure(i, "thread");
  if (team() == out_.threads) return thread;
  if (team() == 1) return integer(0);
  return emit_.operation(ScalarOp::rem, {thread, integer(team())}, "lane", true);
}

void CudaLowering::by_leader(const std::function<void()>& body) {
  if (lanes_ || team() == 1) return body();
  const ValueId leader = emit_.operation(ScalarOp::equal, {member(), integer(0)}, "leader");
  // Neighbouring statements share one branch.
  if (!emit_.block().empty()) {
    if (auto* last = std::get_if<If>(&emit_.block().back().node); last != nullptr && last->condition == leader) {
      If branch = std::move(*last);
      emit_.block().pop_back();
      open(branch.body, {}, true);
      body();
      close();
      emit_.block().push_back({std::move(branch)});
      return;
    }
  }
  If branch;
  branch.condition = leader;
  open(branch.body, {}, true);
  body();
  close();
  emit_.block().push_back({std::move(branch)});
}

void CudaLowering::lower_block(const loops::Block& block) {
  for (std::size_t position = 0; position < block.size(); ++position) {
    const loops::Statement& s = block[position];
    if (const auto* loop = std::get_if<loops::Loop>(&s.node)) {
      lower_loop(*loop);
      continue;
    }
    if (const auto* when = std::get_if<loops::When>(&s.node)) {
      if (!lanes_) order(touches_of(loops::Statement{loops::Let{"", when->condition}}));
      lower_when(*when);
      continue;
    }
    if (!lanes_) order(touches_of(s));
    if (const auto* merge = std::get_if<loops::Merge>(&s.node)) lower_merge(*merge);
    if (const auto* state = std::get_if<loops::StoreState>(&s.node)) lower_store_state(*state);
    if (const auto* stage = std::get_if<loops::StageStore>(&s.node)) lower_stage_store(*stage);
    if (const auto* let = std::get_if<loops::Let>(&s.node)) {
      const ValueId named = value(let->value);
      emit_.rename(named, let->name);
      const auto at = static_cast<std::size_t>(emit_.depth_of(named));
      if (scopes_[at].values.count(let->value) != 0) scopes_[at].pinned.insert(let->value);
    }
    if (const auto* store = std::get_if<loops::Store>(&s.node)) {
      if (store->mode == loops::StoreMode::in_place) read_before_in_place(block, position);
      lower_store(*store);
    }
  }
}

void CudaLowering::lower_loop(const loops::Loop& loop) {
  if (loop.bind == Bind::tile) lowering_error(nest_, "tiles are done by the plan's Matmul step");
  if (loop.bind == Bind::chunk) lowering_error(nest_, "a chunk loop belongs to the plan, not into a kernel");
  if (loop.bind == Bind::cluster) lowering_error(nest_, "clusters of blocks are not lowered");
  if (loop.bind == Bind::lanes) return lower_lanes(loop);
  lower_plain(loop);
}

// Rows are dealt out to the groups of the block; all other loops run in every thread.
void CudaLowering::lower_plain(const loops::Loop& loop) {
  if (loop.bind == Bind::rows && in_rows_) lowering_error(nest_, "rows stand inside rows");
  const bool own_thread = lanes_.has_value();
  Range bounds = range(loop.begin);
  bounds.high = range(loop.end).high;
  const DType dtype = bounds.fits_i32() ? DType::i32 : DType::i64;
  // One iteration is no loop.
  const Expr& begin = nest_.exprs[loop.begin];
  const Expr& end = nest_.exprs[loop.end];
  const bool once = begin.kind == ExprKind::constant && end.kind == ExprKind::constant && loop.bind != Bind::rows &&
                    end.integer - begin.integer > 0 && end.integer - begin.integer <= loop.step;
  open_folds(loop);
  For f;
  f.begin = as(dtype, value(loop.begin));
  f.end = as(dtype, value(loop.end));
  if (nest_.exprs[loop.end].kind == ExprKind::operation) emit_.rename(f.end, loop.name + "_end");
  f.step = loop.step;
  if (!loop.comment.empty()) emit_.comment(loop.comment);
  if (loop.bind == Bind::rows && part_->group < part_->threads) {
    Instruction i;
    i.type = {DType::i32};
    i.code = Code::thread;
    const ValueId thread = emit_.pure(i, "thread");
    const ValueId group = part_->group == 1
                              ? thread
                              : emit_.operation(ScalarOp::floor_div, {thread, integer(part_->group)}, "group", true);
    f.begin = whole(ScalarOp::add, f.begin, group);
    f.step = part_->threads / part_->group;
  }
  if (loop.bind == Bind::unroll) f.unroll = For::Unroll::always;
  if (!own_thread && loop.bind == Bind::serial) f.unroll = For::Unroll::never;
  f.index = once ? f.begin : emit_.index_value(one_of(loop.name), dtype);
  if (loop.bind == Bind::rows) in_rows_ = true;
  std::vector<Touch> touched;
  if (!own_thread) recorders_.push_back(&touched);
  open(once ? emit_.block() : f.body, written_in(loop.body));
  loop_values_[loop.id] = f.index;
  const auto stages = stages_;
  if (!own_thread) declare_stages(loop.body);
  lower_block(loop.body);
  stages_ = stages;
  if (!own_thread) {
    recorders_.pop_back();
    bool meets = false;
    for (const Touch& a : touched)
      for (const Touch& b : touched) meets = meets || conflict(a, b);
    if (meets && !once && team() > 1) barrier();
    for (std::vector<Touch>* recorder : recorders_) recorder->insert(recorder->end(), touched.begin(), touched.end());
  }
  close();
  if (loop.bind == Bind::rows) in_rows_ = false;
  if (!once) emit_.block().push_back({std::move(f)});
  close_folds(loop);
}

void CudaLowering::lower_when(const loops::When& when) {
  If branch;
  branch.condition = value(when.condition);
  open(branch.body, written_in(when.body), true);
  lower_block(when.body);
  close();
  if (!branch.body.empty()) emit_.block().push_back({std::move(branch)});
}

Lowered lower_cuda(const loops::Nest& nest, const CudaClass& buffers) {
  loops::verify(nest);
  const Prepared prepared = prepare(nest);
  return CudaLowering(prepared, buffers).run();
}

}  // namespace tigon::lower
