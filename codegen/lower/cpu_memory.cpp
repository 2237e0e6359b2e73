// Loads and stores: how an index moves from lane to lane decides between scalar, vector, reversed and gathered access.
#include <fmt/format.h>

#include "codegen/loops/walk.hpp"
#include "codegen/lower/cpu_lowering.hpp"

namespace tigon::lower {

using loops::Expr;
using loops::ExprKind;

ValueId CpuLowering::parameter_pointer(loops::ParameterId id) {
  Instruction i;
  i.code = Code::pointer_of;
  i.type = {DType::i64, 1, true};
  i.payload = id;
  return emit_.pure(i, nest_.parameters[id].name + ".base");
}

ValueId CpuLowering::stage_pointer(loops::StageId id) {
  Instruction i;
  i.code = Code::scratch;
  i.type = {DType::i64, 1, true};
  i.integer = stage_offsets_[id];
  return emit_.pure(i, nest_.stages[id].name + ".base");
}

std::vector<ValueId> CpuLowering::parameter_strides(loops::ParameterId id) {
  const loops::Parameter& p = nest_.parameters[id];
  std::vector<ValueId> result;
  for (std::size_t d = 0; d < p.strides.size(); ++d) {
    if (p.strides[d] != loops::at_run_time) {
      result.push_back(emit_.integer(p.strides[d]));
      continue;
    }
    std::uint32_t slot = 0;
    while (slot < nest_.slots.size() && !(nest_.slots[slot].kind == loops::SlotKind::stride &&
                                          nest_.slots[slot].parameter == id && nest_.slots[slot].dimension == d))
      ++slot;
    if (slot == nest_.slots.size())
      lowering_error(nest_, fmt::format("parameter {} has no slot for the stride of dimension {}", p.name, d));
    Instruction i;
    i.code = Code::slot;
    i.type = {DType::i64};
    i.payload = slot;
    result.push_back(emit_.pure(i, fmt::format("{}.stride{}", p.name, d)));
  }
  return result;
}

std::vector<ValueId> CpuLowering::stage_strides(loops::StageId id) {
  const loops::Stage& s = nest_.stages[id];
  std::vector<ValueId> result(s.extents.size());
  std::int64_t stride = 1;
  for (std::size_t d = s.extents.size(); d-- > 0;) {
    result[d] = emit_.integer(stride);
    stride *= s.extents[d];
  }
  return result;
}

// Splits an index times its stride into summands, so that each is computed where it last changes.
void CpuLowering::flatten(ExprId id, ValueId multiplier, std::vector<Term>& terms) {
  const Expr& e = nest_.exprs[id];
  if (e.kind == ExprKind::operation) {
    const auto args = loops::args_of(nest_, id);
    if (e.op == ScalarOp::add || e.op == ScalarOp::sub) {
      flatten(args[0], multiplier, terms);
      flatten(args[1], e.op == ScalarOp::add ? multiplier : emit_.mul(multiplier, emit_.integer(-1)), terms);
      return;
    }
    if (e.op == ScalarOp::mul && nest_.exprs[args[1]].kind == ExprKind::constant) {
      flatten(args[0], emit_.mul(multiplier, emit_.integer(nest_.exprs[args[1]].integer)), terms);
      return;
    }
  }
  if (e.kind == ExprKind::constant && e.integer == 0) return;
  terms.push_back({id, multiplier});
}

CpuLowering::Access CpuLowering::access(ValueId base, DType dtype, const std::string& name,
                                        std::span<const ExprId> index, const std::vector<ValueId>& strides) {
  std::vector<Term> terms;
  for (std::size_t d = 0; d < index.size(); ++d) flatten(index[d], strides[d], terms);
  Access result;
  bool moving = false;
  Stride total;
  for (const Term& term : terms) {
    if (!varies(term.expr)) continue;
    moving = true;
    Stride s = lane_stride(term.expr);
    const bool known = emit_.is_constant(term.multiplier);
    if (s.kind == Stride::constant && known)
      s.value *= emit_.constant_integer(term.multiplier);
    else if (s.kind == Stride::constant && s.value != 0)
      s = {Stride::run_time, 0, emit_.mul(term.multiplier, emit_.integer(s.value))};
    else if (s.kind == Stride::run_time)
      s.factor = emit_.mul(s.factor, term.multiplier);
    if (total.kind == Stride::constant && s.kind == Stride::constant)
      total.value += s.value;
    else if (total.kind == Stride::constant && total.value == 0)
      total = s;
    else if (!(s.kind == Stride::constant && s.value == 0))
      total.kind = Stride::irregular;
  }
  const int width = lanes_ ? lanes_->width : 1;
  const int copies = moving ? lanes_->copies : 1;
  if (moving && width > 1) {
    result.kind = Access::scattered;
    if (total.kind == Stride::constant && total.value == 1) result.kind = Access::consecutive;
    if (total.kind == Stride::constant && total.value == -1) result.kind = Access::reversed;
  }
  for (int copy = 0; copy < copies; ++copy) {
    const bool per_lane = result.kind == Access::scattered && total.kind == Stride::irregular;
    std::vector<ValueId> offsets;  // scalar summands
    ValueId vector = no_value;
    for (const Term& term : terms) {
      if (per_lane && varies(term.expr)) {
        const Emitted v = value(term.expr);
        result.depth = std::max(result.depth, v.depth);
        const ValueId scaled = emit_.mul(part(v, copy), term.multiplier);
        vector = vector == no_value ? scaled : emit_.add(vector, scaled);
        continue;
      }
      const Emitted v = first_value(term.expr, copy);
      result.depth = std::max(result.depth, v.depth);
      offsets.push_back(emit_.mul(v.parts[0], term.multiplier));
    }
    std::stable_sort(offsets.begin(), offsets.end(),
                     [&](ValueId a, ValueId b) { return emit_.depth_of(a) < emit_.depth_of(b); });
    ValueId pointer = base;
    for (std::size_t i = 0; i < offsets.size();) {
      const int level = emit_.depth_of(offsets[i]);
      ValueId sum = offsets[i++];
      while (i < offsets.size() && emit_.depth_of(offsets[i]) == level) sum = emit_.add(sum, offsets[i++]);
      const bool innermost = i == offsets.size();
      pointer = emit_.address(pointer, sum, dtype, name + (innermost && moving ? ".at" : ".row"));
    }
    if (result.kind == Access::reversed)
      pointer = emit_.address(pointer, emit_.integer(1 - width), dtype, name + ".at");
    if (result.kind == Access::scattered) {
      if (!per_lane) {
        const ValueId step = total.kind == Stride::constant ? emit_.integer(total.value) : total.factor;
        vector = emit_.mul(emit_.lane_numbers(DType::i64, width), step);
      }
      pointer = emit_.address(pointer, emit_.broadcast(vector, width), dtype, name + ".each");
    }
    result.pointers.push_back(pointer);
  }
  if (moving) result.depth = std::max(result.depth, lanes_->depth);
  return result;
}

// The innermost open scope that a load of this memory may not leave.
int CpuLowering::load_depth(std::uint32_t key) const {
  for (std::size_t d = scopes_.size(); d-- > 0;)
    if (scopes_[d].guard || scopes_[d].written.count(key) != 0) return static_cast<int>(d);
  return 0;
}

CpuLowering::Emitted CpuLowering::load_from(const Access& access, DType dtype, const std::string& name, int depth) {
  Emitted result;
  result.depth = std::max(depth, access.depth);
  const int width = access.kind == Access::uniform ? 1 : lanes_->width;
  for (std::size_t copy = 0; copy < access.pointers.size(); ++copy) {
    Instruction i;
    i.code = access.kind == Access::scattered ? Code::gather : Code::load;
    i.type = {dtype, static_cast<std::uint16_t>(width)};
    i.memory = dtype;
    i.args = {access.pointers[copy]};
    const bool masked = width > 1 && !masks_.empty();
    ValueId lane_mask = masked ? mask(static_cast<int>(copy)) : no_value;
    if (masked && access.kind == Access::reversed) {
      Instruction turn;
      turn.code = Code::reverse;
      turn.type = emit_.type(lane_mask);
      turn.args = {lane_mask};
      lane_mask = emit_.pure(turn, "mask.reversed");
    }
    if (masked) i.args.push_back(lane_mask);
    ValueId loaded = emit_.effect(i, name, result.depth);
    if (access.kind == Access::reversed) {
      Instruction turn;
      turn.code = Code::reverse;
      turn.type = i.type;
      turn.args = {loaded};
      loaded = emit_.pure(turn, name);
    }
    result.parts.push_back(loaded);
  }
  return result;
}

CpuLowering::Emitted CpuLowering::load(ExprId id) {
  const Expr& e = nest_.exprs[id];
  const auto index = loops::args_of(nest_, id);
  const bool staged = e.kind == ExprKind::stage_load;
  const std::string& name = staged ? nest_.stages[e.payload].name : nest_.parameters[e.payload].name;
  const std::vector<ValueId> strides = staged ? stage_strides(e.payload) : parameter_strides(e.payload);
  const ValueId base = staged ? stage_pointer(e.payload) : parameter_pointer(e.payload);
  const Access where = access(base, e.dtype, name, index, strides);
  return load_from(where, e.dtype, name, load_depth(staged ? first_stage_key + e.payload : e.payload));
}

void CpuLowering::store(DType dtype, const Access& access, const Emitted& value, bool streaming) {
  const int width = access.kind == Access::uniform ? 1 : lanes_->width;
  for (std::size_t copy = 0; copy < access.pointers.size(); ++copy) {
    const ValueId raw = part(value, static_cast<int>(copy));
    if (emit_.lanes(raw) > width) lowering_error(nest_, "lanes store different values to one element");
    Instruction i;
    i.code = access.kind == Access::scattered ? Code::scatter : Code::store;
    i.memory = dtype;
    ValueId stored = emit_.broadcast(emit_.cast(dtype, raw), width);
    ValueId lane_mask = width > 1 ? mask(static_cast<int>(copy)) : no_value;
    if (access.kind == Access::reversed) {
      Instruction turn;
      turn.code = Code::reverse;
      turn.type = emit_.type(stored);
      turn.args = {stored};
      stored = emit_.pure(turn, "reversed");
      if (lane_mask != no_value) {
        turn.type = emit_.type(lane_mask);
        turn.args = {lane_mask};
        lane_mask = emit_.pure(turn, "mask.reversed");
      }
    }
    i.type = emit_.type(stored);
    i.args = {stored, access.pointers[copy]};
    if (lane_mask != no_value) i.args.push_back(lane_mask);
    const int bytes = width * size_of(dtype);
    i.streaming = streaming && width > 1 && lane_mask == no_value && access.kind == Access::consecutive && bytes >= 16;
    if (i.streaming) i.alignment = static_cast<std::uint16_t>(bytes);
    emit_.effect(std::move(i), {});
  }
}

// In place: what this block still reads of the parameter is its old value.
void CpuLowering::read_before_in_place(const loops::Block& block, std::size_t position) {
  const auto parameter = std::get<loops::Store>(block[position].node).parameter;
  for (std::size_t j = position + 1; j < block.size(); ++j) {
    if (std::holds_alternative<loops::Loop>(block[j].node)) continue;
    for (const ExprId id : loops::reached(nest_, loops::Block{block[j]})) {
      const Expr& e = nest_.exprs[id];
      if (e.kind == ExprKind::load && e.payload == parameter) value(id);
    }
  }
}

void CpuLowering::lower_store(const loops::Store& s) {
  const loops::Parameter& p = nest_.parameters[s.parameter];
  const ValueId base = parameter_pointer(s.parameter);
  Emitted stored = value(s.value);
  const Access where = access(base, p.dtype, p.name, s.index, parameter_strides(s.parameter));
  if (s.mode == loops::StoreMode::accumulate) {
    const Emitted old = load_from(where, p.dtype, p.name + ".old", depth());
    const DType dtype = promote(p.dtype, nest_.exprs[s.value].dtype);
    Emitted sum;
    for (std::size_t copy = 0; copy < where.pointers.size(); ++copy) {
      const ValueId a = emit_.cast(dtype, part(old, static_cast<int>(copy)));
      const ValueId b = emit_.cast(dtype, part(stored, static_cast<int>(copy)));
      sum.parts.push_back(emit_.add(a, b));
    }
    stored = sum;
  }
  store(p.dtype, where, stored, streaming_.count(&s) != 0);
}

// The states of all running lanes as one.
std::vector<CpuLowering::Emitted> CpuLowering::merge_lanes(const dsl::Monoid& monoid, DType element,
                                                           const std::vector<Emitted>& states) {
  if (!monoid.commutative && lanes_->width > 1)
    lowering_error(nest_, fmt::format("lanes merge states of {}, whose order matters, into one element", monoid.name));
  const auto merge = [&](const State& earlier, const State& later) {
    State inputs = earlier;
    inputs.insert(inputs.end(), later.begin(), later.end());
    return run_program(monoid.merge, inputs, element);
  };
  State total;
  for (int copy = 0; copy < lanes_->copies; ++copy) {
    State state;
    for (std::size_t slot = 0; slot < states.size(); ++slot) {
      ValueId value = emit_.broadcast(part(states[slot], copy), lanes_->width);
      const ValueId neutral =
          emit_.number({emit_.type(value).dtype, static_cast<std::uint16_t>(lanes_->width)}, monoid.identity[slot]);
      if (!masks_.empty()) value = emit_.operation(ScalarOp::where, {mask(copy), value, neutral});
      state.push_back(value);
    }
    total = total.empty() ? state : merge(total, state);
  }
  for (int width = lanes_->width; width > 1; width /= 2) {
    State low;
    State high;
    for (const ValueId slot : total) {
      low.push_back(emit_.slice(slot, 0, width / 2));
      high.push_back(emit_.slice(slot, width / 2, width / 2));
    }
    total = merge(low, high);
  }
  std::vector<Emitted> result;
  for (const ValueId slot : total) result.push_back({{slot}, depth()});
  return result;
}

void CpuLowering::lower_store_state(const loops::StoreState& s) {
  std::vector<Emitted> states;
  for (const ExprId id : s.state) states.push_back(value(id));
  std::vector<Access> where;
  for (const loops::ParameterId id : s.parameters) {
    const std::vector<ValueId> strides = parameter_strides(id);
    const loops::Parameter& p = nest_.parameters[id];
    where.push_back(access(parameter_pointer(id), p.dtype, p.name, s.index, strides));
  }
  if (s.mode == loops::StoreMode::accumulate) {
    const dsl::Monoid& monoid = nest_.monoids[s.monoid];
    DType element = DType::f32;
    for (std::size_t slot = 0; slot < s.state.size(); ++slot)
      if (monoid.state[slot] == ValueClass::element) element = nest_.exprs[s.state[slot]].dtype;
    std::vector<Emitted> old;
    for (std::size_t slot = 0; slot < s.parameters.size(); ++slot)
      old.push_back(load_from(where[slot], nest_.parameters[s.parameters[slot]].dtype,
                              nest_.parameters[s.parameters[slot]].name + ".old", depth()));
    // Lanes (and copies) that merge into one place are merged with each other first.
    const bool one_place = where[0].kind == Access::uniform && lanes_.has_value() && lanes_->width * lanes_->copies > 1;
    if (one_place) states = merge_lanes(monoid, element, states);
    std::vector<Emitted> merged(s.parameters.size());
    for (std::size_t copy = 0; copy < where[0].pointers.size(); ++copy) {
      State inputs;
      for (std::size_t slot = 0; slot < old.size(); ++slot)
        inputs.push_back(
            emit_.cast(dtype_of_class(monoid.state[slot], element), part(old[slot], static_cast<int>(copy))));
      for (const Emitted& state : states) inputs.push_back(part(state, static_cast<int>(copy)));
      const State result = run_program(monoid.merge, inputs, element);
      for (std::size_t slot = 0; slot < result.size(); ++slot) merged[slot].parts.push_back(result[slot]);
    }
    states = std::move(merged);
  }
  for (std::size_t slot = 0; slot < s.parameters.size(); ++slot)
    store(nest_.parameters[s.parameters[slot]].dtype, where[slot], states[slot], false);
}

void CpuLowering::lower_stage_store(const loops::StageStore& s) {
  const loops::Stage& stage = nest_.stages[s.stage];
  const Emitted stored = value(s.value);
  const ValueId base = stage_pointer(s.stage);
  store(stage.dtype, access(base, stage.dtype, stage.name, s.index, stage_strides(s.stage)), stored, false);
}

}  // namespace tigon::lower
