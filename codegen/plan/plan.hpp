// The plan: a value that says which kernels, matmuls and chunk loops compute a function, on which buffers. Needs no
// device.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "codegen/schedule/kernel.hpp"
#include "dsl/graph.hpp"

namespace tigon::plan {

using BufferId = std::uint32_t;
inline constexpr BufferId no_buffer = 0xffffffffu;

enum class Home : std::uint8_t { argument, output, workspace };
// Memory with a layout. Sizes follow from the axes' extents at bind; an axis in `chunked` has its chunk's extent.
struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  std::vector<dsl::AxisId> axes;  // outermost first
  Home home = Home::workspace;
  std::uint32_t index = 0;                       // argument or output number
  dsl::AxisSet chunked{};                        // axes of which it holds the current chunk only
  std::int32_t first_step = -1, last_step = -1;  // life in the flattened order of steps; workspace only
  dsl::NodeId node = dsl::no_node;               // provenance: the graph's node, for printing and search
};

// An axis that the planner made: the partitions of some kernel's grid loop.
struct PartitionAxis {
  dsl::AxisId axis = dsl::no_axis;
  schedule::PartitionCount count;
  dsl::AxisSet chunked{};  // axes that the count takes at their chunk's length
};

struct Kernel {
  std::string name;
  dsl::Graph graph;  // its AxisIds are the plan's
  schedule::Scheduled scheduled;
  std::string provenance;  // "model/norm.cpp:31"
};

// Per element counts of the whole step at the planned extents, exact.
struct Counts {
  double bytes_read = 0, bytes_written = 0, flops = 0, exponentials = 0;
};

struct Launch {
  std::uint32_t kernel = 0;
  std::vector<BufferId> buffers;       // by ParameterId; no_buffer: the error flag
  std::vector<std::uint32_t> scalars;  // nest scalar -> the plan's scalar
  dsl::AxisSet chunked{};              // axes of which it sees a chunk
  Counts counts;
  double predicted_ns = 0;
};

// How an axis of a matmul runs through an operand's buffer: stride(buffer axis) * product of extents, or not at all.
struct AxisAccess {
  dsl::AxisId axis = dsl::no_axis;
  std::vector<dsl::AxisId> times;
};
struct MatmulAxis {
  dsl::AxisId axis = dsl::no_axis;  // gives the extent
  AxisAccess a, b, c;
};
struct Matmul {
  std::string name;
  BufferId a = no_buffer, b = no_buffer, c = no_buffer;
  std::vector<MatmulAxis> axes;
  bool accumulate = false;  // into what the caller's buffer or an earlier chunk holds
  dsl::AxisSet chunked{};
  Counts counts;
  double predicted_ns = 0;
};
// Sets every element.
struct Fill {
  BufferId buffer = no_buffer;
  double value = 0;
};
struct Step;
// Runs the body for each chunk of an axis; zero chunks run nothing.
struct Loop {
  dsl::AxisId axis = dsl::no_axis;
  std::int64_t chunk = 1;
  std::vector<Step> body;
};
struct Step {
  std::variant<Launch, Matmul, Fill, Loop> node;
};

// A decision worth explaining.
struct Note {
  enum class Kind : std::uint8_t { fused, refused, rounding, stored, chunked } kind = Kind::fused;
  std::string text;
};
struct FrontEntry {
  double workspace_bytes = 0;
  double predicted_ns = 0;
  std::string strategy;
  bool chosen = false;
};

struct Plan {
  std::string name;
  std::string device;
  std::vector<dsl::AxisInfo> axes;
  std::vector<dsl::SplitRelation> splits;
  std::vector<dsl::EqualRelation> equals;
  std::vector<PartitionAxis> partition_axes;
  dsl::AxisSet fixed;    // axes whose planned extent is in some kernel's text
  dsl::Extents planned;  // extents at plan time, by AxisId
  std::vector<dsl::InputInfo> inputs;
  std::vector<dsl::ScalarInfo> scalars;
  std::vector<dsl::OutputInfo> outputs;
  std::vector<Buffer> buffers;  // arguments first, then outputs (unless aliases), then workspace
  std::vector<BufferId> input_buffers, output_buffers;
  std::vector<Kernel> kernels;
  std::vector<Step> steps;
  std::vector<Note> notes;
  std::size_t predictions = 0;  // kernels whose time was predicted on the way to this plan
  std::vector<FrontEntry> front;
  double predicted_ns = 0;
};

// What the matmul library can do on this device; asked by the planner so that the plan needs no device.
struct MatmulSupport {
  bool f32 = true;
  bool bf16 = false;
};

// How large values are kept from memory: each region around values with this axis that take at least `bytes` runs in
// chunks of it.
struct Strategy {
  dsl::AxisId axis = dsl::no_axis;
  double bytes = 0;
  std::int64_t chunk = 0;
};

struct PlanOptions {
  double memory_budget = 0;               // bytes of workspace; 0: no limit
  bool unfused = false;                   // one kernel per node, every value stored
  std::int64_t matmul_minimum = 1 << 13;  // multiply-adds below which a contraction is an ordinary kernel
  MatmulSupport matmul;
  std::vector<Strategy> strategies;  // if there are any, these are taken and none is searched for
};

// Pure and deterministic. `graph` is prepared (dsl/passes); extents are complete.
Plan plan(const dsl::Graph& graph, const dsl::Extents& extents, const schedule::DeviceModel& device,
          const PlanOptions& options);

// Extents for a bind: the given ones (-1: absent) completed by relations and partition axes. Throws Error{usage} when
// an axis that the plan has fixed is given another extent.
dsl::Extents bind_extents(const Plan& plan, const dsl::Extents& given);

// Elements of a buffer and its strides by dimension, at these extents (chunked axes at their chunk's length).
std::int64_t element_count(const Buffer& buffer, const dsl::Extents& extents);
std::vector<std::int64_t> dense_strides(const Buffer& buffer, const dsl::Extents& extents);

// The axes along which kernels look elements up. Where such an axis is empty, a kernel still reads the place that its
// first element would have, and does not use what it finds there.
dsl::AxisSet looked_up_axes(const Plan& plan);

// By axis: the longest chunk that any loop makes of it, or its extent where none does.
dsl::Extents longest_chunks(const Plan& plan, const dsl::Extents& extents);

// Offsets of the workspace buffers by BufferId (others 0) and the total, 64-byte aligned; lives that do not overlap
// share.
struct WorkspaceLayout {
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};
WorkspaceLayout layout_workspace(const Plan& plan, const dsl::Extents& extents);

}  // namespace tigon::plan
