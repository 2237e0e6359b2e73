// Copies the nodes between stored values and sinks, each with its entry of the payload tables.
#include "codegen/plan/extract.hpp"

#include <set>

#include "tigon/error.hpp"

namespace tigon::plan {
using dsl::AxisId;
using dsl::AxisSet;
using dsl::Graph;
using dsl::Node;
using dsl::NodeId;
using dsl::NodeKind;

namespace {

// The user's, the input's or the output's name; else, with `made` set, what kind of value it is.
std::string base_name(const Graph& graph, NodeId node, bool& made) {
  made = false;
  const Node& n = graph.node(node);
  if (n.kind == NodeKind::input) return graph.inputs[n.payload].name;
  std::string name = graph.name_of(node);
  if (!name.empty() && name[0] != '%') return name;
  for (const dsl::OutputInfo& output : graph.outputs) {
    if (output.node == node) return output.name;
  }
  made = true;
  const NodeId state = n.kind == NodeKind::finish ? graph.operands(node)[0] : node;
  return graph.is_state(state) ? graph.monoid_of(state).name : "value";
}

// "layers[3].up" without the index: the kernels of equal layers then have equal texts.
std::string without_indices(const std::string& path) {
  std::string result;
  bool inside = false;
  for (const char c : path) {
    if (c == '[') inside = true;
    if (!inside) result += c;
    if (c == ']') inside = false;
  }
  return result;
}

}  // namespace

std::string value_name(const Graph& graph, NodeId node) {
  bool made = false;
  const std::string name = base_name(graph, node, made);
  return made ? fmt::format("{}_{}", name, node) : name;
}

namespace {

class Extractor {
 public:
  Extractor(const Graph& outer, const std::vector<dsl::AxisInfo>& axes, const StoredValues& stored)
      : outer_(outer), stored_(stored), copy_(outer.nodes.size(), dsl::no_node) {
    Graph& g = result_.graph;
    g.name = outer.name;
    g.axes = axes;
    g.splits = outer.splits;
    g.equals = outer.equals;
    g.monoids = outer.monoids;
    g.locations = outer.locations;
  }

  Extracted run(const std::vector<Sink>& sinks) {
    mark(sinks);
    for (NodeId id = first_; id < needed_.size(); ++id) {
      if (needed_[id]) copy(id);
    }
    for (const Sink& sink : sinks) {
      dsl::OutputInfo output;
      output.name = local_name(sink.node);
      output.node = copy_[sink.node];
      output.dtype = outer_.node(sink.node).dtype;
      output.axes = sink.layout;
      output.mode = sink.mode;
      result_.graph.outputs.push_back(output);
    }
    for (const dsl::NamedNode& named : outer_.names) {
      if (named.node < copy_.size() && copy_[named.node] != dsl::no_node) {
        result_.graph.names.push_back({copy_[named.node], without_indices(named.name)});
      }
    }
    std::sort(result_.graph.names.begin(), result_.graph.names.end(),
              [](const dsl::NamedNode& a, const dsl::NamedNode& b) { return a.node < b.node; });
    return std::move(result_);
  }

 private:
  // Names inside the kernel count what it stores and reads, so that a kernel's text does not depend on where it stands.
  std::string local_name(NodeId id) {
    bool made = false;
    const std::string base = without_indices(base_name(outer_, id, made));
    std::string name = base;
    for (int number = 2; !names_.insert(name).second; ++number) name = fmt::format("{}_{}", base, number);
    return name;
  }

  bool is_boundary(NodeId id) const {
    const NodeKind kind = outer_.node(id).kind;
    return kind == NodeKind::input || stored_.contains(id);
  }

  // Nodes lie between the first one needed and the last sink.
  void mark(const std::vector<Sink>& sinks) {
    NodeId last = 0;
    for (const Sink& sink : sinks) last = std::max(last, sink.node);
    needed_.assign(last + 1, false);
    for (const Sink& sink : sinks) needed_[sink.node] = true;
    first_ = last;
    for (const Sink& sink : sinks) first_ = std::min(first_, sink.node);
    for (NodeId id = last + 1; id-- > first_;) {
      if (!needed_[id] || is_boundary(id)) continue;
      for (const NodeId operand : outer_.operands(id)) {
        needed_[operand] = true;
        first_ = std::min(first_, operand);
      }
    }
  }

  NodeId add(Node node, const std::vector<NodeId>& operands) {
    Graph& g = result_.graph;
    node.first_operand = static_cast<std::uint32_t>(g.operand_ids.size());
    node.operand_count = static_cast<std::uint16_t>(operands.size());
    g.operand_ids.insert(g.operand_ids.end(), operands.begin(), operands.end());
    g.nodes.push_back(node);
    return static_cast<NodeId>(g.nodes.size() - 1);
  }

  void copy(NodeId id) {
    if (is_boundary(id)) {
      copy_[id] = boundary(id);
      return;
    }
    Node node = outer_.node(id);
    if (node.kind == NodeKind::scalar) {
      result_.scalars.push_back(node.payload);
      result_.graph.scalars.push_back(outer_.scalars[node.payload]);
      node.payload = static_cast<std::uint32_t>(result_.graph.scalars.size() - 1);
      copy_[id] = add(node, {});
      result_.graph.scalars.back().node = copy_[id];
      return;
    }
    std::vector<NodeId> operands;
    for (const NodeId operand : outer_.operands(id)) operands.push_back(copy_[operand]);
    copy_payload(node);
    copy_[id] = add(node, operands);
  }

  void copy_payload(Node& node) {
    const auto copied = [&](const auto& from, auto& to) {
      to.push_back(from[node.payload]);
      node.payload = static_cast<std::uint32_t>(to.size() - 1);
    };
    Graph& g = result_.graph;
    if (node.kind == NodeKind::constant) copied(outer_.constants, g.constants);
    if (node.kind == NodeKind::view) copied(outer_.views, g.views);
    if (node.kind == NodeKind::fold) copied(outer_.folds, g.folds);
    if (node.kind == NodeKind::gather) copied(outer_.gathers, g.gathers);
    if (node.kind == NodeKind::scatter) copied(outer_.scatters, g.scatters);
  }

  // An input for a stored value; a state that is still in partitions is merged over them here.
  NodeId boundary(NodeId id) {
    const Node& n = outer_.node(id);
    dsl::InputInfo input;
    input.name = local_name(id);
    input.dtype = n.dtype;
    Node node;
    node.kind = NodeKind::input;
    node.dtype = n.dtype;
    node.axes = n.axes;
    node.location = n.location;
    node.payload = static_cast<std::uint32_t>(result_.graph.inputs.size());
    const auto found = stored_.find(id);
    AxisId partition = dsl::no_axis;
    if (found == stored_.end()) {
      input.axes = outer_.inputs[n.payload].axes;
    } else {
      input.axes = found->second.layout;
      partition = found->second.partition;
    }
    if (outer_.is_state(id)) {
      input.monoid = n.kind == NodeKind::fold ? outer_.fold(id).monoid : outer_.inputs[n.payload].monoid;
    }
    if (partition != dsl::no_axis) node.axes |= AxisSet::of(partition);
    result_.graph.inputs.push_back(input);
    result_.inputs.push_back(id);
    NodeId result = add(node, {});
    result_.graph.inputs.back().node = result;
    if (partition != dsl::no_axis) {
      dsl::FoldInfo fold;
      fold.monoid = static_cast<std::uint16_t>(input.monoid);
      fold.of_states = true;
      fold.axes = {partition};
      result_.graph.folds.push_back(fold);
      Node merge;
      merge.kind = NodeKind::fold;
      merge.dtype = n.dtype;
      merge.axes = n.axes;
      merge.location = n.location;
      merge.payload = static_cast<std::uint32_t>(result_.graph.folds.size() - 1);
      result = add(merge, {result});
    }
    return result;
  }

  const Graph& outer_;
  const StoredValues& stored_;
  std::vector<bool> needed_;
  NodeId first_ = 0;
  std::vector<NodeId> copy_;
  std::set<std::string> names_;
  Extracted result_;
};

}  // namespace

Extracted extract(const Graph& graph, const std::vector<dsl::AxisInfo>& axes, const std::vector<Sink>& sinks,
                  const StoredValues& stored) {
  return Extractor(graph, axes, stored).run(sinks);
}

}  // namespace tigon::plan
