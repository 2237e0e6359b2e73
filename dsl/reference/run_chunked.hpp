// Runs a graph in f64 with some axes chunked, nested in the order given, exactly as plan_axis says.
#pragma once
#include <string>
#include <vector>

#include "dsl/graph.hpp"
#include "dsl/levels.hpp"
#include "dsl/reference/evaluate.hpp"

namespace tigon::dsl {

struct ChunkedAxis {
  AxisId axis = no_axis;
  i64 size = 1;  // indices in a chunk; the last chunk may be smaller
};

struct ChunkedOptions {
  std::vector<ChunkedAxis> axes{};  // outermost first
  bool store_large = false;
};

struct ChunkedPasses {
  int passes = 0;
  int heavy = 0;
};

struct ChunkedRun {
  std::string refusal{};               // why an axis cannot be chunked, else empty; then the rest is not filled
  std::vector<TensorValue> outputs{};  // by Graph::outputs, without bounds
  // By nesting: the passes over the axis, the most of any body. The loops that compute hoisted values are not counted.
  std::vector<ChunkedPasses> passes{};
  double contraction_work = 0;   // multiplications of contractions
  i64 peak = 0;                  // most numbers held at once, without inputs, outputs and accumulators that become them
  std::vector<NodeId> stored{};  // by any plan, ascending
};

// Casts between floats are ignored. Throws Error where a value would be held at more of a chunked axis than a chunk,
// unless it is an output, a carried state, hoisted or stored.
ChunkedRun run_chunked(const Graph& graph, const EvaluateInputs& inputs, const ChunkedOptions& options);

}  // namespace tigon::dsl
