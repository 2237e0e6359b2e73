// What a schedule is asked to compute: a kernel's own small graph, its extents, and how its buffers lie in memory.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "codegen/loops/nest.hpp"
#include "dsl/graph.hpp"

namespace tigon::schedule {

// A kernel before it has a nest. Inputs of `graph` are stored values (possibly states, one parameter per slot); outputs
// are what the kernel stores (a fold stands for its state). Layouts are the inputs' and outputs' `axes`.
struct KernelRequest {
  dsl::Graph graph;
  dsl::Extents extents;                 // by the kernel graph's AxisId, at the planned sizes
  dsl::AxisSet fixed;                   // axes whose extents may be constants in the text
  dsl::AxisSet chunked;                 // axes of which this launch sees a chunk: iota adds the origin
  std::vector<int> in_place;            // by output: the input whose buffer it overwrites, or -1
  std::vector<bool> streaming;          // by output: will not be read again soon
  bool whole = false;                   // no output may be left as one state per partition
  std::vector<std::vector<int>> parts;  // outputs by part: independent pieces that share one launch
};

// The device as schedules see it.
struct DeviceModel {
  std::string name = "cpu";
  int vector_bytes = 64;
  int partition_limit = 64;    // shares of a grid loop; fixed, so that bits do not depend on threads
  double vector_op_ns = 0.03;  // one simple operation on one element of a full vector
  double scalar_op_ns = 0.35;
  double contiguous_byte_ns = 0.02;
  double strided_element_ns = 0.8;
  double memory_byte_ns = 0.06;   // per core, outside the cache
  double streaming_bytes = 32e6;  // results from this size on bypass the cache
  double launch_ns = 3000;
  double matmul_gflops = 150;
  // GPUs only; 0 multiprocessors: a target without threads of its own.
  std::string architecture{};  // "sm_90a"
  int multiprocessors = 0;
  int resident_threads = 0;  // of one multiprocessor
};

// Number of shares of a part's grid loop: min(limit, ceil(product of extents / unit)), at least 1.
struct PartitionCount {
  std::vector<dsl::AxisId> rows;
  std::int64_t unit = 1;
  std::int64_t limit = 64;
  [[nodiscard]] std::int64_t count(const dsl::Extents& extents) const;
};

// An output's place in memory that differs from its declared layout: a fold over the grid is stored as one state per
// partition, merged by whoever reads it.
struct StoredOutput {
  bool partial = false;  // has a leading dimension: the partitions of the output's part
};

struct Scheduled {
  loops::Nest nest;
  std::vector<dsl::AxisId> nest_axes;                              // nest axis -> the kernel graph's AxisId
  std::vector<PartitionCount> partitions;                          // by part
  std::vector<StoredOutput> outputs;                               // by graph output
  std::vector<std::vector<loops::ParameterId>> input_parameters;   // by graph input, by state slot
  std::vector<std::vector<loops::ParameterId>> output_parameters;  // by graph output, by state slot
  std::vector<std::uint32_t> scalar_inputs;                        // nest scalar -> graph scalar
  bool streams = false;      // some store bypasses the cache: a fence ends each share
  int error_parameter = -1;  // receives 1 + the gather's number when a checked index is out of range
  double cost_ns = 0;
  std::string family;       // "row", "column", ...
  std::string explanation;  // one sentence for explain
};
struct Refusal {
  std::string reason;  // a sentence with numbers
};
using Offer = std::variant<Scheduled, Refusal>;

// The best offer of all families.
Offer schedule(const KernelRequest& request, const DeviceModel& device, const std::string& name);
// The outputs among those that `request.in_place` wants stored over an input for which that is not possible.
std::vector<int> unsafe_in_place(const KernelRequest& request, const DeviceModel& device);
constexpr std::size_t any_places = ~std::size_t{0};
// The same decision without building the nest: its predicted time, or a refusal. Cheap enough for clustering, where
// `most_places` bounds how many values, each at every place where a sweep computes it, are worth a kernel.
std::variant<double, Refusal> predict(const KernelRequest& request, const DeviceModel& device,
                                      std::size_t most_places = any_places);

}  // namespace tigon::schedule
