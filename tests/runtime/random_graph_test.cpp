// Random graphs and their gradients, compiled for the CPU and held to the reference's bounds.
#include <catch2/catch.hpp>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "dsl/differentiate.hpp"
#include "dsl/passes.hpp"
#include "dsl/print.hpp"
#include "dsl/reference/compare.hpp"
#include "dsl/reference/random_graph.hpp"
#include "run_graph.hpp"
#include "runtime/cpu/matmul_support.hpp"
#include "tigon/error.hpp"

using namespace tigon;

namespace {

struct Tally {
  dsl::ErrorHistogram errors;
  dsl::NodeHistogram nodes;
  i64 graphs = 0, launches = 0, elements = 0, undetermined = 0, chunked = 0, refused = 0;
  std::vector<std::string> failures;

  // Ways to plan one graph: fused; now and then every value on its own; in chunks of one or two axes drawn at random.
  static std::vector<plan::PlanOptions> ways(std::uint64_t seed, const dsl::Extents& extents) {
    std::vector<plan::PlanOptions> result(1);
    result[0].matmul = runtime::cpu_matmul_support();
    if (seed % 5 == 0) {
      result.emplace_back();
      result.back().unfused = true;
    }
    std::mt19937_64 random(seed);
    plan::PlanOptions chunks;
    for (std::uint64_t count = 1 + random() % 2; count > 0 && !extents.empty(); --count) {
      const auto axis = static_cast<dsl::AxisId>(random() % extents.size());
      const std::int64_t longest = std::min<std::int64_t>(extents[axis] - 1, 9);
      if (longest < 1) continue;
      const std::int64_t chunk = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest));
      chunks.strategies.push_back({.axis = axis, .bytes = random() % 2 == 0 ? 1.0 : 64.0, .chunk = chunk});
    }
    if (!chunks.strategies.empty()) result.push_back(chunks);
    return result;
  }
  static std::string describe(const dsl::Graph& graph, const plan::PlanOptions& options) {
    std::string text = options.unfused ? " unfused" : "";
    for (const plan::Strategy& strategy : options.strategies) {
      text += fmt::format(" in chunks of {} {}", strategy.chunk, graph.axes[strategy.axis].name);
    }
    return text;
  }
  void check(std::uint64_t seed, const dsl::Graph& graph, const dsl::EvaluateInputs& inputs) {
    ++graphs;
    dsl::count_nodes(graph, nodes);
    const auto expected = dsl::evaluate(graph, inputs);
    for (const plan::PlanOptions& options : ways(seed, inputs.extents)) {
      const auto fail = [&](const std::string& what) {
        failures.push_back(fmt::format("seed {}{}: {}", seed, describe(graph, options), what));
      };
      try {
        const test::GraphRun run = test::run_on_cpu(graph, inputs.extents, inputs, options, 1);
        launches += run.launches;
        if (!options.strategies.empty()) ++chunked;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const dsl::Comparison comparison = dsl::compare(expected[i], run.outputs[i]);
          elements += static_cast<i64>(expected[i].value.size());
          undetermined += comparison.undetermined;
          errors.add(expected[i], run.outputs[i]);
          if (comparison.wrong > 0) fail(graph.outputs[i].name + ": " + comparison.sentence);
        }
      } catch (const Error& error) {
        if (error.details().argument == "strategies")
          ++refused;
        else
          fail(error.what());
      }
    }
  }
  void add(const Tally& other) {
    errors.exact += other.errors.exact;
    errors.below += other.errors.below;
    errors.above += other.errors.above;
    for (std::size_t d = 0; d < errors.counts.size(); ++d) errors.counts[d] += other.errors.counts[d];
    errors.ratios.insert(errors.ratios.end(), other.errors.ratios.begin(), other.errors.ratios.end());
    for (const auto& [name, count] : other.nodes) nodes[name] += count;
    graphs += other.graphs;
    launches += other.launches;
    elements += other.elements;
    undetermined += other.undetermined;
    chunked += other.chunked;
    refused += other.refused;
    failures.insert(failures.end(), other.failures.begin(), other.failures.end());
  }
  void report() const {
    WARN(errors.print() << "; " << graphs << " graphs, " << chunked << " of them in chunks (" << refused
                        << " axes refused), " << launches << " launches, " << undetermined << " of " << elements
                        << " elements undetermined\n"
                        << dsl::print(nodes));
    for (const std::string& failure : failures) FAIL_CHECK(failure);
    CHECK(undetermined * 100 < elements);
    CHECK(chunked > 4 * refused);
    CHECK(errors.median() > 1e-4);  // below: the bound is too loose to find anything
    CHECK(errors.median() < 1);
  }
};

// Each seed once, on all cores.
Tally check_all(std::uint64_t first, std::uint64_t last, const std::function<void(Tally&, std::uint64_t)>& check) {
  Tally total;
  std::mutex mutex;
  std::atomic<std::uint64_t> next{first};
  const auto work = [&] {
    Tally own;
    for (std::uint64_t seed = next++; seed <= last; seed = next++) check(own, seed);
    const std::lock_guard lock(mutex);
    total.add(own);
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return total;
}

void check_seed(Tally& tally, std::uint64_t seed, const dsl::RandomGraphOptions& options) {
  const dsl::RandomGraph random = dsl::random_graph(seed, options);
  const dsl::Graph graph = dsl::prepare(random.graph, random.extents, {});
  dsl::EvaluateInputs inputs = dsl::random_inputs(graph, random.extents, seed, seed % 3 == 0);
  inputs.extents = random.extents;
  tally.check(seed, graph, inputs);
}

// The gradients of every float output with regard to every float input, at given upstreams.
void check_gradient(Tally& tally, std::uint64_t seed) {
  const dsl::RandomGraph random =
      dsl::random_graph(seed, {.steps = 7, .most_elements = 6000, .long_axes = false, .differentiable = true});
  dsl::DifferentiateOptions options;
  for (const dsl::InputInfo& input : random.graph.inputs) {
    if (is_floating(input.dtype)) options.wrt.push_back(input.name);
  }
  for (const dsl::OutputInfo& output : random.graph.outputs) {
    if (is_floating(output.dtype)) options.upstreams.push_back(output.name);
  }
  if (options.wrt.empty() || options.upstreams.empty()) return;
  const dsl::Graph graph = dsl::prepare(dsl::differentiate(random.graph, options), random.extents, {});
  dsl::Extents extents(graph.axes.size(), -1);
  for (std::size_t axis = 0; axis < graph.axes.size(); ++axis) {
    for (std::size_t other = 0; other < random.graph.axes.size(); ++other) {
      if (graph.axes[axis].name == random.graph.axes[other].name) extents[axis] = random.extents[other];
    }
  }
  extents = dsl::resolve_extents(graph, extents);
  dsl::EvaluateInputs inputs = dsl::random_inputs(graph, extents, seed);
  inputs.extents = extents;
  tally.check(seed, graph, inputs);
}

// Those of TESTS_SEEDS, "FIRST-LAST", else 1 to `count`: one seed again, a part of a long run, or new ones.
std::pair<std::uint64_t, std::uint64_t> asked_seeds(std::uint64_t count) {
  const char* text = std::getenv("TESTS_SEEDS");
  if (text == nullptr) return {1, count};
  std::uint64_t first = 0, last = 0;
  const std::string_view asked = text;
  const auto [middle, error] = std::from_chars(asked.begin(), asked.end(), first);
  if (error != std::errc() || middle == asked.end() || *middle != '-' ||
      std::from_chars(middle + 1, asked.end(), last).ptr != asked.end() || first > last) {
    throw std::runtime_error("TESTS_SEEDS is " + std::string(asked) + ", not as in 1-500");
  }
  return {first, last};
}

}  // namespace

TEST_CASE("random graphs compiled for the CPU", "[random]") {
  check_all(1, 500, [](Tally& tally, std::uint64_t seed) {
    check_seed(tally, seed, {.steps = 8, .most_elements = 20'000});
  }).report();
}
TEST_CASE("gradients of random graphs compiled for the CPU", "[random]") { check_all(1, 60, check_gradient).report(); }

TEST_CASE("20,000 random graphs compiled for the CPU", "[.full]") {
  const auto [first, last] = asked_seeds(20'000);
  check_all(first, last, [](Tally& tally, std::uint64_t seed) { check_seed(tally, seed, {}); }).report();
}
TEST_CASE("gradients of 2,000 random graphs compiled for the CPU", "[.full]") {
  const auto [first, last] = asked_seeds(2'000);
  check_all(first, last, check_gradient).report();
}
