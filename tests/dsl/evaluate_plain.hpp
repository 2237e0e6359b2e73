// A second, plain evaluator for tests: every value held, f32 arithmetic in loops, functions off by as much as the
// scalar table allows. What it computes is what a correct backend might.
#pragma once
#include <vector>

#include "dsl/reference/evaluate.hpp"

namespace tigon::dsl {

// `drop_last`: planted fault, sums leave their last element out.
struct PlainOptions {
  std::uint64_t seed = 1;
  bool drop_last = false;
};
std::vector<std::vector<double>> evaluate_plainly(const Graph& graph, const EvaluateInputs& inputs,
                                                  PlainOptions options = {});

}  // namespace tigon::dsl
