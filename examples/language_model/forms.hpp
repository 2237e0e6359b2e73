// What a compiled function became: how much it launches; its graph, plan, loop nests and LLVM or CUDA text as files.
#pragma once
#include <string>

#include "codegen/plan/plan.hpp"
#include "tigon/detail/compiled.hpp"

namespace language_model {

// What one run of it does.
struct Calls {
  std::int64_t kernels = 0;  // different ones
  std::int64_t launches = 0, matmuls = 0;
};
Calls count_calls(const tigon::detail::CompiledCore& core);

// Makes the folder; throws UsageError where that, or writing there, is not possible.
void prepare_forms(const std::string& folder);
// Into folder/function/: graph.txt, plan.txt, and for each kernel NAME.loops and NAME.ll, or NAME.cu where it is for a
// GPU.
void write_forms(const std::string& folder, const tigon::dsl::Graph& graph, const tigon::plan::Plan& plan, bool gpu);
void write_forms(const std::string& folder, const tigon::detail::CompiledCore& core);

// Throws std::runtime_error where that is not possible.
void write_file(const std::string& path, const std::string& text);

}  // namespace language_model
