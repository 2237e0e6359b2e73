// Folds as accumulators: one vector per copy and state slot, merged copies first, lanes after, by the monoid's program.
#include <fmt/format.h>

#include "codegen/loops/walk.hpp"
#include "codegen/lower/cpu_lowering.hpp"

namespace tigon::lower {

DType CpuLowering::slot_dtype(FoldId fold, std::size_t slot) const {
  const loops::Fold& f = nest_.folds[fold];
  return dtype_of_class(nest_.monoids[f.monoid].state[slot], f.element);
}

// One group for each lanes loop that merges into the fold, one for the code outside, in order of appearance.
void CpuLowering::collect_groups(const loops::Block& block, FoldId fold, LoopId lanes, std::vector<Group>& groups) {
  for (const loops::Statement& s : block) {
    if (const auto* merge = std::get_if<loops::Merge>(&s.node); merge != nullptr && merge->fold == fold) {
      const bool known = std::any_of(groups.begin(), groups.end(), [&](const Group& g) { return g.lanes == lanes; });
      if (!known) {
        Group group;
        group.lanes = lanes;
        groups.push_back(group);
      }
    }
    const loops::Block* body = loops::body_of(s);
    if (body == nullptr) continue;
    const auto* loop = std::get_if<loops::Loop>(&s.node);
    const bool is_lanes = loop != nullptr && loop->bind == loops::Bind::lanes;
    collect_groups(*body, fold, is_lanes ? loop->id : lanes, groups);
  }
}

// Copies whose elements the fold takes in at once.
int CpuLowering::absorb_count(FoldId fold, const LanePlan& plan) const {
  const int count = nest_.monoids[nest_.folds[fold].monoid].absorb_count;
  return count > 0 && plan.together % count == 0 ? count : 1;
}

void CpuLowering::add_variables(Group& group, FoldId fold, const LanePlan& plan) {
  const dsl::Monoid& monoid = nest_.monoids[nest_.folds[fold].monoid];
  group.width = plan.width;
  const auto add = [&](int lanes) {
    std::vector<VariableId> slots;
    for (std::size_t slot = 0; slot < monoid.state.size(); ++slot) {
      const Type type{slot_dtype(fold, slot), static_cast<std::uint16_t>(lanes)};
      const std::string suffix = slot == 0 ? "" : fmt::format("_{}", slot);
      const VariableId variable = emit_.variable(nest_.folds[fold].name + suffix + ".state", type);
      emit_.write(variable, emit_.number({type.dtype}, monoid.identity[slot]));
      slots.push_back(variable);
    }
    return slots;
  };
  group.absorbs = absorb_count(fold, plan);
  for (int copy = 0; copy < plan.copies; copy += group.absorbs) group.copies.push_back(add(plan.width));
  group.tail_width = group.lanes == no_loop ? 0 : plan.tail;
  if (group.tail_width > 0) group.tail = add(group.tail_width);
}

void CpuLowering::open_folds(const loops::Loop& loop) {
  for (const FoldId fold : loop.folds) {
    OpenFold open;
    if (lanes_) {
      open.per_lane = true;
      open.masks_at_start = masks_;
      LanePlan plan;
      plan.width = lanes_->width;
      plan.copies = lanes_->copies;  // one element of each at a time: nothing to absorb
      open.groups.emplace_back();
      add_variables(open.groups.back(), fold, plan);
    } else {
      if (loop.bind == loops::Bind::lanes)
        collect_groups(loop.body, fold, loop.id, open.groups);
      else
        collect_groups(loop.body, fold, no_loop, open.groups);
      for (Group& group : open.groups)
        add_variables(group, fold, group.lanes == no_loop ? LanePlan{} : plan_lanes(*loops_.at(group.lanes)));
    }
    open_folds_[fold] = std::move(open);
  }
}

void CpuLowering::lower_merge(const loops::Merge& merge) {
  const auto found = open_folds_.find(merge.fold);
  if (found == open_folds_.end())
    lowering_error(nest_, fmt::format("fold {} is updated outside its loop", nest_.folds[merge.fold].name));
  OpenFold& open = found->second;
  const loops::Fold& fold = nest_.folds[merge.fold];
  const dsl::Monoid& monoid = nest_.monoids[fold.monoid];
  const std::size_t slots = monoid.state.size();
  const LoopId here = lanes_ ? lanes_->loop->id : no_loop;
  Group* group = &open.groups[0];
  for (Group& g : open.groups)
    if (!open.per_lane && g.lanes == here) group = &g;

  const bool tail = lanes_ && lanes_->tail && !open.per_lane;
  if (merge.lifted && group->absorbs > 1 && masks_.empty() && !tail && lanes_->copies % group->absorbs == 0)
    return absorb(merge, *group);
  // Products that the program only adds to something are fused into that addition.
  std::vector<ExprId> products(slots, loops::no_expr);
  std::vector<Emitted> given(slots);
  std::vector<std::pair<Emitted, Emitted>> factors(slots);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const ExprId product = fused_product(prepared_, merge.state[slot]);
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
      products[slot] = product;
      const auto args = loops::args_of(nest_, product);
      factors[slot] = {value(args[0]), value(args[1])};
    } else {
      given[slot] = value(merge.state[slot]);
    }
  }
  const bool masked = !masks_.empty() && !(open.per_lane && open.masks_at_start == masks_);
  std::vector<std::string> names(slots, fold.name);
  const int copies = lanes_ ? lanes_->copies : 1;
  for (int copy = 0; copy < copies; ++copy) {
    const int number = (copy + (lanes_ && !open.per_lane ? lanes_->accumulator : 0)) / group->absorbs;
    const std::vector<VariableId>& variables = tail ? group->tail : group->copies.at(static_cast<std::size_t>(number));
    State inputs = read_state(variables, fold.name);
    const State old = inputs;
    std::vector<FusedInput> fused;
    for (std::size_t slot = 0; slot < slots; ++slot) {
      if (products[slot] != loops::no_expr) {
        fused.push_back({slots + slot, part(factors[slot].first, copy), part(factors[slot].second, copy)});
        inputs.push_back(no_value);
      } else {
        inputs.push_back(part(given[slot], copy));
      }
    }
    const State merged = run_program(monoid.merge, inputs, fold.element, fused, names);
    for (std::size_t slot = 0; slot < slots; ++slot) {
      ValueId result = merged[slot];
      if (masked) result = emit_.operation(ScalarOp::where, {mask(copy), result, old[slot]}, fold.name);
      emit_.write(variables[slot], result);
    }
  }
}

// The elements of several copies enter one accumulator together.
void CpuLowering::absorb(const loops::Merge& merge, const Group& group) {
  const loops::Fold& fold = nest_.folds[merge.fold];
  const dsl::Monoid& monoid = nest_.monoids[fold.monoid];
  std::vector<Emitted> given;
  for (const ExprId slot : merge.state) given.push_back(value(slot));
  for (int copy = 0; copy < lanes_->copies; copy += group.absorbs) {
    const int number = (lanes_->accumulator + copy) / group.absorbs;
    const std::vector<VariableId>& variables = group.copies.at(static_cast<std::size_t>(number));
    State inputs = read_state(variables, fold.name);
    for (int element = 0; element < group.absorbs; ++element)
      for (const Emitted& slot : given) inputs.push_back(part(slot, copy + element));
    const State absorbed =
        run_program(monoid.absorb, inputs, fold.element, {}, std::vector<std::string>(variables.size(), fold.name));
    for (std::size_t slot = 0; slot < variables.size(); ++slot) emit_.write(variables[slot], absorbed[slot]);
  }
}

CpuLowering::State CpuLowering::read_state(const std::vector<VariableId>& variables, const std::string& name) {
  State result;
  for (const VariableId variable : variables) result.push_back(emit_.read(variable, name));
  return result;
}

CpuLowering::State CpuLowering::merge_states(FoldId fold, const State& earlier, const State& later) {
  const loops::Fold& f = nest_.folds[fold];
  State inputs = earlier;
  inputs.insert(inputs.end(), later.begin(), later.end());
  return run_program(nest_.monoids[f.monoid].merge, inputs, f.element, {},
                     std::vector<std::string>(earlier.size(), f.name));
}

// Lower halves with upper halves, down to one lane.
CpuLowering::State CpuLowering::reduce_lanes(FoldId fold, State state, int width) {
  for (; width > 1; width /= 2) {
    State low;
    State high;
    for (const ValueId slot : state) {
      low.push_back(emit_.slice(slot, 0, width / 2));
      high.push_back(emit_.slice(slot, width / 2, width / 2));
    }
    state = merge_states(fold, low, high);
  }
  return state;
}

CpuLowering::State CpuLowering::reduce_group(FoldId fold, const Group& group) {
  const std::string& name = nest_.folds[fold].name;
  std::vector<State> states;
  for (const auto& copy : group.copies) states.push_back(read_state(copy, name));
  while (states.size() > 1) {
    std::vector<State> merged;
    for (std::size_t i = 0; i + 1 < states.size(); i += 2)
      merged.push_back(merge_states(fold, states[i], states[i + 1]));
    if (states.size() % 2 != 0) merged.push_back(states.back());
    states = std::move(merged);
  }
  State state = reduce_lanes(fold, states[0], group.width);
  if (group.tail.empty()) return state;
  return merge_states(fold, state, reduce_lanes(fold, read_state(group.tail, name), group.tail_width));
}

void CpuLowering::close_folds(const loops::Loop& loop) {
  for (const FoldId fold : loop.folds) {
    const OpenFold& open = open_folds_.at(fold);
    const loops::Fold& f = nest_.folds[fold];
    const dsl::Monoid& monoid = nest_.monoids[f.monoid];
    std::vector<Emitted> result(monoid.state.size());
    for (Emitted& slot : result) slot.depth = depth();
    if (open.per_lane) {
      for (const auto& copy : open.groups[0].copies) {
        const State state = read_state(copy, f.name);
        for (std::size_t slot = 0; slot < state.size(); ++slot) result[slot].parts.push_back(state[slot]);
      }
    } else {
      State state;
      for (const Group& group : open.groups) {
        const State reduced = reduce_group(fold, group);
        state = state.empty() ? reduced : merge_states(fold, state, reduced);
      }
      for (std::size_t slot = 0; slot < result.size(); ++slot)
        result[slot].parts = {state.empty() ? emit_.number({slot_dtype(fold, slot)}, monoid.identity[slot])
                                            : state[slot]};
    }
    fold_results_[fold] = std::move(result);
    open_folds_.erase(fold);
  }
}

}  // namespace tigon::lower
