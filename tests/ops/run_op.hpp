// Runs an op of the catalogue through the reference evaluator with chosen arguments.
#pragma once
#include <string>
#include <vector>

#include "ops/inputs.hpp"

namespace tigon::ops {

using Numbers = std::vector<double>;

// One op at given extents: arguments are drawn, may be replaced, and are kept for a plain loop to read.
class RunOp {
 public:
  RunOp(std::string_view op, OpChoice choice, NamedExtents extents, std::uint64_t seed = 1);

  // An argument's elements, row-major in its declared axes; a scalar has one.
  Numbers& argument(std::string_view name);
  [[nodiscard]] bool has(std::string_view name) const;
  // All outputs, gradients included, with upstreams as drawn.
  void evaluate(bool honour_casts = false);
  [[nodiscard]] const dsl::TensorValue& result(std::string_view output) const;
  [[nodiscard]] const Numbers& value(std::string_view output) const { return result(output).value; }

  [[nodiscard]] const dsl::Graph& graph() const { return graph_; }
  [[nodiscard]] dsl::EvaluateInputs& inputs() { return inputs_; }

 private:
  dsl::Graph graph_;
  dsl::EvaluateInputs inputs_;
  std::vector<dsl::TensorValue> results_;
  std::vector<Numbers> scalars_;
};

// Checks element by element, relative to the larger of the expected value and `scale`; NaN equals NaN.
void check_close(const Numbers& computed, const Numbers& expected, double tolerance = 1e-12, double scale = 1);

// Nearest number of the dtype.
double rounded(DType dtype, double value);

}  // namespace tigon::ops
