// Lowers and prints.
#include "runtime/nvrtc/text.hpp"

namespace tigon::runtime {

cuda::CudaText cuda_text(const plan::Kernel& kernel, const lower::CudaClass& buffers) {
  lower::Lowered lowered = lower::lower_cuda(kernel.scheduled.nest, buffers);
  if (buffers.aligned) lowered.notes.emplace_back("Every buffer starts at a multiple of 16 bytes.");
  if (buffers.dense) lowered.notes.emplace_back("Rows lie dense in memory.");
  if (!kernel.provenance.empty()) lowered.notes.push_back("Written at " + kernel.provenance + ".");
  return cuda::print_cuda(lowered);
}

}  // namespace tigon::runtime
