// Decides which values are held, computes them in the order of the graph, and hands the outputs out.
#include "dsl/reference/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dsl/reference/accumulate.hpp"
#include "dsl/reference/pull.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl {
namespace {

// Values of fewer elements than this are held even in the smallest graphs.
constexpr i64 always_small = 4096;

std::vector<AxisId> listed(AxisSet axes) {
  std::vector<AxisId> list;
  for (const AxisId axis : axes) list.push_back(axis);
  return list;
}

class Evaluation {
 public:
  Evaluation(const Graph& graph, const EvaluateInputs& inputs, const EvaluateOptions& options)
      : graph_(graph),
        options_(options),
        extents_(resolve_extents(graph, inputs.extents)),
        context_{graph_, extents_, options.honour_casts, std::vector<Stored>(graph.nodes.size()), inputs.scalars} {
    if (inputs.scalars.size() != graph.scalars.size() || inputs.tensors.size() != graph.inputs.size()) {
      throw Error({.kind = ErrorKind::internal,
                   .function = graph.name,
                   .found = fmt::format("{} tensors, {} scalars", inputs.tensors.size(), inputs.scalars.size()),
                   .expected = fmt::format("{} tensors, {} scalars", graph.inputs.size(), graph.scalars.size())},
                  "the reference was given too few or too many inputs");
    }
    find_reachable();
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) take_input(i, inputs.tensors[i]);
    decide();
  }

  std::vector<TensorValue> run() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (hold_[id] == 0) continue;
      switch (graph_.node(id).kind) {
        case NodeKind::fold:
          run_fold(id);
          break;
        case NodeKind::scatter:
          run_scatter(id);
          break;
        default:
          run_value(id);
          break;
      }
      note_stored(context_.stored[id].count);
    }
    std::vector<TensorValue> results;
    for (const OutputInfo& output : graph_.outputs) results.push_back(read_output(output));
    return results;
  }

 private:
  i64 elements(AxisSet axes) const {
    i64 count = 1;
    for (const AxisId axis : axes) {
      if (extents_[axis] < 0) {
        throw Error({.function = graph_.name, .axis = graph_.axes[axis].name, .cure = "Give the axis an extent"},
                    "an axis has no extent");
      }
      count *= extents_[axis];
    }
    return count;
  }
  i64 elements(const std::vector<AxisId>& axes) const {
    AxisSet set;
    for (const AxisId axis : axes) set |= AxisSet::of(axis);
    return elements(set);
  }

  void note_stored(i64 count) {
    if (options_.statistics != nullptr) {
      options_.statistics->largest_stored = std::max(options_.statistics->largest_stored, count);
    }
  }
  void note_steps(const Pull& pull) {
    if (options_.statistics != nullptr) {
      options_.statistics->element_steps += pull.points() * static_cast<i64>(pull.instructions());
    }
  }

  void find_reachable() {
    reachable_.assign(graph_.nodes.size(), 0);
    for (const OutputInfo& output : graph_.outputs) reachable_[output.node] = 1;
    for (std::size_t id = graph_.nodes.size(); id-- > 0;) {
      if (reachable_[id] == 0) continue;
      for (const NodeId operand : graph_.operands(static_cast<NodeId>(id))) reachable_[operand] = 1;
    }
  }

  void take_input(std::size_t number, const TensorValue& tensor) {
    const InputInfo& input = graph_.inputs[number];
    if (input.node == no_node || reachable_[input.node] == 0) return;
    const int slots =
        input.monoid >= 0 ? static_cast<int>(graph_.monoids[static_cast<std::size_t>(input.monoid)].state.size()) : 1;
    Stored& stored = context_.stored[input.node];
    stored.shape(tensor.axes, extents_, slots);
    bool agree = tensor.extents.size() == tensor.axes.size() && tensor.value.size() == stored.data.size() &&
                 (tensor.bound.empty() || tensor.bound.size() == tensor.value.size()) &&
                 (tensor.undetermined.empty() || tensor.undetermined.size() == tensor.value.size());
    AxisSet axes;
    for (std::size_t d = 0; d < tensor.axes.size(); ++d) {
      axes |= AxisSet::of(tensor.axes[d]);
      agree = agree && tensor.extents[d] == extents_[tensor.axes[d]];
    }
    if (!agree || axes != graph_.node(input.node).axes) {
      throw Error({.kind = ErrorKind::internal, .function = graph_.name, .argument = input.name},
                  "an input of the reference does not have the axes and extents of the graph's");
    }
    for (std::size_t i = 0; i < tensor.value.size(); ++i) {
      stored.data[i] = {tensor.value[i], tensor.bound.empty() ? 0 : tensor.bound[i],
                        !tensor.undetermined.empty() && tensor.undetermined[i] != 0};
    }
  }

  static bool is_leaf(NodeKind kind) {
    return kind == NodeKind::input || kind == NodeKind::scalar || kind == NodeKind::constant ||
           kind == NodeKind::iota || kind == NodeKind::extent;
  }

  // States always are held. Other values are where they are read more than once, or along axes or at places of their
  // reader's, unless they are larger than anything that must be held: an operand of a contraction never is.
  void decide() {
    i64 limit = always_small;
    for (const InputInfo& input : graph_.inputs) {
      if (input.node != no_node && reachable_[input.node] != 0)
        limit = std::max(limit, elements(graph_.node(input.node).axes));
    }
    std::vector<int> readers(graph_.nodes.size());
    std::vector<char> elsewhere(graph_.nodes.size());
    for (const OutputInfo& output : graph_.outputs) {
      limit = std::max(limit, elements(output.axes));
      ++readers[output.node];
    }
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (reachable_[id] == 0) continue;
      const Node& node = graph_.node(id);
      if (node.kind == NodeKind::fold || node.kind == NodeKind::scatter) limit = std::max(limit, elements(node.axes));
      AxisSet around = node.axes | graph_.folded_axes(id);
      if (node.kind == NodeKind::scatter)
        around -= AxisSet::of(graph_.scatters[node.payload].axis) - graph_.folded_axes(id);
      const auto operands = graph_.operands(id);
      for (std::size_t k = 0; k < operands.size(); ++k) {
        ++readers[operands[k]];
        const bool moved = node.kind == NodeKind::view || (node.kind == NodeKind::gather && k == 0);
        if (moved || graph_.node(operands[k]).axes != around) elsewhere[operands[k]] = 1;
      }
    }
    hold_.assign(graph_.nodes.size(), 0);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.node(id);
      if (reachable_[id] == 0 || is_leaf(node.kind)) continue;
      const bool folds = node.kind == NodeKind::fold || node.kind == NodeKind::scatter;
      const bool asked_again = readers[id] > 1 || elsewhere[id] != 0;
      if (folds ||
          (asked_again && node.kind != NodeKind::attach && !is_view_of_leaf(id) && elements(node.axes) <= limit)) {
        hold_[id] = 1;
      }
    }
  }

  bool is_view_of_leaf(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::view) return false;
    const NodeId operand = graph_.operands(id)[0];
    return is_leaf(graph_.node(operand).kind) || graph_.is_state(operand) || is_view_of_leaf(operand);
  }

  // A product, also under a sign or a mask.
  bool is_product(NodeId id) const {
    if (graph_.node(id).kind != NodeKind::map) return false;
    switch (graph_.op(id)) {
      case ScalarOp::mul:
        return true;
      case ScalarOp::neg:
        return is_product(graph_.operands(id)[0]);
      case ScalarOp::where:
        return is_product(graph_.operands(id)[1]);
      default:
        return false;
    }
  }

  // Whether a monoid's lift reads the element's index.
  static bool reads_index(const Monoid& monoid) {
    return std::any_of(monoid.lift.values.begin(), monoid.lift.values.end(), [&](const ProgramValue& value) {
      return value.kind == ProgramValue::Kind::input && value.input == monoid.operand_count;
    });
  }

  void run_value(NodeId id) {
    Stored stored;
    stored.shape(listed(graph_.node(id).axes), extents_, 1);
    Pull pull(context_, stored.axes);
    const int value = pull.value(id);
    pull.run([&](i64 first, int count) { std::copy_n(pull[value].begin(), count, stored.data.begin() + first); });
    note_steps(pull);
    context_.stored[id] = std::move(stored);
  }

  void run_fold(NodeId id) {
    const Node& node = graph_.node(id);
    const FoldInfo& fold = graph_.fold(id);
    const Monoid& monoid = graph_.monoids[fold.monoid];
    const auto operands = graph_.operands(id);
    const std::size_t slots = monoid.state.size();
    Stored stored;
    stored.shape(listed(node.axes), extents_, static_cast<int>(slots));
    std::vector<AxisId> loop = stored.axes;
    loop.insert(loop.end(), fold.axes.begin(), fold.axes.end());
    Pull pull(context_, loop);
    std::vector<int> registers;
    if (fold.of_states) {
      for (std::size_t s = 0; s < slots; ++s) registers.push_back(pull.value(operands[0], static_cast<int>(s)));
    } else {
      for (const NodeId operand : operands) registers.push_back(pull.value(operand));
    }
    const bool indexed = !fold.axes.empty() && !fold.of_states && reads_index(monoid);
    const int index = indexed ? pull.index(fold.axes.front()) : -1;
    const i64 folded = elements(fold.axes);
    const auto accumulator = make_accumulator({.monoid = monoid,
                                               .element = node.dtype,
                                               .count = folded,
                                               .of_states = fold.of_states,
                                               .contraction = is_product(operands[0]),
                                               .honour_casts = options_.honour_casts});
    std::vector<Bounded> state(slots);
    i64 result = 0;
    i64 within = 0;
    const auto end = [&] {
      accumulator->end(state);
      for (std::size_t s = 0; s < slots; ++s) {
        stored.data[static_cast<std::size_t>(static_cast<i64>(s) * stored.count + result)] = state[s];
      }
      ++result;
      within = 0;
    };
    std::vector<Bounded> values(registers.size());
    pull.run([&](i64, int count) {
      for (int i = 0; i < count; ++i) {
        if (within == 0) accumulator->begin();
        const auto lane = static_cast<std::size_t>(i);
        const Bounded* taken = &pull[registers[0]][lane];
        if (registers.size() > 1) {
          for (std::size_t k = 0; k < registers.size(); ++k) values[k] = pull[registers[k]][lane];
          taken = values.data();
        }
        accumulator->take(taken, index < 0 ? 0 : static_cast<i64>(pull[index][lane].value));
        if (++within == folded) end();
      }
    });
    while (folded == 0 && result < stored.count) {  // nothing was folded: the identity
      accumulator->begin();
      end();
    }
    note_steps(pull);
    context_.stored[id] = std::move(stored);
  }

  void run_scatter(NodeId id) {
    const Node& node = graph_.node(id);
    const ScatterInfo& scatter = graph_.scatters[node.payload];
    const auto operands = graph_.operands(id);
    std::vector<AxisId> kept = listed(node.axes - AxisSet::of(scatter.axis));
    const i64 folded = elements(scatter.folded);
    const i64 extent = extents_[scatter.axis];
    std::vector<AxisId> loop = kept;
    loop.insert(loop.end(), scatter.folded.begin(), scatter.folded.end());
    kept.push_back(scatter.axis);
    Stored stored;
    stored.shape(std::move(kept), extents_, 1);
    Pull pull(context_, loop);
    const int values = pull.value(operands[0]);
    const int indices = pull.value(operands[1]);
    std::vector<BoundedSum> sums(static_cast<std::size_t>(stored.count));
    std::vector<char> unknown(static_cast<std::size_t>(extent == 0 ? 0 : stored.count / extent));
    pull.run([&](i64 first, int count) {
      for (int i = 0; i < count; ++i) {
        const auto lane = static_cast<std::size_t>(i);
        const i64 row = (first + i) / folded;
        const Bounded& index = pull[indices][lane];
        const auto at = static_cast<i64>(index.value);
        if (index.undetermined && extent > 0) unknown[static_cast<std::size_t>(row)] = 1;
        if (at >= 0 && at < extent) sums[static_cast<std::size_t>(row * extent + at)].add(pull[values][lane]);
      }
    });
    const Rounding rounding = rounding_of(node.dtype, options_.honour_casts);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      Bounded& result = stored.data[i];
      result = sums[i].result(static_cast<double>(sums[i].count()), rounding);
      result.value += 0.0;
      result.undetermined = result.undetermined || unknown[i / static_cast<std::size_t>(extent)] != 0;
    }
    note_steps(pull);
    context_.stored[id] = std::move(stored);
  }

  TensorValue read_output(const OutputInfo& output) {
    TensorValue result;
    result.dtype = output.dtype;
    result.axes = output.axes;
    for (const AxisId axis : output.axes) result.extents.push_back(extents_[axis]);
    const int slots = graph_.is_state(output.node) ? static_cast<int>(graph_.monoid_of(output.node).state.size()) : 1;
    Pull pull(context_, output.axes);
    std::vector<int> registers;
    for (int s = 0; s < slots; ++s) registers.push_back(pull.value(output.node, s));
    const i64 count = pull.points();
    const auto total = static_cast<std::size_t>(count * slots);
    result.value.resize(total);
    result.bound.resize(total);
    result.undetermined.resize(total);
    pull.run([&](i64 first, int lanes) {
      for (int s = 0; s < slots; ++s) {
        for (int i = 0; i < lanes; ++i) {
          const Bounded& value = pull[registers[static_cast<std::size_t>(s)]][static_cast<std::size_t>(i)];
          const auto at = static_cast<std::size_t>(s * count + first + i);
          result.value[at] = value.value;
          result.bound[at] = value.bound;
          result.undetermined[at] = value.undetermined ? 1 : 0;
        }
      }
    });
    note_steps(pull);
    return result;
  }

  const Graph& graph_;
  const EvaluateOptions& options_;
  Extents extents_;
  PullContext context_;
  std::vector<char> reachable_;
  std::vector<char> hold_;  // by NodeId
};

}  // namespace

std::vector<TensorValue> evaluate(const Graph& graph, const EvaluateInputs& inputs, EvaluateOptions options) {
  return Evaluation(graph, inputs, options).run();
}

}  // namespace tigon::dsl
