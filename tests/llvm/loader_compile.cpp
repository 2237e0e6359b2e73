// The compiler as a whole: objects, loading, errors, threads, fatal errors, and several versions in one process.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "loader_versions.hpp"
#include "runtime/llvm/compiler.hpp"
#include "runtime/llvm/elf.hpp"

namespace tigon::runtime {
namespace {

using testing::installed_llvms;

// out[i] = 2 * in[i] + bias, 16 lanes.
std::string scale_kernel(int bias) {
  std::string twos, biases;
  for (int i = 0; i < 16; ++i) {
    twos += fmt::format("{}float 2.0", i > 0 ? ", " : "");
    biases += fmt::format("{}float {}.0", i > 0 ? ", " : "", bias);
  }
  return fmt::format(
      "declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)\n"
      "define void @scale(ptr noalias %in, ptr noalias %out) {{\n"
      "  %x = load <16 x float>, ptr %in, align 4\n"
      "  %y = call <16 x float> @llvm.fma.v16f32(<16 x float> %x, <16 x float> <{}>, <16 x float> <{}>)\n"
      "  store <16 x float> %y, ptr %out, align 4\n"
      "  ret void\n"
      "}}\n",
      twos, biases);
}

// Continuous integration says which versions it has installed, so that none drops out of the tests unseen.
TEST_CASE("the LLVMs that TESTS_LLVM lists are all tested") {
  std::string found;
  for (const auto& compiler : installed_llvms()) found += fmt::format("{} ", std::atoi(compiler->version().c_str()));
  REQUIRE_FALSE(found.empty());
  const char* listed = std::getenv("TESTS_LLVM");
  for (std::string_view rest = listed == nullptr ? "" : listed; !rest.empty();) {
    const std::string version(rest.substr(0, rest.find(' ')));
    rest.remove_prefix(std::min(version.size() + 1, rest.size()));
    INFO("found " << found);
    CHECK((" " + found).find(" " + version + " ") != std::string::npos);
  }
}

void check_scale(const LoadedObject& loaded, int bias) {
  float in[16], out[16];
  for (int i = 0; i < 16; ++i) in[i] = static_cast<float>(i);
  reinterpret_cast<void (*)(const float*, float*)>(loaded.symbol("scale"))(in, out);
  for (int i = 0; i < 16; ++i) REQUIRE(out[i] == static_cast<float>(2 * i + bias));
}

std::string error_of(const LlvmCompiler& compiler, const std::string& text, ErrorKind kind = ErrorKind::compile) {
  try {
    static_cast<void>(compiler.compile(text, compiler.host_target()));
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "no error";
}

TEST_CASE("at least one LLVM from 15 on is installed; all of them live in one process") {
  REQUIRE_FALSE(installed_llvms().empty());
  for (const auto& compiler : installed_llvms()) {
    INFO(compiler->path());
    CHECK(std::atoi(compiler->version().c_str()) >= 15);
    CHECK(compiler->identity().find(compiler->version()) != std::string::npos);
    const auto object = compiler->compile(scale_kernel(1), compiler->host_target());
    const auto loaded = load_object(object, *compiler);
    CHECK(loaded->symbols() == std::vector<std::string>{"scale"});
    check_scale(*loaded, 1);
    CHECK_THROWS_AS(loaded->symbol("absent"), Error);
    // Objects are interchangeable: any version loads what another compiled.
    for (const auto& other : installed_llvms()) check_scale(*load_object(object, *other), 1);
  }
  CHECK(LlvmCompiler::get().version() == installed_llvms().front()->version());
}

TEST_CASE("the same text gives the same bytes") {
  for (const auto& compiler : installed_llvms()) {
    CHECK(compiler->compile(scale_kernel(3), compiler->host_target()) ==
          compiler->compile(scale_kernel(3), compiler->host_target()));
  }
}

TEST_CASE("TIGON_LLVM chooses a version or a file") {
  const auto& oldest = installed_llvms().back();
  for (const std::string& value : {std::to_string(std::atoi(oldest->version().c_str())), oldest->path()}) {
    ::setenv("TIGON_LLVM", value.c_str(), 1);
    CHECK(LlvmCompiler::load({})->path() == oldest->path());
  }
  ::setenv("TIGON_LLVM", "/nowhere/libLLVM.so", 1);
  try {
    static_cast<void>(LlvmCompiler::load({}));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::device);
    CHECK(std::string(error.what()).find("/nowhere/libLLVM.so: ") != std::string::npos);
    CHECK(std::string(error.what()).find("TIGON_LLVM") != std::string::npos);
  }
  ::unsetenv("TIGON_LLVM");
}

TEST_CASE("an LLVM that is absent or too old is refused with the attempts listed") {
  const LibrarySearch absent = LlvmCompiler::search("99");
  CHECK_FALSE(absent.found());
  CHECK(absent.describe().find("is not the version asked for, 99") != std::string::npos);
  const LibrarySearch old = LlvmCompiler::search("14");
  CHECK_FALSE(old.found());
  if (old.version == "14") {  // where one is installed
    CHECK(old.missing_symbol == "LLVMOrcExecutionSessionLookup");
    CHECK(old.describe().find("LLVM 15 or newer is needed") != std::string::npos);
  }
  // A library that is no LLVM at all.
  const LibrarySearch wrong = LlvmCompiler::search("/lib/x86_64-linux-gnu/libm.so.6");
  CHECK_FALSE(wrong.found());
  CHECK_FALSE(wrong.attempts.empty());
}

TEST_CASE("bad IR gives LLVM's message and the numbered source around the line") {
  for (const auto& compiler : installed_llvms()) {
    INFO(compiler->version());
    const std::string text = error_of(*compiler,
                                      "define void @f(ptr %p) {\n"
                                      "  %x = load float, ptr %p\n"
                                      "  %y = fadd float %x, %missing\n"
                                      "  ret void\n"
                                      "}\n");
    CHECK(text.find("use of undefined value '%missing'") != std::string::npos);
    CHECK(text.find(">    3 |   %y = fadd float %x, %missing") != std::string::npos);
    CHECK(text.find("     2 |   %x = load float, ptr %p") != std::string::npos);
    CHECK(text.find("LLVM " + compiler->version()) != std::string::npos);
    // Parses, but is malformed: a value is used before its definition.
    const std::string invalid = error_of(*compiler,
                                         "define i32 @f() {\n"
                                         "  br label %b\n"
                                         "a:\n"
                                         "  %x = add i32 1, 2\n"
                                         "  br label %b\n"
                                         "b:\n"
                                         "  ret i32 %x\n"
                                         "}\n");
    CHECK(invalid.find("verify") != std::string::npos);
    CHECK(invalid.find("does not dominate all uses") != std::string::npos);
    CHECK(compiler->usable());
  }
}

TEST_CASE("a kernel that would call a library is refused by name") {
  for (const auto& compiler : installed_llvms()) {
    INFO(compiler->version());
    CHECK(error_of(*compiler,
                   "declare float @expf(float)\n"
                   "define float @f(float %x) {\n  %y = call float @expf(float %x)\n  ret float %y\n}\n")
              .find("found expf") != std::string::npos);
    CHECK(error_of(*compiler,
                   "declare <4 x float> @llvm.exp2.v4f32(<4 x float>)\n"
                   "define <4 x float> @f(<4 x float> %x) {\n"
                   "  %y = call <4 x float> @llvm.exp2.v4f32(<4 x float> %x)\n  ret <4 x float> %y\n}\n")
              .find("exp2f") != std::string::npos);
  }
}

TEST_CASE("unknown targets and passes are errors, not exits") {
  for (const auto& compiler : installed_llvms()) {
    CpuTarget target = compiler->host_target();
    target.triple = "pdp11-unknown-none";
    CHECK_THROWS_AS(compiler->compile(scale_kernel(0), target), Error);
    CHECK_THROWS_AS(compiler->compile(scale_kernel(0), compiler->host_target(), {.passes = "no-such-pass"}), Error);
    CHECK(compiler->usable());
  }
}

TEST_CASE("damaged objects and those of another CPU are refused before LLVM sees them") {
  const LlvmCompiler& compiler = *installed_llvms().front();
  const auto object = compiler.compile(scale_kernel(5), compiler.host_target());
  CHECK(read_elf(object).functions() == std::vector<std::string>{"scale"});
  CHECK_THROWS_AS(load_object({}, compiler), Error);
  for (size_t size = 0; size < object.size(); size += 7) {
    CHECK_THROWS_AS(load_object(std::span(object).first(size), compiler), Error);
  }
  auto broken = object;
  broken[0] = std::byte{'X'};
  CHECK_THROWS_AS(load_object(broken, compiler), Error);
#if defined(__x86_64__)
  const auto foreign = compiler.compile(scale_kernel(5), named_target("aarch64"));
#else
  const auto foreign = compiler.compile(scale_kernel(5), named_target("x86-64-v3"));
#endif
  CHECK_THROWS_AS(load_object(foreign, compiler), Error);
}

TEST_CASE("four threads compile, load and drop kernels at once") {
  for (const auto& compiler : installed_llvms()) {
    INFO(compiler->version());
    const CpuTarget target = compiler->host_target();
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < 12; ++round) {
          const int bias = thread * 100 + round;
          const auto loaded = load_object(compiler->compile(scale_kernel(bias), target), *compiler);
          float in[16] = {3.0f}, out[16] = {};
          reinterpret_cast<void (*)(const float*, float*)>(loaded->symbol("scale"))(in, out);
          if (out[0] == static_cast<float>(6 + bias) && out[15] == static_cast<float>(bias)) ++right;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(right == 48);
  }
}

TEST_CASE("a loaded kernel outlives its compiler handle and the object's bytes") {
  std::shared_ptr<LoadedObject> loaded;
  {
    const auto compiler = LlvmCompiler::load({});
    loaded = load_object(compiler->compile(scale_kernel(9), compiler->host_target()), *compiler);
  }
  check_scale(*loaded, 9);
}

TEST_CASE("TIGON_CPU replaces the host as target") {
#if defined(__x86_64__)
  ::setenv("TIGON_CPU", "x86-64-v3", 1);
  for (const auto& compiler : installed_llvms()) {
    CHECK(compiler->host_target() == named_target("x86-64-v3"));
    check_scale(*load_object(compiler->compile(scale_kernel(2), compiler->host_target()), *compiler), 2);
  }
  ::unsetenv("TIGON_CPU");
#endif
}

// Runs in a child process, since a fatal error spoils the library for the rest of a process. Returns what went wrong.
std::string after_fatal_error(const LlvmCompiler& compiler) {
  const CpuTarget host = compiler.host_target();
  const auto before = load_object(compiler.compile(scale_kernel(4), host), compiler);
  // No x86 or aarch64 CPU can select the other's intrinsic: LLVM's way of saying so is a fatal error.
#if defined(__x86_64__)
  const std::string text =
      "declare i64 @llvm.aarch64.crc32x(i32, i64)\ndeclare i32 @llvm.aarch64.crc32b(i32, i32)\n"
      "define i32 @f(i32 %x) {\n  %y = call i32 @llvm.aarch64.crc32b(i32 %x, i32 %x)\n  ret i32 %y\n}\n";
#else
  const std::string text =
      "declare i32 @llvm.x86.sse42.crc32.32.8(i32, i8)\n"
      "define i32 @f(i32 %x) {\n  %y = call i32 @llvm.x86.sse42.crc32.32.8(i32 %x, i8 1)\n  ret i32 %y\n}\n";
#endif
  try {
    static_cast<void>(compiler.compile(text, host));
    return "the kernel compiled";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::compile) return std::string("wrong kind: ") + error.what();
    if (std::string(error.what()).find("Cannot select") == std::string::npos) return error.what();
  }
  if (compiler.usable()) return "the library still counts as usable";
  try {
    static_cast<void>(compiler.compile(scale_kernel(4), host));
    return "a later compile went through";
  } catch (const Error& error) {
    if (std::string(error.what()).find("fatal error earlier") == std::string::npos) return error.what();
  }
  float in[16] = {1.0f}, out[16] = {};
  reinterpret_cast<void (*)(const float*, float*)>(before->symbol("scale"))(in, out);
  if (out[0] != 6.0f) return "an earlier kernel no longer runs";
  return "ok";
}

TEST_CASE(
    "a fatal error of LLVM becomes an Error, retires that library, and leaves the process and its kernels alive") {
  for (const auto& compiler : installed_llvms()) {
    INFO(compiler->version());
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::string verdict;
      try {
        verdict = after_fatal_error(*compiler);
      } catch (const std::exception& error) {
        verdict = error.what();
      }
      const ssize_t written = ::write(ends[1], verdict.data(), verdict.size());
      ::_exit(written == static_cast<ssize_t>(verdict.size()) ? 0 : 1);
    }
    ::close(ends[1]);
    std::string verdict;
    char part[512];
    for (ssize_t count; (count = ::read(ends[0], part, sizeof part)) > 0;)
      verdict.append(part, static_cast<size_t>(count));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(verdict == "ok");
    CHECK(compiler->usable());  // in this process
  }
}

}  // namespace
}  // namespace tigon::runtime
