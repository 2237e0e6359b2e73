// Prepares and plans; lowers and prints.
#include "runtime/nvrtc/text.hpp"

#include "dsl/passes.hpp"

namespace tigon::runtime {

plan::Plan plan_for_gpu(const dsl::Graph& graph, const dsl::Extents& extents, const schedule::DeviceModel& gpu,
                        plan::PlanOptions options, bool exact) {
  const dsl::Graph prepared = dsl::prepare(graph, extents, {.exact = exact});
  // Passes number axes anew and split some; names and relations stay.
  dsl::Extents all(prepared.axes.size(), -1);
  for (std::size_t a = 0; a < prepared.axes.size(); ++a)
    for (std::size_t b = 0; b < graph.axes.size(); ++b)
      if (prepared.axes[a].name == graph.axes[b].name) all[a] = extents[b];
  options.matmul.bf16 = true;
  return plan::plan(prepared, dsl::resolve_extents(prepared, std::move(all)), gpu, options);
}

cuda::CudaText cuda_text(const plan::Kernel& kernel, const lower::CudaClass& buffers) {
  lower::Lowered lowered = lower::lower_cuda(kernel.scheduled.nest, buffers);
  if (buffers.aligned) lowered.notes.emplace_back("Every buffer starts at a multiple of 16 bytes.");
  if (buffers.dense) lowered.notes.emplace_back("Rows lie dense in memory.");
  if (!kernel.provenance.empty()) lowered.notes.push_back("Written at " + kernel.provenance + ".");
  lowered.notes.emplace_back("For NVRTC, with --device-as-default-execution-space --fmad=false --std=c++17.");
  return cuda::print_cuda(lowered);
}

}  // namespace tigon::runtime
