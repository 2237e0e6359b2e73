// A CUDA program bound to extents and layouts: prepared launches, matmuls and fills, enqueued in order on a stream.
#pragma once
#include "runtime/cuda/program.hpp"

namespace tigon::runtime {

// `extents` are complete (plan::bind_extents). Compiles kernels that these layouts need and prepares matmuls.
std::unique_ptr<const DeviceBound> bind_cuda(std::shared_ptr<const CudaProgram> program, dsl::Extents extents,
                                             const std::vector<Strides>& input_strides,
                                             const std::vector<Strides>& output_strides);

}  // namespace tigon::runtime
