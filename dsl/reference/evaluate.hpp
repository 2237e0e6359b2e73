// The reference: evaluates a graph in f64 and says how far a backend's results may lie from it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dsl/graph.hpp"

namespace tigon::dsl {

// A tensor with bounds, row-major in `axes`. A state holds its slots one after another, each a whole tensor.
struct TensorValue {
  DType dtype = DType::f32;
  std::vector<AxisId> axes{};
  std::vector<i64> extents{};
  std::vector<double> value{};               // integers too: exact up to 2^53
  std::vector<double> bound{};               // empty: zero everywhere
  std::vector<std::uint8_t> undetermined{};  // empty: nowhere
};

struct EvaluateInputs {
  std::vector<TensorValue> tensors;  // by Graph::inputs; values exact in their dtype
  std::vector<double> scalars;       // by Graph::scalars
  Extents extents;                   // by AxisId, -1 where a fixed extent or a relation gives it
};

struct EvaluateStatistics {
  i64 largest_stored = 0;  // elements of the largest value that was held, inputs apart
  i64 element_steps = 0;   // instructions times elements
};

struct EvaluateOptions {
  bool honour_casts = true;                  // false: every float is an f64, as finite differences want
  EvaluateStatistics* statistics = nullptr;  // filled where given
};

// One value per output, laid out as OutputInfo::axes says.
std::vector<TensorValue> evaluate(const Graph& graph, const EvaluateInputs& inputs, EvaluateOptions options = {});

}  // namespace tigon::dsl
