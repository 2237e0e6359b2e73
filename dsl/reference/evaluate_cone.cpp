// Evaluates cones block by block: maps element by element, folds in index order.
#include "dsl/reference/evaluate_cone.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dsl/levels_cone.hpp"
#include "dsl/reference/bounded.hpp"
#include "dsl/scalar_table.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl {

Block::Block(std::vector<AxisId> axes, const Ranges& ranges, std::size_t slots, i64* live, i64* peak)
    : axes_(std::move(axes)), strides_(axes_.size()), slots_(slots), live_(live) {
  for (std::size_t d = axes_.size(); d-- > 0;) {
    strides_[d] = count_;
    count_ *= ranges[axes_[d]].size();
  }
  for (const AxisId axis : axes_) box_.push_back(ranges[axis]);
  data.assign(static_cast<std::size_t>(count_) * slots_, std::numeric_limits<double>::quiet_NaN());
  if (live_ == nullptr) return;
  *live_ += static_cast<i64>(data.size());
  *peak = std::max(*peak, *live_);
}
Block::~Block() {
  if (live_ != nullptr) *live_ -= count_ * static_cast<i64>(slots_);
}
Range Block::range(AxisId axis) const {
  for (std::size_t d = 0; d < axes_.size(); ++d)
    if (axes_[d] == axis) return box_[d];
  throw Error({.kind = ErrorKind::internal}, "a block lacks the axis that it is asked about");
}
void Block::outside(std::size_t axis, i64 index) const {
  throw Error({.kind = ErrorKind::internal,
               .axis = std::to_string(axes_[axis]),
               .found = std::to_string(index),
               .expected = std::to_string(box_[axis].first) + " to " + std::to_string(box_[axis].end)},
              "a value is read outside the range that is held");
}

namespace {

// Runs a program on at most 64 values.
void run_into(const ScalarProgram& program, const double* inputs, double* results) {
  std::array<double, 64> values{};
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    const ProgramValue& value = program.values[i];
    if (value.kind == ProgramValue::Kind::input) {
      values[i] = inputs[value.input];
    } else if (value.kind == ProgramValue::Kind::constant) {
      values[i] = value.constant;
    } else {
      values[i] = info(value.op).reference(values[value.args[0]], values[value.args[1]], values[value.args[2]]);
    }
  }
  for (std::size_t r = 0; r < program.results.size(); ++r) results[r] = values[program.results[r]];
}

using State = std::array<double, 4>;

void merge_into(const Monoid& law, State& earlier, const State& later) {
  if (law.state.size() == 1 && law.name == "sum") {
    earlier[0] += later[0];
    return;
  }
  std::array<double, 8> both{};
  const std::size_t slots = law.state.size();
  std::copy_n(earlier.begin(), slots, both.begin());
  std::copy_n(later.begin(), slots, both.begin() + static_cast<std::ptrdiff_t>(slots));
  run_into(law.merge, both.data(), earlier.data());
}

class Body {
 public:
  Body(ConeContext& context, const Ranges& ranges, const std::vector<const Block*>& known)
      : context_(context), graph_(context.graph), ranges_(ranges), known_(known), held_(graph_.nodes.size()) {}

  void run(std::span<const ConeTarget> targets) {
    find_uses(targets);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (uses_[id] == 0 || known_[id] != nullptr) continue;
      if (must_hold(id)) {
        context_.check_held(id, ranges_);
        held_[id] = new_destination(context_, id, ranges_, true);
        evaluate(id, *held_[id], false);
        release_operands(id);
      }
      for (const ConeTarget& target : targets)
        if (target.node == id) deliver(target);
    }
    for (const ConeTarget& target : targets)
      if (known_[target.node] != nullptr) deliver(target);
  }

 private:
  static bool is_leaf(NodeKind kind) {
    return kind == NodeKind::input || kind == NodeKind::scalar || kind == NodeKind::constant ||
           kind == NodeKind::iota || kind == NodeKind::extent;
  }
  bool is_target_only(NodeId id) const { return uses_[id] == 1 && is_target_[id] != 0; }
  // Products that only contractions read are formed inside them, views are read through, and what only a destination
  // wants is made there.
  bool must_hold(NodeId id) const {
    const NodeKind kind = graph_.node(id).kind;
    return !is_leaf(kind) && kind != NodeKind::view && !is_target_only(id) && fused_[id] == 0;
  }

  void find_uses(std::span<const ConeTarget> targets) {
    uses_.assign(graph_.nodes.size(), 0);
    is_target_.assign(graph_.nodes.size(), 0);
    std::vector<int> fused_uses(graph_.nodes.size());
    for (const ConeTarget& target : targets) {
      ++uses_[target.node];
      is_target_[target.node] = 1;
    }
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
      if (uses_[id] == 0 || known_[id] != nullptr) continue;
      for (const NodeId operand : graph_.operands(id)) {
        ++uses_[operand];
        if (is_contraction_fold(graph_, id)) ++fused_uses[operand];
      }
    }
    fused_.assign(graph_.nodes.size(), 0);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) fused_[id] = uses_[id] > 0 && fused_uses[id] == uses_[id];
  }

  // What a node was the last to read is no longer held; fused products and views pass their reads on.
  void release_operands(NodeId id) {
    for (const NodeId operand : graph_.operands(id)) {
      if (known_[operand] != nullptr || --uses_[operand] > 0) continue;
      if (held_[operand]) {
        held_[operand].reset();
      } else if (!is_leaf(graph_.node(operand).kind)) {
        release_operands(operand);
      }
    }
  }

  void deliver(const ConeTarget& target) {
    const NodeId id = target.node;
    if (known_[id] == nullptr && !held_[id] && graph_.node(id).kind != NodeKind::view &&
        !is_leaf(graph_.node(id).kind)) {
      evaluate(id, *target.destination, target.partial);
      release_operands(id);
      return;
    }
    if (target.partial && held_[id]) {
      throw Error({.kind = ErrorKind::internal, .found = graph_.name_of(id)},
                  "a fold is read in a body that makes only a part of it");
    }
    // Computed elsewhere, or read in this body too: merged, added or copied.
    const Node& n = graph_.node(id);
    Point point{};
    const std::vector<AxisId> axes = listed_axes(n.axes);
    for_each_point(axes, ranges_, point, [&] {
      Block& to = *target.destination;
      if (n.kind == NodeKind::fold) {
        const Monoid& law = graph_.monoid_of(id);
        State state = load(to, point);
        State part{};
        for (std::size_t s = 0; s < law.state.size(); ++s) part[s] = read(id, point, s);
        merge_into(law, state, part);
        store(to, point, state);
      } else if (n.kind == NodeKind::scatter) {
        to.data[to.at(point)] += read(id, point);
      } else {
        for (std::size_t s = 0; s < to.slots(); ++s) to.data[to.at(point, s)] = read(id, point, s);
      }
    });
    if (held_[id] && --uses_[id] == 0) held_[id].reset();
  }

  static State load(const Block& block, const Point& point) {
    State state{};
    for (std::size_t s = 0; s < block.slots(); ++s) state[s] = block.data[block.at(point, s)];
    return state;
  }
  static void store(Block& block, const Point& point, const State& state) {
    for (std::size_t s = 0; s < block.slots(); ++s) block.data[block.at(point, s)] = state[s];
  }

  double read(NodeId id, Point& point, std::size_t slot = 0) {
    const Block* block = known_[id] != nullptr ? known_[id] : held_[id].get();
    if (block != nullptr) return block->data[block->at(point, slot)];
    const Node& n = graph_.node(id);
    switch (n.kind) {
      case NodeKind::scalar:
        return context_.scalars[n.payload];
      case NodeKind::constant: {
        const Constant& constant = graph_.constants[n.payload];
        const bool whole = n.dtype == DType::i32 || n.dtype == DType::i64;
        return whole ? static_cast<double>(constant.integer) : constant.number;
      }
      case NodeKind::iota:
        return static_cast<double>(point[n.payload]);
      case NodeKind::extent:
        return static_cast<double>(context_.extents[n.payload]);
      case NodeKind::view:
        return read_view(id, point, slot);
      case NodeKind::map:
        return mapped(id, point);
      default:
        throw Error({.kind = ErrorKind::internal, .found = graph_.name_of(id)}, "a value is read that nobody made");
    }
  }

  double read_view(NodeId id, const Point& point, std::size_t slot) {
    Point inner = point;
    for (const ViewTerm& term : graph_.views[graph_.node(id).payload].terms) {
      i64& index = inner[term.operand_axis];
      switch (term.kind) {
        case ViewKind::rename:
          index = point[term.a];
          break;
        case ViewKind::split:
          index = point[term.a] * context_.extents[term.b] + point[term.b];
          break;
        case ViewKind::merge_outer:
          index = point[term.a] / context_.extents[term.inner];
          break;
        case ViewKind::merge_inner:
          index = point[term.a] % context_.extents[term.inner];
          break;
      }
    }
    return read(graph_.operands(id)[0], inner, slot);
  }

  double mapped(NodeId id, Point& point) {
    std::array<double, 3> x{};
    const auto operands = graph_.operands(id);
    for (std::size_t k = 0; k < operands.size(); ++k) x[k] = read(operands[k], point);
    const double value = info(graph_.op(id)).reference(x[0], x[1], x[2]);
    const DType dtype = graph_.node(id).dtype;
    return is_floating(dtype) ? value : round_to(dtype, value);
  }

  void evaluate(NodeId id, Block& to, bool partial) {
    const Node& n = graph_.node(id);
    const auto operands = graph_.operands(id);
    const std::vector<AxisId> axes = listed_axes(n.axes);
    Point point{};
    switch (n.kind) {
      case NodeKind::map:
        for_each_point(axes, ranges_, point, [&] { to.data[to.at(point)] = mapped(id, point); });
        return;
      case NodeKind::cast: {
        const DType from = graph_.node(operands[0]).dtype;
        const Rounding rounding = rounding_of(n.dtype, false);
        for_each_point(axes, ranges_, point, [&] {
          to.data[to.at(point)] = cast_to({read(operands[0], point), 0, false}, from, rounding, false).value;
        });
        return;
      }
      case NodeKind::finish: {
        const Monoid& law = graph_.monoid_of(operands[0]);
        for_each_point(axes, ranges_, point, [&] {
          State state{};
          for (std::size_t s = 0; s < law.state.size(); ++s) state[s] = read(operands[0], point, s);
          run_into(law.finishes[n.payload].program, state.data(), &to.data[to.at(point)]);
        });
        return;
      }
      case NodeKind::fold:
        return evaluate_fold(id, to);
      case NodeKind::gather:
        return evaluate_gather(id, to, partial);
      case NodeKind::scatter:
        return evaluate_scatter(id, to);
      default:
        throw Error({.kind = ErrorKind::internal, .found = graph_.name_of(id)}, "a node of an unknown kind");
    }
  }

  void evaluate_fold(NodeId id, Block& to) {
    const FoldInfo& fold = graph_.fold(id);
    const Monoid& law = graph_.monoids[fold.monoid];
    const auto operands = graph_.operands(id);
    if (is_contraction_fold(graph_, id)) {
      double work = 1;
      for (const AxisId axis : graph_.node(operands[0]).axes) work *= static_cast<double>(ranges_[axis].size());
      context_.contraction_work += work;
    }
    const std::vector<AxisId> kept = listed_axes(graph_.node(id).axes);
    Point point{};
    for_each_point(kept, ranges_, point, [&] {
      State part{};
      std::copy(law.identity.begin(), law.identity.end(), part.begin());
      for_each_point(fold.axes, ranges_, point, [&] {
        State element{};
        if (fold.of_states) {
          for (std::size_t s = 0; s < law.state.size(); ++s) element[s] = read(operands[0], point, s);
        } else {
          std::array<double, 8> inputs{};
          for (std::size_t k = 0; k < operands.size(); ++k) inputs[k] = read(operands[k], point);
          inputs[operands.size()] = fold.axes.empty() ? 0 : static_cast<double>(point[fold.axes.front()]);
          run_into(law.lift, inputs.data(), element.data());
        }
        merge_into(law, part, element);
      });
      State state = load(to, point);
      merge_into(law, state, part);
      store(to, point, state);
    });
  }

  void evaluate_gather(NodeId id, Block& to, bool partial) {
    const Node& n = graph_.node(id);
    const GatherInfo& gather = graph_.gathers[n.payload];
    const NodeId table = graph_.operands(id)[0];
    const NodeId index = graph_.operands(id)[1];
    const i64 extent = context_.extents[gather.axis];
    // A part of a select over chunks touches only what its chunk holds.
    const Range here = partial ? ranges_[gather.axis] : Range{0, extent};
    Point point{};
    for_each_point(listed_axes(n.axes), ranges_, point, [&] {
      auto at = static_cast<i64>(read(index, point));
      const bool inside = at >= 0 && at < extent;
      double& result = to.data[to.at(point)];
      if (!inside && (gather.policy == IndexPolicy::fill || extent == 0)) {
        if (!partial) result = gather.fill;
        return;
      }
      at = std::clamp<i64>(at, 0, extent - 1);
      if (at < here.first || at >= here.end) return;
      Point inner = point;
      inner[gather.axis] = at;
      result = read(table, inner);
    });
  }

  void evaluate_scatter(NodeId id, Block& to) {
    const Node& n = graph_.node(id);
    const ScatterInfo& scatter = graph_.scatters[n.payload];
    const auto operands = graph_.operands(id);
    const AxisSet all = graph_.node(operands[0]).axes | graph_.node(operands[1]).axes;
    const Range onto = to.range(scatter.axis);
    Point point{};
    for_each_point(listed_axes(all), ranges_, point, [&] {
      const auto at = static_cast<i64>(read(operands[1], point));
      if (at < 0 || at >= context_.extents[scatter.axis]) return;
      const bool chunk = at >= ranges_[scatter.axis].first && at < ranges_[scatter.axis].end;
      if (!graph_.folded_axes(id).contains(scatter.axis) && !chunk) return;
      if (at < onto.first || at >= onto.end) return;
      Point result = point;
      result[scatter.axis] = at;
      to.data[to.at(result)] += read(operands[0], point);
    });
  }

  ConeContext& context_;
  const Graph& graph_;
  const Ranges& ranges_;
  const std::vector<const Block*>& known_;
  std::vector<std::unique_ptr<Block>> held_;
  std::vector<int> uses_;
  std::vector<char> is_target_;
  std::vector<char> fused_;
};

}  // namespace

std::unique_ptr<Block> new_destination(ConeContext& context, NodeId node, const Ranges& ranges, bool counted) {
  const Graph& graph = context.graph;
  const Node& n = graph.node(node);
  const std::size_t slots = graph.is_state(node) ? graph.monoid_of(node).state.size() : 1;
  auto block =
      std::make_unique<Block>(listed_axes(n.axes), ranges, slots, counted ? &context.live : nullptr, &context.peak);
  if (n.kind == NodeKind::fold) {
    for (std::size_t s = 0; s < slots; ++s)
      std::fill_n(block->data.begin() + static_cast<std::ptrdiff_t>(s) * block->count(), block->count(),
                  graph.monoid_of(node).identity[s]);
  } else if (n.kind == NodeKind::scatter || n.kind == NodeKind::gather) {
    const double start = n.kind == NodeKind::gather ? graph.gathers[n.payload].fill : 0;
    std::fill(block->data.begin(), block->data.end(), start);
  }
  return block;
}

void evaluate_cone(ConeContext& context, std::span<const ConeTarget> targets, const Ranges& ranges,
                   const std::vector<const Block*>& known) {
  Body(context, ranges, known).run(targets);
}

}  // namespace tigon::dsl
