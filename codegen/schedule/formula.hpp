// A kernel's graph as formulas for the head of its text: a line for each output, and for each value used twice.
#pragma once
#include <string>

#include "dsl/graph.hpp"

namespace tigon::schedule {

// Lines such as "y = x * rsqrt(sum<hidden>(x * x) / 4096 + eps) * weight   bf16[tokens, hidden]".
std::string formula_of(const dsl::Graph& graph);

}  // namespace tigon::schedule
