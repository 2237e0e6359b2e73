// Clusters become matmul steps and launches; neighbouring clusters that do not read each other share a launch.
#include "codegen/plan/body.hpp"

#include "dsl/scalar_table.hpp"
#include "tigon/error.hpp"

namespace tigon::plan {
using dsl::AxisId;
using dsl::AxisSet;
using dsl::Graph;
using dsl::NodeId;

namespace {

double size_of_axes(const dsl::Extents& extents, const std::vector<AxisId>& axes) {
  double size = 1;
  for (const AxisId axis : axes) size *= static_cast<double>(extents[axis]);
  return size;
}

// Kernel names are C identifiers.
std::string identifier(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain) {
      result += c;
    } else if (!result.empty() && result.back() != '_') {
      result += '_';
    }
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  return result.empty() ? "kernel" : result;
}

Counts count_launch(const Graph& graph, const dsl::Extents& extents) {
  Counts counts;
  for (const dsl::InputInfo& input : graph.inputs)
    counts.bytes_read += size_of_axes(extents, input.axes) * size_of(input.dtype);
  for (const dsl::OutputInfo& output : graph.outputs) {
    counts.bytes_written += size_of_axes(extents, output.axes) * size_of(output.dtype);
  }
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const dsl::Node& node = graph.node(id);
    double elements = 1;
    for (const AxisId axis : node.axes) elements *= static_cast<double>(extents[axis]);
    if (node.kind == dsl::NodeKind::map) {
      counts.flops += elements;
      counts.exponentials += elements * dsl::info(graph.op(id)).exponentials;
    }
    if (node.kind == dsl::NodeKind::fold) {
      for (const AxisId axis : graph.folded_axes(id)) elements *= static_cast<double>(extents[axis]);
      counts.flops += elements;
    }
  }
  return counts;
}

}  // namespace

BufferId Body::workspace_buffer(std::string name, DType dtype, std::vector<AxisId> axes, AxisSet chunked, NodeId node) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.dtype = dtype;
  buffer.node = node;
  for (const AxisId axis : axes) {
    if (chunked.contains(axis)) buffer.chunked |= AxisSet::of(axis);
  }
  buffer.axes = std::move(axes);
  plan_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(plan_.buffers.size() - 1);
}

AxisId Body::partition_axis(const schedule::PartitionCount& count, AxisSet chunked) {
  AxisSet rows;
  for (const AxisId axis : count.rows) rows |= AxisSet::of(axis);
  chunked = chunked & rows;
  for (const PartitionAxis& known : plan_.partition_axes) {
    if (known.count.rows == count.rows && known.count.unit == count.unit && known.count.limit == count.limit &&
        known.chunked == chunked)
      return known.axis;
  }
  if (plan_.axes.size() >= dsl::max_axes) {
    throw Error({.kind = ErrorKind::usage, .function = plan_.name, .cure = "Split the function in two"},
                fmt::format("the function and its plan need more than {} axes", dsl::max_axes));
  }
  const auto axis = static_cast<AxisId>(plan_.axes.size());
  std::string name = "partition";
  if (!plan_.partition_axes.empty()) name += fmt::format("'{}'", plan_.partition_axes.size() + 1);
  if (name.back() == '\'') name.pop_back();
  plan_.axes.push_back({.name = name});
  plan_.planned.push_back(count.count(plan_.planned));
  plan_.partition_axes.push_back({axis, count, chunked});
  return axis;
}

NodeId sole_destination(const Graph& graph, const Destinations& destinations, NodeId node) {
  NodeId at = node;
  for (int length = 0; length < 4; ++length) {
    if (const auto found = destinations.find(at); found != destinations.end() && at != node) {
      const bool fits = graph.node(at).dtype == graph.node(node).dtype &&
                        graph.node(at).axes == graph.node(node).axes && found->second.mode == dsl::OutputMode::write &&
                        found->second.slots.empty();
      return fits ? at : dsl::no_node;
    }
    NodeId reader = dsl::no_node;
    for (NodeId id = at + 1; id < graph.nodes.size(); ++id) {
      const auto operands = graph.operands(id);
      if (std::find(operands.begin(), operands.end(), at) == operands.end()) continue;
      if (reader != dsl::no_node || graph.node(id).kind != dsl::NodeKind::map) return dsl::no_node;
      reader = id;
    }
    if (reader == dsl::no_node) return dsl::no_node;
    at = reader;
  }
  return dsl::no_node;
}

std::vector<Step> Body::steps(Work work, const Destinations& destinations) {
  work.axes = &plan_.axes;
  // Values of earlier steps may still lie in partitions, whose axes came after the graph's.
  for (std::size_t axis = work.extents.size(); axis < plan_.axes.size(); ++axis)
    work.extents.push_back(plan_.planned[axis]);
  homes_.clear();
  for (NodeId id = 0; id < work.graph->nodes.size() && !options_.unfused; ++id) {
    if (work.stored.contains(id) || destinations.contains(id)) continue;
    if (!contraction_of(*work.graph, id, work.extents, options_)) continue;
    const NodeId home = sole_destination(*work.graph, destinations, id);
    if (home == dsl::no_node || work.overwrites.contains(home)) continue;
    homes_[id] = home;
    work.overwrites[home] = id;
    work.layouts[id] = destinations.at(home).layout;
  }
  const Clustering clustering = cluster(work, device_, options_);
  plan_.notes.insert(plan_.notes.end(), clustering.notes.begin(), clustering.notes.end());
  plan_.predictions += clustering.predictions;
  stored_ = work.stored;
  std::vector<Step> result;
  find_reusable(work, clustering);
  std::vector<const Cluster*> pending;  // kernels that can share a launch
  const auto flush = [&] {
    if (!pending.empty()) result.push_back(launch_step(work, pending, destinations));
    pending.clear();
  };
  for (const Cluster& cluster : clustering.clusters) {
    if (cluster.matmul) {
      flush();
      result.push_back(matmul_step(work, cluster, destinations));
      continue;
    }
    const bool independent = std::none_of(pending.begin(), pending.end(), [&](const Cluster* earlier) {
      const auto overlaps = [](const std::vector<NodeId>& reads, const std::vector<NodeId>& sinks, const Work& w) {
        return std::any_of(sinks.begin(), sinks.end(), [&](NodeId sink) {
          const auto overwritten = w.overwrites.find(sink);
          return std::find(reads.begin(), reads.end(), sink) != reads.end() ||
                 (overwritten != w.overwrites.end() &&
                  std::find(reads.begin(), reads.end(), overwritten->second) != reads.end());
        });
      };
      return overlaps(cluster.reads, earlier->sinks, work) || overlaps(earlier->reads, cluster.sinks, work);
    });
    if (!independent || options_.unfused || pending.size() >= 64) flush();
    pending.push_back(&cluster);
    current_cluster_ = static_cast<std::size_t>(&cluster - clustering.clusters.data());
  }
  flush();
  for (const NodeId target : std::exchange(detours_, {})) {
    Cluster copy;
    copy.sinks = {target};
    copy.reads = {target};
    work.overwrites.erase(target);
    result.push_back(launch_step(work, {&copy}, destinations));
  }
  // A target that is a state and still lies in partitions is merged into its place.
  for (const NodeId target : work.targets) {
    if (!stored_.contains(target) || stored_.at(target).partition == dsl::no_axis) continue;
    Cluster merge;
    merge.sinks = {target};
    merge.reads = {target};
    result.push_back(launch_step(work, {&merge}, destinations, true));
  }
  return result;
}

void Body::find_reusable(const Work& work, const Clustering& clustering) {
  last_reader_.clear();
  current_cluster_ = 0;
  if (options_.unfused) return;
  for (std::size_t i = 0; i < clustering.clusters.size(); ++i) {
    for (const NodeId node : clustering.clusters[i].reads) {
      const bool wanted = std::find(work.targets.begin(), work.targets.end(), node) != work.targets.end();
      if (!work.stored.contains(node) && !wanted) last_reader_[node] = i;
    }
  }
}

Step Body::matmul_step(const Work& work, const Cluster& cluster, const Destinations& destinations) {
  const Contraction& contraction = *cluster.matmul;
  const NodeId node = contraction.result;
  Matmul step;
  step.name = value_name(*work.graph, node);
  step.chunked = work.chunked;
  step.a = stored_.at(contraction.a).slots[0];
  step.b = stored_.at(contraction.b).slots[0];
  std::vector<AxisId> layout = work.layouts[node];
  if (const auto destination = destinations.find(node); destination != destinations.end()) {
    step.c = destination->second.buffer;
    layout = destination->second.layout;
    step.accumulate = destination->second.mode == dsl::OutputMode::accumulate;
  } else if (const auto home = homes_.find(node); home != homes_.end()) {
    step.c = destinations.at(home->second).buffer;
    layout = destinations.at(home->second).layout;
  } else {
    step.c = workspace_buffer(step.name, work.graph->node(node).dtype, layout, work.chunked, node);
  }
  double volume = 1;
  for (const ContractionAxis& axis : contraction.axes) {
    MatmulAxis entry{.axis = axis.axis, .a = axis.a, .b = axis.b, .c = {}};
    if (axis.axis_class != ContractionAxis::Class::k) entry.c.axis = axis.axis;
    step.axes.push_back(entry);
    volume *= static_cast<double>(work.extents[axis.axis]);
  }
  for (const NodeId operand : {contraction.a, contraction.b}) {
    step.counts.bytes_read +=
        size_of_axes(work.extents, stored_.at(operand).layout) * size_of(work.graph->node(operand).dtype);
  }
  step.counts.bytes_written = size_of_axes(work.extents, layout) * size_of(work.graph->node(node).dtype);
  step.counts.flops = 2 * volume;
  step.predicted_ns =
      std::max(cluster.predicted_ns, (step.counts.bytes_read + step.counts.bytes_written) * device_.memory_byte_ns);
  if (step.accumulate) step.predicted_ns += step.counts.bytes_written * device_.memory_byte_ns;
  stored_[node] = {{step.c}, layout, dsl::no_axis};
  return {std::move(step)};
}

bool Body::read_later(const Work& work, NodeId node) const {
  for (NodeId id = node + 1; id < work.graph->nodes.size(); ++id) {
    const auto operands = work.graph->operands(id);
    if (std::find(operands.begin(), operands.end(), node) != operands.end()) return true;
  }
  return false;
}

// A result may lie in the memory of a workspace value that nobody reads after this launch.
void Body::reuse_dying_input(const Work& work, const std::vector<const Cluster*>& clusters, KernelPieces& pieces,
                             std::size_t output_number) const {
  dsl::OutputInfo& output = pieces.request.graph.outputs[output_number];
  if (pieces.request.graph.is_state(output.node)) return;
  for (std::size_t i = 0; i < pieces.extracted.inputs.size(); ++i) {
    const NodeId node = pieces.extracted.inputs[i];
    const auto last = last_reader_.find(node);
    if (last == last_reader_.end() || last->second > current_cluster_) continue;
    const Stored& stored = stored_.at(node);
    if (stored.slots.size() != 1 || stored.partition != dsl::no_axis) continue;
    if (plan_.buffers[stored.slots[0]].home != Home::workspace) continue;
    const auto taken = std::find(pieces.request.in_place.begin(), pieces.request.in_place.end(), static_cast<int>(i));
    const auto readers = std::count_if(clusters.begin(), clusters.end(), [&](const Cluster* cluster) {
      return std::find(cluster->reads.begin(), cluster->reads.end(), node) != cluster->reads.end();
    });
    if (taken != pieces.request.in_place.end() || readers != 1) continue;
    if (work.graph->node(node).dtype != output.dtype ||
        !(work.graph->node(node).axes == pieces.request.graph.node(output.node).axes)) {
      continue;
    }
    const std::vector<AxisId> before = output.axes;
    output.axes = stored.layout;
    pieces.request.in_place[output_number] = static_cast<int>(i);
    const std::vector<int> unsafe = schedule::unsafe_in_place(pieces.request, device_);
    if (std::find(unsafe.begin(), unsafe.end(), static_cast<int>(output_number)) == unsafe.end()) return;
    output.axes = before;
    pieces.request.in_place[output_number] = -1;
  }
}

Step Body::launch_step(const Work& work, const std::vector<const Cluster*>& clusters, const Destinations& destinations,
                       bool whole) {
  std::vector<NodeId> sinks;
  std::vector<std::vector<int>> parts;
  double predicted = device_.launch_ns;
  for (const Cluster* cluster : clusters) {
    parts.emplace_back();
    for (const NodeId sink : cluster->sinks) {
      parts.back().push_back(static_cast<int>(sinks.size()));
      sinks.push_back(sink);
    }
    predicted += cluster->predicted_ns;
  }
  Work current = work;
  current.extents.resize(plan_.axes.size());
  for (std::size_t axis = work.extents.size(); axis < plan_.axes.size(); ++axis)
    current.extents[axis] = plan_.planned[axis];
  KernelPieces pieces = kernel_request(current, sinks, stored_);
  pieces.request.parts = parts;
  pieces.request.whole = whole;
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    dsl::OutputInfo& output = pieces.request.graph.outputs[i];
    if (const auto found = destinations.find(sinks[i]); found != destinations.end()) {
      output.axes = found->second.layout;
      if (found->second.mode == dsl::OutputMode::accumulate) output.mode = dsl::OutputMode::accumulate;
    }
    const auto overwritten = work.overwrites.find(sinks[i]);
    if (overwritten == work.overwrites.end()) {
      if (!destinations.contains(sinks[i])) reuse_dying_input(work, clusters, pieces, i);
      continue;
    }
    const auto& inputs = pieces.extracted.inputs;
    const auto input = std::find(inputs.begin(), inputs.end(), overwritten->second);
    if (input == inputs.end()) continue;  // not read here: an ordinary store into the argument's buffer
    const auto number = static_cast<std::size_t>(input - inputs.begin());
    pieces.request.in_place[i] = static_cast<int>(number);
  }

  for (const int output : schedule::unsafe_in_place(pieces.request, device_)) {
    const auto at = static_cast<std::size_t>(output);
    // The piece's own names may bear numbers, where an input has the same.
    const auto& results = work.graph->outputs;
    const auto result =
        std::find_if(results.begin(), results.end(), [&](const auto& info) { return info.node == sinks[at]; });
    const std::string& name = result != results.end() ? result->name : pieces.request.graph.outputs[at].name;
    if (work.graph->node(work.overwrites.at(sinks[at])).kind != dsl::NodeKind::input) {
      // A sum made in the target's own memory turns out to be read elsewhere too: the target is copied there at the
      // end.
      pieces.request.in_place[at] = -1;
      detours_.push_back(sinks[at]);
      continue;
    }
    throw Error({.kind = ErrorKind::usage,
                 .function = plan_.name,
                 .argument = name,
                 .cure = "Return it as an output of its own"},
                fmt::format("`{}` cannot overwrite its input: other elements still read the old values", name));
  }

  // Results that no step of the plan reads and that outgrow the cache need not pass through it.
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    const dsl::OutputInfo& output = pieces.request.graph.outputs[i];
    const bool result = destinations.contains(sinks[i]) && !read_later(work, sinks[i]);
    const double bytes = size_of_axes(current.extents, output.axes) * size_of(output.dtype);
    pieces.request.streaming[i] = result && bytes >= device_.streaming_bytes && pieces.request.in_place[i] < 0 &&
                                  output.mode == dsl::OutputMode::write && !pieces.request.graph.is_state(output.node);
  }

  Kernel kernel;
  std::string label = plan_.name + "_" + value_name(*work.graph, sinks[0]);
  if (sinks.size() > 1) label += fmt::format("_and_{}_more", sinks.size() - 1);
  kernel.name = identifier(label);
  if (kernel.name.size() > 60) kernel.name.resize(60);
  kernel.name += fmt::format("_{}", plan_.kernels.size());
  // The text's own name says what it stores, not where it stands: equal kernels are compiled once.
  std::string text_name = identifier(plan_.name + "_" + pieces.request.graph.outputs[0].name);
  if (text_name.size() > 60) text_name.resize(60);
  schedule::Offer offer = schedule::schedule(pieces.request, device_, text_name);
  if (const auto* refusal = std::get_if<schedule::Refusal>(&offer)) {
    throw Error({.kind = ErrorKind::internal, .function = plan_.name},
                fmt::format("no schedule for kernel {}: {}", kernel.name, refusal->reason));
  }
  kernel.scheduled = std::get<schedule::Scheduled>(std::move(offer));
  const dsl::SourceLocation& location = pieces.request.graph.locations[work.graph->node(sinks[0]).location];
  if (location.line > 0) kernel.provenance = fmt::format("{}:{}", location.file, location.line);

  Launch launch;
  launch.kernel = static_cast<std::uint32_t>(plan_.kernels.size());
  launch.chunked = work.chunked;
  launch.predicted_ns = predicted;
  launch.counts = count_launch(pieces.request.graph, current.extents);
  launch.buffers.assign(kernel.scheduled.nest.parameters.size(), no_buffer);
  for (std::size_t i = 0; i < pieces.extracted.inputs.size(); ++i) {
    const Stored& stored = stored_.at(pieces.extracted.inputs[i]);
    const auto& parameters = kernel.scheduled.input_parameters[i];
    for (std::size_t slot = 0; slot < parameters.size(); ++slot) launch.buffers[parameters[slot]] = stored.slots[slot];
  }
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (const int output : parts[part]) {
      const auto at = static_cast<std::size_t>(output);
      const NodeId node = sinks[at];
      const dsl::OutputInfo& info = pieces.request.graph.outputs[at];
      Stored stored{{}, info.axes, dsl::no_axis};
      if (kernel.scheduled.outputs[at].partial) {
        stored.partition = partition_axis(kernel.scheduled.partitions[part], work.chunked);
        stored.layout.insert(stored.layout.begin(), stored.partition);
      }
      const auto& parameters = kernel.scheduled.output_parameters[at];
      for (const loops::ParameterId parameter : parameters) {
        BufferId buffer = no_buffer;
        if (pieces.request.in_place[at] >= 0) {
          buffer = launch.buffers[parameter];
        } else if (const auto found = destinations.find(node);
                   found != destinations.end() && stored.partition == dsl::no_axis &&
                   std::find(detours_.begin(), detours_.end(), node) == detours_.end()) {
          buffer = found->second.slots.empty() ? found->second.buffer : found->second.slots[stored.slots.size()];
        } else {
          const loops::Parameter& p = kernel.scheduled.nest.parameters[parameter];
          buffer = workspace_buffer(p.name, p.dtype, stored.layout, work.chunked, node);
        }
        launch.buffers[parameter] = buffer;
        stored.slots.push_back(buffer);
      }
      stored_[node] = std::move(stored);
    }
  }
  // What has been overwritten is no longer in memory.
  for (const int input : pieces.request.in_place) {
    if (input < 0) continue;
    const NodeId node = pieces.extracted.inputs[static_cast<std::size_t>(input)];
    if (work.graph->node(node).kind != dsl::NodeKind::input) stored_.erase(node);
  }
  for (const std::uint32_t scalar : kernel.scheduled.scalar_inputs)
    launch.scalars.push_back(pieces.extracted.scalars[scalar]);
  kernel.graph = std::move(pieces.request.graph);
  plan_.kernels.push_back(std::move(kernel));
  return {std::move(launch)};
}

}  // namespace tigon::plan
