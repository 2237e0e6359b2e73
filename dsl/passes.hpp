// The passes between tracing and planning, one list in order.
#pragma once
#include <optional>

#include "dsl/graph.hpp"

namespace tigon::dsl {

// A contraction is large, hence a matmul with 16-bit operands, from this many multiplications on.
inline constexpr std::int64_t large_contraction = std::int64_t{1} << 20;

struct RoundingOptions {
  bool exact = false;  // true: no operand and no result is rounded
  std::optional<DType> keep_large_as =
      {};  // the dtype of a large contraction's result; none: its 16-bit operands' dtype
};

// attach(value, surrogate) becomes value.
Graph erase_attach(const Graph& graph);
// An axis that is split (or made by a merge) is replaced by its two parts everywhere, so that both can be chunked:
// inputs are split where they are read, outputs have the parts in their layout, which is the same memory.
Graph refine_splits(const Graph& graph);
// Views move through maps, casts, folds and gathers to the inputs, so that every axis has one name where values meet.
Graph push_views(const Graph& graph);
// Rebuilds every value that an output needs through the constructors: folds, common subexpressions, dead code.
Graph simplify(const Graph& graph);
// Inserts the casts of large contractions: f32 operands that meet a 16-bit one, and results that are read again.
Graph round_contractions(const Graph& graph, const Extents& extents, const RoundingOptions& options);
// A fold without a name gets that of its first named finish: users name what comes of a state, kernels carry the state,
// and the finish itself may go where constructors take a difference with it apart.
Graph name_states(Graph graph);

// All of them, in order; `evaluate` and `plan` get the same prepared graph.
Graph prepare(const Graph& graph, const Extents& extents, const RoundingOptions& options);

// A contraction: finish(sum) of fold(sum, mul(a, b)), seen through casts of its operands to f32.
struct Contraction {
  NodeId finish = no_node;
  NodeId fold = no_node;
  NodeId a = no_node;  // factors of the product, as the product reads them
  NodeId b = no_node;
  AxisSet batch;       // in a, b and the result
  AxisSet rows;        // of a and the result
  AxisSet columns;     // of b and the result
  AxisSet contracted;  // in a and b, folded
};
// The contraction that a finish node ends, if both factors carry the folded axes and each has an axis of its own.
std::optional<Contraction> contraction_at(const Graph& graph, NodeId finish);
// Multiplications: batch * rows * columns * contracted.
double contraction_work(const Contraction& contraction, const Extents& extents);

}  // namespace tigon::dsl
