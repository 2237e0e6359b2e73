// The types of the CUDA driver API that the emulated functions use, laid out as in NVIDIA's cuda.h.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tigon::emulator::driver {

enum Result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  invalid_device = 101,
  invalid_context = 201,
  no_binary_for_gpu = 209,
  invalid_ptx = 218,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_out_of_resources = 701,
  misaligned_address = 716,
  launch_failed = 719,
  not_supported = 801,
  stream_capture_unsupported = 900,
  stream_capture_invalidated = 901,
  stream_capture_unmatched = 903,
  stream_capture_implicit = 906,
  captured_event = 907,
  invalid_cluster_size = 912,
  unknown = 999,
};

using Pointer = unsigned long long;
using Device = int;

struct Context;
struct Stream;
struct Event;
struct Library;
struct Kernel;  // CUkernel and CUfunction are the same thing here
struct Graph;
struct GraphExec;

struct Uuid {
  char bytes[16];
};

union LaunchValue {
  char pad[64];
  struct {
    unsigned int x;
    unsigned int y;
    unsigned int z;
  } cluster;
  int number;
};
struct LaunchAttribute {
  int id;
  char pad[4];
  LaunchValue value;
};
inline constexpr int attribute_cluster_dimension = 4;

struct LaunchConfig {
  unsigned int grid_x, grid_y, grid_z;
  unsigned int block_x, block_y, block_z;
  unsigned int shared_bytes;
  Stream* stream;
  LaunchAttribute* attributes;
  unsigned int attribute_count;
};

}  // namespace tigon::emulator::driver
