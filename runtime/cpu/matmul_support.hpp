// What this machine's matmul library multiplies, as the planner asks it.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tigon::runtime {

// Asked of the library once.
plan::MatmulSupport cpu_matmul_support();

}  // namespace tigon::runtime
