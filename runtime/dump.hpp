// Writes what a compile made, for people to read: TIGON_DUMP.
#pragma once
#include <functional>
#include <string>

#include "codegen/plan/plan.hpp"

namespace tigon::runtime {

// Makes a folder of the plan's name and hash below `folder`, with plan.txt, plan.json, and KERNEL.graph, KERNEL.loops
// and the target's text (KERNEL.ll, KERNEL.cu) for each kernel. Returns its path. Throws Error{io} where a file cannot
// be written.
std::string dump_plan(const plan::Plan& plan, const std::string& folder, const std::string& extension,
                      const std::function<std::string(const plan::Kernel&)>& text_of);

}  // namespace tigon::runtime
