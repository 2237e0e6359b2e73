// Compiles a cone of nodes into a flat list of instructions and runs it over blocks of elements.
#include "dsl/reference/pull.hpp"

#include <algorithm>

#include "dsl/scalar_table.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl {

void Stored::shape(std::vector<AxisId> order, const Extents& extents, int slots) {
  axes = std::move(order);
  strides.assign(axes.size(), 1);
  count = 1;
  for (std::size_t d = axes.size(); d-- > 0;) {
    strides[d] = count;
    count *= extents[axes[d]];
  }
  data.assign(static_cast<std::size_t>(count * slots), Bounded{});
  present = true;
}

Pull::Pull(const PullContext& context, std::vector<AxisId> loop)
    : context_(context), loop_(std::move(loop)), frame_(context.graph.axes.size(), -1) {
  for (const AxisId axis : loop_) frame_[axis] = new_coordinate();
}

int Pull::new_register() {
  registers_.emplace_back();
  return static_cast<int>(registers_.size()) - 1;
}
int Pull::new_coordinate() {
  coordinates_.emplace_back();
  return static_cast<int>(coordinates_.size()) - 1;
}

int Pull::value(NodeId node, int slot) { return emit(node, frame_, slot); }

int Pull::index(AxisId axis) {
  const int target = new_register();
  Instruction instruction;
  instruction.code = Opcode::coordinate;
  instruction.target = target;
  instruction.args[0] = frame_[axis];
  code_.push_back(std::move(instruction));
  return target;
}

int Pull::emit(NodeId node, const Frame& frame, int slot) {
  std::vector<int> key{static_cast<int>(node), slot};
  for (const AxisId axis : context_.graph.node(node).axes) key.push_back(frame[axis]);
  if (const auto found = emitted_.find(key); found != emitted_.end()) return found->second;
  const int number = emit_uncached(node, frame, slot);
  emitted_.emplace(std::move(key), number);
  return number;
}

int Pull::load(NodeId node, const Frame& frame, int slot) {
  const Stored& stored = context_.stored[node];
  Instruction instruction;
  instruction.code = Opcode::load;
  instruction.target = new_register();
  instruction.factor = slot * stored.count;
  instruction.node = node;
  for (std::size_t d = 0; d < stored.axes.size(); ++d) {
    instruction.terms.push_back({frame[stored.axes[d]], stored.strides[d]});
  }
  code_.push_back(std::move(instruction));
  return code_.back().target;
}

int Pull::emit_uncached(NodeId id, const Frame& frame, int slot) {
  const Graph& graph = context_.graph;
  const Node& node = graph.node(id);
  const auto operands = graph.operands(id);
  if (context_.stored[id].present) return load(id, frame, slot);
  Instruction instruction;
  instruction.node = id;
  instruction.rounding = rounding_of(node.dtype, context_.honour_casts);
  switch (node.kind) {
    case NodeKind::scalar:
    case NodeKind::constant: {
      instruction.code = Opcode::fill;
      double number = 0;
      if (node.kind == NodeKind::scalar) {
        number = context_.scalars[node.payload];
      } else {
        const Constant& constant = graph.constants[node.payload];
        const bool whole = node.dtype == DType::i32 || node.dtype == DType::i64;
        number = whole ? static_cast<double>(constant.integer) : constant.number;
      }
      instruction.number = round_to(instruction.rounding.dtype, number);
      break;
    }
    case NodeKind::iota:
      instruction.code = Opcode::coordinate;
      instruction.args[0] = frame[node.payload];
      break;
    case NodeKind::extent:
      instruction.code = Opcode::fill;
      instruction.number = static_cast<double>(context_.extents[node.payload]);
      break;
    case NodeKind::map:
      instruction.code = Opcode::map;
      instruction.op = graph.op(id);
      for (std::size_t k = 0; k < operands.size(); ++k) instruction.args[k] = emit(operands[k], frame, 0);
      break;
    case NodeKind::cast:
      instruction.code = Opcode::cast;
      instruction.from = graph.node(operands[0]).dtype;
      instruction.args[0] = emit(operands[0], frame, 0);
      break;
    case NodeKind::attach:
      return emit(operands[0], frame, slot);
    case NodeKind::view:
      return emit_view(id, frame, slot);
    case NodeKind::gather:
      return emit_gather(id, frame);
    case NodeKind::finish: {
      const Monoid& monoid = graph.monoid_of(operands[0]);
      instruction.code = monoid.name == builtin_monoid(BuiltinMonoid::sum).name ? Opcode::copy_first : Opcode::finish;
      for (std::size_t s = 0; s < monoid.state.size(); ++s) {
        instruction.inputs.push_back(emit(operands[0], frame, static_cast<int>(s)));
      }
      break;
    }
    default:
      throw Error({.kind = ErrorKind::internal, .function = graph.name},
                  "the reference evaluation does not know the kind of node " + graph.name_of(id));
  }
  instruction.target = new_register();
  code_.push_back(std::move(instruction));
  return code_.back().target;
}

int Pull::coordinate_of(Opcode code, int a, int b, i64 factor) {
  const std::array<i64, 4> key{static_cast<i64>(code), a, b, factor};
  if (const auto found = computed_.find(key); found != computed_.end()) return found->second;
  const int target = new_coordinate();
  Instruction instruction;
  instruction.code = code;
  instruction.target = target;
  instruction.args = {a, b, 0};
  instruction.factor = factor;
  code_.push_back(std::move(instruction));
  computed_.emplace(key, target);
  return target;
}

int Pull::emit_view(NodeId id, const Frame& frame, int slot) {
  const ViewInfo& view = context_.graph.views[context_.graph.node(id).payload];
  Frame inner = frame;
  for (const ViewTerm& term : view.terms) {
    int& target = inner[term.operand_axis];
    const int a = frame[term.a];
    switch (term.kind) {
      case ViewKind::rename:
        target = a;
        break;
      case ViewKind::split:
        target = coordinate_of(Opcode::split, a, frame[term.b], context_.extents[term.b]);
        break;
      case ViewKind::merge_outer:
        target = coordinate_of(Opcode::quotient, a, 0, context_.extents[term.inner]);
        break;
      case ViewKind::merge_inner:
        target = coordinate_of(Opcode::remainder, a, 0, context_.extents[term.inner]);
        break;
    }
  }
  return emit(context_.graph.operands(id)[0], inner, slot);
}

int Pull::emit_gather(NodeId id, const Frame& frame) {
  const Graph& graph = context_.graph;
  const GatherInfo& gather = graph.gathers[graph.node(id).payload];
  const NodeId table = graph.operands(id)[0];
  const int index = emit(graph.operands(id)[1], frame, 0);
  Instruction look;
  look.code = Opcode::lookup;
  look.target = new_coordinate();
  look.args = {index, new_coordinate(), 0};  // the second: 1 where the index is within the axis
  look.factor = context_.extents[gather.axis];
  look.node = id;
  look.policy = gather.policy;
  Instruction result;
  result.code = Opcode::valid_or_fill;
  result.args = {0, index, look.args[1]};
  result.number = round_to(rounding_of(graph.node(id).dtype, context_.honour_casts).dtype, gather.fill);
  const int row = look.target;
  code_.push_back(std::move(look));
  if (context_.extents[gather.axis] == 0) {  // nothing to read
    result.args[0] = new_register();
  } else {
    Frame inner = frame;
    inner[gather.axis] = row;
    result.args[0] = emit(table, inner, 0);
  }
  result.target = new_register();
  code_.push_back(std::move(result));
  return code_.back().target;
}

i64 Pull::points() const {
  i64 count = 1;
  for (const AxisId axis : loop_) count *= context_.extents[axis];
  return count;
}

void Pull::run(const std::function<void(i64 first, int count)>& consume) {
  const i64 total = points();
  for (i64 first = 0; first < total; first += lanes) {
    const int count = static_cast<int>(std::min<i64>(lanes, total - first));
    fill_coordinates(first, count);
    for (const Instruction& instruction : code_) execute(instruction, count);
    consume(first, count);
  }
}

void Pull::fill_coordinates(i64 first, int count) {
  if (loop_.empty()) return;
  std::array<i64, max_axes> at{};
  i64 rest = first;
  for (std::size_t d = loop_.size(); d-- > 0;) {
    const i64 extent = context_.extents[loop_[d]];
    at[d] = rest % extent;
    rest /= extent;
  }
  const std::size_t last = loop_.size() - 1;
  for (int i = 0; i < count;) {
    const i64 inner = context_.extents[loop_[last]];
    const int run = static_cast<int>(std::min<i64>(count - i, inner - at[last]));
    for (std::size_t d = 0; d < last; ++d) {
      i64* out = coordinates_[static_cast<std::size_t>(frame_[loop_[d]])].data() + i;
      std::fill(out, out + run, at[d]);
    }
    i64* out = coordinates_[static_cast<std::size_t>(frame_[loop_[last]])].data() + i;
    for (int k = 0; k < run; ++k) out[k] = at[last] + k;
    i += run;
    at[last] += run;
    for (std::size_t d = last; d > 0 && at[d] == context_.extents[loop_[d]]; --d) {
      at[d] = 0;
      ++at[d - 1];
    }
  }
}

void Pull::execute(const Instruction& instruction, int count) {
  const auto coordinates = [&](int number) -> Coordinates& { return coordinates_[static_cast<std::size_t>(number)]; };
  const auto values = [&](int number) -> Register& { return registers_[static_cast<std::size_t>(number)]; };
  const auto lanes_used = static_cast<std::size_t>(count);
  switch (instruction.code) {
    case Opcode::load: {
      std::array<i64, lanes> offset;
      std::fill_n(offset.begin(), count, instruction.factor);
      for (const auto& [number, stride] : instruction.terms) {
        const Coordinates& at = coordinates(static_cast<int>(number));
        for (std::size_t i = 0; i < lanes_used; ++i) offset[i] += at[i] * stride;
      }
      const Bounded* data = context_.stored[instruction.node].data.data();
      Register& out = values(instruction.target);
      for (std::size_t i = 0; i < lanes_used; ++i) out[i] = data[offset[i]];
      break;
    }
    case Opcode::fill:
      std::fill_n(values(instruction.target).begin(), count, Bounded{instruction.number, 0, false});
      break;
    case Opcode::coordinate: {
      const Coordinates& at = coordinates(instruction.args[0]);
      Register& out = values(instruction.target);
      for (std::size_t i = 0; i < lanes_used; ++i) out[i] = {static_cast<double>(at[i]), 0, false};
      break;
    }
    case Opcode::map:
      execute_map(instruction, count);
      break;
    case Opcode::cast: {
      const Register& in = values(instruction.args[0]);
      Register& out = values(instruction.target);
      for (std::size_t i = 0; i < lanes_used; ++i) {
        out[i] = cast_to(in[i], instruction.from, instruction.rounding, context_.honour_casts);
      }
      break;
    }
    case Opcode::copy_first: {
      const Register& in = values(instruction.inputs[0]);
      Register& out = values(instruction.target);
      for (std::size_t i = 0; i < lanes_used; ++i) out[i] = {in[i].value + 0.0, in[i].bound, in[i].undetermined};
      break;
    }
    case Opcode::finish: {
      const NodeId state = context_.graph.operands(instruction.node)[0];
      const Finish& finish = context_.graph.monoid_of(state).finishes[context_.graph.node(instruction.node).payload];
      std::array<Bounded, 8> slots;
      Register& out = values(instruction.target);
      for (std::size_t i = 0; i < lanes_used; ++i) {
        for (std::size_t s = 0; s < instruction.inputs.size(); ++s) slots[s] = values(instruction.inputs[s])[i];
        run_bounded(finish.program, std::span(slots).first(instruction.inputs.size()), std::span(&out[i], 1),
                    context_.graph.node(state).dtype, context_.honour_casts);
      }
      break;
    }
    case Opcode::valid_or_fill: {
      const Register& table = values(instruction.args[0]);
      const Register& index = values(instruction.args[1]);
      const Coordinates& valid = coordinates(instruction.args[2]);
      Register& out = values(instruction.target);
      for (std::size_t i = 0; i < lanes_used; ++i) {
        out[i] = valid[i] != 0 ? table[i] : Bounded{instruction.number, 0, false};
        out[i].undetermined = out[i].undetermined || index[i].undetermined;
      }
      break;
    }
    case Opcode::split: {
      const Coordinates& outer = coordinates(instruction.args[0]);
      const Coordinates& inner = coordinates(instruction.args[1]);
      Coordinates& out = coordinates(instruction.target);
      for (std::size_t i = 0; i < lanes_used; ++i) out[i] = outer[i] * instruction.factor + inner[i];
      break;
    }
    case Opcode::quotient: {
      const Coordinates& whole = coordinates(instruction.args[0]);
      Coordinates& out = coordinates(instruction.target);
      for (std::size_t i = 0; i < lanes_used; ++i) out[i] = whole[i] / instruction.factor;
      break;
    }
    case Opcode::remainder: {
      const Coordinates& whole = coordinates(instruction.args[0]);
      Coordinates& out = coordinates(instruction.target);
      for (std::size_t i = 0; i < lanes_used; ++i) out[i] = whole[i] % instruction.factor;
      break;
    }
    case Opcode::lookup:
      look_up(instruction, count);
      break;
  }
}

void Pull::execute_map(const Instruction& instruction, int count) {
  const auto lanes_used = static_cast<std::size_t>(count);
  const Register& a = registers_[static_cast<std::size_t>(instruction.args[0])];
  const Register& b = registers_[static_cast<std::size_t>(instruction.args[1])];
  const Register& c = registers_[static_cast<std::size_t>(instruction.args[2])];
  Register& out = registers_[static_cast<std::size_t>(instruction.target)];
  const Rounding& rounding = instruction.rounding;
  if (instruction.op == ScalarOp::mul) {
    for (std::size_t i = 0; i < lanes_used; ++i) out[i] = multiply(a[i], b[i], rounding);
    return;
  }
  if (instruction.op == ScalarOp::add) {
    for (std::size_t i = 0; i < lanes_used; ++i) out[i] = add(a[i], b[i], rounding);
    return;
  }
  for (std::size_t i = 0; i < lanes_used; ++i) {
    const Bounded arguments[3] = {a[i], b[i], c[i]};
    out[i] = apply(instruction.op, arguments, rounding);
  }
}

void Pull::look_up(const Instruction& instruction, int count) {
  const Register& index = registers_[static_cast<std::size_t>(instruction.args[0])];
  Coordinates& row = coordinates_[static_cast<std::size_t>(instruction.target)];
  Coordinates& valid = coordinates_[static_cast<std::size_t>(instruction.args[1])];
  const i64 extent = instruction.factor;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const auto at = static_cast<i64>(index[i].value);
    const bool inside = at >= 0 && at < extent;
    if (!inside && !index[i].undetermined && (instruction.policy == IndexPolicy::checked || extent == 0) &&
        instruction.policy != IndexPolicy::fill) {
      const Graph& graph = context_.graph;
      throw Error({.function = graph.name,
                   .axis = graph.axes[graph.gathers[graph.node(instruction.node).payload].axis].name,
                   .found = std::to_string(at),
                   .expected = "an index below " + std::to_string(extent)},
                  "an index lies outside the axis it is taken from");
    }
    row[i] = extent == 0 ? 0 : std::clamp<i64>(at, 0, extent - 1);
    valid[i] = inside || (instruction.policy != IndexPolicy::fill && extent > 0) ? 1 : 0;
  }
}

}  // namespace tigon::dsl
