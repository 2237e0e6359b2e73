// Hash-consing and the constructors of every node kind but maps and casts.
#include "dsl/build.hpp"

#include "dsl/build_state.hpp"
#include "dsl/printable.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::dsl {

std::size_t NodeKeyHash::operator()(const std::vector<std::uint32_t>& key) const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint32_t word : key) hash = (hash ^ word) * 0x100000001b3u;
  return static_cast<std::size_t>(hash ^ (hash >> 29));
}

namespace {

std::vector<std::uint32_t> node_key(NodeKind kind, DType dtype, std::uint32_t payload, AxisSet axes,
                                    std::span<const NodeId> operands) {
  std::vector<std::uint32_t> key{static_cast<std::uint32_t>(kind) << 8 | static_cast<std::uint32_t>(dtype), payload,
                                 static_cast<std::uint32_t>(axes.bits()),
                                 static_cast<std::uint32_t>(axes.bits() >> 32)};
  key.insert(key.end(), operands.begin(), operands.end());
  return key;
}

AxisSet set_of(const std::vector<AxisId>& axes) {
  AxisSet set;
  for (const AxisId axis : axes) set |= AxisSet::of(axis);
  return set;
}

// Whether a monoid's programs compute with functions that only floats have, or keep truth values.
bool needs_floats(const Monoid& monoid) {
  const auto floats = [](const ScalarProgram& program) {
    return std::any_of(program.values.begin(), program.values.end(), [](const ProgramValue& value) {
      return value.kind == ProgramValue::Kind::operation && value.value_class == ValueClass::element &&
             info(value.op).rule == ResultRule::floating;
    });
  };
  return floats(monoid.lift) || floats(monoid.merge) ||
         std::any_of(monoid.finishes.begin(), monoid.finishes.end(),
                     [&](const Finish& f) { return floats(f.program); });
}
bool same_law(const Monoid& a, const Monoid& b) {
  return a.operand_count == b.operand_count && a.state == b.state && a.lift == b.lift && a.merge == b.merge &&
         a.finishes == b.finishes && a.commutative == b.commutative;
}
bool keeps_truth(const Monoid& monoid) {
  return std::all_of(monoid.state.begin(), monoid.state.end(), [](ValueClass c) { return c == ValueClass::truth; });
}

}  // namespace

NodeId Builder::State::intern(NodeKind kind, DType dtype, std::uint32_t payload, AxisSet axes,
                              std::span<const NodeId> operands) {
  auto [place, added] =
      interned.try_emplace(node_key(kind, dtype, payload, axes, operands), static_cast<NodeId>(graph.nodes.size()));
  if (!added) return place->second;
  Node node;
  node.kind = kind;
  node.dtype = dtype;
  node.payload = payload;
  node.first_operand = static_cast<std::uint32_t>(graph.operand_ids.size());
  node.operand_count = static_cast<std::uint16_t>(operands.size());
  node.location = location;
  node.axes = axes;
  graph.operand_ids.insert(graph.operand_ids.end(), operands.begin(), operands.end());
  graph.nodes.push_back(node);
  return place->second;
}

void Builder::State::index_all() {
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const Node& n = graph.nodes[id];
    interned.try_emplace(node_key(n.kind, n.dtype, n.payload, n.axes, graph.operands(id)), id);
  }
}

std::string Builder::State::axis_names(AxisSet axes) const {
  std::string text = "[";
  for (const AxisId axis : axes) text += (text.size() > 1 ? ", " : "") + graph.axes[axis].name;
  return text + "]";
}

Builder::Builder(std::string name) : state_(std::make_unique<State>()) {
  state_->graph.name = printable_name(name);
  state_->graph.locations.emplace_back();
}
Builder::Builder(Graph graph) : state_(std::make_unique<State>()) {
  state_->graph = std::move(graph);
  state_->graph.outputs.clear();
  if (state_->graph.locations.empty()) state_->graph.locations.emplace_back();
  state_->index_all();
}
Builder::~Builder() = default;
Builder::Builder(Builder&&) noexcept = default;
Builder& Builder::operator=(Builder&&) noexcept = default;

Builder Builder::rebuilding(const Graph& graph) {
  Builder builder(graph.name);
  builder.state_->graph.axes = graph.axes;
  builder.state_->graph.splits = graph.splits;
  builder.state_->graph.equals = graph.equals;
  builder.state_->graph.monoids = graph.monoids;
  builder.state_->graph.locations = graph.locations;
  return builder;
}

const Graph& Builder::graph() const { return state_->graph; }

Graph Builder::finish() && { return std::move(state_->graph); }

AxisId Builder::axis(const void* tag, std::string_view given_name, std::int64_t fixed) {
  const std::string name = printable_name(given_name);
  std::vector<AxisInfo>& axes = state_->graph.axes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const bool same = tag != nullptr ? axes[i].tag == tag : axes[i].tag == nullptr && axes[i].name == name;
    if (same && axes[i].fixed == fixed) return static_cast<AxisId>(i);
  }
  if (axes.size() >= max_axes) {
    throw Error({.function = state_->graph.name, .axis = name}, "a graph has at most 64 axes");
  }
  std::string unique = name;
  const auto taken = [&] {
    return std::any_of(axes.begin(), axes.end(), [&](const AxisInfo& other) { return other.name == unique; });
  };
  for (int ordinal = 2; taken(); ++ordinal) unique = name + "'" + std::to_string(ordinal);
  axes.push_back({unique, tag, fixed});
  return static_cast<AxisId>(axes.size() - 1);
}

void Builder::relate(SplitRelation relation) { find_or_add(state_->graph.splits, relation); }
void Builder::relate(EqualRelation relation) {
  if (relation.a == relation.b) return;
  if (relation.a > relation.b) std::swap(relation.a, relation.b);
  find_or_add(state_->graph.equals, relation);
}

void Builder::set_location(std::string_view file, int line) {
  const SourceLocation location{printable_path(file), line};
  state_->location = static_cast<std::uint16_t>(find_or_add(state_->graph.locations, location));
}

NodeId Builder::input(std::string name, DType dtype, std::vector<AxisId> axes, int monoid) {
  Graph& graph = state_->graph;
  for (const InputInfo& known : graph.inputs) {
    if (known.name != name) continue;
    if (known.dtype == dtype && known.axes == axes && known.monoid == monoid) return known.node;
    throw Error({.function = graph.name, .argument = name}, "two different inputs have one name");
  }
  const AxisSet set = set_of(axes);
  if (set.size() != static_cast<int>(axes.size())) {
    throw Error(
        {.function = graph.name, .argument = name, .found = state_->axis_names(set), .cure = "Rename one of them"},
        "an axis occurs twice in one tensor");
  }
  const auto payload = static_cast<std::uint32_t>(graph.inputs.size());
  graph.inputs.push_back({std::move(name), dtype, std::move(axes), monoid, no_node});
  return graph.inputs[payload].node = state_->intern(NodeKind::input, dtype, payload, set, {});
}

NodeId Builder::scalar(std::string name, DType dtype) {
  Graph& graph = state_->graph;
  for (const ScalarInfo& known : graph.scalars) {
    if (known.name != name) continue;
    if (known.dtype == dtype) return known.node;
    throw Error({.function = graph.name, .argument = name}, "two different scalars have one name");
  }
  const auto payload = static_cast<std::uint32_t>(graph.scalars.size());
  graph.scalars.push_back({std::move(name), dtype, no_node});
  return graph.scalars[payload].node = state_->intern(NodeKind::scalar, dtype, payload, {}, {});
}

NodeId Builder::iota(AxisId axis) { return state_->intern(NodeKind::iota, DType::i64, axis, AxisSet::of(axis), {}); }

NodeId Builder::extent(AxisId axis) {
  const std::int64_t fixed = state_->graph.axes[axis].fixed;
  if (fixed >= 0) return integer(DType::i64, fixed);
  return state_->intern(NodeKind::extent, DType::i64, axis, {}, {});
}

NodeId Builder::view(NodeId operand, ViewInfo view) {
  Graph& graph = state_->graph;
  const AxisSet before = graph.node(operand).axes;
  AxisSet taken;
  AxisSet made;
  const auto make = [&](AxisId axis) {
    if (made.contains(axis)) {
      throw Error({.function = graph.name, .axis = graph.axes[axis].name}, "a view yields the axis twice");
    }
    made |= AxisSet::of(axis);
  };
  std::erase_if(view.terms, [](const ViewTerm& t) { return t.kind == ViewKind::rename && t.operand_axis == t.a; });
  for (const ViewTerm& term : view.terms) {
    if (!before.contains(term.operand_axis) || taken.contains(term.operand_axis)) {
      throw Error(
          {.function = graph.name, .axis = graph.axes[term.operand_axis].name, .found = state_->axis_names(before)},
          "the tensor does not have the axis of the view");
    }
    taken |= AxisSet::of(term.operand_axis);
    switch (term.kind) {
      case ViewKind::rename:
        make(term.a);
        relate(EqualRelation{term.operand_axis, term.a});
        break;
      case ViewKind::split:
        make(term.a);
        make(term.b);
        relate(SplitRelation{term.operand_axis, term.a, term.b});
        break;
      case ViewKind::merge_outer:
        if (!made.contains(term.a)) make(term.a);
        relate(SplitRelation{term.a, term.operand_axis, term.inner});
        break;
      case ViewKind::merge_inner:
        if (!made.contains(term.a)) make(term.a);
        break;
    }
  }
  for (const AxisId axis : before - taken) make(axis);
  view.added -= made;
  if (view.terms.empty() && view.added.empty()) return operand;
  std::sort(view.terms.begin(), view.terms.end(),
            [](const ViewTerm& x, const ViewTerm& y) { return x.operand_axis < y.operand_axis; });
  const AxisSet axes = made | view.added;
  const std::uint32_t payload = find_or_add(graph.views, view);
  return state_->intern(NodeKind::view, graph.node(operand).dtype, payload, axes, std::span(&operand, 1));
}

NodeId Builder::rename(NodeId operand, AxisId from, AxisId to) {
  return view(operand, {{{.operand_axis = from, .kind = ViewKind::rename, .a = to}}, {}});
}
NodeId Builder::split(NodeId operand, AxisId whole, AxisId outer, AxisId inner) {
  return view(operand, {{{.operand_axis = whole, .kind = ViewKind::split, .a = outer, .b = inner}}, {}});
}
NodeId Builder::merge(NodeId operand, AxisId outer, AxisId inner, AxisId whole) {
  relate(SplitRelation{whole, outer, inner});
  return view(broadcast(operand, AxisSet::of(outer) | AxisSet::of(inner)),
              {{{.operand_axis = outer, .kind = ViewKind::merge_outer, .a = whole, .inner = inner},
                {.operand_axis = inner, .kind = ViewKind::merge_inner, .a = whole, .inner = inner}},
               {}});
}
NodeId Builder::broadcast(NodeId operand, AxisSet axes) { return view(operand, {{}, axes - node(operand).axes}); }

int Builder::monoid(const Monoid& monoid) {
  std::vector<Monoid>& table = state_->graph.monoids;
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].name == monoid.name) {
      if (same_law(table[i], monoid)) return static_cast<int>(i);
      throw Error({.function = state_->graph.name, .argument = monoid.name, .cure = "Rename one of them"},
                  "two different monoids have one name");
    }
  if (monoid.state.empty() || monoid.state.size() > 4 || monoid.identity.size() != monoid.state.size()) {
    throw Error({.function = state_->graph.name, .argument = monoid.name, .found = std::to_string(monoid.state.size())},
                "a monoid's state has one to four slots, each with its identity");
  }
  table.push_back(monoid);
  return static_cast<int>(table.size() - 1);
}

NodeId Builder::fold(int monoid_number, std::span<const NodeId> operands, std::vector<AxisId> axes) {
  const Monoid& law = state_->graph.monoids.at(monoid_number);
  if (law.operand_count != static_cast<int>(operands.size())) {
    throw Error(
        {.function = law.name, .found = std::to_string(operands.size()), .expected = std::to_string(law.operand_count)},
        "the monoid takes another number of operands");
  }
  if (set_of(axes).size() != static_cast<int>(axes.size())) {
    throw Error({.function = law.name, .found = state_->axis_names(set_of(axes))}, "an axis is folded twice");
  }
  const bool is_sum = law.name == "sum";
  DType dtype = arithmetic(node(operands[0]).dtype);
  AxisSet present;
  for (const NodeId operand : operands) {
    dtype = promote(dtype, node(operand).dtype);
    present |= node(operand).axes;
  }
  if (keeps_truth(law)) {
    dtype = DType::boolean;
  } else if (!is_floating(dtype) && needs_floats(law)) {
    dtype = DType::f32;
  }
  std::vector<NodeId> cast_operands;
  for (const NodeId operand : operands) {
    cast_operands.push_back(keeps_truth(law) && node(operand).dtype != DType::boolean
                                ? map(ScalarOp::not_equal, {operand, integer(DType::i32, 0)})
                                : cast(dtype, operand));
  }
  const AxisSet missing = set_of(axes) - present;
  if (!missing.empty() && is_sum) {
    for (const AxisId axis : missing)
      cast_operands[0] = map(ScalarOp::mul, {cast_operands[0], cast(dtype, extent(axis))});
    std::erase_if(axes, [&](AxisId axis) { return missing.contains(axis); });
  } else if (!missing.empty()) {
    cast_operands[0] = broadcast(cast_operands[0], missing);
    present |= missing;
  }
  const FoldInfo fold{static_cast<std::uint16_t>(monoid_number), false, std::move(axes)};
  const AxisSet result = present - set_of(fold.axes);
  const std::uint32_t payload = find_or_add(state_->graph.folds, fold);
  return state_->intern(NodeKind::fold, dtype, payload, result, cast_operands);
}

NodeId Builder::fold_states(NodeId states, std::vector<AxisId> axes) {
  Graph& graph = state_->graph;
  const Monoid& law = graph.monoid_of(states);
  const AxisSet missing = set_of(axes) - node(states).axes;
  if (!missing.empty()) {
    throw Error({.kind = ErrorKind::internal, .function = law.name, .axis = state_->axis_names(missing)},
                "states are merged over an axis that they lack");
  }
  const FoldInfo fold{static_cast<std::uint16_t>(monoid(Monoid(law))), true, std::move(axes)};
  const AxisSet result = node(states).axes - set_of(fold.axes);
  const DType dtype = node(states).dtype;
  return state_->intern(NodeKind::fold, dtype, find_or_add(graph.folds, fold), result, std::span(&states, 1));
}

NodeId Builder::finish(NodeId state, int finish_number) {
  const Graph& graph = state_->graph;
  const Monoid& law = graph.monoid_of(state);
  if (finish_number < 0 || finish_number >= static_cast<int>(law.finishes.size())) {
    throw Error({.function = law.name, .found = std::to_string(finish_number)}, "the monoid has no such finish");
  }
  const Node of = node(state);
  const DType dtype = dtype_of_class(law.finishes[finish_number].value_class, of.dtype);
  return state_->intern(NodeKind::finish, dtype, static_cast<std::uint32_t>(finish_number), of.axes,
                        std::span(&state, 1));
}

NodeId Builder::sum(NodeId operand, std::vector<AxisId> axes) {
  const Graph& graph = state_->graph;
  const AxisSet reduced = set_of(axes);
  const AxisSet missing = reduced - node(operand).axes;
  if (!missing.empty()) {
    std::erase_if(axes, [&](AxisId axis) { return missing.contains(axis); });
    NodeId total = sum(operand, std::move(axes));
    for (const AxisId axis : missing) total = map(ScalarOp::mul, {total, cast(node(total).dtype, extent(axis))});
    return total;
  }
  if (axes.empty()) return cast(arithmetic(node(operand).dtype), operand);
  const Node value = node(operand);
  if (value.kind == NodeKind::map && graph.op(operand) == ScalarOp::where) {
    const NodeId condition = graph.operands(operand)[0];
    const NodeId kept = graph.operands(operand)[1];
    const NodeId other = graph.operands(operand)[2];
    const AxisSet mask_axes = node(condition).axes;
    if (is_zero(graph, other)) {
      if ((mask_axes & reduced).empty() && node(kept).axes.contains(reduced)) {
        return map(ScalarOp::where, {condition, sum(kept, std::move(axes)), other});
      }
      if (node(kept).kind == NodeKind::map && graph.op(kept) == ScalarOp::mul) {
        const NodeId a = graph.operands(kept)[0];
        const NodeId b = graph.operands(kept)[1];
        const AxisSet a_axes = node(a).axes;
        const AxisSet b_axes = node(b).axes;
        const bool contraction =
            !(a_axes & b_axes & reduced).empty() && !(a_axes - b_axes).empty() && !(b_axes - a_axes).empty();
        if (contraction && a_axes.contains(mask_axes) && b_axes.contains(mask_axes)) {
          return sum(map(ScalarOp::mul, {masked(condition, a), masked(condition, b)}), std::move(axes));
        }
      }
    }
  }
  return finish(fold(monoid(BuiltinMonoid::sum), {operand}, std::move(axes)), 0);
}

NodeId Builder::gather(NodeId table, NodeId index, AxisId axis, IndexPolicy policy, double fill) {
  Graph& graph = state_->graph;
  if (!node(table).axes.contains(axis)) {
    throw Error({.function = "at", .axis = graph.axes[axis].name, .found = state_->axis_names(node(table).axes)},
                "the tensor does not have the axis that is indexed");
  }
  if (is_floating(node(index).dtype)) {
    throw Error({.function = "at",
                 .axis = graph.axes[axis].name,
                 .found = std::string(tigon::name(node(index).dtype)),
                 .expected = "i32 or i64"},
                "an index is an integer");
  }
  if (node(index).dtype == DType::boolean) index = cast(DType::i32, index);
  const std::uint32_t payload =
      find_or_add(graph.gathers, GatherInfo{axis, policy, policy == IndexPolicy::fill ? fill : 0.0});
  const AxisSet axes = (node(table).axes - AxisSet::of(axis)) | node(index).axes;
  const std::array<NodeId, 2> operands{table, index};
  return state_->intern(NodeKind::gather, node(table).dtype, payload, axes, operands);
}

NodeId Builder::scatter(NodeId values, NodeId index, AxisId axis, std::vector<AxisId> folded) {
  Graph& graph = state_->graph;
  const AxisSet all = node(values).axes | node(index).axes;
  const AxisSet rest = all - set_of(folded);
  if (rest.contains(axis)) {
    throw Error({.function = "scatter", .axis = graph.axes[axis].name, .cure = "Rename one of them"},
                "the values already have the axis that the scatter makes");
  }
  if (!all.contains(set_of(folded))) {
    throw Error(
        {.function = "scatter", .found = state_->axis_names(all), .expected = state_->axis_names(set_of(folded))},
        "the values lack an axis that is summed");
  }
  if (is_floating(node(index).dtype)) throw Error({.function = "scatter"}, "an index is an integer");
  if (node(index).dtype == DType::boolean) index = cast(DType::i32, index);
  values = cast(arithmetic(node(values).dtype), values);
  const std::uint32_t payload = find_or_add(graph.scatters, ScatterInfo{axis, std::move(folded)});
  const std::array<NodeId, 2> operands{values, index};
  return state_->intern(NodeKind::scatter, node(values).dtype, payload, rest | AxisSet::of(axis), operands);
}

NodeId Builder::attach(NodeId value, NodeId surrogate) {
  if (surrogate != no_node && node(surrogate).axes != node(value).axes) {
    throw Error({.function = "attach",
                 .found = state_->axis_names(node(surrogate).axes),
                 .expected = state_->axis_names(node(value).axes)},
                "the surrogate varies over other axes than the value");
  }
  const std::array<NodeId, 2> operands{value, surrogate};
  return state_->intern(NodeKind::attach, node(value).dtype, 0, node(value).axes,
                        std::span(operands).first(surrogate == no_node ? 1 : 2));
}

void Builder::output(OutputInfo output) {
  Graph& graph = state_->graph;
  for (const OutputInfo& known : graph.outputs) {
    if (known.name == output.name) {
      throw Error({.function = graph.name, .argument = output.name}, "two outputs have one name");
    }
  }
  const AxisSet wanted = set_of(output.axes);
  if (wanted.size() != static_cast<int>(output.axes.size()) || !wanted.contains(node(output.node).axes)) {
    throw Error({.function = graph.name,
                 .argument = output.name,
                 .found = state_->axis_names(node(output.node).axes),
                 .expected = state_->axis_names(wanted)},
                "the output varies over other axes than its declaration");
  }
  if (!graph.is_state(output.node)) output.node = cast(output.dtype, broadcast(output.node, wanted));
  output.dtype = node(output.node).dtype;
  graph.outputs.push_back(std::move(output));
}

void Builder::name(NodeId node, std::string name) {
  std::vector<NamedNode>& names = state_->graph.names;
  const auto place = std::lower_bound(names.begin(), names.end(), node,
                                      [](const NamedNode& named, NodeId wanted) { return named.node < wanted; });
  if (place != names.end() && place->node == node) return;  // the first name stays
  names.insert(place, {node, printable_name(name)});
}

}  // namespace tigon::dsl
