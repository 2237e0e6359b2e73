// The canonical constructors: every node, in every pass, is made here; commutative order, constant folding that is
// safe, the masks' normal form and hash-consing live here and nowhere else.
#pragma once
#include <memory>

#include "dsl/graph.hpp"

namespace tigon::dsl {

class Builder {
 public:
  explicit Builder(std::string name);
  // Continues a graph: its nodes keep their ids, its outputs are dropped.
  explicit Builder(Graph graph);
  // An empty graph that has another's name, axes (same ids), relations and monoids: what a pass rebuilds into.
  static Builder rebuilding(const Graph& graph);
  ~Builder();
  Builder(Builder&&) noexcept;
  Builder& operator=(Builder&&) noexcept;

  // Axes. `axis` finds or adds by (tag, fixed extent); names are made unique.
  AxisId axis(const void* tag, std::string_view name, std::int64_t fixed = -1);

  // What views demand of extents, stated without a view.
  void relate(SplitRelation relation);
  void relate(EqualRelation relation);

  // Where the nodes made from now on come from, for errors and printing.
  void set_location(std::string_view file, int line);

  NodeId input(std::string name, DType dtype, std::vector<AxisId> axes, int monoid = -1);
  NodeId scalar(std::string name, DType dtype);
  NodeId constant(DType dtype, double value);
  NodeId integer(DType dtype, std::int64_t value);
  NodeId iota(AxisId axis);
  NodeId extent(AxisId axis);
  // Operands are cast to the promoted dtype that the op wants (16-bit floats to f32); result dtype by the scalar table.
  NodeId map(ScalarOp op, std::span<const NodeId> operands);
  NodeId map(ScalarOp op, std::initializer_list<NodeId> operands) {
    return map(op, std::span(operands.begin(), operands.size()));
  }
  NodeId cast(DType dtype, NodeId operand);
  NodeId view(NodeId operand, ViewInfo info);
  NodeId rename(NodeId operand, AxisId from, AxisId to);
  NodeId split(NodeId operand, AxisId whole, AxisId outer, AxisId inner);
  NodeId merge(NodeId operand, AxisId outer, AxisId inner, AxisId whole);
  int monoid(const Monoid& monoid);  // finds (by name) or adds
  // Folding over an axis the operand lacks: sum multiplies by the extent, other monoids broadcast first.
  NodeId fold(int monoid, std::span<const NodeId> operands, std::vector<AxisId> axes);
  NodeId fold(int monoid, std::initializer_list<NodeId> operands, std::vector<AxisId> axes) {
    return fold(monoid, std::span(operands.begin(), operands.size()), std::move(axes));
  }
  int monoid(BuiltinMonoid builtin) { return monoid(builtin_monoid(builtin)); }
  NodeId fold_states(NodeId state, std::vector<AxisId> axes);
  NodeId finish(NodeId state, int finish_number);
  // fold + finish. A mask without a folded axis leaves the sum, and a mask on a contraction goes onto its factors.
  NodeId sum(NodeId operand, std::vector<AxisId> axes);
  NodeId gather(NodeId table, NodeId index, AxisId axis, IndexPolicy policy, double fill = 0);
  NodeId scatter(NodeId values, NodeId index, AxisId axis, std::vector<AxisId> folded);
  NodeId attach(NodeId value, NodeId surrogate /* or no_node */);
  // The operand with at least these axes: a view that adds the missing ones, or the operand itself.
  NodeId broadcast(NodeId operand, AxisSet axes);
  // where(c1, where(c2, ... value, 0), 0): conditions as a set, fewest axes outermost, then by id, conjunctions taken
  // apart.
  NodeId masked(std::span<const NodeId> conditions, NodeId value);
  NodeId masked(NodeId condition, NodeId value) { return masked(std::span(&condition, 1), value); }
  // The same node kind and payload as `like` (of this or another graph) on other operands; payload tables are
  // translated.
  NodeId remake(const Graph& from, NodeId like, std::span<const NodeId> operands);

  void output(OutputInfo info);
  void name(NodeId node, std::string name);

  [[nodiscard]] const Graph& graph() const;
  [[nodiscard]] const Node& node(NodeId id) const { return graph().node(id); }
  Graph finish() &&;  // hands the graph out

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tigon::dsl
