// `tigon doctor`: what was found where, what is missing, and the cure.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "choice.hpp"
#include "codegen/plan/print.hpp"
#include "doctor.hpp"
#include "runtime/cache/cache.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu_features.hpp"
#include "runtime/environment.hpp"
#include "runtime/llvm/compiler.hpp"
#include "tigon/error.hpp"

namespace tigon::tools {
namespace {

void machine(Findings& findings) {
  findings.title("CPU");
  const runtime::CpuFeatures features = runtime::detect_cpu_features();
  std::string names;
  const auto add = [&](bool has, const char* feature) {
    if (has) names += (names.empty() ? "" : " ") + std::string(feature);
  };
  add(features.avx2, "avx2");
  add(features.fma, "fma");
  add(features.f16c, "f16c");
  add(features.bmi, "bmi");
  add(features.avx512, "avx512 (f, vl, bw, dq)");
  add(features.neon, "neon");
  findings.line("features", names.empty() ? "none that Tigon uses" : names);
  const runtime::Machine host = runtime::machine();
  findings.line("vectors", fmt::format("{} bytes", host.vector_bytes));
  const auto size = [](std::size_t bytes) {
    return bytes == 0 ? std::string("hidden") : plan::memory_text(static_cast<double>(bytes));
  };
  findings.line("data caches",
                fmt::format("{}, {}, {}", size(host.l1_bytes), size(host.l2_bytes), size(host.l3_bytes)));
  findings.line("cores", std::to_string(host.cores));
  if (const std::string below = runtime::below_floor(features); !below.empty()) {
    findings.missing(below, "Run on a CPU with AVX2, FMA, F16C and BMI, or on aarch64");
  }
}

void llvm(Findings& findings) {
  findings.title("LLVM (compiles CPU kernels)");
  const runtime::LibrarySearch search = runtime::LlvmCompiler::search();
  if (search.found()) {
    findings.line("in use", search.path);
    findings.line("version", search.version);
  }
  for (const runtime::Attempt& attempt : search.attempts) findings.line("tried", attempt.path + ": " + attempt.message);
  if (!search.found()) {
    if (!search.missing_symbol.empty()) findings.line("lacks", search.missing_symbol);
    findings.missing("no usable LLVM, so nothing can be compiled", search.cure);
    return;
  }
  const runtime::CpuTarget target = runtime::host_target();
  findings.line("compiles for", target.triple + " " + target.cpu);
}

void threads_and_matmul(Findings& findings) {
  findings.title("Threads and matrix products");
  const bool openmp = runtime::thread_source() == runtime::ThreadSource::openmp;
  findings.line("threads",
                fmt::format("{} from {}", runtime::worker_limit(), openmp ? "OpenMP" : "the standard library"));
  Dl_info where{};
  if (void* symbol = ::dlsym(RTLD_DEFAULT, "GOMP_parallel"); symbol != nullptr && ::dladdr(symbol, &where) != 0) {
    findings.line("OpenMP", where.dli_fname);
  } else if (openmp) {
    findings.note("no OpenMP library is loaded: kernels run on one thread", "Install libgomp1");
  }
  struct DnnlVersion {  // the beginning of dnnl_version_t
    int major, minor, patch;
  };
  auto* version = reinterpret_cast<const DnnlVersion* (*)()>(::dlsym(RTLD_DEFAULT, "dnnl_version"));
  if (version == nullptr) {
    findings.missing("oneDNN is not in this process, so there are no matrix products",
                     "Install libdnnl2 and build anew");
    return;
  }
  const DnnlVersion& found = *version();
  const bool known = ::dladdr(reinterpret_cast<void*>(version), &where) != 0 && where.dli_fname != nullptr;
  findings.line("oneDNN",
                fmt::format("{}.{}.{} {}", found.major, found.minor, found.patch, known ? where.dli_fname : ""));
}

void kernel_cache(Findings& findings) {
  findings.title("Kernel cache");
  const std::string folder = runtime::environment_cache_folder();
  const std::string consequence = ": every process compiles anew";
  if (folder.empty()) {
    findings.note("no folder: neither TIGON_CACHE_DIR nor a home is known" + consequence, "Set TIGON_CACHE_DIR");
    return;
  }
  findings.line("folder", folder);
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT)
      findings.line("state", "does not exist yet; made with the first compile");
    else
      findings.note(std::string("cannot be read: ") + runtime::error_text(errno) + consequence, "");
    return;
  }
  if (!S_ISDIR(status.st_mode)) {
    findings.note("is no folder" + consequence, "Set TIGON_CACHE_DIR to a folder");
    return;
  }
  if (status.st_uid != ::geteuid()) {
    findings.note("belongs to another user" + consequence, "Set TIGON_CACHE_DIR to a folder of your own");
    return;
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    findings.note("is read-only: kernels in it are used, new ones are not kept", "chmod u+rwx " + folder);
  }
  const runtime::KernelCache& cache = runtime::kernel_cache();
  findings.line("kernels",
                fmt::format("{}, {}", cache.list().size(), plan::memory_text(static_cast<double>(cache.bytes()))));
  if (const std::size_t damaged = cache.verify().faults.size(); damaged > 0) {
    findings.note(fmt::format("{} damaged", damaged),
                  "tigon cache verify names them; they are compiled anew when needed");
  } else {
    findings.line("state", "sound");
  }
}

void environment(Findings& findings) {
  findings.title("Environment");
  for (const runtime::EnvironmentOption& option : runtime::environment_options()) {
    const std::optional<std::string> value = runtime::environment_value(option.name);
    out(fmt::format("  {:16} {}\n      {}\n", option.name, value ? *value : "not set",
                    paint(Colour::dim, fmt::format("{}: {}", option.value, option.doc))));
  }
  try {
    runtime::check_environment();
  } catch (const Error& error) {
    findings.missing(error.what(), "Unset it or correct it");
  }
}

}  // namespace

int doctor() {
  Findings findings;
  machine(findings);
  llvm(findings);
  threads_and_matmul(findings);
  const bool gpu = diagnose_gpu(findings);
  kernel_cache(findings);
  environment(findings);
  findings.title("One op from end to end");
  int result = exit_missing;
  if (findings.missing() == 0) {
    const Asked asked{.op = "rms_norm", .axes = {"tokens=5,hidden=37"}};
    result = check(asked, 1);
    if (result == exit_ok && gpu) result = check(asked, 1, "cuda");
  } else {
    out("  not tried, for what is missing above\n");
  }
  out("\n");
  if (result == exit_ok && gpu)
    out(paint(Colour::green, "everything works") + "\n");
  else if (result == exit_ok)
    out(paint(Colour::green, "everything works on the CPU") + "; nothing runs on a GPU, for what is noted above\n");
  else if (findings.missing() > 0)
    out(paint(Colour::red, fmt::format("{} missing", findings.missing())) + "\n");
  return result;
}

}  // namespace tigon::tools
