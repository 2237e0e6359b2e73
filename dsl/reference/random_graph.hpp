// Random graphs and random inputs, the same for the same seed everywhere.
#pragma once
#include <map>
#include <string>

#include "dsl/graph.hpp"
#include "dsl/reference/evaluate.hpp"

namespace tigon::dsl {

struct RandomGraphOptions {
  int steps = 10;               // values made on top of the inputs, about
  i64 most_elements = 60'000;   // of any value, and of what a contraction multiplies
  bool long_axes = true;        // now and then one axis of 1,000 to 5,000
  bool empty_axes = true;       // now and then an axis of extent 0
  bool sixteen_bits = true;     // bf16 and f16
  bool discontinuous = true;    // floor, comparisons of computed values, argmax, integers
  bool differentiable = false;  // f32 and f64 only, no kinks: what finite differences can check
};

struct RandomGraph {
  Graph graph;
  Extents extents;  // complete
};
RandomGraph random_graph(std::uint64_t seed, const RandomGraphOptions& options = {});

// Well-scaled inputs, exact in their dtypes: floats near 1 (some tensors of eighths, whose sums must come out exactly),
// scalars in [0.5, 1.5], booleans mostly true, integers that
// index an axis within it (now and then just outside it, where the policy permits), other integers in [-8, 8]. With
// `specials`, a few inputs have -infinities or large numbers here and there.
EvaluateInputs random_inputs(const Graph& graph, const Extents& extents, std::uint64_t seed, bool specials = false);

// How often each node kind, scalar op, monoid, index policy and dtype occurs.
using NodeHistogram = std::map<std::string, i64>;
void count_nodes(const Graph& graph, NodeHistogram& histogram);
std::string print(const NodeHistogram& histogram);

}  // namespace tigon::dsl
