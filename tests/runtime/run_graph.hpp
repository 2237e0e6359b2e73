// Runs a graph on the CPU, whole way: plan, kernels, bind, launch; values go in and come out as doubles.
#pragma once
#include <vector>

#include "codegen/plan/plan.hpp"
#include "dsl/reference/evaluate.hpp"

namespace tigon::test {

struct GraphRun {
  std::vector<std::vector<double>> outputs;   // by graph output, row-major in its layout
  std::vector<std::vector<std::byte>> bytes;  // the same as they lie in memory
  std::int64_t launches = 0, matmuls = 0, workspace_bytes = 0;
};

// `graph` is prepared; runs what `options` plan for `planned` at the inputs' own extents.
GraphRun run_on_cpu(const dsl::Graph& graph, const dsl::Extents& extents, const dsl::EvaluateInputs& inputs,
                    const plan::PlanOptions& options = {}, int max_threads = 0);

// Bytes of a tensor's values in its dtype, and back.
std::vector<std::byte> to_bytes(DType dtype, const std::vector<double>& values);
std::vector<double> to_doubles(DType dtype, const std::vector<std::byte>& bytes);

}  // namespace tigon::test
