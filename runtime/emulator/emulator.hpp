// The emulated CUDA device: what a test or a loader of libraries asks of it. Everything else goes through the driver's
// own functions, which find_entry_point gives in place of a library's symbols.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/emulator/counters.hpp"
#include "runtime/emulator/report.hpp"
#include "runtime/emulator/schedule.hpp"

namespace tigon::emulator {

struct Options {
  std::string device = "h200";  // a key of the device table
  Schedule schedule{};
  // Work waits in its stream until the host waits for it, and streams then take turns at random (by the schedule's
  // seed): a missing event or synchronization shows.
  bool delay_streams = false;
  // A launch with a report makes later calls fail, as a fault of a real device does, until reports are cleared.
  bool faults_are_errors = true;
};

// The function of the CUDA driver API, or of cuBLASLt, with this name (cuMemAlloc_v2 as well as cuMemAlloc), with the
// signature of NVIDIA's headers; null if the emulator has none.
void* find_entry_point(std::string_view name);
std::vector<std::string> entry_points();

// Starts anew as a device of these options: everything that was allocated or loaded is gone.
// Throws std::invalid_argument that lists the known devices if the device is none of them.
void reset(const Options& options = {});
Options options();
void set_schedule(const Schedule& schedule);  // from the next launch on

std::vector<Report> reports();
void clear_reports();  // and the error that they caused
std::string reports_text();
Counters counters();
void clear_counters();
std::uint64_t live_allocations();

// What went wrong in the last call that failed, with the CUDA line where a kernel is to blame.
std::string last_error();

// Facts about an allocation that no call of the driver can tell: a name for reports, writability, and bytes that no
// kernel may touch, such as the padding behind each row.
bool name_allocation(std::uint64_t address, std::string_view name);
bool make_read_only(std::uint64_t address, bool read_only = true);
bool forbid(std::uint64_t address, std::uint64_t bytes);

}  // namespace tigon::emulator
