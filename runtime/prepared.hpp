// A plan's steps for fixed extents and layouts, for any device: parameter blocks with their constant cells filled in,
// and what each launch patches into them.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "codegen/plan/plan.hpp"
#include "runtime/matmul_layout.hpp"
#include "tigon/detail/compiled.hpp"

namespace tigon::runtime {

// Strides in elements of an argument or output, by dimension of its declared layout; empty: dense.
using Strides = std::vector<std::int64_t>;

// Pointers by input and by output; scalars by plan scalar.
struct LaunchArguments {
  std::span<void* const> inputs;
  std::span<void* const> outputs;
  std::span<const detail::RawScalar> scalars;
  void* workspace = nullptr;  // workspace_bytes(), aligned to 64
};

// base(buffer) + sum of chunk origin * byte stride, written into a cell of the parameter block.
struct PointerPatch {
  std::uint32_t cell = 0;
  plan::BufferId buffer = plan::no_buffer;
  std::uint32_t first_offset = 0, offset_count = 0;  // into PreparedPlan::offsets
};
struct ChunkOffset {
  dsl::AxisId axis = dsl::no_axis;
  std::int64_t byte_stride = 0;
};
struct OriginPatch {
  std::uint32_t cell = 0;
  dsl::AxisId axis = dsl::no_axis;
};
struct ScalarPatch {
  std::uint32_t cell = 0;
  std::uint32_t scalar = 0;
};

struct PreparedLaunch {
  std::uint32_t kernel = 0;          // of the plan
  std::vector<std::uint64_t> cells;  // the parameter block (loops::ParameterLayout)
  std::vector<PointerPatch> pointers;
  std::vector<OriginPatch> origins;
  std::vector<ScalarPatch> scalars;
  int error_cell = -1;              // takes the address of the error flag
  std::vector<std::int64_t> parts;  // partitions of each part; a kernel numbers them one part after another
  bool dense = true;                // every buffer's rows follow each other without gaps
  double work_ns = 0;               // predicted, at these extents
};
struct PreparedProduct {
  std::uint32_t matmul = 0;  // of PreparedPlan::matmuls
  PointerPatch a, b, c;
};
struct PreparedFill {
  struct Dimension {
    std::int64_t extent = 0, byte_stride = 0;
  };
  PointerPatch target;
  std::vector<Dimension> dimensions;  // outermost first, joined where memory is contiguous
  DType dtype = DType::f32;
  double value = 0;
};
struct PreparedStep;
struct PreparedLoop {
  dsl::AxisId axis = dsl::no_axis;
  std::int64_t chunk = 1, full_chunks = 0, rest = 0;
  std::vector<PreparedStep> full, last;
};
struct PreparedStep {
  std::variant<PreparedLaunch, PreparedProduct, PreparedFill, PreparedLoop> node;
};

struct PreparedPlan {
  const plan::Plan* plan = nullptr;
  dsl::Extents extents;
  std::vector<Strides> strides;  // by buffer
  plan::WorkspaceLayout layout;
  std::vector<ChunkOffset> offsets;
  std::vector<MatmulSpec> matmuls;
  std::vector<PreparedStep> steps;
  std::int64_t most_cells = 0;              // of the largest parameter block
  std::int64_t launches = 0, products = 0;  // of one run
  // Arguments and outputs without elements in which kernels look along an empty axis: zeros stand in for them, since
  // those buffers may be null.
  std::vector<bool> stands_in;  // by buffer
  std::int64_t zero_bytes = 0;  // how many zeros
};

// `extents` are complete (plan::bind_extents). The plan must outlive the result.
PreparedPlan prepare_plan(const plan::Plan& plan, dsl::Extents extents, const std::vector<Strides>& input_strides,
                          const std::vector<Strides>& output_strides);

// The bits of a number as a cell of a parameter block, or an element in memory, holds them. An integer is cut towards
// zero and kept in its range; NaN is 0.
std::uint64_t scalar_bits(DType dtype, double value);
std::vector<detail::RawScalar> raw_scalars(const std::vector<dsl::ScalarInfo>& scalars, std::span<const double> values);

using ChunkOrigins = std::array<std::int64_t, dsl::max_axes>;

// Where the patch points during a run; `values` is the workspace, `zeros` holds zero_bytes.
std::byte* patched_address(const PreparedPlan& prepared, const PointerPatch& patch, const LaunchArguments& arguments,
                           std::byte* values, std::byte* zeros, const ChunkOrigins& origins);

// Runs the steps in order. `device` has launch, multiply and fill for the three kinds of step.
template <class Device>
void run_steps(const std::vector<PreparedStep>& steps, ChunkOrigins& origins, Device& device) {
  for (const PreparedStep& step : steps) {
    if (const auto* launch = std::get_if<PreparedLaunch>(&step.node)) {
      device.launch(*launch, origins);
    } else if (const auto* product = std::get_if<PreparedProduct>(&step.node)) {
      device.multiply(*product, origins);
    } else if (const auto* fill = std::get_if<PreparedFill>(&step.node)) {
      device.fill(*fill, origins);
    } else {
      const auto& loop = std::get<PreparedLoop>(step.node);
      const std::int64_t origin = origins[loop.axis];
      for (std::int64_t i = 0; i < loop.full_chunks; ++i) {
        origins[loop.axis] = origin + i * loop.chunk;
        run_steps(loop.full, origins, device);
      }
      if (loop.rest > 0) {
        origins[loop.axis] = origin + loop.full_chunks * loop.chunk;
        run_steps(loop.last, origins, device);
      }
      origins[loop.axis] = origin;
    }
  }
}

// Writes what a launch changes into a copy of its parameter block.
void patch_scalars(const PreparedLaunch& launch, std::span<const detail::RawScalar> scalars,
                   const ChunkOrigins& origins, std::uint64_t* cells);

}  // namespace tigon::runtime
