// Plans and prints for sm_90a; compiles the texts on all cores, through the cache, to read what they need.
#include "gpu_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "clock.hpp"
#include "codegen/schedule/gpu.hpp"
#include "forms.hpp"
#include "model.hpp"
#include "runtime/build_kernels.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cuda/program.hpp"
#include "runtime/nvrtc/compiler.hpp"
#include "runtime/nvrtc/resources.hpp"
#include "runtime/nvrtc/text.hpp"

namespace language_model {
namespace {
namespace runtime = tigon::runtime;
using tigon::Shape;

constexpr const char* architecture = "sm_90a";
// Of Llama 3 8B but for its 32 layers, of which two show how one follows another, and its 8 heads of keys and values,
// which the model here does not share.
constexpr ModelSize size{.layers = 2, .hidden = 4096, .heads = 32, .inner = 14336, .vocab = 128256};
constexpr std::int64_t batch = 4, context = 2048;

std::vector<tigon::plan::Plan> write_plans(const std::string& folder) {
  std::vector<tigon::plan::Plan> plans;
  const tigon::schedule::DeviceModel gpu = *tigon::schedule::gpu_model(architecture);
  const auto add = [&](const auto& function, const auto& shape, const tigon::Extents& extents) {
    const auto graph = function.trace(shape);
    plans.push_back(runtime::make_plan(*graph, extents, {}, gpu));
    write_forms(folder, *graph, plans.back(), true);
  };
  const tigon::Extents windows = size.of_windows(batch, context);
  add(rotation(), RotationArgs<Shape>{}, tigon::extents<Time, Half>(context, size.channels() / 2));
  add(total_loss<bf16>(), loss_shape(size), windows);
  add(value_and_grad(training_loss<bf16>(), tigon::wrt<"weights">), loss_shape(size), windows);
  add(update(), update_shape(size), size.of_weights());
  add(next_byte<bf16>(), next_shape(size), size.of_windows(1, context));
  return plans;
}

// What stands in the way of compiling; "" when nothing does.
std::string obstacle() {
  const runtime::LibrarySearch search = runtime::NvrtcCompiler::search();
  if (!search.found()) return "there is no usable NVRTC library; " + search.cure;
  const runtime::NvrtcCompiler& compiler = runtime::NvrtcCompiler::get();
  if (compiler.supports(architecture)) return {};
  return fmt::format("NVRTC {} does not compile for {}", compiler.version(), architecture);
}

struct Worst {
  int registers = 0;
  std::vector<std::string> spilling;  // kernels with more values than registers
};

// A table of every plan's kernels.
std::string resources_table(const std::vector<tigon::plan::Plan>& plans, Worst& worst) {
  std::string table = fmt::format("{:>7} {:>9} {:>11} {:>13} {:>12}  kernel, of {}\n", "threads", "registers",
                                  "stack bytes", "spilled bytes", "shared bytes", architecture);
  for (const tigon::plan::Plan& plan : plans) {
    std::vector<runtime::KernelResources> all(plan.kernels.size());
    runtime::build_kernels(plan, {}, [&](std::uint32_t i) {
      const tigon::cuda::CudaText text = runtime::cuda_text(plan.kernels[i]);
      all[i] = runtime::cubin_resources(runtime::cuda_binary(text, architecture)->binary).at(text.symbol);
    });
    for (std::size_t i = 0; i < all.size(); ++i) {
      const runtime::KernelResources& of = all[i];
      const std::string name = plan.name + "/" + plan.kernels[i].name;
      table += fmt::format("{:7} {:9} {:11} {:13} {:12}  {}\n", of.threads, of.registers, of.stack_bytes,
                           of.spill_stores + of.spill_loads, of.shared_bytes, name);
      worst.registers = std::max(worst.registers, of.registers);
      if (of.spill_stores + of.spill_loads > 0) worst.spilling.push_back(name);
    }
  }
  return table;
}

}  // namespace

void write_gpu_forms(const std::string& folder) {
  const std::string own = fmt::format("{}/llama_3_8b_{}", folder, architecture);
  const Clock clock;
  const std::vector<tigon::plan::Plan> plans = write_plans(own);
  std::size_t kernels = 0;
  for (const tigon::plan::Plan& plan : plans) kernels += plan.kernels.size();
  fmt::print(
      "the same for {} at the shapes of Llama 3 8B ({} tokens, hidden {}, vocab {}, {} heads of {}, inner {}, bf16, {} "
      "of its layers), {} kernels as CUDA text: {}/ ({:.1f} s)\n",
      architecture, batch * context, size.hidden, size.vocab, size.heads, size.channels(), size.inner, size.layers,
      kernels, own, clock.seconds());
  std::fflush(stdout);

  const std::string path = own + "/resources.txt";
  std::string missing = obstacle(), table;
  const Clock compiling;
  if (missing.empty()) {
    try {
      Worst worst;
      table = resources_table(plans, worst);
      fmt::print(
          "registers, stack and shared memory of each: {} (NVRTC {}, {:.1f} s); at most {} registers, {} spilled\n",
          path, runtime::NvrtcCompiler::get().version(), compiling.seconds(), worst.registers,
          worst.spilling.empty() ? "none" : fmt::format("{}", fmt::join(worst.spilling, ", ")));
    } catch (const tigon::Error& error) {
      missing = error.what();
    }
  }
  if (!missing.empty()) {
    table = "missing: " + missing + "\n";
    fmt::print("registers, stack and shared memory of each are missing: {}\n", missing.substr(0, missing.find('\n')));
  }
  write_file(path, table);
}

}  // namespace language_model
