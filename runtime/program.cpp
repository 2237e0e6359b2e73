// Lowers, prints, compiles and loads a plan's kernels; several at a time.
#include "runtime/program.hpp"

#include "codegen/llvm/printer.hpp"
#include "codegen/lower/cpu.hpp"
#include "runtime/build_kernels.hpp"
#include "runtime/cache/cache.hpp"
#include "runtime/dump.hpp"
#include "runtime/llvm/compiler.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

std::atomic<std::uint64_t> launches_done{0};

LoadedKernel load_kernel(const plan::Plan& plan, const plan::Kernel& kernel, const LlvmCompiler& compiler,
                         const CpuTarget& target) {
  KernelText text = llvm_text(kernel.scheduled.nest, vector_bytes(target));
  text.text = overridden_text(plan, kernel, "ll", text.text);
  const std::string identity = compiler.identity();
  const std::string architecture = target.triple + " " + target.cpu + " " + target.features;
  const CacheKey key = cache_key({text.text, "cpu", identity, architecture});
  const auto compile = [&]() -> CacheEntry {
    return {
        .source = text.text, .options = identity + " " + architecture, .binary = compiler.compile(text.text, target)};
  };
  std::shared_ptr<const CacheEntry> entry = kernel_cache().get(key, compile);
  LoadedKernel result;
  result.scratch_bytes = text.scratch_bytes;
  try {
    result.object = load_object(entry->binary, compiler);
  } catch (const Error&) {
    entry = kernel_cache().replace(key, entry, compile);
    result.object = load_object(entry->binary, compiler);
  }
  result.entry = reinterpret_cast<KernelEntry>(result.object->symbol(kernel.scheduled.nest.name));
  return result;
}

}  // namespace

std::uint64_t launch_count() { return launches_done.load(std::memory_order_relaxed); }
void count_launches(std::uint64_t launches) { launches_done.fetch_add(launches, std::memory_order_relaxed); }

KernelText llvm_text(const loops::Nest& nest, int vector_bytes) {
  const lower::Lowered lowered = lower::lower_cpu(nest, lower::cpu_machine(vector_bytes));
  return {llvm::print_llvm(lowered), lowered.scratch_bytes};
}

void require_runnable(const std::string& target, const std::string& argument) {
  const CpuFeatures features = detect_cpu_features();
  const bool v3 = features.avx2 && features.fma && features.f16c && features.bmi;
  std::string runs;
  for (const std::string& name : target_names()) {
    const bool fits = name == "x86-64-v3" ? v3 : name == "x86-64-v4" ? v3 && features.avx512 : features.neon;
    if (fits && name == target) return;
    if (fits) runs += (runs.empty() ? "" : ", ") + name;
  }
  throw Error({.kind = ErrorKind::device,
               .argument = argument,
               .found = target,
               .expected = runs.empty() ? "another machine" : "one of " + runs,
               .cure = "Leave it out to compile for this machine; `tigon emit` shows kernels for any CPU"},
              "this machine cannot run kernels made for this CPU");
}

std::shared_ptr<const Program> build_program(plan::Plan plan, const Progress& progress) {
  require_cpu_floor();
  if (const auto target = target_override()) require_runnable(*target, "TIGON_CPU");
  const LlvmCompiler& compiler = LlvmCompiler::get();
  const CpuTarget target = compiler.host_target();
  auto program = std::make_shared<Program>();
  program->plan = std::move(plan);
  const std::size_t count = program->plan.kernels.size();
  program->kernels.resize(count);
  build_kernels(program->plan, progress, [&](std::uint32_t i) {
    program->kernels[i] = load_kernel(program->plan, program->plan.kernels[i], compiler, target);
  });
  return program;
}

}  // namespace tigon::runtime
