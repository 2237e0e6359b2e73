// Evaluates the cone of some nodes at given ranges of the axes, each value a block: the innermost body of chunk loops.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "dsl/reference/block.hpp"
#include "dsl/reference/evaluate.hpp"

namespace tigon::dsl {

struct ConeTarget {
  NodeId node = no_node;
  Block* destination = nullptr;  // holds the identity of a fold, 0 for a scatter, the fill for a gather
  bool partial = false;          // a chunk of an outer axis: to be merged with other chunks' parts
};

struct ConeContext {
  const Graph& graph;
  const Extents& extents;
  const std::vector<double>& scalars;
  i64 live = 0;
  i64 peak = 0;
  double contraction_work = 0;
  // Called with each value before it is held within the body.
  std::function<void(NodeId, const Ranges&)> check_held{};
};

std::unique_ptr<Block> new_destination(ConeContext& context, NodeId node, const Ranges& ranges, bool counted);

// `known`: by NodeId, what is in memory, or null.
void evaluate_cone(ConeContext& context, std::span<const ConeTarget> targets, const Ranges& ranges,
                   const std::vector<const Block*>& known);

}  // namespace tigon::dsl
