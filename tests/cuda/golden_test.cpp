// The kernels written by hand, which say what generated text should look like, compile without warnings.
#include "support.hpp"

using namespace tigon;
using namespace tigon::testing;

TEST_CASE("the kernels written by hand compile without warnings, headers or spills", "[golden]") {
  const runtime::NvrtcCompiler* compiler = nvrtc_or_skip();
  if (compiler == nullptr) return;
  for (const char* file : {"swiglu_pointwise", "rms_norm_forward", "rms_norm_backward", "linear_cross_entropy_chunk",
                           "cross_entropy_ragged"}) {
    const std::string text = read_file(std::string(TIGON_SOURCE_DIR) + "/tests/golden/cuda/" + file + ".cu");
    CHECK(text.find("#include") == std::string::npos);
    for (const char* architecture : {"sm_80", "sm_90a"}) {
      INFO(file << " for " << architecture);
      if (!compiler->supports(architecture)) continue;
      const runtime::NvrtcBinary binary =
          compiler->compile(text, file, {.architecture = architecture, .warnings_are_errors = true});
      CHECK(binary.ptx.find(".entry") != std::string::npos);
      CHECK(binary.ptx.find(".local") == std::string::npos);  // memory of a thread's own: a spill in the text itself
      const bool wide = binary.ptx.find("ld.global.nc.v4") != std::string::npos ||
                        binary.ptx.find("ld.global.v4") != std::string::npos;
      CHECK(wide);
    }
  }
}
