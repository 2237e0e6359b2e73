// The GPUs that the emulated driver can pretend to be, with the facts that the driver reports about them.
//
// From NVIDIA's architecture white papers, data sheets and the CUDA C++ programming guide's table of compute
// capabilities; memory sizes are those of the data sheets, so a real device reports a little less.
#include "runtime/emulator/device_table.hpp"

namespace tigon::emulator {

const std::vector<DeviceFacts>& device_table() {
  constexpr int kib = 1024;
  constexpr int mib = 1024 * 1024;
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  static const std::vector<DeviceFacts> table = {
      {"h200", "NVIDIA H200", 9, 0, 132, 2048, 32, 228 * kib, 227 * kib, 50 * mib, 6144, 3201000, 1980000, 141 * gib},
      {"h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 2048, 32, 228 * kib, 227 * kib, 50 * mib, 5120, 2619000, 1980000,
       80 * gib},
      {"a100", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 2048, 32, 164 * kib, 163 * kib, 40 * mib, 5120, 1593000, 1410000,
       80 * gib},
      {"l40s", "NVIDIA L40S", 8, 9, 142, 1536, 24, 100 * kib, 99 * kib, 96 * mib, 384, 9001000, 2520000, 48 * gib},
      {"rtx4090", "NVIDIA GeForce RTX 4090", 8, 9, 128, 1536, 24, 100 * kib, 99 * kib, 72 * mib, 384, 10501000, 2520000,
       24 * gib},
      {"b200", "NVIDIA B200", 10, 0, 148, 2048, 32, 228 * kib, 227 * kib, 126 * mib, 8192, 3996000, 1965000, 180 * gib},
      {"rtx5090", "NVIDIA GeForce RTX 5090", 12, 0, 170, 1536, 24, 100 * kib, 99 * kib, 96 * mib, 512, 14001000,
       2407000, 32 * gib},
  };
  return table;
}

const DeviceFacts* find_device(std::string_view key) {
  for (const auto& device : device_table()) {
    if (device.key == key) return &device;
  }
  return nullptr;
}

}  // namespace tigon::emulator
