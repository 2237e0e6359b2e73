// Makes every kernel of a plan ready, several at a time.
#pragma once
#include <functional>

#include "codegen/plan/plan.hpp"
#include "tigon/detail/compiled.hpp"

namespace tigon::runtime {

using Progress = std::function<void(const CompileProgress&)>;

// Calls make(i) for each kernel on all cores, and `progress` after each. What a call throws is thrown again when the
// calls that run have ended: the one of the lowest kernel; no further ones are begun.
void build_kernels(const plan::Plan& plan, const Progress& progress, const std::function<void(std::uint32_t)>& make);

}  // namespace tigon::runtime
