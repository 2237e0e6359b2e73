// Plans for a GPU, and their kernels as CUDA text with the place in the user's program that each came from.
#pragma once
#include "codegen/cuda/printer.hpp"
#include "codegen/lower/cuda.hpp"
#include "codegen/plan/plan.hpp"

namespace tigon::runtime {

// Prepares the graph and plans it; `extents` are the graph's. Needs no GPU.
plan::Plan plan_for_gpu(const dsl::Graph& graph, const dsl::Extents& extents, const schedule::DeviceModel& gpu,
                        plan::PlanOptions options, bool exact = false);

// The plan must be made for a GPU (schedule::gpu_model).
cuda::CudaText cuda_text(const plan::Kernel& kernel, const lower::CudaClass& buffers = {});

}  // namespace tigon::runtime
