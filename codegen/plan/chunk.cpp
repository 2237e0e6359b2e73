// What the region reads is computed first; each pass over the axis is a loop that carries folds as states or as sums in
// place; what reads the region follows.
#include "codegen/plan/chunk.hpp"

#include <set>

#include "dsl/levels.hpp"

namespace tigon::plan {
using dsl::AxisId;
using dsl::AxisSet;
using dsl::Graph;
using dsl::NodeId;
using dsl::NodeKind;

std::vector<std::int64_t> chunk_lengths(std::int64_t extent) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t length = 16; length < extent && lengths.size() < 12; length *= 2) lengths.push_back(length);
  return lengths;
}

namespace {

class Chunker {
 public:
  Chunker(Plan& plan, const Work& work, const Destinations& destinations, const Region& region,
          const Strategy& strategy, const schedule::DeviceModel& device, const PlanOptions& options)
      : plan_(plan),
        work_(work),
        graph_(*work.graph),
        destinations_(destinations),
        region_(region),
        strategy_(strategy),
        options_(options),
        body_(plan, device, options) {}

  std::variant<std::vector<Step>, schedule::Refusal> run() {
    if (const std::string reason = illegal(); !reason.empty()) return schedule::Refusal{reason};
    std::vector<bool> known(graph_.nodes.size(), false);
    for (const auto& [node, stored] : work_.stored) known[node] = true;
    for (const NodeId node : region_.before) known[node] = true;
    dsl::AxisOptions axis_options;
    axis_options.extents = work_.extents;
    auto choice = dsl::plan_axis(graph_, region_.targets, strategy_.axis, known, axis_options);
    if (const auto* refusal = std::get_if<dsl::AxisRefusal>(&choice)) return schedule::Refusal{refusal->reason};
    const dsl::AxisPlan& passes = std::get<dsl::AxisPlan>(choice);
    for (const dsl::AxisPass& pass : passes.passes) {
      for (const NodeId sink : pass.sinks) {
        const NodeKind kind = graph_.node(sink).kind;
        if (kind == NodeKind::gather && !graph_.node(sink).axes.contains(strategy_.axis)) {
          return schedule::Refusal{"a lookup along the chunked axis would have to be merged over chunks"};
        }
        if (kind == NodeKind::scatter) return schedule::Refusal{"a scatter inside the region"};
      }
    }
    current_ = work_;
    compute(region_.before);
    for (const dsl::AxisPass& pass : passes.passes) {
      if (pass.sinks.empty()) continue;
      std::vector<NodeId> hoisted;
      for (const NodeId node : pass.hoisted) {
        if (!in_memory(node)) hoisted.push_back(node);
      }
      compute(hoisted);
      loop(pass.sinks);
    }
    // The rest of the function.
    Destinations rest;
    Work last = current_;
    last.targets.clear();
    for (const NodeId target : work_.targets) {
      if (delivered_.contains(target)) continue;
      last.targets.push_back(target);
      rest[target] = destinations_.at(target);
    }
    for (const auto& [target, accumulator] : epilogues_) last.overwrites[target] = accumulator;
    append(body_.steps(last, rest));
    return std::move(steps_);
  }

  [[nodiscard]] const StoredValues& stored() const { return current_.stored; }

 private:
  std::string illegal() const {
    const AxisId axis = strategy_.axis;
    for (const dsl::SplitRelation& split : graph_.splits) {
      if (split.whole == axis || split.outer == axis || split.inner == axis) return "the axis is part of a split";
    }
    return {};
  }

  bool in_memory(NodeId node) const {
    return graph_.node(node).kind == NodeKind::input || current_.stored.contains(node);
  }

  void append(std::vector<Step> steps) {
    for (Step& step : steps) steps_.push_back(std::move(step));
  }

  // Stores these values in the workspace, or where the function wants them.
  void compute(const std::vector<NodeId>& nodes) {
    if (nodes.empty()) return;
    Work work = current_;
    work.targets = nodes;
    Destinations destinations;
    for (const NodeId node : nodes) {
      if (const auto found = destinations_.find(node); found != destinations_.end()) {
        destinations[node] = found->second;
        delivered_.insert(node);
      }
    }
    append(body_.steps(work, destinations));
    current_.stored = body_.stored();
  }

  NodeId contraction_finish(NodeId fold) const {
    for (NodeId id = fold + 1; id < graph_.nodes.size(); ++id) {
      if (graph_.node(id).kind == NodeKind::finish && graph_.operands(id)[0] == fold &&
          contraction_of(graph_, id, current_.extents, options_)) {
        return id;
      }
    }
    return dsl::no_node;
  }

  BufferId buffer(const std::string& name, DType dtype, const std::vector<AxisId>& layout, NodeId node) {
    Buffer buffer;
    buffer.name = name;
    buffer.dtype = dtype;
    buffer.axes = layout;
    buffer.node = node;
    plan_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(plan_.buffers.size() - 1);
  }

  void loop(const std::vector<NodeId>& sinks) {
    Work inside = current_;
    inside.extents[strategy_.axis] = std::min(strategy_.chunk, work_.extents[strategy_.axis]);
    inside.chunked |= AxisSet::of(strategy_.axis);
    inside.overwrites.clear();
    inside.targets.clear();
    Destinations destinations;
    StoredValues results;
    for (const NodeId sink : sinks) {
      const bool fold = graph_.node(sink).kind == NodeKind::fold;
      const NodeId finish = fold ? contraction_finish(sink) : dsl::no_node;
      const NodeId target = finish == dsl::no_node ? sink : finish;
      const bool carried = fold && graph_.folded_axes(sink).contains(strategy_.axis);
      Destination destination;
      destination.name = value_name(graph_, target);
      destination.layout = work_.layouts[target];
      if (fold && finish == dsl::no_node) {
        state_destination(sink, carried, destination);
      } else {
        value_destination(target, carried, destination);
      }
      results[target] = {destination.slots.empty() ? std::vector<BufferId>{destination.buffer} : destination.slots,
                         destination.layout, dsl::no_axis};
      inside.layouts[target] = destination.layout;
      inside.targets.push_back(target);
      destinations[target] = std::move(destination);
    }
    Loop loop;
    loop.axis = strategy_.axis;
    loop.chunk = strategy_.chunk;
    Body body = body_;
    loop.body = body.steps(inside, destinations);
    steps_.push_back({std::move(loop)});
    for (auto& [node, stored] : results) current_.stored[node] = std::move(stored);
  }

  void state_destination(NodeId sink, bool carried, Destination& destination) {
    const dsl::Monoid& monoid = graph_.monoid_of(sink);
    for (std::size_t slot = 0; slot < monoid.state.size(); ++slot) {
      const DType dtype = dtype_of_class(monoid.state[slot], graph_.node(sink).dtype);
      const std::string name =
          monoid.state.size() == 1 ? destination.name : fmt::format("{}_{}", destination.name, slot);
      destination.slots.push_back(buffer(name, dtype, destination.layout, sink));
      if (carried) steps_.push_back({Fill{destination.slots.back(), monoid.identity[slot]}});
    }
    destination.mode = carried ? dsl::OutputMode::accumulate : dsl::OutputMode::write;
  }

  void value_destination(NodeId target, bool carried, Destination& destination) {
    if (const auto own = destinations_.find(target); own != destinations_.end()) {
      destination = own->second;
      delivered_.insert(target);
    } else if (const NodeId output = carried ? sole_destination(graph_, destinations_, target) : dsl::no_node;
               output != dsl::no_node) {
      destination.buffer = destinations_.at(output).buffer;
      destination.layout = destinations_.at(output).layout;
      epilogues_[output] = target;
    } else {
      destination.buffer = buffer(destination.name, graph_.node(target).dtype, destination.layout, target);
    }
    if (!carried) return;
    if (destination.mode != dsl::OutputMode::accumulate) steps_.push_back({Fill{destination.buffer, 0}});
    destination.mode = dsl::OutputMode::accumulate;
  }

  Plan& plan_;
  const Work& work_;
  const Graph& graph_;
  const Destinations& destinations_;
  const Region& region_;
  Strategy strategy_;
  const PlanOptions& options_;
  Body body_;
  Work current_;
  std::vector<Step> steps_;
  std::set<NodeId> delivered_;
  std::map<NodeId, NodeId> epilogues_;  // output -> the sum that grows in its memory
};

}  // namespace

std::variant<std::vector<Step>, schedule::Refusal> chunked_steps(Plan& plan, const Work& work,
                                                                 const Destinations& destinations, const Region& region,
                                                                 const Strategy& strategy,
                                                                 const schedule::DeviceModel& device,
                                                                 const PlanOptions& options) {
  return Chunker(plan, work, destinations, region, strategy, device, options).run();
}

}  // namespace tigon::plan
