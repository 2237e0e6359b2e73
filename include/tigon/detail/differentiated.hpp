// The untyped half of differentiation. Defined in dsl/trace_differentiate.cpp.
#pragma once
#include <string>
#include <vector>

#include "tigon/detail/function.hpp"

namespace tigon::detail {

struct PathDType {
  std::string path;
  DType dtype = DType::f32;
};

// Paths take the inputs below them: "layers" takes "layers[3].up".
struct GradientRequest {
  std::vector<std::string> wrt;
  std::vector<PathDType> dtypes;
  std::vector<std::string> accumulated;  // gradients added to what the caller's buffer holds
};

GraphPointer value_and_grad(const GraphPointer& graph, const std::string& name, const GradientRequest& request,
                            const std::string& output);
// `upstreams`: the outputs that have one; none: every floating output does.
GraphPointer vjp(const GraphPointer& graph, const std::string& name, const GradientRequest& request,
                 std::vector<std::string> upstreams);

struct LinearizedGraphs {
  GraphPointer forward, backward;
  std::vector<std::string> saved;  // outputs of forward, inputs of backward
};
LinearizedGraphs linearize(const GraphPointer& graph, const std::string& name, const GradientRequest& request,
                           std::vector<std::string> upstreams);

}  // namespace tigon::detail
