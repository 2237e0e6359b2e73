// Pulls values through a kernel graph: views and gathers change indices, folds become states or loops.
#include "codegen/schedule/emit.hpp"

#include "tigon/error.hpp"

namespace tigon::schedule {
using dsl::AxisId;
using dsl::Node;
using dsl::NodeId;
using dsl::NodeKind;
using loops::ExprId;
using loops::no_expr;

Environment empty_environment() {
  Environment environment;
  environment.fill(no_expr);
  return environment;
}

Emitter::Emitter(const KernelRequest& request, loops::NestBuilder& builder, Scheduled& result)
    : request_(request), builder_(builder), result_(result) {
  const dsl::Graph& graph = request.graph;
  for (std::size_t axis = 0; axis < graph.axes.size(); ++axis) {
    const auto id = static_cast<AxisId>(axis);
    const bool fixed = request.fixed.contains(id) && !request.chunked.contains(id);
    nest_axes_.push_back(builder.axis(graph.axes[axis].name, fixed ? request.extents[axis] : loops::at_run_time));
    result.nest_axes.push_back(static_cast<AxisId>(axis));
  }
}

ExprId Emitter::open(const LoopSpec& spec) {
  loops::Loop loop;
  loop.id = builder_.new_loop();
  loop.name = spec.name;
  loop.bind = spec.bind;
  loop.begin = spec.begin;
  loop.end = spec.end;
  loop.step = spec.step;
  loop.comment = spec.comment;
  const loops::LoopId id = loop.id;
  scopes_.push_back({std::move(loop)});
  loop_depth_[id] = static_cast<int>(scopes_.size());
  return builder_.loop_index(id);
}

loops::Loop Emitter::take_outermost() {
  loops::Loop loop = std::move(scopes_.back().loop);
  scopes_.pop_back();
  for (const loops::FoldId fold : loop.folds) fold_depth_[fold] = static_cast<int>(scopes_.size());
  return loop;
}

void Emitter::close() {
  loops::Loop loop = take_outermost();
  add(loops::Statement{std::move(loop)});
}

void Emitter::add(loops::Statement statement) { scopes_.back().loop.body.push_back(std::move(statement)); }

void Emitter::wrap_from(std::size_t first, ExprId condition) {
  loops::Block& block = scopes_.back().loop.body;
  loops::When when{condition, {}};
  const auto start = block.begin() + static_cast<std::ptrdiff_t>(first);
  when.body.assign(std::make_move_iterator(start), std::make_move_iterator(block.end()));
  block.erase(start, block.end());
  block.push_back(loops::Statement{std::move(when)});
}

ExprId Emitter::open_grid(loops::Part& part) {
  values_.clear();
  states_.clear();
  complete_.clear();
  scopes_.clear();
  scopes_.push_back({part.grid});
  loop_depth_[part.grid.id] = 1;
  return builder_.loop_index(part.grid.id);
}

loops::FoldId Emitter::declare_fold_at(int levels, const std::string& name, int monoid, DType element) {
  const loops::FoldId fold = builder_.fold(name, monoid, element);
  scopes_[scopes_.size() - static_cast<std::size_t>(levels)].loop.folds.push_back(fold);
  return fold;
}

Emitter::Key Emitter::key(NodeId node, const Environment& environment) const {
  Key result{node, {}};
  for (const AxisId axis : graph().node(node).axes) result.second.push_back(environment[axis]);
  return result;
}

int Emitter::depth(ExprId expr) {
  if (const auto found = depth_.find(expr); found != depth_.end()) return found->second;
  const loops::Expr e = builder_.nest.exprs[expr];
  int result = 1;
  if (e.kind == loops::ExprKind::loop_index) result = loop_depth_.at(e.payload);
  if (e.kind == loops::ExprKind::fold_state) result = std::max(1, fold_depth_.at(e.payload));
  for (std::size_t i = 0; i < e.arg_count; ++i) {
    result = std::max(result, depth(builder_.nest.expr_args[e.first_arg + i]));
  }
  depth_[expr] = result;
  return result;
}

ExprId Emitter::extent(AxisId axis) {
  if (request_.fixed.contains(axis) && !request_.chunked.contains(axis)) {
    return builder_.integer(request_.extents[axis]);
  }
  return builder_.slot({.kind = loops::SlotKind::extent, .axis = nest_axes_[axis]});
}

ExprId Emitter::value(NodeId node, const Environment& environment) {
  const Key at = key(node, environment);
  if (const auto found = values_.find(at); found != values_.end()) return found->second;
  const ExprId result = compute(node, environment);
  values_[at] = result;
  const loops::ExprKind kind = builder_.nest.exprs[result].kind;
  if (kind == loops::ExprKind::operation || kind == loops::ExprKind::cast) {
    if (std::string name = value_name(node); !name.empty()) builder_.nest.names.emplace(result, std::move(name));
  }
  return result;
}

// What readers of the kernel should call the value; empty where nobody has named it, or a parameter bears the name.
std::string Emitter::value_name(NodeId node) const {
  const auto given = [&](NodeId id) {
    const std::string name = graph().name_of(id);
    return name.starts_with('%') ? std::string() : name;
  };
  std::string name = given(node);
  const Node& n = graph().node(node);
  if (name.empty() && n.kind == NodeKind::finish) {
    const NodeId state = graph().operands(node)[0];
    const dsl::Monoid& monoid = graph().monoid_of(state);
    const std::string of_fold = given(state);
    if (monoid.finishes.size() > 1)
      name = (of_fold.empty() ? monoid.name : of_fold) + "_" + monoid.finishes[n.payload].name;
  }
  for (const loops::Parameter& parameter : builder_.nest.parameters) {
    if (parameter.name == name) return {};
  }
  return name;
}

ExprId Emitter::compute(NodeId node, const Environment& environment) {
  const Node& n = graph().node(node);
  const auto operands = graph().operands(node);
  switch (n.kind) {
    case NodeKind::input: {
      std::vector<ExprId> index;
      for (const AxisId axis : graph().inputs[n.payload].axes) index.push_back(environment[axis]);
      return builder_.load(result_.input_parameters[n.payload][0], index);
    }
    case NodeKind::scalar: {
      const auto known = std::find(result_.scalar_inputs.begin(), result_.scalar_inputs.end(), n.payload);
      const auto scalar = static_cast<std::uint32_t>(known - result_.scalar_inputs.begin());
      if (known == result_.scalar_inputs.end()) {
        result_.scalar_inputs.push_back(n.payload);
        builder_.scalar_parameter(graph().scalars[n.payload].name, n.dtype);
      }
      return builder_.scalar(scalar);
    }
    case NodeKind::constant: {
      const dsl::Constant& constant = graph().constants[n.payload];
      if (n.dtype == DType::i64) return builder_.integer(constant.integer);
      if (n.dtype == DType::i32) return builder_.number(DType::i32, static_cast<double>(constant.integer));
      return builder_.number(n.dtype, constant.number);
    }
    case NodeKind::iota:
      return global_index(static_cast<AxisId>(n.payload), environment);
    case NodeKind::extent: {
      const auto axis = static_cast<AxisId>(n.payload);
      if (request_.fixed.contains(axis) && !request_.chunked.contains(axis)) {
        return builder_.integer(request_.extents[axis]);
      }
      return builder_.slot({.kind = loops::SlotKind::global_extent, .axis = nest_axes_[axis]});
    }
    case NodeKind::map: {
      std::vector<ExprId> args;
      for (const NodeId operand : operands) args.push_back(value(operand, environment));
      return builder_.op(graph().op(node), args);
    }
    case NodeKind::cast:
      return builder_.cast(n.dtype, value(operands[0], environment));
    case NodeKind::view:
      return value(operands[0], through_view(node, environment));
    case NodeKind::finish: {
      const std::vector<ExprId> slots = state(operands[0], environment);
      const dsl::Monoid& monoid = graph().monoid_of(operands[0]);
      return builder_.inline_program(monoid.finishes[n.payload].program, slots, graph().node(operands[0]).dtype)[0];
    }
    case NodeKind::gather:
      return gather(node, environment);
    default:
      break;
  }
  throw Error({.kind = ErrorKind::internal, .function = graph().name},
              fmt::format("a node of kind {} has no value inside a kernel", static_cast<int>(n.kind)));
}

Environment Emitter::through_view(NodeId node, const Environment& environment) {
  Environment result = environment;
  for (const dsl::ViewTerm& term : graph().views[graph().node(node).payload].terms) {
    ExprId index = environment[term.a];
    switch (term.kind) {
      case dsl::ViewKind::rename:
        // Indices count from the chunk's start where an axis is chunked, and from the axis's start where it is not.
        index = global_index(term.a, environment);
        if (request_.chunked.contains(term.operand_axis)) {
          index = builder_.sub(index, builder_.origin(nest_axis(term.operand_axis)));
        }
        break;
      case dsl::ViewKind::split:
        index = builder_.op(ScalarOp::add, {builder_.op(ScalarOp::mul, {index, extent(term.b)}), environment[term.b]});
        break;
      case dsl::ViewKind::merge_outer:
        index = builder_.op(ScalarOp::floor_div, {index, extent(term.inner)});
        break;
      case dsl::ViewKind::merge_inner:
        index = builder_.op(ScalarOp::rem, {index, extent(term.inner)});
        break;
    }
    result[term.operand_axis] = index;
  }
  return result;
}

void Emitter::check_index(ExprId in_range) {
  ExprId wrong = builder_.op(ScalarOp::logical_not, {in_range});
  if (wanted_ != no_expr) wrong = builder_.op(ScalarOp::logical_and, {wanted_, wrong});
  const int at = std::max(2, depth(wrong));
  scopes_[static_cast<std::size_t>(at - 1)].loop.body.push_back(
      loops::Statement{loops::Update{violation_, {wrong}, builder_.integer(0)}});
}

ExprId Emitter::gather(NodeId node, const Environment& environment) {
  const dsl::GatherInfo& info = graph().gathers[graph().node(node).payload];
  const auto operands = graph().operands(node);
  const ExprId index = builder_.cast(DType::i64, value(operands[1], environment));
  const bool chunked = request_.chunked.contains(info.axis);
  // A lookup along the chunked axis: a chunk that does not hold the element adds 0 to the result.
  const bool merged = chunked && !graph().node(node).axes.contains(info.axis);
  const ExprId zero = builder_.integer(0);
  const ExprId whole = chunked ? builder_.global_extent(nest_axis(info.axis)) : extent(info.axis);
  const auto within = [&](ExprId at, ExprId size) {
    return builder_.op(ScalarOp::logical_and,
                       {builder_.op(ScalarOp::less_equal, {zero, at}), builder_.op(ScalarOp::less, {at, size})});
  };
  const auto clamp = [&](ExprId at, ExprId size) {
    const ExprId last = builder_.op(ScalarOp::sub, {size, builder_.integer(1)});
    return builder_.op(ScalarOp::max, {builder_.op(ScalarOp::min, {at, last}), zero});
  };
  const ExprId in_range = within(index, whole);
  if (info.policy == dsl::IndexPolicy::checked && has_checked_gather_) check_index(in_range);
  ExprId safe = clamp(index, whole);
  ExprId here = in_range, origin = zero;
  if (chunked) {
    origin = builder_.origin(nest_axis(info.axis));
    safe = builder_.op(ScalarOp::sub, {safe, origin});
  }
  if (merged) {
    here = within(safe, extent(info.axis));
    safe = clamp(safe, extent(info.axis));
  }
  Environment at_index = environment;
  at_index[info.axis] = safe;
  // Checks on the way to an element that is not used do not count.
  const ExprId outer = wanted_;
  if (merged || info.policy == dsl::IndexPolicy::fill) {
    const ExprId used = merged ? here : in_range;
    wanted_ = outer == no_expr ? used : builder_.op(ScalarOp::logical_and, {outer, used});
  }
  ExprId found = value(operands[0], at_index);
  wanted_ = outer;
  const DType dtype = graph().node(node).dtype;
  if (merged) found = builder_.op(ScalarOp::where, {here, found, builder_.number(dtype, 0)});
  if (info.policy == dsl::IndexPolicy::fill) {
    ExprId fill = builder_.number(dtype, info.fill);
    if (merged) {  // by the first chunk alone
      fill =
          builder_.op(ScalarOp::where, {builder_.op(ScalarOp::equal, {origin, zero}), fill, builder_.number(dtype, 0)});
    }
    found = builder_.op(ScalarOp::where, {in_range, found, fill});
  }
  return merged || info.policy == dsl::IndexPolicy::fill ? builder_.cast(dtype, found) : found;
}

std::vector<ExprId> Emitter::state(NodeId node, const Environment& environment) {
  const Key at = key(node, environment);
  if (const auto found = states_.find(at); found != states_.end()) return found->second;
  std::vector<ExprId> result;
  const Node& n = graph().node(node);
  if (n.kind == NodeKind::input) {
    std::vector<ExprId> index;
    for (const AxisId axis : graph().inputs[n.payload].axes) index.push_back(environment[axis]);
    for (const loops::ParameterId parameter : result_.input_parameters[n.payload]) {
      result.push_back(builder_.load(parameter, index));
    }
  } else if (graph().fold(node).axes.empty()) {
    result = lifted(node, environment);  // a fold over no axis is its one element
  } else {
    result = serial_fold(node, environment);
  }
  states_[at] = result;
  return result;
}

void Emitter::complete(NodeId node, const Environment& environment, loops::FoldId fold) {
  std::vector<ExprId> slots;
  const std::size_t count = graph().monoid_of(node).state.size();
  for (std::size_t slot = 0; slot < count; ++slot) slots.push_back(builder_.fold_state(fold, static_cast<int>(slot)));
  states_[key(node, environment)] = slots;
  complete_.insert(node);
}

ExprId Emitter::global_index(AxisId axis, const Environment& environment) {
  if (!request_.chunked.contains(axis)) return environment[axis];
  return builder_.add(environment[axis], builder_.slot({.kind = loops::SlotKind::origin, .axis = nest_axes_[axis]}));
}

std::vector<ExprId> Emitter::lifted(NodeId node, const Environment& environment) {
  const auto operands = graph().operands(node);
  const dsl::FoldInfo& info = graph().fold(node);
  if (info.of_states) return state(operands[0], environment);
  std::vector<ExprId> inputs;
  for (const NodeId operand : operands) inputs.push_back(value(operand, environment));
  inputs.push_back(info.axes.empty() ? builder_.integer(0) : global_index(info.axes[0], environment));
  return builder_.inline_program(graph().monoid_of(node).lift, inputs, graph().node(node).dtype);
}

void Emitter::update(loops::FoldId fold, NodeId node, const Environment& environment) {
  const dsl::FoldInfo& info = graph().fold(node);
  if (info.of_states) {
    add(loops::Statement{loops::Merge{fold, state(graph().operands(node)[0], environment)}});
    return;
  }
  std::vector<ExprId> values;
  for (const NodeId operand : graph().operands(node)) values.push_back(value(operand, environment));
  add(loops::Statement{loops::Update{fold, values, global_index(info.axes[0], environment)}});
}

namespace {

// Terms of one chain: about the square root, so that a chain of chains stays inside the depth contract; 64 at most.
std::int64_t block_length(std::int64_t extent) {
  std::int64_t block = 1;
  while (block < 64 && block * block < extent) block *= 2;
  return block;
}

}  // namespace

// Loops over the fold's axes from `level` on, a fold for each loop; returns the fold of the outermost.
loops::FoldId Emitter::serial_levels(NodeId node, Environment& environment, std::size_t level,
                                     const std::string& name) {
  const dsl::FoldInfo& info = graph().fold(node);
  const int monoid = builder_.monoid(graph().monoid_of(node));
  const DType element = graph().node(node).dtype;
  const std::size_t slots = graph().monoid_of(node).state.size();
  const auto merge_into = [&](loops::FoldId outer, loops::FoldId inner) {
    std::vector<ExprId> parts;
    for (std::size_t slot = 0; slot < slots; ++slot)
      parts.push_back(builder_.fold_state(inner, static_cast<int>(slot)));
    add(loops::Statement{loops::Merge{outer, parts}});
  };
  const AxisId axis = info.axes[level];
  const bool last = level + 1 == info.axes.size();
  const std::string& axis_name = graph().axes[axis].name;
  const std::int64_t block = block_length(request_.extents[axis]);
  const ExprId zero = builder_.integer(0);
  const ExprId end = extent(axis);
  const auto body = [&](loops::FoldId fold) {
    if (last) {
      update(fold, node, environment);
    } else {
      merge_into(fold, serial_levels(node, environment, level + 1, name));
    }
  };
  if (request_.extents[axis] <= 8) {
    environment[axis] = open({.name = axis_name, .bind = loops::Bind::serial, .begin = zero, .end = end});
    const loops::FoldId fold = declare_fold(name, monoid, element);
    body(fold);
    close();
    return fold;
  }
  const ExprId start = open({.name = axis_name + "_block", .begin = zero, .end = end, .step = block});
  const loops::FoldId total = declare_fold(name, monoid, element);
  const ExprId stop = builder_.op(ScalarOp::min, {builder_.op(ScalarOp::add, {start, builder_.integer(block)}), end});
  environment[axis] = open({.name = axis_name, .begin = start, .end = stop});
  const loops::FoldId part = declare_fold(name + "_part", monoid, element);
  body(part);
  close();
  merge_into(total, part);
  close();
  return total;
}

// Whether it reads what only exists inside the rows loop: a fold that a sweep has finished, or a checked index, whose
// violation is noted there.
bool Emitter::stands_inside_rows(NodeId fold) const {
  std::vector<bool> reached(graph().nodes.size(), false);
  reached[fold] = true;
  for (NodeId id = fold + 1; id-- > 0;) {
    if (!reached[id]) continue;
    if (id != fold && complete_.contains(id)) return true;
    const Node& n = graph().node(id);
    if (n.kind == NodeKind::gather && graph().gathers[n.payload].policy == dsl::IndexPolicy::checked) return true;
    for (const NodeId operand : graph().operands(id)) reached[operand] = true;
  }
  return false;
}

std::vector<ExprId> Emitter::serial_fold(NodeId node, const Environment& environment) {
  int at = stands_inside_rows(node) ? 2 : 1;
  for (const AxisId axis : graph().node(node).axes) at = std::max(at, depth(environment[axis]));
  std::vector<Scope> inner;
  for (std::size_t i = static_cast<std::size_t>(at); i < scopes_.size(); ++i) inner.push_back(std::move(scopes_[i]));
  scopes_.resize(static_cast<std::size_t>(at));
  Environment inside = environment;
  const ExprId outer = wanted_;
  if (outer != no_expr && depth(outer) > at) wanted_ = no_expr;  // it is not known out there
  const loops::FoldId fold = serial_levels(node, inside, 0, graph().monoid_of(node).name);
  wanted_ = outer;
  for (Scope& scope : inner) scopes_.push_back(std::move(scope));
  std::vector<ExprId> result;
  const std::size_t slots = graph().monoid_of(node).state.size();
  for (std::size_t slot = 0; slot < slots; ++slot) result.push_back(builder_.fold_state(fold, static_cast<int>(slot)));
  return result;
}

void Emitter::begin_checks() {
  has_checked_gather_ = false;
  for (const dsl::Node& n : graph().nodes) {
    if (n.kind == NodeKind::gather && graph().gathers[n.payload].policy == dsl::IndexPolicy::checked) {
      has_checked_gather_ = true;
    }
  }
  if (!has_checked_gather_) return;
  violation_ =
      declare_fold("out_of_range", builder_.monoid(dsl::builtin_monoid(dsl::BuiltinMonoid::any)), DType::boolean);
  if (result_.error_parameter < 0) {
    result_.error_parameter = static_cast<int>(builder_.parameter({.name = "error",
                                                                   .dtype = DType::i32,
                                                                   .axes = {},
                                                                   .strides = {},
                                                                   .access = loops::Access::write,
                                                                   .comment = "set when an index is out of range"}));
  }
}

void Emitter::end_checks() {
  if (!has_checked_gather_) return;
  loops::When when{builder_.fold_state(violation_, 0), {}};
  when.body.push_back(
      loops::Statement{loops::Store{.parameter = static_cast<loops::ParameterId>(result_.error_parameter),
                                    .index = {},
                                    .value = builder_.number(DType::i32, 1)}});
  add(loops::Statement{std::move(when)});
}

}  // namespace tigon::schedule
