// Lanes loops on a GPU: vectors dealt out to the threads of a team, heads and tails by single elements.
#include <fmt/format.h>

#include "codegen/loops/walk.hpp"
#include "codegen/lower/cuda_lowering.hpp"

namespace tigon::lower {

using loops::Expr;
using loops::ExprKind;

namespace {

// Statements of a lanes body that every element runs, for which vectors are read ahead and written behind.
loops::Block straight(const loops::Block& body) {
  loops::Block result;
  for (const loops::Statement& s : body)
    if (loops::body_of(s) == nullptr) result.push_back(s);
  return result;
}

}  // namespace

void CudaLowering::enter_lanes(const loops::Loop& loop, ValueId index, ValueId place, ValueId number) {
  Lanes lanes;
  lanes.loop = &loop;
  lanes.index = index;
  lanes.depth = depth();
  lanes.place = place;
  lanes.number = number;
  if (lanes_) {
    lanes.loads = std::move(lanes_->loads);
    lanes.stores = std::move(lanes_->stores);
  }
  lanes_ = std::move(lanes);
}

// Which accesses are vectors. Where rows start at any address, one parameter leads: its first vector is where the
// vectors begin, and only accesses that are certain to be aligned together with it are vectors too.
CudaLowering::LanePlan CudaLowering::plan_lanes(const loops::Loop& loop) {
  LanePlan plan;
  plan.width = std::max(1, loop.width);
  varies_.assign(nest_.exprs.size(), -1);
  per_lane_folds_.clear();
  loops::each_statement(loop.body, [&](const loops::Statement& s) {
    if (const auto* inner = std::get_if<loops::Loop>(&s.node))
      per_lane_folds_.insert(inner->folds.begin(), inner->folds.end());
  });
  if (plan.width == 1) return plan;
  // Terms are asked for outside the loop's scopes; the index alone stands for the element.
  struct Candidate {
    loops::ParameterId parameter;
    std::vector<ExprId> index;
    ExprId load = loops::no_expr;
    VectorStore store{};
    bool aligned = false;
  };
  std::vector<Candidate> candidates;
  Lanes probe;
  probe.loop = &loop;
  lanes_ = probe;
  const auto consider = [&](Candidate candidate) {
    if (!unit_stride(terms(candidate.parameter, candidate.index))) return;
    candidate.aligned =
        aligned(candidate.parameter, candidate.index, plan.width) && multiple_of(loop.begin) % plan.width == 0;
    candidates.push_back(std::move(candidate));
  };
  const loops::Block body = straight(loop.body);
  for (const ExprId id : loops::reached(nest_, body)) {
    const Expr& e = nest_.exprs[id];
    if (e.kind != ExprKind::load) continue;
    const auto args = loops::args_of(nest_, id);
    consider({e.payload, {args.begin(), args.end()}, id});
  }
  for (const loops::Statement& s : loop.body) {
    if (const auto* store = std::get_if<loops::Store>(&s.node))
      consider({store->parameter, store->index, loops::no_expr,
                VectorStore{store, 0, store->parameter, store->index, store->streaming}});
    if (const auto* store = std::get_if<loops::StoreState>(&s.node))
      for (std::size_t slot = 0; slot < store->parameters.size(); ++slot)
        consider({store->parameters[slot], store->index, loops::no_expr,
                  VectorStore{store, slot, store->parameters[slot], store->index, false}});
  }
  lanes_.reset();

  double ragged_bytes = 0, aligned_bytes = 0;
  const Candidate* leader = nullptr;
  for (const Candidate& c : candidates) {
    const double bytes = size_of(nest_.parameters[c.parameter].dtype);
    (c.aligned ? aligned_bytes : ragged_bytes) += bytes;
    if (!c.aligned && (leader == nullptr || (c.load == loops::no_expr && leader->load != loops::no_expr))) leader = &c;
  }
  if (loop.vectors > 0 || aligned_bytes >= ragged_bytes) leader = nullptr;
  if (leader != nullptr) {
    plan.leader = leader->parameter;
    plan.leader_index = leader->index;
  }
  for (const Candidate& c : candidates) {
    bool vector = c.aligned;
    if (leader != nullptr) {
      const loops::Parameter& mine = nest_.parameters[c.parameter];
      const loops::Parameter& its = nest_.parameters[leader->parameter];
      const bool same_place = c.index == leader->index;
      vector =
          same_place &&
          (c.parameter == leader->parameter ||
           (buffers_.aligned && buffers_.dense && size_of(mine.dtype) == size_of(its.dtype) && mine.axes == its.axes));
    }
    if (!vector) continue;
    if (c.load == loops::no_expr)
      plan.stores.push_back(c.store);
    else
      plan.loads.push_back(c.load);
  }
  // Without vectors the elements are dealt out one by one.
  if (loop.vectors == 0 && plan.loads.empty() && plan.stores.empty()) plan.width = 1;
  return plan;
}

void CudaLowering::lower_lanes(const loops::Loop& loop) {
  if (lanes_) lowering_error(nest_, fmt::format("lanes loop {} stands inside another", loop.name));
  const LanePlan plan = plan_lanes(loop);
  order(touches_of_lanes(loop, plan));
  open_folds(loop);
  open_one_places(loop);
  if (!loop.comment.empty()) emit_.comment(loop.comment);
  if (loop.vectors > 0) {
    counted_vectors(loop, plan);
  } else if (plan.width > 1 && (!plan.loads.empty() || !plan.stores.empty())) {
    all_vectors(loop, plan);
  } else {
    const ValueId begin = as(DType::i32, value(loop.begin));
    const ValueId end = as(DType::i32, value(loop.end));
    if (nest_.exprs[loop.end].kind == ExprKind::operation) emit_.rename(end, loop.name + "_end");
    single_elements(loop, loop.name, whole(ScalarOp::add, begin, member()), end, [](ValueId index) { return index; });
  }
  lanes_.reset();
  close_one_places();
  close_folds(loop);
}

// for (name = begin; name < end; name += team): one element each.
void CudaLowering::single_elements(const loops::Loop& loop, const std::string& name, ValueId begin, ValueId end,
                                   const std::function<ValueId(ValueId)>& element) {
  For f;
  f.begin = begin;
  f.end = end;
  f.step = team();
  f.unroll = For::Unroll::never;
  f.index = emit_.index_value(name, DType::i32);
  open(f.body, written_in(loop.body));
  varies_.assign(nest_.exprs.size(), -1);
  const ValueId index = element(f.index);
  emit_.rename(index, loop.name);
  lanes_.reset();
  enter_lanes(loop, index, no_value, no_value);
  lower_block(loop.body);
  lanes_.reset();
  close();
  emit_.block().push_back({std::move(f)});
}

// Each thread runs its vectors one after the other, written out: what it holds stays in registers.
void CudaLowering::counted_vectors(const loops::Loop& loop, const LanePlan& plan) {
  const std::int64_t extent = nest_.exprs[loop.end].integer;
  if (extent % plan.width != 0)
    lowering_error(nest_, fmt::format("loop {} counts vectors of {} for {} elements", loop.name, plan.width, extent));
  const std::int64_t places = static_cast<std::int64_t>(team()) * loop.vectors * plan.width;
  const bool full = places == extent;
  assert_that(fmt::format("{} {} {} * {} * {}", extent, full ? "==" : "<=", team(), loop.vectors, plan.width),
              fmt::format("threads x vectors x width {} {}", full ? "cover" : "hold", loop.name));
  For f;
  f.begin = integer(0);
  f.end = integer(loop.vectors);
  f.unroll = For::Unroll::always;
  const bool one = loop.vectors == 1;
  f.index = one ? f.begin : emit_.index_value("i", DType::i32);
  open(one ? emit_.block() : f.body, written_in(loop.body));
  const ValueId vector = whole(ScalarOp::add, member(), whole(ScalarOp::mul, f.index, integer(team())), "vector");
  const ValueId first = whole(ScalarOp::mul, vector, integer(plan.width), plan.width == 1 ? loop.name : "first");
  if (full) {
    vector_body(loop, plan, first, f.index);
  } else {
    If branch;
    branch.condition = emit_.operation(ScalarOp::less, {vector, integer(extent / plan.width)});
    open(branch.body, written_in(loop.body), true);
    vector_body(loop, plan, first, f.index);
    close();
    emit_.block().push_back({std::move(branch)});
  }
  close();
  if (!one) emit_.block().push_back({std::move(f)});
}

void CudaLowering::all_vectors(const loops::Loop& loop, const LanePlan& plan) {
  const ValueId begin = as(DType::i32, value(loop.begin));
  const ValueId end = as(DType::i32, value(loop.end));
  const ValueId count = whole(ScalarOp::sub, end, begin, "count");
  ValueId start = begin;
  ValueId head = integer(0);
  if (plan.has_head()) {
    lanes_ = Lanes{};
    lanes_->loop = &loop;
    Instruction i;
    i.code = Code::head_length;
    i.type = {DType::i32};
    i.memory = nest_.parameters[plan.leader].dtype;
    ValueId row = row_pointer(plan.leader, plan.leader_index);
    lanes_.reset();
    row = emit_.address(row, begin, i.memory, nest_.parameters[plan.leader].name + "_row");
    i.args = {row, count};
    head = emit_.pure(i, loop.name + "_head");
    start = whole(ScalarOp::add, begin, head);
  } else {
    const Expr& e = nest_.exprs[loop.end];
    if (e.kind == ExprKind::constant && e.integer % plan.width == 0)
      assert_that(fmt::format("{} % {} == 0", e.integer, plan.width), fmt::format("{} has whole vectors", loop.name));
  }
  const ValueId in_vectors = whole(ScalarOp::sub, count, head);
  const ValueId vectors = whole(ScalarOp::floor_div, in_vectors, integer(plan.width), loop.name + "_vectors");
  For f;
  f.begin = member();
  f.end = vectors;
  f.step = team();
  f.unroll = For::Unroll::never;
  f.index = emit_.index_value("vector", DType::i32);
  open(f.body, written_in(loop.body));
  const ValueId first = whole(ScalarOp::add, start, whole(ScalarOp::mul, f.index, integer(plan.width)), "first");
  vector_body(loop, plan, first, no_value);
  close();
  emit_.block().push_back({std::move(f)});

  const ValueId covered = whole(ScalarOp::mul, vectors, integer(plan.width), "in_vectors");
  const ValueId ragged = whole(ScalarOp::sub, count, covered, "ragged");
  if (emit_.is_constant(ragged) && emit_.constant_integer(ragged) == 0) return;
  emit_.comment(plan.has_head() ? "elements before the first vector and after the last"
                                : "elements after the last vector");
  single_elements(loop, "rest", member(), ragged, [&](ValueId rest) {
    const ValueId after = whole(ScalarOp::add, whole(ScalarOp::add, begin, covered), rest);
    if (!plan.has_head()) return after;
    const ValueId before = whole(ScalarOp::add, begin, rest);
    return emit_.operation(ScalarOp::where, {emit_.operation(ScalarOp::less, {rest, head}), before, after});
  });
}

// Vectors are read, their elements worked on one by one (written out), results written as vectors.
void CudaLowering::vector_body(const loops::Loop& loop, const LanePlan& plan, ValueId first, ValueId number) {
  lanes_.reset();
  enter_lanes(loop, first, no_value, number);
  const auto pack_variable = [&](const std::string& name, DType dtype) {
    const VariableId variable = emit_.variable(name, {dtype});
    out_.variables[variable].pack = plan.width;
    return variable;
  };
  const auto at_first = [&](loops::ParameterId id, std::span<const ExprId> index) {
    return emit_.address(row_pointer(id, index), first, nest_.parameters[id].dtype, nest_.parameters[id].name + "_at");
  };
  std::map<ExprId, PackPlace> loads;
  // A stage that takes a vector as it is in memory is loaded itself.
  for (const loops::Statement& s : loop.body) {
    const auto* stage = std::get_if<loops::StageStore>(&s.node);
    if (stage == nullptr || std::find(plan.loads.begin(), plan.loads.end(), stage->value) == plan.loads.end()) continue;
    const Expr& e = nest_.exprs[stage->value];
    loads[stage->value] = {stages_.at(stage->stage), number};
    Instruction i;
    i.code = Code::load_pack;
    i.memory = e.dtype;
    i.payload = stages_.at(stage->stage);
    i.args = {at_first(e.payload, loops::args_of(nest_, stage->value)), number};
    emit_.effect(i, {});
  }
  for (const ExprId id : plan.loads) {
    if (loads.count(id) != 0) continue;
    const Expr& e = nest_.exprs[id];
    const VariableId variable =
        pack_variable(fmt::format("{}_{}", nest_.parameters[e.payload].name, plan.width), e.dtype);
    loads[id] = {variable, no_value};
    Instruction i;
    i.code = Code::load_pack;
    i.memory = e.dtype;
    i.payload = variable;
    i.args = {at_first(e.payload, loops::args_of(nest_, id))};
    emit_.effect(i, {});
  }
  std::map<StoreKey, PackPlace> stores;
  for (const VectorStore& store : plan.stores) {
    const loops::Parameter& p = nest_.parameters[store.parameter];
    const VariableId variable = pack_variable(fmt::format("{}_{}", p.name, plan.width), p.dtype);
    stores[{store.statement, store.slot}] = {variable, no_value};
    Instruction declare;
    declare.code = Code::declare;
    declare.payload = variable;
    emit_.effect(declare, {});
  }

  For f;
  f.begin = integer(0);
  f.end = integer(plan.width);
  f.unroll = For::Unroll::always;
  const bool one = plan.width == 1;
  f.index = one ? f.begin : emit_.index_value("k", DType::i32);
  open(one ? emit_.block() : f.body, written_in(loop.body));
  varies_.assign(nest_.exprs.size(), -1);
  const ValueId index = whole(ScalarOp::add, first, f.index, loop.name);
  lanes_.reset();
  enter_lanes(loop, index, f.index, number);
  lanes_->loads = loads;
  lanes_->stores = stores;
  lower_block(loop.body);
  close();
  if (!one) emit_.block().push_back({std::move(f)});

  lanes_.reset();
  enter_lanes(loop, first, no_value, number);
  for (const VectorStore& store : plan.stores) {
    Instruction i;
    i.code = Code::store_pack;
    i.memory = nest_.parameters[store.parameter].dtype;
    i.payload = stores.at({store.statement, store.slot}).variable;
    i.streaming = store.streaming;
    i.args = {at_first(store.parameter, store.index)};
    emit_.effect(i, {});
  }
  lanes_.reset();
}

}  // namespace tigon::lower
