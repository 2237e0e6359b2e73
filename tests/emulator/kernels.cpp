// The kernels of tests/emulator/ptx with their inputs and what they should compute.
#include "kernels.hpp"

#include <chrono>

#include "runtime/emulator/half.hpp"

namespace emulator_test {

using namespace tigon::emulator;

std::uint16_t to_bf16(double value) { return float_to_bf16(static_cast<float>(value)); }
double from_bf16(std::uint16_t bits) { return bf16_to_float(bits); }

namespace {

std::vector<std::uint16_t> random_bf16(std::size_t count, std::uint64_t seed, double scale = 1) {
  Random random(seed);
  std::vector<std::uint16_t> values(count);
  for (auto& value : values) {
    value = to_bf16(scale * (static_cast<double>(random.below(20001)) / 10000 - 1));
  }
  return values;
}

void compare(Outcome& outcome, double got, double wanted) {
  const double difference = std::fabs(got - wanted);
  outcome.error = std::max(outcome.error, std::isnan(difference) ? INFINITY : difference);
}

template <class T>
void keep(Outcome& outcome, const std::vector<T>& values) {
  for (const auto& value : values) {
    std::uint64_t copy = 0;
    std::memcpy(&copy, &value, sizeof value);
    outcome.bits.push_back(copy);
  }
}

template <class... Arguments>
void launch(Outcome& outcome, Runner& runner, const std::string& kernel, Grid grid, Arguments... arguments) {
  const auto begin = std::chrono::steady_clock::now();
  outcome.clean = runner.run(kernel, grid, arguments...);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void finish(Outcome& outcome, Runner& runner) {
  outcome.reports = runner.reports();
  outcome.list = runner.machine.reports.all();
  outcome.counters = runner.machine.counters;
}

}  // namespace

Outcome run_scale_rows(const std::string& ptx, Schedule schedule, std::uint32_t rows, std::uint32_t threads,
                       std::uint32_t vectors) {
  Runner runner(ptx);
  runner.machine.schedule = schedule;
  const std::size_t width = std::size_t{vectors} * 8;
  const auto x = random_bf16(rows * width, 1);
  const auto w = random_bf16(width, 2);
  const auto y = runner.make<std::uint16_t>(rows * width, "y");
  const auto sums = runner.make<float>(rows, "sums");
  Outcome outcome;
  launch(outcome, runner, "scale_rows", {rows, threads}, runner.put(x, "x"), runner.put(w, "w"), y, sums,
         static_cast<std::int32_t>(vectors), 1e-5F);
  const auto got = runner.get<std::uint16_t>(y, rows * width);
  const auto got_sums = runner.get<float>(sums, rows);
  for (std::size_t row = 0; row < rows; ++row) {
    double squares = 0;
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double value = from_bf16(x[row * width + i]);
      squares += value * value;
      sum += value;
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
    for (std::size_t i = 0; i < width; ++i) {
      compare(outcome, from_bf16(got[row * width + i]), from_bf16(x[row * width + i]) * scale * from_bf16(w[i]));
    }
    compare(outcome, got_sums[row], sum);
  }
  keep(outcome, got);
  keep(outcome, got_sums);
  finish(outcome, runner);
  return outcome;
}

Outcome run_exp_rows(const std::string& ptx, Schedule schedule, std::uint32_t rows, std::uint32_t width) {
  Runner runner(ptx);
  runner.machine.schedule = schedule;
  const auto x = random_bf16(std::size_t{rows} * width, 3, 8);
  const auto buffer = runner.put(x, "x");
  const auto logs = runner.make<float>(rows, "logs");
  Outcome outcome;
  launch(outcome, runner, "exp_rows", {rows, 128}, buffer, logs, static_cast<std::int32_t>(width));
  const auto got = runner.get<std::uint16_t>(buffer, x.size());
  const auto got_logs = runner.get<float>(logs, rows);
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += std::exp(from_bf16(x[row * width + i]));
    for (std::size_t i = 0; i < width; ++i) {
      compare(outcome, from_bf16(got[row * width + i]), std::exp(from_bf16(x[row * width + i])) / sum);
    }
    compare(outcome, got_logs[row], std::log(sum));
  }
  keep(outcome, got);
  keep(outcome, got_logs);
  finish(outcome, runner);
  return outcome;
}

Outcome run_multiply_tiles(const std::string& ptx, Schedule schedule, std::uint32_t m, std::uint32_t n,
                           std::uint32_t k) {
  Runner runner(ptx);
  runner.machine.schedule = schedule;
  const auto a = random_bf16(std::size_t{m} * k, 4);
  const auto b = random_bf16(std::size_t{n} * k, 5);
  const auto c = runner.make<float>(std::size_t{m} * n, "c");
  Outcome outcome;
  launch(outcome, runner, "multiply_tiles", {m / 64 * (n / 64), 128}, runner.put(a, "a"), runner.put(b, "b"), c,
         static_cast<std::int32_t>(n), static_cast<std::int32_t>(k));
  const auto got = runner.get<float>(c, std::size_t{m} * n);
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      double sum = 0;
      for (std::size_t i = 0; i < k; ++i) sum += from_bf16(a[row * k + i]) * from_bf16(b[column * k + i]);
      compare(outcome, got[row * n + column], sum);
    }
  }
  keep(outcome, got);
  finish(outcome, runner);
  return outcome;
}

Outcome run_sum_cluster(const std::string& ptx, Schedule schedule) {
  Runner runner(ptx);
  runner.machine.schedule = schedule;
  constexpr std::uint32_t blocks = 8;
  constexpr std::size_t count = 200;
  std::vector<float> x(blocks * count);
  Random random(6);
  for (auto& value : x) value = static_cast<float>(random.below(1000));
  const auto out = runner.make<float>(blocks, "out");
  Outcome outcome;
  launch(outcome, runner, "sum_cluster", {blocks, 64, 0, 4}, runner.put(x, "x"), out, static_cast<std::int32_t>(count));
  const auto got = runner.get<float>(out, blocks);
  for (std::size_t block = 0; block < blocks; ++block) {
    double sum = 0;
    for (std::size_t i = block / 4 * 4 * count; i < (block / 4 + 1) * 4 * count; ++i) sum += x[i];
    compare(outcome, got[block], sum);
  }
  keep(outcome, got);
  finish(outcome, runner);
  return outcome;
}

}  // namespace emulator_test
