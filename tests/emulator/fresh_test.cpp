// Where an NVRTC is installed, the kernels are compiled afresh and run: other versions may write other PTX.
#include <dlfcn.h>

#include <cstdlib>

#include "kernels.hpp"

using namespace emulator_test;

namespace {

class Compiler {
 public:
  Compiler() {
    for (const char* name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"}) {
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  [[nodiscard]] bool present() const { return library_ != nullptr; }

  [[nodiscard]] std::string compile(const std::string& fixture, std::vector<const char*> options) const {
    const auto prelude = read_fixture("prelude.cuh");
    const auto text = read_fixture(fixture);
    const char* headers[] = {prelude.c_str()};
    const char* names[] = {"prelude.cuh"};
    void* program = nullptr;
    function<int(void**, const char*, const char*, int, const char* const*, const char* const*)>("nvrtcCreateProgram")(
        &program, text.c_str(), fixture.c_str(), 1, headers, names);
    options.push_back("--fmad=false");
    options.push_back("-lineinfo");
    options.push_back("-default-device");
    const int status = function<int(void*, int, const char* const*)>("nvrtcCompileProgram")(
        program, static_cast<int>(options.size()), options.data());
    std::size_t bytes = 0;
    if (status != 0) {
      function<int(void*, std::size_t*)>("nvrtcGetProgramLogSize")(program, &bytes);
      std::string log(bytes, ' ');
      function<int(void*, char*)>("nvrtcGetProgramLog")(program, log.data());
      throw std::runtime_error(log);
    }
    function<int(void*, std::size_t*)>("nvrtcGetPTXSize")(program, &bytes);
    std::string ptx(bytes, ' ');
    function<int(void*, char*)>("nvrtcGetPTX")(program, ptx.data());
    function<int(void**)>("nvrtcDestroyProgram")(&program);
    return ptx;
  }

 private:
  template <class Function>
  [[nodiscard]] Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  void* library_ = nullptr;
};

}  // namespace

TEST_CASE("kernels compiled afresh run clean and right") {
  const Compiler compiler;
  if (!compiler.present()) {
    WARN("no NVRTC is installed: the fixtures alone are tested");
    return;
  }
  for (const char* architecture : {"-arch=sm_80", "-arch=sm_90a", "-arch=sm_120"}) {
    const auto rows = compiler.compile("rows.cu", {architecture});
    const auto scaled = run_scale_rows(rows, {});
    CHECK(scaled.clean);
    CHECK(scaled.error < 8e-3);
    const auto exponentials = run_exp_rows(rows, {});
    CHECK(exponentials.clean);
    CHECK(exponentials.error < 4e-3);
    const auto product = run_multiply_tiles(compiler.compile("tile.cu", {architecture}), {});
    CHECK(product.clean);
    CHECK(product.error < 1e-4);
  }
  const auto cluster = run_sum_cluster(compiler.compile("cluster.cu", {"-arch=sm_90a"}), {});
  CHECK(cluster.clean);
  // A fault planted at compile time names its line in the CUDA text.
  const auto faulty = run_scale_rows(compiler.compile("rows.cu", {"-arch=sm_90a", "-DBUG_PAST_END"}), {});
  REQUIRE_FALSE(faulty.list.empty());
  CHECK(faulty.list.front().file.ends_with("rows.cu"));
  CHECK(faulty.list.front().line == 27);
}
