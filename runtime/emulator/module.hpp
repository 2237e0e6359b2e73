// A module loaded into the emulated device: its variables in device memory and its kernels, decoded.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/launch.hpp"

namespace tigon::emulator {

// The state of one emulated GPU that outlives launches.
struct Machine {
  DeviceMemory memory;
  Reports reports;
  Counters counters;
  Schedule schedule;
  std::uint32_t sm_count = 132;
  std::uint64_t gangs = 0;
};

class LoadedModule {
 public:
  // Throws PtxError when the text cannot be parsed or holds an instruction that is not known.
  LoadedModule(std::string_view ptx, Machine& machine);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  [[nodiscard]] const Program* kernel(std::string_view name) const;  // null if there is none
  [[nodiscard]] const Buffer* variable(std::string_view name) const;
  [[nodiscard]] const std::map<std::string, std::unique_ptr<Program>, std::less<>>& kernels() const { return kernels_; }
  [[nodiscard]] const std::string& target() const { return target_; }

 private:
  explicit LoadedModule(Machine& machine) : machine_(machine) {}
  Machine& machine_;
  std::string target_;
  std::map<std::string, std::unique_ptr<Program>, std::less<>> kernels_;
  std::map<std::string, Buffer*, std::less<>> variables_;
};

// Copies a launch's arguments, given by address, into parameter bytes.
std::vector<std::uint8_t> gather_parameters(const Program& program, const void* const* arguments);

// Runs a kernel on the machine, adding to its counters; true if nothing was reported.
bool run_kernel(Machine& machine, const Program& program, const LaunchShape& shape,
                std::vector<std::uint8_t> parameters, Fault& first_fault);

}  // namespace tigon::emulator
