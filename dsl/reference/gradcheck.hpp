// Gradients against finite differences in f64, with casts ignored.
#pragma once
#include <string>
#include <vector>

#include "dsl/reference/evaluate.hpp"

namespace tigon::dsl {

struct GradcheckOptions {
  std::vector<std::string> wrt{};  // inputs by path; empty: every float input
  int directions = 3;              // random directions per input
  int coordinates = 6;             // single elements per input
  double step = 1e-3;              // the first step; smaller ones follow where two steps disagree
  double tolerance = 1e-6;         // of the relative error
  std::uint64_t seed = 1;          // of directions and of the outputs' cotangents
};

struct GradcheckResult {
  bool passed = false;
  double worst = 0;   // largest |gradient - difference| relative to the terms that make it up
  std::string where;  // the input, and the element or direction, of the worst
  i64 checked = 0;
  i64 skipped = 0;  // derivatives near a kink: differences of several steps disagree
  std::string sentence;
};

// Compares the vjp of all float outputs, at random cotangents, with central differences. Fails too when nothing could
// be checked or a third or more was skipped.
GradcheckResult gradcheck(const Graph& graph, const EvaluateInputs& inputs, const GradcheckOptions& options = {});

// The same for a gradient graph of one's own making: `gradient` yields "grad.<input>" from the graph's inputs and
// "upstream.<output>".
GradcheckResult gradcheck(const Graph& graph, const Graph& gradient, const EvaluateInputs& inputs,
                          const GradcheckOptions& options = {});

}  // namespace tigon::dsl
