// Small kernels in PTX for tests of one check each: a frame with registers, a buffer and two shared arrays.
#include "small_kernel.hpp"

namespace emulator_test {

using namespace tigon::emulator;

std::string small_kernel(const std::string& body) {
  return R"(.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry test(.param .u64 buffer)
{
  .reg .pred %p<8>;
  .reg .b16 %h<8>;
  .reg .b32 %r<32>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<8>;
  .shared .align 16 .b8 first[256];
  .shared .align 16 .b8 second[256];
  ld.param.u64 %rd1, [buffer];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, first;
  mov.u32 %r4, second;
)" + body +
         "\n  ret;\n}\n";
}

std::string word_address(const std::string& reg) {
  return "mul.wide.u32 %rd2, " + reg + ", 4; add.s64 %rd2, %rd1, %rd2;";
}

Faults faults_of(const std::string& body, Grid grid) {
  Faults result;
  bool first = true;
  const auto ptx = small_kernel(body);
  for (const auto schedule : all_schedules()) {
    Runner runner(ptx);
    runner.machine.schedule = schedule;
    const auto buffer = runner.put(std::vector<std::uint32_t>(1024, 0), "buffer");
    runner.run("test", grid, buffer);
    std::vector<Fault> now;
    for (const auto& report : runner.machine.reports.all()) now.push_back(report.fault);
    result.ever.insert(result.ever.end(), now.begin(), now.end());
    result.never_clean &= !now.empty();
    if (first) {
      result.always = now;
    } else {
      std::erase_if(result.always, [&](Fault fault) { return std::find(now.begin(), now.end(), fault) == now.end(); });
    }
    first = false;
    result.text += runner.reports();
    result.words = runner.get<std::uint32_t>(buffer, 1024);
  }
  return result;
}

std::vector<std::uint32_t> words_of(const std::string& body, Grid grid) {
  std::vector<std::uint32_t> first;
  const auto ptx = small_kernel(body);
  for (const auto schedule : all_schedules()) {
    Runner runner(ptx);
    runner.machine.schedule = schedule;
    const auto buffer = runner.put(std::vector<std::uint32_t>(1024, 0), "buffer");
    if (!runner.run("test", grid, buffer)) throw std::runtime_error(runner.reports());
    const auto words = runner.get<std::uint32_t>(buffer, 1024);
    if (first.empty()) first = words;
    if (words != first) throw std::runtime_error("schedules differ");
  }
  return first;
}

}  // namespace emulator_test
