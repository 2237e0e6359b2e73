// The catalogue's kernels as CUDA text.
#pragma once
#include <string>
#include <vector>

#include "codegen/plan/plan.hpp"
#include "ops/inputs.hpp"
#include "ops/registry.hpp"
#include "runtime/nvrtc/text.hpp"

namespace tigon::testing {

plan::Plan plan_for_gpu(const ops::OpEntry& entry, const ops::OpChoice& choice, const ops::NamedExtents& extents,
                        std::string_view gpu);

struct Emitted {
  std::string op;  // with its dtype, and "gradient"
  cuda::CudaText text;
};
// Every op, forward and gradient, in each of its dtypes that is listed; extents are the entries' own.
std::vector<Emitted> emit_catalogue(std::string_view gpu, const std::vector<DType>& dtypes);

}  // namespace tigon::testing
