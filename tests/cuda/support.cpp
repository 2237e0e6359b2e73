// Finds NVRTC once for all tests of this folder.
#include "support.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tigon::testing {

const runtime::NvrtcCompiler* nvrtc_or_skip() {
  const runtime::LibrarySearch search = runtime::NvrtcCompiler::search();
  if (search.found()) return &runtime::NvrtcCompiler::get();
  WARN("skipped: " + search.describe());
  return nullptr;
}

void use_emulated_driver() { ::setenv("TIGON_CUDA_DRIVER", "emulated", 1); }

std::string read_file(const std::string& path) {
  std::ifstream stream(path);
  REQUIRE(stream.good());
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace tigon::testing
