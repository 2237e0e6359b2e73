// The model's functions at the shapes of Llama 3 8B for a large GPU: planned and printed, never launched.
#pragma once
#include <string>

namespace language_model {

// Into folder/llama_3_8b_sm_90a/FUNCTION/: the forms of each function, with kernels as CUDA text, and resources.txt:
// what each kernel needs of a multiprocessor, which NVRTC has to be there for. Says what it wrote. Needs no GPU.
void write_gpu_forms(const std::string& folder);

}  // namespace language_model
