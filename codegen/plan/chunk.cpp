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
  constexpr std::size_t most = 12;
  std::vector<std::int64_t> lengths;
  for (std::int64_t length = 1; length < extent; length *= 2) lengths.push_back(length);
  if (lengths.size() > most) lengths.erase(lengths.begin(), lengths.end() - most);
  return lengths;
}

namespace {

// The first region of the strategy that the work has to compute.
std::optional<Region> region_of(const Work& work, const Strategy& strategy, const PlanOptions& options) {
  if (work.chunked.contains(strategy.axis) || work.extents[strategy.axis] <= strategy.chunk) return std::nullopt;
  return find_region(work, strategy.axis, strategy.bytes, options);
}

class Chunker {
 public:
  Chunker(Plan& plan, const Work& work, const Destinations& destinations, const Region& region,
          const Strategy& strategy, const std::vector<Strategy>& strategies, const schedule::DeviceModel& device,
          const PlanOptions& options)
      : plan_(plan),
        work_(work),
        graph_(*work.graph),
        destinations_(destinations),
        region_(region),
        strategy_(strategy),
        strategies_(strategies),
        device_(device),
        options_(options) {}

  std::variant<Built, schedule::Refusal> run() {
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
        if (merged(sink) && (graph_.node(sink).dtype == DType::boolean || rounds(sink))) {
          return schedule::Refusal{fmt::format("`{}` cannot be summed over chunks in {}", value_name(graph_, sink),
                                               name(graph_.node(sink).dtype))};
        }
      }
    }
    const auto idle = [](const dsl::AxisPass& pass) { return pass.sinks.empty(); };
    if (std::all_of(passes.passes.begin(), passes.passes.end(), idle)) {
      return schedule::Refusal{"no pass over the axis computes anything"};
    }
    current_ = work_;
    compute(region_.before);
    for (const dsl::AxisPass& pass : passes.passes) {
      if (pass.sinks.empty()) continue;
      std::vector<NodeId> hoisted;
      for (const NodeId node : sources_of(pass.hoisted)) {
        if (!in_memory(node)) hoisted.push_back(node);
      }
      compute(hoisted);
      loop(sources_of(pass.sinks));
    }
    rest();
    if (refusal_) return *refusal_;
    return Built{std::move(steps_), std::move(current_.stored)};
  }

 private:
  std::string illegal() const {
    const AxisId axis = strategy_.axis;
    for (const dsl::SplitRelation& split : graph_.splits) {
      if (split.whole == axis || split.outer == axis || split.inner == axis) return "the axis is part of a split";
    }
    for (const NodeId target : region_.targets) {
      if (work_.overwrites.contains(target)) return "a value of the region overwrites another";
    }
    return {};
  }

  // Lookups along the axis find their element in one chunk, and scatters over it add up chunk by chunk.
  bool merged(NodeId sink) const {
    const dsl::Node& n = graph_.node(sink);
    if (n.kind == NodeKind::gather) return !n.axes.contains(strategy_.axis);
    if (n.kind != NodeKind::scatter) return false;
    const std::vector<AxisId>& folded = graph_.scatters[n.payload].folded;
    return std::find(folded.begin(), folded.end(), strategy_.axis) != folded.end();
  }
  // A sum that grows chunk by chunk would be rounded each time.
  bool rounds(NodeId sink) const {
    return graph_.node(sink).kind == NodeKind::scatter && size_of(graph_.node(sink).dtype) <= 2;
  }

  // What goes to memory is never a widened copy or a view, unless the function wants that: kernels widen what they
  // read, and matmuls look for what lies below.
  std::vector<NodeId> sources_of(const std::vector<NodeId>& nodes) const {
    std::vector<NodeId> sources;
    for (const NodeId node : nodes) {
      const bool wanted = std::find(work_.targets.begin(), work_.targets.end(), node) != work_.targets.end();
      const NodeId source = wanted ? node : source_of(graph_, node);
      if (source != node && in_memory(source)) continue;
      if (std::find(sources.begin(), sources.end(), source) == sources.end()) sources.push_back(source);
    }
    return sources;
  }

  bool in_memory(NodeId node) const {
    return graph_.node(node).kind == NodeKind::input || current_.stored.contains(node);
  }

  // Does some work here and now.
  void append(const Work& work, const Destinations& destinations, const std::vector<Strategy>& strategies) {
    if (refusal_) return;
    auto built = build_steps(plan_, work, destinations, strategies, device_, options_);
    if (auto* refusal = std::get_if<schedule::Refusal>(&built)) {
      refusal_ = std::move(*refusal);
      return;
    }
    for (Step& step : std::get<Built>(built).steps) steps_.push_back(std::move(step));
    current_.stored = std::move(std::get<Built>(built).stored);
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
    append(work, destinations, strategies_);
  }

  // What the region's results are needed for. A sum that lies in its output's memory is finished there, in place: in
  // one go with all the rest, or, where the rest has regions of its own, after them.
  void rest() {
    Destinations destinations, in_place;
    Work last = current_;
    last.targets.clear();
    for (const NodeId target : work_.targets) {
      const auto destination = destinations_.find(target);
      if (delivered_.contains(target) || (destination == destinations_.end() && in_memory(target))) continue;
      last.targets.push_back(target);
      if (destination != destinations_.end()) destinations.insert(*destination);
    }
    if (!epilogues_.empty() && any_region(last)) {
      const auto is_epilogue = [&](NodeId target) { return epilogues_.contains(target); };
      last.targets.erase(std::remove_if(last.targets.begin(), last.targets.end(), is_epilogue), last.targets.end());
      for (const auto& [target, accumulator] : epilogues_) in_place.insert(destinations.extract(target));
      append(last, destinations, strategies_);
      last.stored = current_.stored;
      last.targets.clear();
      for (const auto& [target, destination] : in_place) last.targets.push_back(target);
      destinations = std::move(in_place);
    }
    for (const auto& [target, accumulator] : epilogues_) last.overwrites[target] = accumulator;
    if (!last.targets.empty()) append(last, destinations, epilogues_.empty() ? strategies_ : none_);
  }

  bool any_region(const Work& work) const {
    return std::any_of(strategies_.begin(), strategies_.end(),
                       [&](const Strategy& strategy) { return region_of(work, strategy, options_).has_value(); });
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
    for (const AxisId axis : layout) {
      if (work_.chunked.contains(axis)) buffer.chunked |= AxisSet::of(axis);
    }
    plan_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(plan_.buffers.size() - 1);
  }

  void loop(const std::vector<NodeId>& sinks) {
    if (refusal_) return;
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
      const bool carried = merged(sink) || (fold && graph_.folded_axes(sink).contains(strategy_.axis));
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
    auto built = build_steps(plan_, inside, destinations, strategies_, device_, options_);
    if (auto* refusal = std::get_if<schedule::Refusal>(&built)) {
      refusal_ = std::move(*refusal);
      return;
    }
    loop.body = std::move(std::get<Built>(built).steps);
    steps_.push_back({std::move(loop)});
    for (auto& [node, stored] : results) current_.stored[node] = std::move(stored);
  }

  void state_destination(NodeId sink, bool carried, Destination& destination) {
    const dsl::Monoid& monoid = graph_.monoid_of(sink);
    if (const auto own = destinations_.find(sink); own != destinations_.end()) {
      destination = own->second;
      delivered_.insert(sink);
      if (!carried || destination.mode == dsl::OutputMode::accumulate) return;
      for (std::size_t slot = 0; slot < monoid.state.size(); ++slot) {
        steps_.push_back({Fill{destination.slots[slot], monoid.identity[slot]}});
      }
      destination.mode = dsl::OutputMode::accumulate;
      return;
    }
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
               output != dsl::no_node && !epilogues_.contains(output)) {
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
  const std::vector<Strategy>& strategies_;
  const std::vector<Strategy> none_;
  const schedule::DeviceModel& device_;
  const PlanOptions& options_;
  Work current_;
  std::vector<Step> steps_;
  std::set<NodeId> delivered_;
  std::map<NodeId, NodeId> epilogues_;  // output -> the sum that grows in its memory
  std::optional<schedule::Refusal> refusal_;
};

}  // namespace

std::variant<Built, schedule::Refusal> build_steps(Plan& plan, const Work& work, const Destinations& destinations,
                                                   const std::vector<Strategy>& strategies,
                                                   const schedule::DeviceModel& device, const PlanOptions& options) {
  for (const Strategy& strategy : strategies) {
    if (const std::optional<Region> region = region_of(work, strategy, options)) {
      return Chunker(plan, work, destinations, *region, strategy, strategies, device, options).run();
    }
  }
  Body body(plan, device, options);
  Built built;
  built.steps = body.steps(work, destinations);
  built.stored = body.stored();
  return built;
}

}  // namespace tigon::plan
