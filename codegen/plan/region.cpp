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
  RegionFinder(const Work& work, AxisId axis, double bytes, const PlanOptions& options)
      : work_(work), graph_(*work.graph), axis_(axis), bytes_(bytes), options_(options) {
    find_products();
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) operands_.push_back(find_operands(id));
    find_needed();
    readers_.resize(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!needed_[id]) continue;
      for (const NodeId operand : operands_[id]) readers_[operand].push_back(id);
    }
  }

  std::optional<Region> run() {
    NodeId seed = 0;
    while (seed < graph_.nodes.size() && !is_large(seed)) ++seed;
    if (seed == graph_.nodes.size()) return std::nullopt;
    grow(seed);
    close();
    pull_in();
    Region region;
    region.values.assign(large_.begin(), large_.end());
    std::set<NodeId> targets;
    for (const NodeId id : inside_) add_targets(id, targets);
    std::set<NodeId> before;
    for (const NodeId id : inside_) add_before(id, targets, before);
    for (const NodeId id : targets) add_before(id, targets, before);
    keep_sources(targets, before);
    region.targets.assign(targets.begin(), targets.end());
    region.before.assign(before.begin(), before.end());
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

  void find_needed() {
    needed_.assign(graph_.nodes.size(), false);
    for (const NodeId target : work_.targets) needed_[target] = true;
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
      needed_[id] = needed_[id] && !is_leaf(id);
      if (!needed_[id]) continue;
      for (const NodeId operand : operands_[id]) needed_[operand] = true;
    }
  }

  // What a node reads, products seen through and contractions reduced to their stored operands.
  std::vector<NodeId> find_operands(NodeId id) const {
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
           kind == NodeKind::iota || kind == NodeKind::extent || work_.stored.contains(id);
  }
  // Views of what is in memory are no values of their own.
  bool is_read(NodeId id) const {
    while (graph_.node(id).kind == NodeKind::view) id = graph_.operands(id)[0];
    return is_leaf(id);
  }
  bool is_large(NodeId id) const {
    if (is_read(id) || product_[id] || !needed_[id] || !graph_.node(id).axes.contains(axis_)) return false;
    return elements(id) * size_of(graph_.node(id).dtype) >= bytes_;
  }

  void grow(NodeId seed) {
    std::vector<NodeId> stack{seed};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (!large_.insert(id).second) continue;
      for (const NodeId next : operands_[id]) {
        if (is_large(next)) stack.push_back(next);
      }
      for (const NodeId next : readers_[id]) {
        if (!product_[next] && is_large(next)) stack.push_back(next);
      }
    }
  }
  void close() {
    std::vector<bool> above(graph_.nodes.size(), false);
    below_.assign(graph_.nodes.size(), false);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      below_[id] = large_.contains(id);
      if (!needed_[id]) continue;
      for (const NodeId operand : operands_[id]) below_[id] = below_[id] || below_[operand];
    }
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
      if (large_.contains(id)) above[id] = true;
      if (!above[id] || !needed_[id]) continue;
      for (const NodeId operand : operands_[id]) above[operand] = true;
    }
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (below_[id] && above[id] && needed_[id] && !is_leaf(id) && !product_[id]) inside_.insert(id);
    }
  }

  double elements(NodeId id) const {
    double count = 1;
    for (const AxisId axis : graph_.node(id).axes) count *= static_cast<double>(work_.extents[axis]);
    return count;
  }

  // Values of narrow types that have as many elements as a large one, such as its mask, are made chunk by chunk too
  // where nobody else needs them.
  void pull_in() {
    double fewest = elements(*large_.begin());
    for (const NodeId id : large_) fewest = std::min(fewest, elements(id));
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
      if (inside_.contains(id) || !needed_[id] || is_leaf(id) || is_read(id) || product_[id]) continue;
      if (!graph_.node(id).axes.contains(axis_) || elements(id) < fewest) continue;
      const bool only_inside = std::all_of(readers_[id].begin(), readers_[id].end(),
                                           [&](NodeId reader) { return inside_.contains(reader) || product_[reader]; });
      if (is_target(id) || !only_inside || readers_[id].empty()) continue;
      inside_.insert(id);
      below_[id] = true;
    }
  }

  void add_targets(NodeId id, std::set<NodeId>& targets) const {
    if (is_target(id)) targets.insert(id);
    for (const NodeId reader : readers_[id]) {
      if (inside_.contains(reader) || product_[reader]) continue;
      const NodeKind kind = graph_.node(reader).kind;
      const bool reduces = kind == NodeKind::fold || kind == NodeKind::scatter || kind == NodeKind::gather;
      targets.insert(reduces && is_large(id) ? reader : id);
    }
  }

  // What follows from the region's own results, and is needed by others of them, lies between passes.
  void add_before(NodeId id, const std::set<NodeId>& targets, std::set<NodeId>& before) const {
    for (const NodeId operand : operands_[id]) {
      if (!is_leaf(operand) && !below_[operand] && !targets.contains(operand)) before.insert(operand);
    }
  }

  bool is_target(NodeId id) const {
    return std::find(work_.targets.begin(), work_.targets.end(), id) != work_.targets.end();
  }

  // What goes to memory between steps is never a widened copy or a view: matmuls look for what lies below those.
  void keep_sources(std::set<NodeId>& targets, std::set<NodeId>& before) const {
    std::set<NodeId> kept, first;
    for (const NodeId id : targets) {
      const NodeId source = is_target(id) ? id : source_of(graph_, id);
      if (source == id || inside_.contains(source))
        kept.insert(source);
      else if (!is_leaf(source))
        first.insert(source);
    }
    for (const NodeId id : before) {
      const NodeId source = is_target(id) ? id : source_of(graph_, id);
      if (!is_leaf(source) && !kept.contains(source)) first.insert(source);
    }
    targets = std::move(kept);
    before = std::move(first);
  }

  const Work& work_;
  const Graph& graph_;
  AxisId axis_;
  double bytes_;
  const PlanOptions& options_;
  std::vector<bool> needed_;
  std::vector<bool> product_, below_;
  std::vector<std::vector<NodeId>> operands_, readers_;
  std::set<NodeId> large_, inside_;
};

}  // namespace

std::optional<Region> find_region(const Work& work, AxisId axis, double bytes, const PlanOptions& options) {
  return RegionFinder(work, axis, bytes, options).run();
}

}  // namespace tigon::plan
