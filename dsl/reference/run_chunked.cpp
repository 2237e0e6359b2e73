// Chunk loops over nested axes: the recursion that plan_axis describes, with each value's life in memory.
#include "dsl/reference/run_chunked.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "dsl/reference/evaluate_cone.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl {
namespace {

struct Refused {
  std::string reason;
};

using Known = std::vector<const Block*>;  // by NodeId; null: not in memory

class Runner {
 public:
  Runner(const Graph& graph, const EvaluateInputs& inputs, const ChunkedOptions& options)
      : graph_(graph),
        options_(options),
        extents_(resolve_extents(graph, inputs.extents)),
        context_{graph_, extents_, inputs.scalars},
        inputs_(inputs) {
    context_.check_held = [this](NodeId id, const Ranges& ranges) { check_held(id, ranges); };
    result_.passes.resize(options.axes.size());
    find_accumulators();
  }

  ChunkedRun run() {
    Ranges ranges;
    for (const i64 extent : extents_) ranges.push_back({0, extent});
    Known known(graph_.nodes.size());
    std::vector<std::unique_ptr<Block>> kept;
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const InputInfo& input = graph_.inputs[i];
      const std::size_t slots =
          input.monoid < 0 ? 1 : graph_.monoids[static_cast<std::size_t>(input.monoid)].state.size();
      kept.push_back(std::make_unique<Block>(input.axes, ranges, slots, nullptr, nullptr));
      kept.back()->data = inputs_.tensors[i].value;
      known[input.node] = kept.back().get();
    }
    std::vector<ConeTarget> targets;
    for (const OutputInfo& output : graph_.outputs) {
      if (find(targets, output.node) != nullptr) continue;
      kept.push_back(new_destination(context_, output.node, ranges, false));
      targets.push_back({output.node, kept.back().get(), false});
    }
    try {
      run(targets, 0, ranges, known, true);
    } catch (const Refused& refused) {
      result_ = {};
      result_.refusal = refused.reason;
      return std::move(result_);
    }
    for (const OutputInfo& output : graph_.outputs) read_output(output, *find(targets, output.node)->destination);
    result_.contraction_work = context_.contraction_work;
    result_.peak = context_.peak;
    std::sort(result_.stored.begin(), result_.stored.end());
    return std::move(result_);
  }

 private:
  static const ConeTarget* find(const std::vector<ConeTarget>& targets, NodeId node) {
    for (const ConeTarget& target : targets)
      if (target.node == node) return &target;
    return nullptr;
  }

  // `main`: not the loops that compute hoisted values or epilogues.
  void run(const std::vector<ConeTarget>& targets, std::size_t depth, const Ranges& ranges, Known known, bool main) {
    if (targets.empty()) return;
    if (depth == options_.axes.size()) return evaluate_cone(context_, targets, ranges, known);
    const auto [axis, size] = options_.axes[depth];
    const AxisPlan& plan = plan_of(targets, depth, ranges, known);
    if (main) note_passes(plan, depth);
    std::map<NodeId, std::unique_ptr<Block>> own;
    for (std::size_t k = 0; k < plan.passes.size(); ++k) {
      const AxisPass& pass = plan.passes[k];
      hoist(pass, depth, ranges, known, own);
      std::vector<ConeTarget> body;
      for (const NodeId sink : pass.sinks) {
        const bool over_axis = !graph_.node(sink).axes.contains(axis);
        if (const ConeTarget* target = find(targets, sink)) {
          body.push_back({sink, target->destination, target->partial || over_axis});
        } else {
          own[sink] = new_destination(context_, sink, ranges, !becomes_output_[sink]);
          body.push_back({sink, own[sink].get(), over_axis});
        }
      }
      Ranges chunk = ranges;
      for (i64 first = ranges[axis].first; first < ranges[axis].end; first += size) {
        chunk[axis] = {first, std::min(first + size, ranges[axis].end)};
        run(body, depth + 1, chunk, known, main);
      }
      for (const ConeTarget& sink : body) {
        const ConeTarget* target = find(targets, sink.node);
        if (target == nullptr || !target->partial) known[sink.node] = sink.destination;
      }
      release(plan, k, known, own);
    }
    std::vector<ConeTarget> after;
    for (const NodeId id : plan.after) after.push_back(*find(targets, id));
    run(after, depth + 1, ranges, known, false);
  }

  void hoist(const AxisPass& pass, std::size_t depth, const Ranges& ranges, Known& known,
             std::map<NodeId, std::unique_ptr<Block>>& own) {
    std::vector<ConeTarget> wanted;
    for (const NodeId id : pass.hoisted) {
      if (known[id] != nullptr) continue;
      own[id] = new_destination(context_, id, ranges, true);
      wanted.push_back({id, own[id].get(), false});
    }
    run(wanted, depth + 1, ranges, known, false);
    for (const ConeTarget& target : wanted) known[target.node] = target.destination;
  }

  // Frees hoisted values that no later pass lists. Folds and stores stay: epilogues may read them.
  static void release(const AxisPlan& plan, std::size_t pass, Known& known,
                      std::map<NodeId, std::unique_ptr<Block>>& own) {
    for (const NodeId id : plan.passes[pass].hoisted) {
      bool later = false;
      for (std::size_t k = pass + 1; k < plan.passes.size(); ++k) {
        const auto& hoisted = plan.passes[k].hoisted;
        later = later || std::binary_search(hoisted.begin(), hoisted.end(), id);
      }
      const auto found = own.find(id);
      if (later || found == own.end()) continue;
      known[id] = nullptr;
      own.erase(found);
    }
  }

  const AxisPlan& plan_of(const std::vector<ConeTarget>& targets, std::size_t depth, const Ranges& ranges,
                          const Known& known) {
    std::vector<NodeId> key{static_cast<NodeId>(depth)};
    std::vector<NodeId> nodes;
    for (const ConeTarget& target : targets) nodes.push_back(target.node);
    key.insert(key.end(), nodes.begin(), nodes.end());
    key.push_back(no_node);
    std::vector<bool> in_memory(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (known[id] == nullptr) continue;
      in_memory[id] = true;
      key.push_back(id);
    }
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    AxisOptions axis_options;
    axis_options.store_large = options_.store_large;
    for (std::size_t d = depth + 1; d < options_.axes.size(); ++d)
      axis_options.rest |= AxisSet::of(options_.axes[d].axis);
    for (const Range& range : ranges) axis_options.extents.push_back(range.size());
    auto plan = plan_axis(graph_, nodes, options_.axes[depth].axis, in_memory, axis_options);
    if (auto* refusal = std::get_if<AxisRefusal>(&plan)) throw Refused{std::move(refusal->reason)};
    return plans_.emplace(std::move(key), std::get<AxisPlan>(std::move(plan))).first->second;
  }

  void note_passes(const AxisPlan& plan, std::size_t depth) {
    ChunkedPasses& most = result_.passes[depth];
    const auto heavy = std::count_if(plan.passes.begin(), plan.passes.end(), [](const AxisPass& p) { return p.heavy; });
    most.passes = std::max(most.passes, static_cast<int>(plan.passes.size()));
    most.heavy = std::max(most.heavy, static_cast<int>(heavy));
    for (const NodeId id : plan.stored)
      if (std::find(result_.stored.begin(), result_.stored.end(), id) == result_.stored.end())
        result_.stored.push_back(id);
  }

  // A one-slot fold that reaches an output by single-use maps of its shape accumulates in the output's buffer.
  void find_accumulators() {
    becomes_output_.assign(graph_.nodes.size(), false);
    std::vector<int> readers(graph_.nodes.size());
    std::vector<NodeId> reader(graph_.nodes.size(), no_node);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      for (const NodeId operand : graph_.operands(id)) {
        ++readers[operand];
        reader[operand] = id;
      }
    }
    std::vector<char> is_output(graph_.nodes.size());
    for (const OutputInfo& output : graph_.outputs) is_output[output.node] = 1;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const Node& n = graph_.node(id);
      if (n.kind != NodeKind::scatter && (n.kind != NodeKind::fold || graph_.monoid_of(id).state.size() != 1)) continue;
      NodeId at = id;
      while (is_output[at] == 0 && readers[at] == 1) {
        const Node& next = graph_.node(reader[at]);
        const bool elementwise =
            next.kind == NodeKind::map || next.kind == NodeKind::cast || next.kind == NodeKind::finish;
        if (!elementwise || next.axes != n.axes) break;
        at = reader[at];
      }
      becomes_output_[id] = is_output[at] != 0;
    }
  }

  void check_held(NodeId id, const Ranges& ranges) const {
    for (const ChunkedAxis& chunked : options_.axes) {
      if (!graph_.node(id).axes.contains(chunked.axis) || ranges[chunked.axis].size() <= chunked.size) continue;
      throw Error({.kind = ErrorKind::internal,
                   .axis = graph_.axes[chunked.axis].name,
                   .found = std::to_string(ranges[chunked.axis].size()),
                   .expected = "at most " + std::to_string(chunked.size)},
                  "node " + graph_.name_of(id) + " is held at more of a chunked axis than a chunk");
    }
  }

  void read_output(const OutputInfo& output, const Block& block) {
    TensorValue value;
    value.dtype = output.dtype;
    value.axes = output.axes;
    Ranges ranges;
    for (const i64 extent : extents_) ranges.push_back({0, extent});
    for (const AxisId axis : output.axes) value.extents.push_back(extents_[axis]);
    Point point{};
    for (std::size_t s = 0; s < block.slots(); ++s)
      for_each_point(output.axes, ranges, point, [&] { value.value.push_back(block.data[block.at(point, s)]); });
    result_.outputs.push_back(std::move(value));
  }

  const Graph& graph_;
  const ChunkedOptions& options_;
  Extents extents_;
  ConeContext context_;
  const EvaluateInputs& inputs_;
  ChunkedRun result_;
  std::map<std::vector<NodeId>, AxisPlan> plans_;
  std::vector<bool> becomes_output_;
};

}  // namespace

ChunkedRun run_chunked(const Graph& graph, const EvaluateInputs& inputs, const ChunkedOptions& options) {
  return Runner(graph, inputs, options).run();
}

}  // namespace tigon::dsl
