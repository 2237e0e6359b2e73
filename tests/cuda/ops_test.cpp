// Every op's kernels, forward and gradient, as CUDA text: NVRTC takes them without a warning, nothing is
// spilled, and two processes print the same bytes.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "emitted.hpp"
#include "runtime/nvrtc/resources.hpp"
#include "support.hpp"
#include "tigon/error.hpp"

using namespace tigon;
using namespace tigon::testing;

namespace {

// sinf and cosf reduce huge arguments through an array; a pack indexed at run time would be a mistake of ours.
bool may_use_local_memory(const std::string& text) {
  return text.find("sinf(") != std::string::npos || text.find("cosf(") != std::string::npos;
}

void compile_all(const std::vector<Emitted>& kernels, const char* architecture) {
  const runtime::NvrtcCompiler* compiler = nvrtc_or_skip();
  if (compiler == nullptr) return;
  if (!compiler->supports(architecture)) {
    WARN("skipped: this NVRTC does not compile for " << architecture);
    return;
  }
  std::vector<std::string> faults(kernels.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < kernels.size(); i = next++) {
      const cuda::CudaText& text = kernels[i].text;
      try {
        const runtime::NvrtcBinary binary =
            compiler->compile(text.text, text.symbol, {.architecture = architecture, .warnings_are_errors = true});
        if (binary.ptx.find(".entry " + text.symbol) == std::string::npos) faults[i] = "the entry is missing";
        const runtime::KernelResources needs = runtime::cubin_resources(binary.cubin).at(text.symbol);
        if (!may_use_local_memory(text.text) && needs.stack_bytes > 0)
          faults[i] = fmt::format("{} bytes of a thread's values lie in memory\n{}", needs.stack_bytes, text.text);
        if (needs.registers <= 0 || needs.registers > 255 || needs.shared_bytes > 48 * 1024)
          faults[i] = fmt::format("{} registers, {} bytes shared", needs.registers, needs.shared_bytes);
      } catch (const Error& error) {
        faults[i] = std::string(error.what()) + "\n" + error.details().log;
      }
    }
  };
  std::thread other(work);
  work();
  other.join();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    INFO(kernels[i].op << ", " << kernels[i].text.symbol << " for " << architecture);
    CHECK(faults[i] == "");
  }
}

std::string all_texts() {
  std::string all;
  for (const Emitted& kernel : emit_catalogue("h200", {DType::f32, DType::bf16})) all += kernel.text.text;
  return all;
}

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  ::pclose(pipe);
  return text;
}

}  // namespace

TEST_CASE("every op's kernels compile for sm_90a", "[ops]") {
  const std::vector<Emitted> kernels = emit_catalogue("h200", {DType::f32, DType::bf16});
  CHECK(kernels.size() > 40);
  compile_all(kernels, "sm_90a");
}

TEST_CASE("every op's kernels compile for sm_80", "[ops]") {
  compile_all(emit_catalogue("a100", {DType::bf16}), "sm_80");
}

TEST_CASE("texts name the formula, the user's file and what is assumed", "[ops]") {
  for (const Emitted& kernel : emit_catalogue("h200", {DType::bf16})) {
    INFO(kernel.text.text);
    CHECK(kernel.text.text.find("#include") == std::string::npos);
    CHECK(kernel.text.text.find(" = ") < kernel.text.text.find("using i64"));
    CHECK(kernel.text.text.find("Every buffer starts at a multiple of 16 bytes.") != std::string::npos);
    CHECK(kernel.text.text.find("Written at ") != std::string::npos);
  }
}

TEST_CASE("print all texts", "[.texts]") { std::fputs(all_texts().c_str(), stdout); }

TEST_CASE("two processes print the same texts", "[ops]") {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  REQUIRE(length > 0);
  const std::string own(path, static_cast<std::size_t>(length));
  const std::string first = output_of(own + " '[.texts]' --reporter compact");
  const std::string second = output_of(own + " '[.texts]' --reporter compact");
  CHECK(first.size() > 100000);
  CHECK(first == second);
}
