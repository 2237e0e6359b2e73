// What a Builder holds: the graph so far and the tables that find an equal node again.
#pragma once
#include <unordered_map>

#include "dsl/build.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl {

struct NodeKeyHash {
  std::size_t operator()(const std::vector<std::uint32_t>& key) const;
};

struct Builder::State {
  Graph graph;
  std::uint16_t location = 0;
  std::unordered_map<std::vector<std::uint32_t>, NodeId, NodeKeyHash> interned;  // looked up only, never walked

  NodeId intern(NodeKind kind, DType dtype, std::uint32_t payload, AxisSet axes, std::span<const NodeId> operands);
  void index_all();
  [[nodiscard]] std::string axis_names(AxisSet axes) const;
};

// The entry of a payload table that equals `value`, added when there is none.
template <class Value>
std::uint32_t find_or_add(std::vector<Value>& table, const Value& value) {
  const auto found = std::find(table.begin(), table.end(), value);
  if (found != table.end()) return static_cast<std::uint32_t>(found - table.begin());
  table.push_back(value);
  return static_cast<std::uint32_t>(table.size() - 1);
}

// A constant's value as f64, if the node is one without axes.
std::optional<double> constant_value(const Graph& graph, NodeId id);

// Whether it is the literal +0 (integer 0) that a mask leaves.
bool is_zero(const Graph& graph, NodeId id);

// The safe folds: an equal, simpler value of the map, or nothing. Operands already have the dtypes that the operation
// wants.
std::optional<NodeId> fold_map(Builder& builder, ScalarOp op, std::span<const NodeId> operands);

}  // namespace tigon::dsl
