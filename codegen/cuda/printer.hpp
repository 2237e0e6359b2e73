// A lowered nest as CUDA C++ text: complete, without headers, for people to read and NVRTC to compile.
#pragma once
#include <string>

#include "codegen/lower/lowered.hpp"

namespace tigon::cuda {

struct CudaText {
  std::string text;
  std::string symbol;  // the kernel's: the nest's name and a hash of the text
  int threads = 0;     // of a block
};
CudaText print_cuda(const lower::Lowered& lowered);

}  // namespace tigon::cuda
