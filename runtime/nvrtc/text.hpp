// A plan's kernel as CUDA text, with the place in the user's program that it came from.
#pragma once
#include "codegen/cuda/printer.hpp"
#include "codegen/lower/cuda.hpp"
#include "codegen/plan/plan.hpp"

namespace tigon::runtime {

// The plan must be made for a GPU (schedule::gpu_model).
cuda::CudaText cuda_text(const plan::Kernel& kernel, const lower::CudaClass& buffers = {});

}  // namespace tigon::runtime
