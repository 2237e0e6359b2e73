// The GPUs that the emulated driver can pretend to be, with the facts that the driver reports about them.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace tigon::emulator {

struct DeviceFacts {
  std::string_view key;   // as in Options::device
  std::string_view name;  // as cuDeviceGetName says
  int major;
  int minor;
  int multiprocessors;
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int shared_per_multiprocessor;
  int shared_per_block;  // with the opt-in attribute; without it a block has 48 KiB
  int l2_bytes;
  int memory_bus_bits;
  int memory_clock_khz;
  int clock_khz;
  std::uint64_t memory_bytes;
};

const std::vector<DeviceFacts>& device_table();
const DeviceFacts* find_device(std::string_view key);  // null if there is none

}  // namespace tigon::emulator
