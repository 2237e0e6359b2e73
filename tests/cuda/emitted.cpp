// Plans ops for a GPU model and prints their kernels.
#include "emitted.hpp"

#include "codegen/schedule/gpu.hpp"
#include "tigon/error.hpp"

namespace tigon::testing {

plan::Plan plan_for_gpu(const ops::OpEntry& entry, const ops::OpChoice& choice, const ops::NamedExtents& asked,
                        std::string_view gpu) {
  const dsl::Graph graph = entry.trace(choice);
  return runtime::plan_for_gpu(graph, ops::extents_of(entry, graph, asked), schedule::gpu_model(gpu).value(), {});
}

std::vector<Emitted> emit_catalogue(std::string_view gpu, const std::vector<DType>& dtypes) {
  std::vector<Emitted> result;
  for (const ops::OpEntry* entry : ops::catalogue()) {
    for (const DType dtype : dtypes) {
      if (std::find(entry->dtypes.begin(), entry->dtypes.end(), dtype) == entry->dtypes.end()) continue;
      for (const bool gradient : {false, true}) {
        if (gradient && !entry->has_gradient()) continue;
        ops::OpChoice choice;
        choice.dtype = dtype;
        choice.gradient = gradient;
        const std::string op = fmt::format("{} {}{}", entry->name, name(dtype), gradient ? " gradient" : "");
        try {
          ops::NamedExtents extents;
          for (const ops::AxisDefault& axis : entry->axes) extents[std::string(axis.name)] = axis.extent;
          for (const plan::Kernel& kernel : plan_for_gpu(*entry, choice, extents, gpu).kernels)
            result.push_back({op, runtime::cuda_text(kernel)});
        } catch (const Error& error) {
          FAIL_CHECK(op << ": " << error.what() << "\n" << error.details().log);
        }
      }
    }
  }
  return result;
}

}  // namespace tigon::testing
