// The printed form of a graph: one line per value, maps used once printed inside their user.
#pragma once
#include <string>

#include "dsl/graph.hpp"

namespace tigon::dsl {

std::string print(const Graph& graph);
// One value as an expression, e.g. "mul(%0, rsqrt(add(%5, eps)))", as deep as single-use maps go.
std::string print_value(const Graph& graph, NodeId node);
// "bf16[tokens, hidden]": for a value in order of AxisId, for an input or output in its layout.
std::string print_type(const Graph& graph, DType dtype, const std::vector<AxisId>& axes);
std::string print_type(const Graph& graph, NodeId node);

}  // namespace tigon::dsl
