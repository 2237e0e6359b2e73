// Random graphs and their gradients, compiled for the CPU and held to the reference's bounds.
#include <catch2/catch.hpp>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>

#include "dsl/differentiate.hpp"
#include "dsl/passes.hpp"
#include "dsl/print.hpp"
#include "dsl/reference/compare.hpp"
#include "dsl/reference/random_graph.hpp"
#include "run_graph.hpp"
#include "tigon/error.hpp"

using namespace tigon;

namespace {

struct Tally {
  dsl::ErrorHistogram errors;
  dsl::NodeHistogram nodes;
  i64 graphs = 0, launches = 0, elements = 0, undetermined = 0;
  std::vector<std::string> failures;

  void fail(std::uint64_t seed, bool unfused, const std::string& what) {
    failures.push_back(fmt::format("seed {}{}: {}", seed, unfused ? " unfused" : "", what));
  }
  void check(std::uint64_t seed, const dsl::Graph& graph, const dsl::EvaluateInputs& inputs, bool both) {
    ++graphs;
    dsl::count_nodes(graph, nodes);
    const auto expected = dsl::evaluate(graph, inputs);
    for (const bool unfused : {false, true}) {
      if (unfused && !both) break;
      plan::PlanOptions options;
      options.unfused = unfused;
      try {
        const test::GraphRun run = test::run_on_cpu(graph, inputs.extents, inputs, options, 1);
        launches += run.launches;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const dsl::Comparison comparison = dsl::compare(expected[i], run.outputs[i]);
          elements += static_cast<i64>(expected[i].value.size());
          undetermined += comparison.undetermined;
          errors.add(expected[i], run.outputs[i]);
          if (comparison.wrong > 0) fail(seed, unfused, graph.outputs[i].name + ": " + comparison.sentence);
        }
      } catch (const Error& error) {
        fail(seed, unfused, error.what());
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
    failures.insert(failures.end(), other.failures.begin(), other.failures.end());
  }
  void report() const {
    WARN(errors.print() << "; " << graphs << " graphs, " << launches << " launches, " << undetermined << " of "
                        << elements << " elements undetermined\n"
                        << dsl::print(nodes));
    for (const std::string& failure : failures) FAIL_CHECK(failure);
    CHECK(undetermined * 100 < elements);
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
  tally.check(seed, graph, inputs, seed % 5 == 0);
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
  tally.check(seed, graph, inputs, seed % 5 == 0);
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
