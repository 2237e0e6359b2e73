// Correct kernels give no report and equal bits under every schedule; each planted fault is reported under every one.
#include "kernels.hpp"

using namespace emulator_test;
using tigon::emulator::Fault;
using tigon::emulator::Schedule;

namespace {

using Run = Outcome (*)(const std::string&, Schedule);
Outcome scale(const std::string& ptx, Schedule schedule) { return run_scale_rows(ptx, schedule); }
Outcome exponentials(const std::string& ptx, Schedule schedule) { return run_exp_rows(ptx, schedule); }
Outcome product(const std::string& ptx, Schedule schedule) { return run_multiply_tiles(ptx, schedule); }

struct Planted {
  const char* fixture;
  Run run;
  std::vector<Fault> expected;  // every one of these
};

}  // namespace

TEST_CASE("correct kernels are clean and give the same bits under every schedule") {
  const std::string architecture = GENERATE("sm_90a", "sm_100a");
  struct Correct {
    std::string fixture;
    Run run;
    double bound;
  };
  for (const auto& correct : {Correct{"rows_", scale, 8e-3}, Correct{"rows_", exponentials, 4e-3},
                              Correct{"tile_", product, 1e-4}, Correct{"cluster_", run_sum_cluster, 1e-2}}) {
    const auto ptx = read_fixture(correct.fixture + architecture + ".ptx");
    std::vector<std::uint64_t> first;
    for (const auto schedule : all_schedules()) {
      const auto outcome = correct.run(ptx, schedule);
      INFO(correct.fixture << architecture << "\n" << outcome.reports);
      CHECK(outcome.clean);
      CHECK(outcome.reports.empty());
      CHECK(outcome.error < correct.bound);
      if (first.empty()) first = outcome.bits;
      CHECK((outcome.bits == first));
    }
  }
}

TEST_CASE("every planted fault is reported under every schedule") {
  const std::vector<Planted> faults = {
      {"bug_past_end.ptx", scale, {Fault::out_of_bounds}},
      {"bug_misaligned.ptx", scale, {Fault::misaligned}},
      {"bug_no_sync_after_store.ptx", scale, {Fault::race_write_read}},
      {"bug_no_sync_before_reuse.ptx", scale, {Fault::race_read_write}},
      {"bug_too_many_partials.ptx", scale, {Fault::uninitialized}},
      {"bug_no_sync_before_broadcast.ptx", exponentials, {Fault::race_write_read}},
      {"bug_wait_too_little.ptx", product, {Fault::copy_pending}},
      {"bug_no_trailing_sync.ptx", product, {Fault::race_read_write}},
      {"bug_no_barrier_before_read.ptx", run_sum_cluster, {Fault::race_write_read}},
      {"bug_no_barrier_before_exit.ptx", run_sum_cluster, {Fault::block_exited}},
  };
  for (const auto& fault : faults) {
    const auto ptx = read_fixture(fault.fixture);
    for (const auto schedule : all_schedules()) {
      const auto outcome = fault.run(ptx, schedule);
      INFO(fault.fixture << " order " << static_cast<int>(schedule.order) << "\n" << outcome.reports);
      CHECK_FALSE(outcome.clean);
      for (const auto expected : fault.expected) {
        bool found = false;
        for (const auto& report : outcome.list) found |= report.fault == expected;
        CHECK(found);
      }
    }
  }
}

TEST_CASE("perturbed kernels stay inside their bounds, and stay reproducible") {
  const auto rows = read_fixture("rows_sm_90a.ptx");
  bool moved = false;
  const auto plain = run_exp_rows(rows, {});
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Schedule schedule{tigon::emulator::Order::reverse, seed, true};
    const auto outcome = run_exp_rows(rows, schedule);
    CHECK(outcome.clean);
    CHECK(outcome.error < 4e-3);
    CHECK((outcome.bits == run_exp_rows(rows, schedule).bits));
    moved |= outcome.bits != plain.bits;
  }
  CHECK(moved);
}
