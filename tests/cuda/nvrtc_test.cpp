// The NVRTC loader: what it finds, what it returns, and what it says when it finds nothing or a text is wrong.
#include <thread>

#include "runtime/nvrtc/resources.hpp"
#include "support.hpp"
#include "tigon/error.hpp"

using namespace tigon;
using namespace tigon::testing;
using Catch::Matchers::Contains;
using runtime::NvrtcBinary;
using runtime::NvrtcCompiler;

namespace {

std::string scale_kernel(const std::string& name, int factor) {
  return "extern \"C\" __global__ void " + name + "(float* x) { x[threadIdx.x] *= " + std::to_string(factor) + "; }\n";
}

bool is_elf(const std::vector<std::byte>& bytes) {
  return bytes.size() > 4 && bytes[0] == std::byte{0x7f} && bytes[1] == std::byte{'E'} && bytes[2] == std::byte{'L'};
}

template <class Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error was thrown");
  throw;
}

}  // namespace

TEST_CASE("a search for NVRTC that finds nothing names what it tried and the cure", "[nvrtc]") {
  const Error error = error_of([] { (void)NvrtcCompiler::load("/nowhere/libnvrtc.so.12"); });
  CHECK(error.kind() == ErrorKind::device);
  CHECK_THAT(error.details().log, Contains("/nowhere/libnvrtc.so.12"));
  CHECK_THAT(error.details().cure, Contains("TIGON_NVRTC"));
  CHECK_THAT(error.what(), Contains("no usable NVRTC library"));
}

TEST_CASE("a library that is no NVRTC is refused with the symbol that it lacks", "[nvrtc]") {
  const runtime::LibrarySearch search = NvrtcCompiler::search("/proc/self/exe");
  CHECK_FALSE(search.found());
  const runtime::LibrarySearch other = NvrtcCompiler::search("/lib/x86_64-linux-gnu/libc.so.6");
  if (!other.attempts.empty() && other.attempts[0].message.find("lacks") != std::string::npos)
    CHECK(other.missing_symbol == "nvrtcVersion");
  CHECK_FALSE(other.found());
}

TEST_CASE("one call gives PTX and a cubin for the architecture", "[nvrtc]") {
  const NvrtcCompiler* compiler = nvrtc_or_skip();
  if (compiler == nullptr) return;
  CHECK(!compiler->version().empty());
  CHECK_THAT(compiler->identity(), Contains("--fmad=false"));
  REQUIRE(!compiler->architectures().empty());
  for (const char* architecture : {"sm_80", "sm_90a", "sm_100a", "sm_120a"}) {
    if (!compiler->supports(architecture)) {
      WARN(std::string("skipped: this NVRTC does not compile for ") + architecture);
      continue;
    }
    const NvrtcBinary binary = compiler->compile(scale_kernel("scaled", 3), "scaled", {.architecture = architecture});
    CHECK_THAT(binary.ptx, Contains(".entry scaled"));
    CHECK_THAT(binary.ptx, Contains(std::string(".target ") + architecture));
    CHECK(is_elf(binary.cubin));
    CHECK(binary.log.empty());
  }
}

TEST_CASE("line tables are a switch", "[nvrtc]") {
  const NvrtcCompiler* compiler = nvrtc_or_skip();
  if (compiler == nullptr) return;
  const std::string text = scale_kernel("scaled", 3);
  CHECK(compiler->compile(text, "scaled", {.line_info = true}).ptx.find(".loc") != std::string::npos);
  CHECK(compiler->compile(text, "scaled").ptx.find(".loc") == std::string::npos);
}

TEST_CASE("an error shows the log, the numbered source, the options and the version", "[nvrtc]") {
  const NvrtcCompiler* compiler = nvrtc_or_skip();
  if (compiler == nullptr) return;
  const std::string text = "// first\nextern \"C\" __global__ void broken(float* x) {\n  x[0] = nonsense;\n}\n";
  const Error error = error_of([&] { (void)compiler->compile(text, "broken", {.architecture = "sm_80"}); });
  CHECK(error.kind() == ErrorKind::compile);
  CHECK_THAT(error.details().function, Contains(compiler->version()));
  for (const char* part : {"nonsense", ">    3 |   x[0] = nonsense;", "--gpu-architecture=sm_80", "broken.cu(3)"})
    CHECK_THAT(error.details().log, Contains(part));
}

TEST_CASE("warnings are handed back, or are errors where that is asked for", "[nvrtc]") {
  const NvrtcCompiler* compiler = nvrtc_or_skip();
  if (compiler == nullptr) return;
  const std::string text = "extern \"C\" __global__ void warned(float* x) {\n  int unused;\n  x[0] = 1;\n}\n";
  CHECK_THAT(compiler->compile(text, "warned").log, Contains("unused"));
  CHECK_THROWS_AS((void)compiler->compile(text, "warned", {.warnings_are_errors = true}), Error);
}

TEST_CASE("an architecture that this NVRTC does not know is named with those that it does", "[nvrtc]") {
  const NvrtcCompiler* compiler = nvrtc_or_skip();
  if (compiler == nullptr) return;
  for (const char* wrong : {"sm_20", "gfx90a", ""}) {
    const Error error = error_of([&] { (void)compiler->compile(scale_kernel("x", 2), "x", {.architecture = wrong}); });
    CHECK(error.details().found == wrong);
    CHECK_THAT(*error.details().expected, Contains(std::to_string(compiler->architectures().back())));
  }
}

TEST_CASE("compiling from several threads gives what one thread gives", "[nvrtc]") {
  const NvrtcCompiler* compiler = nvrtc_or_skip();
  if (compiler == nullptr) return;
  constexpr int count = 6;
  std::vector<NvrtcBinary> together(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      together[static_cast<std::size_t>(i)] = compiler->compile(scale_kernel("k" + std::to_string(i), i), "k");
    });
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < count; ++i) {
    const NvrtcBinary alone = compiler->compile(scale_kernel("k" + std::to_string(i), i), "k");
    CHECK(alone.ptx == together[static_cast<std::size_t>(i)].ptx);
    CHECK(alone.cubin == together[static_cast<std::size_t>(i)].cubin);
  }
}

TEST_CASE("registers, stack and shared memory are read from a cubin", "[nvrtc]") {
  const NvrtcCompiler* compiler = nvrtc_or_skip();
  if (compiler == nullptr) return;
  // An array indexed at run time lies in the thread's stack.
  const std::string text =
      "extern \"C\" __global__ void lean(float* x) { x[threadIdx.x] += 1; }\n"
      "extern \"C\" __global__ void heavy(float* x, int n) {\n"
      "  __shared__ float tile[64];\n"
      "  float own[50];\n"
      "  for (int i = 0; i < 50; ++i) own[i] = 0;\n"
      "  for (int i = 0; i < n; ++i) own[i * n % 50] += x[i];\n"
      "  tile[threadIdx.x] = own[n];\n"
      "  __syncthreads();\n"
      "  x[threadIdx.x] = tile[n];\n"
      "}\n";
  const auto needs = runtime::cubin_resources(compiler->compile(text, "two").cubin);
  REQUIRE(needs.count("lean") == 1);
  REQUIRE(needs.count("heavy") == 1);
  CHECK(needs.at("lean").stack_bytes == 0);
  CHECK(needs.at("lean").registers > 0);
  CHECK(needs.at("lean").shared_bytes == 0);
  CHECK(needs.at("heavy").stack_bytes >= 200);
  CHECK(needs.at("heavy").shared_bytes == 256);
  const std::vector<std::byte> nonsense(100, std::byte{1});
  CHECK_THROWS_AS(runtime::cubin_resources(nonsense), Error);
}
