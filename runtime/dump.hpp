// Writes what a compile made, for people to read: TIGON_DUMP. Takes an edited kernel back: TIGON_OVERRIDE.
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

// The text to compile instead of `text`: that of the kernel's file in a dump below $TIGON_OVERRIDE, where it has been
// edited; warns that it is in use. `text` itself without the variable, the file or a change in it. A kernel keeps its
// name and parameters. Throws Error{io} for a file that cannot be read.
std::string overridden_text(const plan::Plan& plan, const plan::Kernel& kernel, const std::string& extension,
                            const std::string& text);

}  // namespace tigon::runtime
