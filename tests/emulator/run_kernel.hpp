// What the tests of the emulator share: a machine, buffers on it, and launches of kernels out of PTX text.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/emulator/module.hpp"

namespace emulator_test {

using tigon::emulator::Fault;

std::string read_fixture(const std::string& name);  // tests/emulator/ptx/NAME

struct Grid {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 32;
  std::uint64_t dynamic_shared = 0;
  std::uint32_t cluster = 1;
};

class Runner {
 public:
  explicit Runner(const std::string& ptx) : module_(std::make_unique<tigon::emulator::LoadedModule>(ptx, machine)) {}

  template <class T>
  std::uint64_t put(const std::vector<T>& values, const std::string& name = "input") {
    auto& buffer = machine.memory.allocate(values.size() * sizeof(T), name);
    std::memcpy(buffer.data, values.data(), buffer.size);
    std::fill(buffer.state.begin(), buffer.state.end(), tigon::emulator::state_initialized);
    return buffer.address;
  }
  template <class T>
  std::uint64_t make(std::size_t count, const std::string& name = "output") {
    return machine.memory.allocate(count * sizeof(T), name).address;
  }
  template <class T>
  std::vector<T> get(std::uint64_t address, std::size_t count) {
    const auto* buffer = machine.memory.find(address, count * sizeof(T));
    if (buffer == nullptr) throw std::runtime_error("no such buffer");
    std::vector<T> values(count);
    std::memcpy(values.data(), buffer->data + (address - buffer->address), count * sizeof(T));
    return values;
  }
  // True if nothing was reported.
  template <class... Arguments>
  bool run(const std::string& kernel, Grid grid, Arguments... arguments) {
    const void* pointers[] = {static_cast<const void*>(&arguments)..., nullptr};
    return run_with(kernel, grid, pointers);
  }
  bool run_with(const std::string& kernel, Grid grid, const void* const* arguments);
  [[nodiscard]] std::string reports() const;
  [[nodiscard]] bool reported(Fault fault) const;
  [[nodiscard]] const tigon::emulator::LoadedModule& module() const { return *module_; }

  tigon::emulator::Machine machine;

 private:
  std::unique_ptr<tigon::emulator::LoadedModule> module_;
};

// Forward, reverse and two seeds.
std::vector<tigon::emulator::Schedule> all_schedules();

// A kernel of one warp that loads its operands a, b, c (rows of 32 elements of `bytes` bytes), executes `text` on
// registers %a, %b, %c of type `type`, and stores %d (of `result_bytes`). Returns the rows of d.
std::string instruction_kernel(const std::string& text, int bytes, int result_bytes);

// Runs `text` that way on operands given as bits; rows shorter than 32 repeat.
std::vector<std::uint64_t> execute(const std::string& text, int bytes, int result_bytes, std::vector<std::uint64_t> a,
                                   std::vector<std::uint64_t> b = {0}, std::vector<std::uint64_t> c = {0},
                                   tigon::emulator::Schedule schedule = {});

inline std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
inline std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }
inline float as_float(std::uint64_t value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value)); }
inline double as_double(std::uint64_t value) { return std::bit_cast<double>(value); }

}  // namespace emulator_test
