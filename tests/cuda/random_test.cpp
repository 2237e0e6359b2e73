// Random graphs as CUDA kernels on the emulated device: no faults, results within the reference's bounds.
#include "dsl/print.hpp"
#include "dsl/reference/random_graph.hpp"
#include "emulated_run.hpp"
#include "support.hpp"
#include "tigon/error.hpp"

using namespace tigon;
using namespace tigon::testing;

namespace {

void check_seeds(std::uint64_t first, std::uint64_t last) {
  if (nvrtc_or_skip() == nullptr) return;
  dsl::RandomGraphOptions options;
  options.most_elements = 4000;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const dsl::RandomGraph random = dsl::random_graph(seed, options);
    dsl::EvaluateInputs inputs = dsl::random_inputs(random.graph, random.extents, seed);
    inputs.extents = random.extents;
    INFO("seed " << seed);
    try {
      const emulator::Schedule schedule{seed % 2 == 0 ? emulator::Order::seeded : emulator::Order::reverse, seed,
                                        false};
      const EmulatedRun run = run_emulated(random.graph, inputs, {.schedule = schedule, .unfused = seed % 5 == 0});
      CHECK(run.faults == "");
      INFO(run.sentence);
      CHECK(run.wrong == 0);
    } catch (const std::runtime_error& error) {
      const auto* details = dynamic_cast<const Error*>(&error);
      FAIL_CHECK(error.what() << "\n" << (details == nullptr ? std::string() : details->details().log));
    }
  }
}

}  // namespace

TEST_CASE("emulated: random graphs", "[random]") { check_seeds(1, 25); }
TEST_CASE("emulated: random graphs that found faults once", "[random]") {
  for (const std::uint64_t seed : {52, 79, 107, 165, 171, 352}) check_seeds(seed, seed);
}
TEST_CASE("emulated: many random graphs", "[random][.full]") { check_seeds(26, 400); }
