// Counts the work that passes over one axis demand.
#include "dsl/levels_work.hpp"

#include <algorithm>

namespace tigon::dsl {
namespace {

constexpr double unknown_extent = 1024;  // a guess that only ranks alternatives

}  // namespace

double AxisWork::count(AxisSet axes) const {
  double elements = 1;
  for (const AxisId axis : axes) {
    const std::int64_t extent = axis < options_.extents.size() ? options_.extents[axis] : -1;
    // An empty axis counts as one element, so that the plan does not depend on it.
    elements *= extent < 0 ? unknown_extent : static_cast<double>(std::max<std::int64_t>(extent, 1));
  }
  return elements;
}

AxisWork::AxisWork(const AxisCone& cone, std::span<const NodeId> targets, const AxisOptions& options)
    : cone_(cone), options_(options), position_(cone.graph().nodes.size(), -1), stamp_(cone.graph().nodes.size()) {
  const Graph& graph = cone.graph();
  std::vector<char> is_target(graph.nodes.size());
  std::vector<char> is_table(graph.nodes.size());
  for (const NodeId target : targets) is_target[target] = 1;
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    if (cone.contains(id) && cone.distant(id, 0)) is_table[graph.operands(id)[0]] = 1;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!cone.contains(id)) continue;
    if (cone.folds(id)) {
      add(id, Role::fold);
    } else if (cone.carries(id)) {
      if (is_target[id] != 0) {
        add(id, Role::target);
      } else if (!cone.resident(id)) {
        add(id, is_table[id] != 0 ? Role::table : Role::inner);
      }
    }
  }
  first_edge_.push_back(0);
  for (const Entry& entry : entries_) {
    const NodeId id = entry.node;
    const auto of_node = graph.operands(id);
    for (std::size_t k = 0; k < of_node.size() && !cone.resident(id); ++k) {
      const NodeId operand = of_node[k];
      const int at = position_[operand];
      if (at >= 0 && cone.carries(operand) && !cone.resident(operand) && !cone.folds(operand) && !cone.distant(id, k))
        edges_.push_back(at);
    }
    first_edge_.push_back(edges_.size());
  }
  measure();
}

void AxisWork::add(NodeId id, Role role) {
  position_[id] = static_cast<int>(entries_.size());
  Entry entry;
  entry.node = id;
  entry.role = role;
  entries_.push_back(entry);
}

void AxisWork::measure() {
  const Graph& graph = cone_.graph();
  // A product that only contractions read is formed inside them.
  std::vector<char> multiplied(entries_.size());
  std::vector<char> read_otherwise(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const bool contraction = is_contraction_fold(graph, entries_[i].node);
    for (const int operand : operands(i))
      (contraction ? multiplied : read_otherwise)[static_cast<std::size_t>(operand)] = 1;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const Node& n = graph.node(entry.node);
    if (cone_.resident(entry.node)) continue;
    const bool product = multiplied[i] != 0 && read_otherwise[i] == 0 && entry.role == Role::inner;
    const std::size_t slots = n.kind == NodeKind::fold ? graph.monoid_of(entry.node).state.size() : 1;
    AxisSet visited = n.axes;
    if (n.kind == NodeKind::fold || n.kind == NodeKind::scan || n.kind == NodeKind::scatter)
      for (const NodeId operand : graph.operands(entry.node)) visited |= graph.node(operand).axes;
    if (n.kind == NodeKind::scatter)
      visited -= AxisSet::of(graph.scatters[n.payload].axis) - graph.folded_axes(entry.node);
    if (!product && n.kind != NodeKind::view) entry.work = count(visited);
    entry.elements = count(n.axes) * static_cast<double>(slots);
    entry.transfer = entry.elements * size_of(n.dtype) / 4;
    // A one-slot state is kept as its finished value, which is as large.
    const bool plain_state = n.kind == NodeKind::fold && slots == 1;
    entry.can_be_stored = entry.role == Role::inner && !product && !plain_state && n.kind != NodeKind::view;
    entry.inner_folds = find_inner_folds(entry.node);
    if (!product && cone_.carries(entry.node)) largest_ = std::max(largest_, entry.elements);
  }
}

AxisSet AxisWork::find_inner_folds(NodeId id) const {
  const Graph& graph = cone_.graph();
  const Node& n = graph.node(id);
  if (n.kind == NodeKind::gather) {
    const auto operands = graph.operands(id);
    const AxisSet along = AxisSet::of(graph.gathers[n.payload].axis);
    return cone_.resident(operands[0]) ? AxisSet() : (along & options_.rest) - graph.node(operands[1]).axes;
  }
  return graph.folded_axes(id) & options_.rest;
}

std::vector<int> AxisWork::dependencies(std::size_t i) {
  const Graph& graph = cone_.graph();
  std::vector<int> found;
  std::vector<NodeId> pending;
  ++search_;
  if (!cone_.resident(entries_[i].node)) pending.push_back(entries_[i].node);
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    const auto of_node = graph.operands(id);
    for (std::size_t k = 0; k < of_node.size(); ++k) {
      const NodeId operand = of_node[k];
      if (cone_.resident(operand)) continue;
      if (cone_.distant(id, k)) {
        found.push_back(position_[operand]);
      } else if (stamp_[operand] != search_) {
        stamp_[operand] = search_;
        if (cone_.folds(operand)) {
          found.push_back(position_[operand]);
        } else {
          pending.push_back(operand);
        }
      }
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

double AxisWork::demand(int pass, std::vector<Use>& use) const {
  use.assign(entries_.size(), Use::none);
  double total = 0;
  for (std::size_t i = entries_.size(); i-- > 0;) {
    const Entry& entry = entries_[i];
    const bool sink_here = entry.role != Role::inner && entry.pass == pass;
    if (use[i] == Use::none && !sink_here) continue;
    if (left_by_earlier_pass(i, pass)) {
      use[i] = Use::read;
      if (entry.role == Role::store) total += entry.transfer;
      continue;
    }
    use[i] = Use::evaluated;
    total += entry.work;
    if (entry.role == Role::store && entry.pass == pass) total += entry.transfer;
    for (const int operand : operands(i)) use[static_cast<std::size_t>(operand)] = Use::evaluated;
  }
  return options_.rest.empty() ? total : total + repeated_work(pass, use);
}

// Along each inner axis the body has levels of its own: an entry is evaluated once for each level that has a sink whose
// cone holds it.
double AxisWork::repeated_work(int pass, const std::vector<Use>& use) const {
  const Graph& graph = cone_.graph();
  constexpr int most_levels = 63;
  std::vector<double> times(entries_.size(), 1);
  std::vector<int> level(entries_.size());
  std::vector<std::uint64_t> wanted(entries_.size());
  for (const AxisId axis : options_.rest) {
    const auto folds = [&](std::size_t i) { return entries_[i].inner_folds.contains(axis); };
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      level[i] = 0;
      wanted[i] = 0;
      if (use[i] != Use::evaluated) continue;
      for (const int operand : operands(i)) {
        const auto at = static_cast<std::size_t>(operand);
        if (use[at] != Use::evaluated) continue;
        level[i] = std::min(most_levels, std::max(level[i], level[at] + (folds(at) ? 1 : 0)));
      }
    }
    for (std::size_t i = entries_.size(); i-- > 0;) {
      if (use[i] != Use::evaluated) continue;
      const bool carries = graph.node(entries_[i].node).axes.contains(axis);
      const bool sink = entries_[i].role != Role::inner && entries_[i].pass == pass;
      const std::uint64_t own = std::uint64_t{1} << level[i];
      if (folds(i)) {
        wanted[i] = own;
      } else if (sink && carries) {
        wanted[i] |= own;
      }
      for (const int operand : operands(i)) {
        const auto at = static_cast<std::size_t>(operand);
        if (use[at] == Use::evaluated && !folds(at)) wanted[at] |= wanted[i];
      }
      if (carries || folds(i)) times[i] *= std::max(1, std::popcount(wanted[i]));
    }
  }
  double total = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (use[i] == Use::evaluated) total += entries_[i].work * (times[i] - 1);
  return total;
}

void AxisWork::exclusive_work(int pass, const std::vector<Use>& use, std::vector<double>& work) const {
  // Dominators: every path from the pass to the entry goes through them. Users come later than operands.
  const int root = static_cast<int>(entries_.size());
  constexpr int unset = -1;
  std::vector<int> dominator(entries_.size(), unset);
  std::vector<int> depth(entries_.size() + 1);
  const auto meet = [&](int a, int b) {
    while (a != b) {
      int& deeper = depth[static_cast<std::size_t>(a)] >= depth[static_cast<std::size_t>(b)] ? a : b;
      deeper = dominator[static_cast<std::size_t>(deeper)];
    }
    return a;
  };
  work.assign(entries_.size(), 0);
  for (std::size_t i = entries_.size(); i-- > 0;) {
    if (use[i] == Use::none) continue;
    if (entries_[i].role != Role::inner && entries_[i].pass == pass) dominator[i] = root;
    depth[i] = depth[static_cast<std::size_t>(dominator[i])] + 1;
    if (use[i] == Use::read) continue;
    for (const int operand : operands(i)) {
      int& above = dominator[static_cast<std::size_t>(operand)];
      above = above == unset ? static_cast<int>(i) : meet(above, static_cast<int>(i));
    }
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (use[i] == Use::none) continue;
    if (use[i] == Use::evaluated) work[i] += entries_[i].work;
    const int above = dominator[i];
    if (above != root) work[static_cast<std::size_t>(above)] += work[i];
  }
}

double AxisWork::added_work(std::size_t i, int pass, const std::vector<Use>& use) const {
  std::vector<char> wanted(i + 1);
  wanted[i] = 1;
  double total = 0;
  for (std::size_t k = i + 1; k-- > 0;) {
    if (wanted[k] == 0 || use[k] == Use::evaluated) continue;
    if (left_by_earlier_pass(k, pass)) continue;
    total += entries_[k].work;
    for (const int operand : operands(k)) wanted[static_cast<std::size_t>(operand)] = 1;
  }
  return total;
}

}  // namespace tigon::dsl
