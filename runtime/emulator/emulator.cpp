// The emulated CUDA device: what a test or a loader of libraries asks of it.
#include "runtime/emulator/emulator.hpp"

#include <algorithm>
#include <map>

#include "runtime/emulator/driver.hpp"

namespace tigon::emulator {

namespace {

const std::map<std::string, void*, std::less<>>& table() {
  static const auto functions = [] {
    std::map<std::string, void*, std::less<>> result;
    for (const auto& part :
         {driver::device_entry_points(), driver::memory_entry_points(), driver::stream_entry_points(),
          driver::library_entry_points(), driver::blas_entry_points()}) {
      for (const auto& entry : part) result[entry.name] = entry.function;
    }
    return result;
  }();
  return functions;
}

template <class Function>
auto with_driver(Function&& function) {
  auto& driver = driver::Driver::instance();
  const std::lock_guard lock(driver.mutex);
  return function(driver);
}

}  // namespace

void* find_entry_point(std::string_view name) {
  const auto at = table().find(name);
  return at == table().end() ? nullptr : at->second;
}

std::vector<std::string> entry_points() {
  std::vector<std::string> names;
  for (const auto& [name, function] : table()) names.push_back(name);
  return names;
}

void reset(const Options& options) {
  with_driver([&](driver::Driver& driver) { driver.reset(options); });
}

Options options() {
  return with_driver([](driver::Driver& driver) { return driver.options; });
}

void set_schedule(const Schedule& schedule) {
  with_driver([&](driver::Driver& driver) {
    driver.options.schedule = schedule;
    driver.machine->schedule = schedule;
  });
}

std::vector<Report> reports() {
  return with_driver([](driver::Driver& driver) { return driver.machine->reports.all(); });
}

void clear_reports() {
  with_driver([](driver::Driver& driver) {
    driver.machine->reports.clear();
    driver.pending = driver::success;
    driver.error.clear();
  });
}

std::string reports_text() {
  std::string text;
  for (const auto& report : reports()) text += report.text() + "\n";
  return text;
}

Counters counters() {
  return with_driver([](driver::Driver& driver) { return driver.machine->counters; });
}

void clear_counters() {
  with_driver([](driver::Driver& driver) { driver.machine->counters = {}; });
}

std::uint64_t live_allocations() {
  return with_driver([](driver::Driver& driver) { return driver.machine->memory.live_allocations(); });
}

std::string last_error() {
  return with_driver([](driver::Driver& driver) { return driver.error; });
}

bool name_allocation(std::uint64_t address, std::string_view name) {
  return with_driver([&](driver::Driver& driver) {
    auto* buffer = driver.machine->memory.find(address, 0);
    if (buffer == nullptr) return false;
    buffer->name = name;
    return true;
  });
}

bool make_read_only(std::uint64_t address, bool read_only) {
  return with_driver([&](driver::Driver& driver) {
    auto* buffer = driver.machine->memory.find(address, 0);
    if (buffer == nullptr) return false;
    buffer->read_only = read_only;
    return true;
  });
}

bool forbid(std::uint64_t address, std::uint64_t bytes) {
  return with_driver([&](driver::Driver& driver) {
    auto* buffer = driver.machine->memory.find(address, bytes);
    if (buffer == nullptr) return false;
    auto* state = buffer->state.data() + (address - buffer->address);
    std::for_each(state, state + bytes,
                  [](std::uint8_t& byte) { byte = static_cast<std::uint8_t>(byte | state_forbidden); });
    return true;
  });
}

}  // namespace tigon::emulator
