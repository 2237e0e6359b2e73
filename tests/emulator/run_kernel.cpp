// What the tests of the emulator share: a machine, buffers on it, and launches of kernels out of PTX text.
#include "run_kernel.hpp"

#include <fstream>
#include <sstream>

namespace emulator_test {

using namespace tigon::emulator;

std::string read_fixture(const std::string& name) {
  std::ifstream file(std::string(TIGON_SOURCE_DIR) + "/tests/emulator/ptx/" + name);
  if (!file) throw std::runtime_error("there is no fixture " + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool Runner::run_with(const std::string& kernel, Grid grid, const void* const* arguments) {
  const auto* program = module_->kernel(kernel);
  if (program == nullptr) throw std::runtime_error("there is no kernel " + kernel);
  LaunchShape shape;
  shape.grid.x = grid.blocks;
  shape.block.x = grid.threads;
  shape.cluster.x = grid.cluster;
  shape.dynamic_shared = grid.dynamic_shared;
  Fault fault{};
  return run_kernel(machine, *program, shape, gather_parameters(*program, arguments), fault);
}

std::string Runner::reports() const {
  std::string text;
  for (const auto& report : machine.reports.all()) text += report.text() + "\n";
  return text;
}

bool Runner::reported(Fault fault) const {
  for (const auto& report : machine.reports.all()) {
    if (report.fault == fault) return true;
  }
  return false;
}

std::vector<Schedule> all_schedules() {
  return {
      {Order::forward, 1, false}, {Order::reverse, 1, false}, {Order::seeded, 1, false}, {Order::seeded, 20, false}};
}

std::string instruction_kernel(const std::string& text, int bytes, int result_bytes) {
  const auto type = [](int size) { return fmt::format("b{}", size * 8); };
  const auto load = [&](char name, int parameter) {
    return fmt::format(
        "  ld.param.u64 %address, [parameter_{}];\n  cvt.u64.u32 %offset, %lane;\n  mul.lo.u64 %offset, %offset, {};\n"
        "  add.u64 %address, %address, %offset;\n  ld.global.{} %{}, [%address];\n",
        parameter, bytes, type(bytes), name);
  };
  std::string kernel =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry test(.param .u64 parameter_0, .param .u64 "
      "parameter_1, .param .u64 parameter_2, .param .u64 parameter_3)\n{\n  .reg .b64 %address, %offset;\n"
      "  .reg .b32 %lane;\n  .reg .pred %p, %q;\n  .reg .b32 %w<8>;\n  .reg .b64 %l<8>;\n  .reg .b16 %h<8>;\n";
  kernel += fmt::format("  .reg .{} %a, %b, %c;\n  .reg .{} %d;\n  mov.u32 %lane, %tid.x;\n", type(bytes),
                        type(result_bytes));
  kernel += load('a', 0) + load('b', 1) + load('c', 2) + "  " + text + "\n";
  kernel += fmt::format(
      "  ld.param.u64 %address, [parameter_3];\n  cvt.u64.u32 %offset, %lane;\n  mul.lo.u64 %offset, %offset, {};\n"
      "  add.u64 %address, %address, %offset;\n  st.global.{} [%address], %d;\n  ret;\n}}\n",
      result_bytes, type(result_bytes));
  return kernel;
}

std::vector<std::uint64_t> execute(const std::string& text, int bytes, int result_bytes, std::vector<std::uint64_t> a,
                                   std::vector<std::uint64_t> b, std::vector<std::uint64_t> c, Schedule schedule) {
  Runner runner(instruction_kernel(text, bytes, result_bytes));
  runner.machine.schedule = schedule;
  const auto row = [&](const std::vector<std::uint64_t>& values) {
    std::vector<std::uint8_t> packed;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const auto* from = reinterpret_cast<const std::uint8_t*>(&values[lane % values.size()]);
      packed.insert(packed.end(), from, from + bytes);
    }
    return runner.put(packed);
  };
  const auto count = a.size();
  const auto result = runner.make<std::uint8_t>(static_cast<std::size_t>(32 * result_bytes));
  if (!runner.run("test", {1, 32}, row(a), row(b), row(c), result)) throw std::runtime_error(runner.reports());
  const auto bytes_out = runner.get<std::uint8_t>(result, static_cast<std::size_t>(32 * result_bytes));
  std::vector<std::uint64_t> values(std::min<std::size_t>(count, 32));
  for (std::size_t lane = 0; lane < values.size(); ++lane) {
    std::memcpy(&values[lane], bytes_out.data() + lane * static_cast<std::size_t>(result_bytes),
                static_cast<std::size_t>(result_bytes));
  }
  return values;
}

}  // namespace emulator_test
