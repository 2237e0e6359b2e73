// The cone of some targets as seen along one axis: what is resident, what folds over the axis, what reads at a
// distance.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dsl/graph.hpp"

namespace tigon::dsl {

class AxisCone {
 public:
  AxisCone(const Graph& graph, std::span<const NodeId> targets, AxisId axis, const std::vector<bool>& known);

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] bool contains(NodeId id) const { return in_cone_[id] != 0; }
  [[nodiscard]] bool carries(NodeId id) const { return graph_.node(id).axes.contains(axis_); }
  // Readable at any element without a pass: an input, a known value, a leaf, or a view of one of these.
  [[nodiscard]] bool resident(NodeId id) const { return resident_[id] != 0; }
  // Reduces the axis: a fold or scatter over it, or a gather that selects along it by an index lacking it.
  [[nodiscard]] bool folds(NodeId id) const { return folds_[id] != 0; }
  // Whether the operand is read at other places of the axis than the reader's, and so must be stored first.
  [[nodiscard]] bool distant(NodeId reader, std::size_t operand) const { return operand == 0 && distant_[reader] != 0; }
  [[nodiscard]] int level(NodeId id) const { return level_[id]; }
  [[nodiscard]] const std::vector<int>& levels() const { return level_; }
  // Why the axis cannot be chunked, if so.
  [[nodiscard]] std::optional<std::string> illegal() const;

 private:
  void classify(NodeId id);

  const Graph& graph_;
  AxisId axis_;
  std::vector<char> in_cone_;
  std::vector<char> resident_;
  std::vector<char> folds_;
  std::vector<char> distant_;
  std::vector<int> level_;
};

// Whether the node is fold(sum, mul(a, b)) in which both factors carry the folded axes and each has one of its own.
bool is_contraction_fold(const Graph& graph, NodeId id);

}  // namespace tigon::dsl
