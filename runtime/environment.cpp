// Reads and checks environment options.
#include "runtime/environment.hpp"

#include <unistd.h>

#include <cstdlib>

#include "runtime/cpu_features.hpp"
#include "runtime/nearest.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

constexpr EnvironmentOption options[] = {
    {"TIGON_CACHE_DIR", "folder",
     "where compiled kernels are kept, instead of $XDG_CACHE_HOME/tigon or ~/.cache/tigon"},
    {"TIGON_LLVM", "library, folder or version", "the LLVM that compiles CPU kernels, instead of the newest one found"},
    {"TIGON_CPU", "x86-64-v3, x86-64-v4 or aarch64", "the CPU that kernels are made for, instead of this machine's"},
    {"TIGON_THREADS", "openmp or standard", "where worker threads come from"},
    {"TIGON_DUMP", "folder",
     "each compile writes its plan and its kernels' graphs, loop nests and LLVM or CUDA texts there"},
    {"TIGON_OVERRIDE", "folder",
     "a folder that TIGON_DUMP wrote: kernels' texts that were edited there are compiled in place of their own"},
    {"TIGON_CUDA_DRIVER", "emulated, library or folder", "the CUDA driver, instead of the system's"},
    {"TIGON_EMULATED_GPU", "h200, a100, ...", "which device the emulated driver stands for"},
    {"TIGON_CUBLASLT", "library, folder or version", "the cuBLASLt that multiplies matrices on GPUs"},
    {"TIGON_NVRTC", "library, folder or version",
     "the NVRTC that compiles GPU kernels, instead of the newest one found"},
};

std::string all_names() {
  std::string names;
  for (const EnvironmentOption& option : options) names += (names.empty() ? "" : ", ") + std::string(option.name);
  return names;
}

void check_known(std::string_view name) {
  std::vector<std::string> names;
  for (const EnvironmentOption& option : options) {
    if (option.name == name) return;
    names.emplace_back(option.name);
  }
  throw Error({.found = std::string(name), .expected = "one of " + all_names(), .cure = suggestion(name, names)},
              "the environment has an option that does not exist");
}

}  // namespace

std::span<const EnvironmentOption> environment_options() { return options; }

std::optional<std::string> environment_value(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

void check_environment() {
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (variable.starts_with("TIGON_")) check_known(variable.substr(0, variable.find('=')));
  }
  if (const std::optional<std::string> threads = environment_value("TIGON_THREADS");
      threads && *threads != "openmp" && *threads != "standard") {
    throw Error({.found = threads, .expected = "openmp or standard"}, "TIGON_THREADS has a value that does not exist");
  }
  if (const std::optional<std::string> cpu = environment_value("TIGON_CPU")) named_target(*cpu);
}

}  // namespace tigon::runtime
