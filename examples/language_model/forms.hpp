// Writes what a compiled function became: its graph, plan, loop nests and LLVM text.
#pragma once
#include <string>

#include "tigon/detail/compiled.hpp"

namespace language_model {

// Into folder/function/: graph.txt, plan.txt, and for each kernel NAME.loops and NAME.ll.
void write_forms(const std::string& folder, const tigon::detail::CompiledCore& core);

}  // namespace language_model
