// Folds on a GPU: one state in each thread, merged over the threads that share the fold when its loop ends.
#include <fmt/format.h>

#include "codegen/loops/walk.hpp"
#include "codegen/lower/cuda_lowering.hpp"

namespace tigon::lower {

namespace {

// Whether a lanes loop in the block merges into the fold.
bool merged_in_lanes(const loops::Block& block, FoldId fold, bool in_lanes = false) {
  for (const loops::Statement& s : block) {
    const auto* merge = std::get_if<loops::Merge>(&s.node);
    if (merge != nullptr && merge->fold == fold && in_lanes) return true;
    const auto* loop = std::get_if<loops::Loop>(&s.node);
    const bool lanes = in_lanes || (loop != nullptr && loop->bind == loops::Bind::lanes);
    if (const loops::Block* body = loops::body_of(s); body != nullptr && merged_in_lanes(*body, fold, lanes))
      return true;
  }
  return false;
}

int operations_in(const ScalarProgram& program) {
  int count = 0;
  for (const ProgramValue& v : program.values) count += v.kind == ProgramValue::Kind::operation ? 1 : 0;
  return count;
}

}  // namespace

std::vector<VariableId> CudaLowering::state_variables(std::uint32_t monoid, DType element, const std::string& name) {
  const dsl::Monoid& m = nest_.monoids[monoid];
  std::vector<VariableId> result;
  for (std::size_t slot = 0; slot < m.state.size(); ++slot) {
    const DType dtype = dtype_of_class(m.state[slot], element);
    const std::string suffix = m.state.size() == 1 ? "" : fmt::format("_{}", slot);
    const VariableId variable = emit_.variable(name + suffix, {dtype});
    emit_.write(variable, emit_.number({dtype}, m.identity[slot]));
    result.push_back(variable);
  }
  return result;
}

void CudaLowering::open_folds(const loops::Loop& loop) {
  for (const FoldId fold : loop.folds) {
    const loops::Fold& f = nest_.folds[fold];
    OpenFold open;
    open.own_thread = lanes_.has_value();
    if (!open.own_thread) {
      const bool in_lanes = loop.bind == loops::Bind::lanes || merged_in_lanes(loop.body, fold);
      if (loop.bind == loops::Bind::rows) {
        if (in_lanes || part_->group < part_->threads) open.team = part_->threads;
      } else if (in_lanes) {
        open.team = team();
      }
      if (open.team > 1 && !nest_.monoids[f.monoid].commutative)
        lowering_error(nest_,
                       fmt::format("threads merge states of {}, whose order matters", nest_.monoids[f.monoid].name));
    }
    open.state = state_variables(f.monoid, f.element, f.name);
    open_folds_[fold] = std::move(open);
  }
}

void CudaLowering::merge_into(const std::vector<VariableId>& state, std::uint32_t monoid_number, DType element,
                              const std::vector<ExprId>& given, const std::string& name) {
  const dsl::Monoid& monoid = nest_.monoids[monoid_number];
  const std::size_t slots = monoid.state.size();
  // Products that the program only adds to something are fused into that addition.
  std::vector<FusedInput> fused;
  State inputs(2 * slots, no_value);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const ExprId product = fused_product(prepared_, given[slot]);
    int reads = 0;
    int additions = 0;
    for (const ProgramValue& v : monoid.merge.values) {
      if (v.kind != ProgramValue::Kind::operation) continue;
      for (int i = 0; i < 3; ++i) {
        const ProgramValue& arg = monoid.merge.values[v.args[static_cast<std::size_t>(i)]];
        const bool binary = i < 2;
        if (arg.kind != ProgramValue::Kind::input || arg.input != slots + slot) continue;
        if (v.op == ScalarOp::add && binary) ++additions;
        if (v.op != ScalarOp::add || binary) ++reads;
      }
    }
    if (product != loops::no_expr && reads == 1 && additions == 1) {
      const auto args = loops::args_of(nest_, product);
      fused.push_back({slots + slot, exact(args[0]), exact(args[1])});
    } else {
      inputs[slots + slot] = as(dtype_of_class(monoid.state[slot], element), value(given[slot]));
    }
  }
  if (fused.empty() && operations_in(monoid.merge) > 2) {
    need_merge(monoid_number, element);
    MergeState merge;
    merge.monoid = monoid_number;
    merge.element = element;
    merge.state = state;
    merge.given.assign(inputs.begin() + static_cast<std::ptrdiff_t>(slots), inputs.end());
    emit_.block().push_back({std::move(merge)});
    return;
  }
  for (std::size_t slot = 0; slot < slots; ++slot) inputs[slot] = emit_.read(state[slot], name);
  const State merged = run_program(monoid.merge, inputs, element, fused);
  for (std::size_t slot = 0; slot < slots; ++slot) emit_.write(state[slot], merged[slot]);
}

void CudaLowering::lower_merge(const loops::Merge& merge) {
  const auto found = open_folds_.find(merge.fold);
  if (found == open_folds_.end())
    lowering_error(nest_, fmt::format("fold {} is updated outside its loop", nest_.folds[merge.fold].name));
  const loops::Fold& fold = nest_.folds[merge.fold];
  const auto body = [&] { merge_into(found->second.state, fold.monoid, fold.element, merge.state, fold.name); };
  if (found->second.team > 1)
    by_leader(body);
  else
    body();
}

void CudaLowering::need_merge(std::uint32_t monoid, DType element) {
  for (const MergeFunction& known : out_.merges)
    if (known.monoid == monoid && known.element == element) return;
  MergeFunction function;
  function.monoid = monoid;
  function.element = element;
  out_.merges.push_back(std::move(function));
}

// The bodies of the merge functions, after the kernel's own: nothing is shared with it.
void CudaLowering::write_merges() {
  for (MergeFunction& function : out_.merges) {
    const dsl::Monoid& monoid = nest_.monoids[function.monoid];
    open(function.body);
    State inputs;
    for (const bool later : {false, true})
      for (std::size_t slot = 0; slot < monoid.state.size(); ++slot) {
        const DType dtype = dtype_of_class(monoid.state[slot], function.element);
        const VariableId variable = emit_.variable(fmt::format("{}{}", later ? "b" : "a", slot), {dtype});
        (later ? function.later : function.earlier).push_back(variable);
        inputs.push_back(emit_.read(variable, out_.variables[variable].name));
      }
    const State merged = run_program(monoid.merge, inputs, function.element);
    for (std::size_t slot = 0; slot < merged.size(); ++slot) emit_.write(function.earlier[slot], merged[slot]);
    close();
  }
}

void CudaLowering::exchange(std::uint32_t monoid, DType element, int team, const std::vector<VariableId>& state) {
  if (team <= 1) return;
  need_merge(monoid, element);
  Exchange exchange;
  exchange.monoid = monoid;
  exchange.element = element;
  exchange.team = team;
  exchange.state = state;
  emit_.block().push_back({std::move(exchange)});
  if (team == out_.threads) pending_.clear();
}

void CudaLowering::close_folds(const loops::Loop& loop) {
  for (const FoldId fold : loop.folds) {
    const OpenFold open = open_folds_.at(fold);
    const loops::Fold& f = nest_.folds[fold];
    exchange(f.monoid, f.element, open.team, open.state);
    State result;
    for (const VariableId variable : open.state) result.push_back(emit_.read(variable, f.name));
    fold_results_[fold] = std::move(result);
    open_folds_.erase(fold);
  }
}

void CudaLowering::open_one_places(const loops::Loop& loop) {
  one_places_.clear();
  if (team() == 1 && loop.width <= 1) return;
  Lanes probe;
  probe.loop = &loop;
  lanes_ = probe;
  loops::each_statement(loop.body, [&](const loops::Statement& s) {
    const auto* store = std::get_if<loops::StoreState>(&s.node);
    if (store == nullptr || store->mode != loops::StoreMode::accumulate) return;
    for (const ExprId index : store->index)
      if (varies(index)) return;
    one_places_.push_back({store, {}});
  });
  lanes_.reset();
  for (OnePlace& place : one_places_) {
    const dsl::Monoid& monoid = nest_.monoids[place.store->monoid];
    if (!monoid.commutative)
      lowering_error(nest_,
                     fmt::format("threads merge states of {}, whose order matters, into one element", monoid.name));
    DType element = DType::f32;
    for (std::size_t slot = 0; slot < place.store->state.size(); ++slot)
      if (monoid.state[slot] == ValueClass::element) element = nest_.exprs[place.store->state[slot]].dtype;
    place.state = state_variables(place.store->monoid, element, nest_.parameters[place.store->parameters[0]].name);
  }
}

void CudaLowering::close_one_places() {
  const std::vector<OnePlace> places = std::move(one_places_);
  one_places_.clear();
  for (const OnePlace& place : places) {
    const loops::StoreState& s = *place.store;
    DType element = DType::f32;
    for (std::size_t slot = 0; slot < s.state.size(); ++slot)
      if (nest_.monoids[s.monoid].state[slot] == ValueClass::element) element = nest_.exprs[s.state[slot]].dtype;
    exchange(s.monoid, element, team(), place.state);
    State state;
    for (const VariableId variable : place.state) state.push_back(emit_.read(variable, "total"));
    by_leader([&] { store_state_now(s, state); });
  }
}

}  // namespace tigon::lower
