// The compiler under test, or the reason why there is none on this machine.
#pragma once
#include <optional>
#include <string>

#include "runtime/nvrtc/compiler.hpp"

namespace tigon::testing {

// Null, after printing why, where no NVRTC is installed.
const runtime::NvrtcCompiler* nvrtc_or_skip();

std::string read_file(const std::string& path);

}  // namespace tigon::testing
