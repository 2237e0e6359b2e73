// Random graphs chunked over one to three nested axes against the same graphs unchunked.
#include <algorithm>
#include <cmath>

#include "dsl/differentiate.hpp"
#include "dsl/passes.hpp"
#include "dsl/print.hpp"
#include "dsl/reference/random_graph.hpp"
#include "dsl/reference/random_source.hpp"
#include "dsl/reference/run_chunked.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl {
namespace {

// The largest error relative to 1 + |value|; infinite where one is NaN and the other is not, or infinities differ.
// Elements that rounding alone decides (a comparison of nearly equal numbers) do not count.
double largest_error(const std::vector<TensorValue>& found, const std::vector<TensorValue>& expected) {
  double largest = 0;
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    REQUIRE(found[i].value.size() == expected[i].value.size());
    for (std::size_t k = 0; k < found[i].value.size(); ++k) {
      const double a = found[i].value[k];
      const double b = expected[i].value[k];
      if (!expected[i].undetermined.empty() && expected[i].undetermined[k] != 0) continue;
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double error = std::abs(a - b) / (1 + std::abs(b));
      largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
    }
  }
  return largest;
}

struct Tally {
  int graphs = 0;
  int runs = 0;
  int refused = 0;
  int several_passes = 0;
  int stored = 0;
  i64 elements = 0;  // of outputs
  i64 numbers = 0;   // of these, not NaN and decided by more than rounding
};

// One graph, every axis alone and some nests, at one of the chunk sizes each.
void check_seed(std::uint64_t seed, Tally& tally) {
  RandomGraphOptions options;
  options.most_elements = 400;
  options.long_axes = false;
  options.sixteen_bits = false;
  options.steps = 4 + static_cast<int>(seed % 9);
  options.differentiable = seed % 4 == 1;
  const RandomGraph random = random_graph(seed, options);
  Graph graph = random.graph;
  if (options.differentiable) {
    std::vector<std::string> wrt;
    for (const InputInfo& input : graph.inputs)
      if (is_floating(input.dtype)) wrt.push_back(input.name);
    std::vector<std::string> upstreams;
    for (const OutputInfo& output : graph.outputs)
      if (is_floating(output.dtype)) upstreams.push_back(output.name);
    graph = differentiate(graph, {.wrt = wrt, .output = {}, .upstreams = upstreams});
  }
  graph = prepare(graph, random.extents, {.exact = true});
  const EvaluateInputs inputs = random_inputs(graph, random.extents, seed, !options.differentiable);
  const std::vector<TensorValue> reference = evaluate(graph, inputs, {.honour_casts = false});
  const ChunkedRun whole = run_chunked(graph, inputs, {});
  INFO("seed " << seed);
  REQUIRE(largest_error(whole.outputs, reference) < 1e-9);
  std::vector<TensorValue> expected = whole.outputs;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i].undetermined = reference[i].undetermined;

  for (const TensorValue& output : expected) {
    for (std::size_t k = 0; k < output.value.size(); ++k) {
      ++tally.elements;
      if (!std::isnan(output.value[k]) && output.undetermined[k] == 0) ++tally.numbers;
    }
  }

  RandomSource choice(seed + 77);
  std::vector<AxisId> axes;
  for (AxisId axis = 0; axis < graph.axes.size(); ++axis) {
    const bool used =
        std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.axes.contains(axis); });
    if (used && inputs.extents[axis] >= 0) axes.push_back(axis);
  }
  ++tally.graphs;
  for (int trial = 0; trial < 6 && !axes.empty(); ++trial) {
    ChunkedOptions chunked;
    const std::int64_t depth = 1 + choice.below(std::min<std::int64_t>(3, static_cast<std::int64_t>(axes.size())));
    std::vector<AxisId> rest = axes;
    double leaves = 1;
    for (std::int64_t d = 0; d < depth; ++d) {
      const auto at = static_cast<std::size_t>(choice.below(static_cast<std::int64_t>(rest.size())));
      const i64 extent = inputs.extents[rest[at]];
      i64 size = choice.chance(0.35) ? 1 : choice.chance(0.3) ? std::max<i64>(extent, 1) : extent / 2 + 1;
      if (size == 1 && leaves * static_cast<double>(extent) > 300) size = extent / 3 + 1;
      leaves *= static_cast<double>(extent) / static_cast<double>(size);
      chunked.axes.push_back({rest[at], size});
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
    }
    chunked.store_large = choice.chance(0.5);
    std::string how;
    for (const ChunkedAxis& axis : chunked.axes)
      how += graph.axes[axis.axis].name + "/" + std::to_string(axis.size) + " ";
    INFO(how << (chunked.store_large ? "stored" : "recomputed"));
    ChunkedRun run;
    try {
      run = run_chunked(graph, inputs, chunked);
    } catch (const Error& error) {
      FAIL("seed " << seed << " " << how << error.what() << "\n" << print(graph));
    }
    ++tally.runs;
    if (!run.refusal.empty()) {
      ++tally.refused;
      continue;
    }
    tally.several_passes += run.passes[0].passes > 1 ? 1 : 0;
    tally.stored += run.stored.empty() ? 0 : 1;
    const double error = largest_error(run.outputs, expected);
    if (!(error < 1e-9)) FAIL("seed " << seed << " " << how << "error " << error << "\n" << print(graph));
  }
}

void check_seeds(std::uint64_t first, std::uint64_t last) {
  Tally tally;
  for (std::uint64_t seed = first; seed < last; ++seed) check_seed(seed, tally);
  INFO(tally.graphs << " graphs, " << tally.runs << " runs, " << tally.refused << " refused, " << tally.several_passes
                    << " of several passes, " << tally.stored << " with stores");
  // The graphs do exercise what is tested.
  CHECK(tally.refused * 5 < tally.runs);
  CHECK(tally.several_passes * 5 > tally.runs);
  CHECK(tally.stored * 50 > tally.runs);
  CHECK(tally.numbers * 10 > tally.elements * 9);
}

}  // namespace

TEST_CASE("levels: random graphs chunked over one to three axes", "[levels]") { check_seeds(1, 301); }
TEST_CASE("levels: many random graphs chunked over one to three axes", "[.full][levels]") { check_seeds(1000, 4000); }

}  // namespace tigon::dsl
