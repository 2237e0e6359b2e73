// The GPUs known: multiprocessors, threads, rates, all from the makers' data sheets.
#include "codegen/schedule/gpu.hpp"

namespace tigon::schedule {
namespace {

struct Row {
  std::string_view name;
  std::string_view architecture;
  int multiprocessors;
  int resident_threads;     // of one multiprocessor
  double gigahertz;         // of the multiprocessors, boosted
  double memory_gigabytes;  // per second
  double cache_megabytes;   // second level
  double matmul_teraflops;  // dense, 16-bit floats
};

constexpr Row rows[] = {
    {"h200", "sm_90a", 132, 2048, 1.98, 4800, 50, 989},     {"h100", "sm_90a", 132, 2048, 1.98, 3350, 50, 989},
    {"a100", "sm_80", 108, 2048, 1.41, 2039, 40, 312},      {"b200", "sm_100a", 148, 2048, 1.97, 8000, 126, 2250},
    {"rtx5090", "sm_120a", 170, 1536, 2.41, 1792, 96, 210}, {"rtx4090", "sm_89", 128, 1536, 2.52, 1008, 72, 165},
    {"l40s", "sm_89", 142, 1536, 2.52, 864, 96, 362},       {"rtx3090", "sm_86", 82, 1536, 1.70, 936, 6, 71},
};

constexpr std::string_view names[] = {"h200",    "h100",  "a100",  "b200",  "rtx5090", "rtx4090", "l40s",
                                      "rtx3090", "sm_80", "sm_86", "sm_89", "sm_90a",  "sm_100a", "sm_120a"};

}  // namespace

std::span<const std::string_view> gpu_names() { return names; }

std::optional<DeviceModel> gpu_model(std::string_view name) {
  for (const Row& row : rows) {
    if (row.name != name && row.architecture != name) continue;
    DeviceModel model;
    model.name = std::string(name);
    model.architecture = std::string(row.architecture);
    model.multiprocessors = row.multiprocessors;
    model.resident_threads = row.resident_threads;
    model.vector_bytes = 16;
    model.partition_limit = 2 * row.multiprocessors;
    constexpr double lanes = 128;  // operations that a multiprocessor starts in a cycle
    constexpr double sector = 32;  // bytes of the smallest access to memory
    const double op_ns = 1 / (row.multiprocessors * lanes * row.gigahertz);
    model.vector_op_ns = op_ns;
    model.scalar_op_ns = op_ns * lanes;               // every thread of a row's team does it
    model.memory_byte_ns = 2 / row.memory_gigabytes;  // the cost model halves it
    model.contiguous_byte_ns = 0.25 / row.memory_gigabytes;
    model.strided_element_ns = sector / row.memory_gigabytes;
    model.streaming_bytes = row.cache_megabytes * 1e6;
    model.launch_ns = 3000;
    model.matmul_gflops = 0.8 * row.matmul_teraflops * 1000;
    return model;
  }
  return std::nullopt;
}

}  // namespace tigon::schedule
