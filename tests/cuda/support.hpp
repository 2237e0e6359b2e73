// The compiler under test, or the reason why there is none on this machine.
#pragma once
#include <optional>
#include <string>

#include "runtime/nvrtc/compiler.hpp"

namespace tigon::testing {

// Null, after printing why, where no NVRTC is installed.
const runtime::NvrtcCompiler* nvrtc_or_skip();

// From here on, the CUDA driver of this process is the emulated one, also where there is a GPU.
void use_emulated_driver();

std::string read_file(const std::string& path);

}  // namespace tigon::testing
