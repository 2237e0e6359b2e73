// Addresses, loads and stores of one thread: row bases in 64 bits, offsets inside a row in 32.
#include <fmt/format.h>

#include "codegen/loops/walk.hpp"
#include "codegen/lower/cuda_lowering.hpp"

namespace tigon::lower {

using loops::Expr;
using loops::ExprKind;

namespace {

constexpr int vector_bytes = 16;  // of the widest access to memory

}  // namespace

ValueId CudaLowering::parameter_stride(loops::ParameterId id, std::size_t dimension) {
  for (std::uint32_t slot = 0; slot < nest_.slots.size(); ++slot) {
    const loops::Slot& s = nest_.slots[slot];
    if (s.kind != loops::SlotKind::stride || s.parameter != id || s.dimension != dimension) continue;
    Instruction i;
    i.code = Code::slot;
    i.type = {DType::i64};
    i.payload = slot;
    return emit_.pure(i, fmt::format("{}_stride_{}", nest_.parameters[id].name, dimension));
  }
  lowering_error(nest_, fmt::format("parameter {} has no slot for the stride of dimension {}",
                                    nest_.parameters[id].name, dimension));
}

// Splits an index times its stride into summands, so that each is computed where it last changes.
void CudaLowering::flatten(ExprId id, std::int64_t factor, ValueId stride, std::vector<Term>& terms) {
  const Expr& e = nest_.exprs[id];
  if (e.kind == ExprKind::operation) {
    const auto args = loops::args_of(nest_, id);
    if (e.op == ScalarOp::add || e.op == ScalarOp::sub) {
      flatten(args[0], factor, stride, terms);
      flatten(args[1], e.op == ScalarOp::add ? factor : -factor, stride, terms);
      return;
    }
    if (e.op == ScalarOp::mul && nest_.exprs[args[1]].kind == ExprKind::constant) {
      flatten(args[0], factor * nest_.exprs[args[1]].integer, stride, terms);
      return;
    }
  }
  if (e.kind == ExprKind::constant && e.integer == 0) return;
  terms.push_back({id, factor, stride});
}

std::vector<CudaLowering::Term> CudaLowering::terms(loops::ParameterId id, std::span<const ExprId> index) {
  const loops::Parameter& p = nest_.parameters[id];
  std::vector<Term> result;
  for (std::size_t d = 0; d < index.size(); ++d) {
    const bool known = p.strides[d] != loops::at_run_time;
    flatten(index[d], known ? p.strides[d] : 1, known ? no_value : parameter_stride(id, d), result);
  }
  return result;
}

bool CudaLowering::unit_stride(const std::vector<Term>& terms) {
  int moving = 0;
  for (const Term& term : terms) {
    if (!varies(term.expr)) continue;
    ++moving;
    if (nest_.exprs[term.expr].kind != ExprKind::loop_index || term.factor != 1 || term.stride != no_value)
      return false;
  }
  return moving == 1;
}

// Whether a vector whose first lane has a number that the width divides is aligned in memory.
bool CudaLowering::aligned(loops::ParameterId id, std::span<const ExprId> index, int width) {
  if (!buffers_.aligned) return false;
  const loops::Parameter& p = nest_.parameters[id];
  const int size = size_of(p.dtype);
  const std::int64_t needed = std::max(1, std::min(vector_bytes, width * size) / size);  // in elements
  for (std::size_t d = 0; d < index.size(); ++d) {
    // The dimension's stride divides by the known extents inside it.
    std::int64_t stride = p.strides[d];
    if (stride == loops::at_run_time) {
      stride = 1;
      for (std::size_t inner = d + 1; buffers_.dense && inner < index.size(); ++inner) {
        const std::int64_t extent = nest_.axes[p.axes[inner]].extent;
        if (extent > 0) stride *= std::min<std::int64_t>(extent & -extent, vector_bytes);
      }
    }
    std::vector<Term> parts;
    flatten(index[d], 1, no_value, parts);
    for (const Term& part : parts) {
      if (varies(part.expr)) continue;
      const std::int64_t multiple = multiple_of(part.expr) * (part.factor & -part.factor);
      if (multiple * stride % needed != 0) return false;
    }
  }
  return true;
}

ValueId CudaLowering::address_of(loops::ParameterId id, const std::vector<Term>& terms) {
  const loops::Parameter& p = nest_.parameters[id];
  struct Offset {
    ValueId value;
    Range range;
  };
  std::vector<Offset> offsets;
  for (const Term& term : terms) {
    const ValueId number = value(term.expr);
    const Range r = range(term.expr);
    if (term.stride != no_value) {
      ValueId wide = whole(ScalarOp::mul, as(DType::i64, number), term.stride);
      if (term.factor != 1) wide = whole(ScalarOp::mul, wide, emit_.integer(term.factor));
      offsets.push_back({wide, {}});
      continue;
    }
    const __int128 ends[] = {static_cast<__int128>(r.low) * term.factor, static_cast<__int128>(r.high) * term.factor};
    Range scaled;
    if (ends[0] > -Range::far && ends[0] < Range::far && ends[1] > -Range::far && ends[1] < Range::far)
      scaled = {static_cast<std::int64_t>(std::min(ends[0], ends[1])),
                static_cast<std::int64_t>(std::max(ends[0], ends[1]))};
    const DType dtype = scaled.fits_i32() && r.fits_i32() ? DType::i32 : DType::i64;
    const ValueId factor = dtype == DType::i32 ? integer(term.factor) : emit_.integer(term.factor);
    offsets.push_back({whole(ScalarOp::mul, as(dtype, number), factor), scaled});
  }
  std::stable_sort(offsets.begin(), offsets.end(),
                   [&](const Offset& a, const Offset& b) { return emit_.depth_of(a.value) < emit_.depth_of(b.value); });
  Instruction base;
  base.code = Code::pointer_of;
  base.type = {DType::i64, 1, true};
  base.payload = id;
  ValueId pointer = emit_.pure(base, p.name);
  for (std::size_t i = 0; i < offsets.size();) {
    const int level = emit_.depth_of(offsets[i].value);
    Offset sum = offsets[i++];
    while (i < offsets.size() && emit_.depth_of(offsets[i].value) == level) {
      const Range next = offsets[i].range;
      const Range both{std::max(-Range::far, sum.range.low + next.low),
                       std::min(Range::far, sum.range.high + next.high)};
      ValueId a = sum.value;
      ValueId b = offsets[i++].value;
      if (!both.fits_i32()) {
        a = as(DType::i64, a);
        b = as(DType::i64, b);
      }
      sum = {whole(ScalarOp::add, a, b), both};
    }
    pointer = emit_.address(pointer, sum.value, p.dtype, p.name + (i == offsets.size() && lanes_ ? "_at" : "_row"));
  }
  return pointer;
}

ValueId CudaLowering::pointer(loops::ParameterId id, std::span<const ExprId> index) {
  return address_of(id, terms(id, index));
}

ValueId CudaLowering::row_pointer(loops::ParameterId id, std::span<const ExprId> index) {
  std::vector<Term> all = terms(id, index);
  std::erase_if(all, [&](const Term& term) { return varies(term.expr); });
  const ValueId pointer = address_of(id, all);
  if (!all.empty()) emit_.rename(pointer, nest_.parameters[id].name + "_row");
  return pointer;
}

// The innermost open scope that a load of this memory may not leave.
int CudaLowering::load_depth(std::uint32_t key) const {
  for (std::size_t d = scopes_.size(); d-- > 0;)
    if (scopes_[d].guard || scopes_[d].written.count(key) != 0) return static_cast<int>(d);
  return 0;
}

ValueId CudaLowering::load_now(loops::ParameterId id, std::span<const ExprId> index, const std::string& name) {
  const ValueId where = pointer(id, index);
  Instruction i;
  i.code = Code::load;
  i.type = {nest_.parameters[id].dtype};
  i.memory = i.type.dtype;
  i.args = {where};
  return emit_.effect(i, name, std::max(load_depth(id), emit_.depth_of(where)));
}

ValueId CudaLowering::load(ExprId id) {
  const Expr& e = nest_.exprs[id];
  const auto index = loops::args_of(nest_, id);
  Instruction i;
  i.type = {e.dtype};
  i.code = Code::element;
  if (e.kind == ExprKind::stage_load) {
    i.payload = stages_.at(e.payload);
    i.args = {lanes_->place, lanes_->number};
    return emit_.effect(i, nest_.stages[e.payload].name);
  }
  if (lanes_ && lanes_->place != no_value) {
    if (const auto found = lanes_->loads.find(id); found != lanes_->loads.end()) {
      i.payload = found->second.variable;
      i.args = {lanes_->place};
      if (found->second.number != no_value) i.args.push_back(found->second.number);
      return emit_.effect(i, nest_.parameters[e.payload].name, lanes_->depth);
    }
  }
  return load_now(e.payload, index, nest_.parameters[e.payload].name + (varies(id) ? "" : "_here"));
}

bool CudaLowering::set_in_pack(const StoreKey& key, DType dtype, ValueId value) {
  if (!lanes_ || lanes_->place == no_value) return false;
  const auto found = lanes_->stores.find(key);
  if (found == lanes_->stores.end()) return false;
  Instruction i;
  i.code = Code::set_element;
  i.payload = found->second.variable;
  i.args = {as(dtype, value), lanes_->place};
  emit_.effect(i, {});
  return true;
}

void CudaLowering::store_now(loops::ParameterId id, std::span<const ExprId> index, ValueId value, bool streaming) {
  const DType dtype = nest_.parameters[id].dtype;
  const ValueId where = pointer(id, index);
  Instruction i;
  i.code = Code::store;
  i.memory = dtype;
  i.streaming = streaming;
  i.args = {as(dtype, value), where};
  emit_.effect(i, {});
}

// In place: what this block still reads of the parameter is its old value.
void CudaLowering::read_before_in_place(const loops::Block& block, std::size_t position) {
  const auto parameter = std::get<loops::Store>(block[position].node).parameter;
  for (std::size_t j = position + 1; j < block.size(); ++j) {
    if (std::holds_alternative<loops::Loop>(block[j].node)) continue;
    for (const ExprId id : loops::reached(nest_, loops::Block{block[j]})) {
      const Expr& e = nest_.exprs[id];
      if (e.kind == ExprKind::load && e.payload == parameter) value(id);
    }
  }
}

void CudaLowering::lower_store(const loops::Store& s) {
  const loops::Parameter& p = nest_.parameters[s.parameter];
  const ValueId given = exact(s.value);
  const bool accumulate = s.mode == loops::StoreMode::accumulate;
  const DType wide = promote(p.dtype, nest_.exprs[s.value].dtype);
  const auto sum = [&](ValueId old) { return emit_.operation(ScalarOp::add, {as(wide, old), as(wide, given)}); };
  if (lanes_ && lanes_->stores.count({&s, 0}) != 0) {
    set_in_pack({&s, 0}, p.dtype, accumulate ? sum(load_now(s.parameter, s.index, p.name + "_old")) : given);
    return;
  }
  if (lanes_) {
    bool moving = false;
    for (const ExprId index : s.index) moving = moving || varies(index);
    if (!moving && varies(s.value)) lowering_error(nest_, "lanes store different values to one element");
  }
  by_leader([&] {
    store_now(s.parameter, s.index, accumulate ? sum(load_now(s.parameter, s.index, p.name + "_old")) : given,
              s.streaming);
  });
}

void CudaLowering::store_state_now(const loops::StoreState& s, State state) {
  const dsl::Monoid& monoid = nest_.monoids[s.monoid];
  if (s.mode == loops::StoreMode::accumulate) {
    DType element = DType::f32;
    for (std::size_t slot = 0; slot < s.state.size(); ++slot)
      if (monoid.state[slot] == ValueClass::element) element = nest_.exprs[s.state[slot]].dtype;
    State inputs;
    for (std::size_t slot = 0; slot < s.parameters.size(); ++slot)
      inputs.push_back(as(dtype_of_class(monoid.state[slot], element),
                          load_now(s.parameters[slot], s.index, nest_.parameters[s.parameters[slot]].name + "_old")));
    inputs.insert(inputs.end(), state.begin(), state.end());
    state = run_program(monoid.merge, inputs, element);
  }
  for (std::size_t slot = 0; slot < s.parameters.size(); ++slot)
    if (!set_in_pack({&s, slot}, nest_.parameters[s.parameters[slot]].dtype, state[slot]))
      store_now(s.parameters[slot], s.index, state[slot], false);
}

void CudaLowering::lower_store_state(const loops::StoreState& s) {
  if (lanes_) {
    for (const OnePlace& place : one_places_) {
      if (place.store != &s) continue;
      DType element = DType::f32;
      for (std::size_t slot = 0; slot < s.state.size(); ++slot)
        if (nest_.monoids[s.monoid].state[slot] == ValueClass::element) element = nest_.exprs[s.state[slot]].dtype;
      return merge_into(place.state, s.monoid, element, s.state, nest_.parameters[s.parameters[0]].name);
    }
  }
  State state;
  for (const ExprId id : s.state) state.push_back(exact(id));
  by_leader([&] { store_state_now(s, state); });
}

void CudaLowering::lower_stage_store(const loops::StageStore& s) {
  const VariableId variable = stages_.at(s.stage);
  // A vector that was loaded into the stage as a whole stands there already.
  if (const auto found = lanes_->loads.find(s.value);
      found != lanes_->loads.end() && found->second.variable == variable)
    return;
  Instruction i;
  i.code = Code::set_element;
  i.payload = variable;
  i.args = {as(nest_.stages[s.stage].dtype, value(s.value)), lanes_->place, lanes_->number};
  emit_.effect(i, {});
  forget({first_stage_key + s.stage});
}

}  // namespace tigon::lower
