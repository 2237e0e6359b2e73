// Steps whose results nobody reads.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tigon::plan {

// Takes them out, and the kernels that no step launches any more.
void drop_dead_steps(Plan& plan);

}  // namespace tigon::plan
