// Runs a plan for a GPU on the emulated device, kernel by kernel, and holds its results to the reference's bounds.
#pragma once
#include <string>
#include <vector>

#include "dsl/reference/evaluate.hpp"
#include "run_class.hpp"

namespace tigon::testing {

struct EmulatedRun {
  std::int64_t wrong = 0;                        // elements outside their bounds
  std::string faults;                            // what the device's checks reported; empty when nothing
  std::string sentence;                          // the first output outside its bound; empty when all are inside
  double worst_ratio = 0;                        // largest |computed - value| / allowed over all outputs
  std::vector<std::vector<std::uint8_t>> bytes;  // of the outputs
};

// `graph` is as traced; `inputs` are its arguments.
EmulatedRun run_emulated(const dsl::Graph& graph, const dsl::EvaluateInputs& inputs, const RunClass& how = {});

}  // namespace tigon::testing
