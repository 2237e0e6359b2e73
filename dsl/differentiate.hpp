// Reverse-mode differentiation of a graph into a graph of the same node kinds.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dsl/graph.hpp"

namespace tigon::dsl {

struct GradientDType {
  std::string path;  // an input's path, or a prefix of paths
  DType dtype = DType::f32;
};

struct DifferentiateOptions {
  // Inputs by path; a prefix takes a subtree: "layers" takes "layers[3].up".
  std::vector<std::string> wrt;
  // The rank-0 output whose gradient is taken. Empty: a vjp, with an upstream for each of `upstreams`.
  std::string output{};
  // vjp: the outputs that are given an upstream, the input "upstream.<output>"; the others are pruned.
  std::vector<std::string> upstreams{};
  // The graph's own outputs stay (auxiliary values); false: gradients only.
  bool keep_outputs = true;
  // By default a gradient has its input's dtype.
  std::vector<GradientDType> gradient_dtypes{};
};

std::string gradient_name(const std::string& input);   // "grad.x"
std::string upstream_name(const std::string& output);  // "upstream.loss"

// Adds the outputs "grad.<input>", each in its input's layout; an input that nothing depends on gets zeros.
Graph differentiate(const Graph& graph, const DifferentiateOptions& options);

// Forward now, backward later: `forward` has the graph's outputs and then the saved values "saved.0", ...; `backward`
// has the inputs it reads, those saved values and the upstreams as inputs, and yields the gradients.
struct Linearized {
  Graph forward;
  Graph backward;
};
// `before_cut`, if given, sees forward and backward as one graph: with `prepare` there, what is rounded to 16 bits is
// saved in 16 bits.
Linearized linearize(const Graph& graph, const DifferentiateOptions& options,
                     const std::function<Graph(const Graph&)>& before_cut = {});

}  // namespace tigon::dsl
