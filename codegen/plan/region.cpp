// Grows a region from a large value: its large neighbours, then whatever lies on a path between two of them.
#include "codegen/plan/region.hpp"

#include <set>

namespace tigon::plan {
using dsl::AxisId;
using dsl::AxisSet;
using dsl::Graph;
using dsl::Node;
using dsl::NodeId;
using dsl::NodeKind;

namespace {

class RegionFinder {
 public:
  RegionFinder(const Work& work, double bytes, const PlanOptions& options)
      : work_(work), graph_(*work.graph), bytes_(bytes), options_(options) {
    find_products();
    readers_.resize(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      for (const NodeId operand : operands(id)) readers_[operand].push_back(id);
    }
  }

  std::optional<Region> run(NodeId seed) {
    if (!is_large(seed)) return std::nullopt;
    grow(seed);
    close();
    Region region;
    region.values.assign(large_.begin(), large_.end());
    std::set<NodeId> targets;
    for (const NodeId id : inside_) add_targets(id, targets);
    region.targets.assign(targets.begin(), targets.end());
    std::set<NodeId> before;
    for (const NodeId id : inside_) add_before(id, targets, before);
    for (const NodeId id : targets) add_before(id, targets, before);
    region.before.assign(before.begin(), before.end());
    AxisSet axes;
    for (const NodeId id : large_) axes |= graph_.node(id).axes;
    for (const AxisId axis : axes) region.axes.push_back(axis);
    return region;
  }

 private:
  // A product that only sums read is never formed: its fold reads the factors.
  void find_products() {
    product_.assign(graph_.nodes.size(), false);
    std::vector<bool> other(graph_.nodes.size(), false), summed(graph_.nodes.size(), false);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const bool fold = graph_.node(id).kind == NodeKind::fold;
      for (const NodeId operand : graph_.operands(id)) (fold ? summed : other)[operand] = true;
    }
    for (const dsl::OutputInfo& output : graph_.outputs) other[output.node] = true;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const Node& n = graph_.node(id);
      product_[id] = n.kind == NodeKind::map && graph_.op(id) == ScalarOp::mul && summed[id] && !other[id];
    }
  }

  // What a node reads, products seen through and contractions reduced to their stored operands.
  std::vector<NodeId> operands(NodeId id) const {
    std::vector<NodeId> result;
    const NodeId finish = graph_.node(id).kind == NodeKind::fold ? finish_of(id) : dsl::no_node;
    if (finish != dsl::no_node) {
      if (const auto contraction = contraction_of(graph_, finish, work_.extents, options_)) {
        return {contraction->a, contraction->b};
      }
    }
    for (const NodeId operand : graph_.operands(id)) {
      if (product_[operand]) {
        for (const NodeId factor : graph_.operands(operand)) result.push_back(factor);
      } else {
        result.push_back(operand);
      }
    }
    return result;
  }

  NodeId finish_of(NodeId fold) const {
    for (NodeId id = fold + 1; id < graph_.nodes.size(); ++id) {
      if (graph_.node(id).kind == NodeKind::finish && graph_.operands(id)[0] == fold) return id;
    }
    return dsl::no_node;
  }

  bool is_leaf(NodeId id) const {
    const NodeKind kind = graph_.node(id).kind;
    return kind == NodeKind::input || kind == NodeKind::scalar || kind == NodeKind::constant ||
           kind == NodeKind::iota || kind == NodeKind::extent;
  }
  bool is_large(NodeId id) const {
    if (is_leaf(id) || product_[id] || work_.stored.contains(id)) return false;
    double elements = 1;
    for (const AxisId axis : graph_.node(id).axes) elements *= static_cast<double>(work_.extents[axis]);
    return elements * size_of(graph_.node(id).dtype) >= bytes_;
  }

  void grow(NodeId seed) {
    std::vector<NodeId> stack{seed};
    const AxisSet axes = graph_.node(seed).axes;
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (!large_.insert(id).second) continue;
      for (const NodeId next : operands(id)) {
        if (is_large(next) && joined(next, axes)) stack.push_back(next);
      }
      for (const NodeId next : readers_[id]) {
        if (!product_[next] && is_large(next) && joined(next, axes)) stack.push_back(next);
      }
    }
  }
  // Large values over other axes (a weight's gradient beside logits) are not part of the region: they are read or
  // delivered.
  bool joined(NodeId id, AxisSet axes) const {
    return graph_.node(id).axes.contains(axes) || axes.contains(graph_.node(id).axes);
  }

  void close() {
    std::vector<bool> below(graph_.nodes.size(), false), above(graph_.nodes.size(), false);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      below[id] = large_.contains(id);
      for (const NodeId operand : operands(id)) below[id] = below[id] || below[operand];
    }
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
      if (large_.contains(id)) above[id] = true;
      if (!above[id]) continue;
      for (const NodeId operand : operands(id)) above[operand] = true;
    }
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (below[id] && above[id] && !is_leaf(id) && !product_[id]) inside_.insert(id);
    }
  }

  void add_targets(NodeId id, std::set<NodeId>& targets) const {
    for (const dsl::OutputInfo& output : graph_.outputs) {
      if (output.node == id) targets.insert(id);
    }
    for (const NodeId reader : readers_[id]) {
      if (inside_.contains(reader) || product_[reader]) continue;
      const NodeKind kind = graph_.node(reader).kind;
      const bool reduces = kind == NodeKind::fold || kind == NodeKind::scatter || kind == NodeKind::gather;
      targets.insert(reduces && large_.contains(id) ? reader : id);
    }
  }

  void add_before(NodeId id, const std::set<NodeId>& targets, std::set<NodeId>& before) const {
    for (const NodeId operand : operands(id)) {
      if (!is_leaf(operand) && !inside_.contains(operand) && !targets.contains(operand)) before.insert(operand);
    }
  }

  const Work& work_;
  const Graph& graph_;
  double bytes_;
  const PlanOptions& options_;
  std::vector<bool> product_;
  std::vector<std::vector<NodeId>> readers_;
  std::set<NodeId> large_, inside_;
};

}  // namespace

std::optional<Region> find_region(const Work& work, NodeId seed, double bytes, const PlanOptions& options) {
  return RegionFinder(work, bytes, options).run(seed);
}

}  // namespace tigon::plan
