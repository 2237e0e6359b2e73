// What compilers make of library functions, divisions, switches, calls, local arrays and atomics, against the host.
#include <numeric>

#include "kernels.hpp"

using namespace emulator_test;

namespace {

std::string fixture() { return read_fixture(GENERATE("maths_sm_90a.ptx", "maths_sm_100a.ptx")); }

std::vector<std::int32_t> integers(std::size_t count) {
  tigon::emulator::Random random(9);
  std::vector<std::int32_t> values(count);
  for (auto& value : values) value = static_cast<std::int32_t>(random.next());
  return values;
}

}  // namespace

TEST_CASE("f32 functions of the CUDA library agree with the host's") {
  Runner runner(fixture());
  std::vector<float> x;
  for (int i = 0; i < 333; ++i) x.push_back(static_cast<float>(i - 166) * 0.043F);
  const int n = static_cast<int>(x.size());
  const auto y = runner.make<float>(x.size() * 12);
  REQUIRE(runner.run("float_functions", {11, 32}, runner.put(x), y, n));
  const auto got = runner.get<float>(y, x.size() * 12);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    const double a = std::fabs(v);
    const double wanted[] = {std::exp(v),
                             std::log(static_cast<double>(std::fabs(x[i]) + 0.5F)),
                             std::sin(v),
                             std::cos(static_cast<double>(x[i] * 1000.0F)),
                             std::tanh(v),
                             std::erf(v),
                             std::pow(a, static_cast<double>(1.7F)),
                             std::log1p(a),
                             1 / std::sqrt(static_cast<double>(std::fabs(x[i]) + 1.0F)),
                             std::floor(v) + std::rint(v),
                             v / 3 + std::sqrt(a),
                             std::fmod(v, static_cast<double>(0.7F))};
    for (std::size_t k = 0; k < 12; ++k) {
      const double error = std::fabs(got[i * 12 + k] - wanted[k]) / std::max(1.0, std::fabs(wanted[k]));
      INFO("function " << k << " of " << v << ": " << got[i * 12 + k] << " and " << wanted[k]);
      CHECK(error < 5e-7);
      worst = std::max(worst, error);
    }
  }
  CHECK(worst > 0);
}

TEST_CASE("f64 functions of the CUDA library agree with the host's") {
  Runner runner(fixture());
  std::vector<double> x;
  for (int i = 0; i < 200; ++i) x.push_back((i - 100) * 0.0731);
  const auto y = runner.make<double>(x.size() * 6);
  REQUIRE(runner.run("double_functions", {2, 128}, runner.put(x), y, static_cast<int>(x.size())));
  const auto got = runner.get<double>(y, x.size() * 6);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = std::fabs(x[i]);
    const double wanted[] = {std::exp(x[i]),   std::log(a + 0.5), std::sin(x[i]),
                             std::pow(a, 1.7), x[i] / 3,          std::sqrt(a)};
    for (std::size_t k = 0; k < 6; ++k) {
      INFO("function " << k << " of " << x[i]);
      CHECK(std::fabs(got[i * 6 + k] - wanted[k]) <= 4e-16 * std::max(1.0, std::fabs(wanted[k])));
    }
  }
}

TEST_CASE("integer functions agree with the host's") {
  Runner runner(fixture());
  auto x = integers(100);
  x[0] = 0;
  const auto y = runner.make<std::int32_t>(x.size() * 8);
  REQUIRE(runner.run("integer_functions", {1, 128}, runner.put(x), y, static_cast<int>(x.size()), -37));
  const auto got = runner.get<std::int32_t>(y, x.size() * 8);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto v = x[i];
    const auto u = static_cast<std::uint32_t>(v);
    const auto* r = got.data() + i * 8;
    CHECK(r[0] == v / -37);
    CHECK(r[1] == v % -37);
    CHECK(static_cast<std::uint32_t>(r[2]) == u / 7);
    CHECK(r[3] == std::popcount(u));
    CHECK(r[4] == std::countl_zero(u));
    CHECK(r[5] == static_cast<std::int32_t>(std::int64_t{v} * v >> 20));
    CHECK(std::countl_zero(static_cast<std::uint32_t>(r[6])) == std::countr_zero(u));
    CHECK(r[7] == (u == 0 ? 0 : std::countr_zero(u) + 1));
  }
}

TEST_CASE("lanes that go separate ways meet again") {
  const auto ptx = fixture();
  auto x = integers(96);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] & 0xff;
  const auto polynomial = [](float value, int degree) {
    float sum = 0;
    for (int i = 0; i <= degree; ++i) sum = sum * value + static_cast<float>(i + 1);
    return sum;
  };
  for (const auto schedule : all_schedules()) {
    Runner runner(ptx);
    runner.machine.schedule = schedule;
    const auto y = runner.put(std::vector<float>(x.size(), -5.0F), "y");
    REQUIRE(runner.run("divergent", {1, 96}, runner.put(x), y, 96));
    const auto got = runner.get<float>(y, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto table = [&](int k) { return static_cast<float>(k * k + x[(i + static_cast<std::size_t>(k)) % 96]); };
      float wanted = 7;
      switch (x[i] & 7) {
        case 0:
          wanted = polynomial(2, 3);
          break;
        case 1:
          wanted = table(x[i] >> 3 & 7);
          break;
        case 2:
          wanted = -1;
          break;
        case 3:
          wanted = polynomial(0.5F, x[i] >> 3 & 15);
          break;
        case 4:
          wanted = 0;
          for (int k = 0; k < (x[i] & 31); ++k) wanted += table(k & 7);
          break;
        case 5:
          wanted = -5;
          break;
        case 6:
          wanted = static_cast<float>(i) * 3;
          break;
        default:
          break;
      }
      CHECK(got[i] == wanted);
    }
  }
}

TEST_CASE("a transpose of ragged tiles is right and clean") {
  const auto ptx = fixture();
  constexpr int rows = 45;
  constexpr int columns = 70;
  std::vector<std::uint16_t> x(rows * columns);
  std::iota(x.begin(), x.end(), std::uint16_t{0});
  for (const auto schedule : all_schedules()) {
    Runner runner(ptx);
    runner.machine.schedule = schedule;
    const auto y = runner.make<std::uint16_t>(x.size());
    const bool clean = runner.run("transpose", {2, 128}, runner.put(x), y, rows, columns);
    INFO(runner.reports());
    REQUIRE(clean);
    const auto got = runner.get<std::uint16_t>(y, x.size());
    bool same = true;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        same &= got[static_cast<std::size_t>(j * rows + i)] == x[static_cast<std::size_t>(i * columns + j)];
      }
    }
    CHECK(same);
    CHECK(runner.machine.counters.shared_wavefronts <= 2 * runner.machine.counters.shared_requests);
  }
}

TEST_CASE("atomics in shared and global memory count every lane") {
  const auto ptx = fixture();
  auto x = integers(1000);
  for (auto& value : x) value &= 0xffff;
  for (const auto schedule : all_schedules()) {
    Runner runner(ptx);
    runner.machine.schedule = schedule;
    const auto bins = runner.put(std::vector<std::uint32_t>(16, 0), "bins");
    const auto sum = runner.put(std::vector<float>(1, 0), "sum");
    const auto total = runner.put(std::vector<std::uint64_t>(1, 0), "total");
    const bool clean = runner.run("histogram", {8, 128}, runner.put(x), bins, sum, total, 1000);
    INFO(runner.reports());
    REQUIRE(clean);
    const auto got = runner.get<std::uint32_t>(bins, 16);
    for (int bin = 0; bin < 16; ++bin) {
      CHECK(got[static_cast<std::size_t>(bin)] ==
            static_cast<std::uint32_t>(std::count_if(x.begin(), x.end(), [&](int v) { return (v & 15) == bin; })));
    }
    CHECK(runner.get<float>(sum, 1)[0] == 500);
    CHECK(runner.get<std::uint64_t>(total, 1)[0] == static_cast<std::uint64_t>(*std::max_element(x.begin(), x.end())));
    CHECK(runner.machine.counters.atomics == 3000 + 8 * 16);
  }
}

TEST_CASE("the last block may read what others wrote before a fence and an atomic, and not without the fence") {
  const auto run = [](const std::string& ptx, const tigon::emulator::Schedule& schedule, float& result) {
    Runner runner(ptx);
    runner.machine.schedule = schedule;
    const auto out = runner.make<float>(1, "out");
    const auto partials = runner.make<float>(7, "partials");
    const auto arrived = runner.put(std::vector<std::uint32_t>(1, 0), "arrived");
    runner.run("last_block_sum", {7, 64}, runner.put(std::vector<float>(3000, 0.25F)), partials, arrived, out, 3000);
    result = runner.get<float>(out, 1)[0];
    return runner.reports();
  };
  const auto correct = fixture();
  const auto wrong = read_fixture("bug_no_fence.ptx");
  for (const auto schedule : all_schedules()) {
    float result = 0;
    CHECK(run(correct, schedule, result).empty());
    CHECK(result == 750);
    CHECK_THAT(run(wrong, schedule, result), Catch::Contains("read after another thread's write"));
  }
}
