// Writes what a compile made, for people to read: TIGON_DUMP.
#pragma once
#include <string>

#include "runtime/program.hpp"

namespace tigon::runtime {

// Makes a folder of the plan's name and hash below `folder`, with plan.txt, plan.json, and KERNEL.graph, KERNEL.loops
// and KERNEL.ll for each kernel. Returns its path. Throws Error{io} where a file cannot be written.
std::string dump_program(const Program& program, const std::string& folder);

}  // namespace tigon::runtime
