// The kernels of tests/emulator/ptx with their inputs and what they should compute.
#pragma once
#include "run_kernel.hpp"

namespace emulator_test {

std::uint16_t to_bf16(double value);
double from_bf16(std::uint16_t bits);

struct Outcome {
  bool clean = false;
  double error = 0;                 // the greatest difference to a computation in double; NaN counts as infinite
  std::vector<std::uint64_t> bits;  // of all results
  std::string reports;
  std::vector<tigon::emulator::Report> list;
  tigon::emulator::Counters counters;
  double seconds = 0;  // of the launch alone
};

Outcome run_scale_rows(const std::string& ptx, tigon::emulator::Schedule schedule, std::uint32_t rows = 3,
                       std::uint32_t threads = 128, std::uint32_t vectors = 200);
Outcome run_exp_rows(const std::string& ptx, tigon::emulator::Schedule schedule, std::uint32_t rows = 3,
                     std::uint32_t width = 1003);
Outcome run_multiply_tiles(const std::string& ptx, tigon::emulator::Schedule schedule, std::uint32_t m = 64,
                           std::uint32_t n = 128, std::uint32_t k = 128);
Outcome run_sum_cluster(const std::string& ptx, tigon::emulator::Schedule schedule);

}  // namespace emulator_test
