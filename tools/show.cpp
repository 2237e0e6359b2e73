// `tigon explain` and `tigon emit`: an op's plan, and its forms on the way to machine code.
#include <fmt/format.h>

#include "choice.hpp"
#include "codegen/loops/print.hpp"
#include "codegen/plan/explain.hpp"
#include "codegen/plan/print.hpp"
#include "codegen/schedule/gpu.hpp"
#include "disassembler.hpp"
#include "dsl/passes.hpp"
#include "dsl/print.hpp"
#include "paint.hpp"
#include "resources.hpp"
#include "runtime/compiled.hpp"
#include "runtime/nearest.hpp"
#include "runtime/nvrtc/compiler.hpp"
#include "runtime/nvrtc/text.hpp"
#include "runtime/program.hpp"
#include "tigon/error.hpp"

namespace tigon::tools {
namespace {

void tell_defaults(const Asked& asked, const Choice& choice) {
  const std::string text = defaults_text(asked, choice);
  if (!text.empty()) err(paint_error(Colour::dim, "tigon: " + text) + "\n");
}

plan::Plan planned(const Choice& choice, const std::string& target) {
  if (const auto gpu = schedule::gpu_model(target))
    return runtime::plan_for_gpu(*choice.graph, choice.extents, *gpu, runtime::plan_options(choice.options, *gpu),
                                 choice.options.exact);
  return runtime::make_plan(*choice.graph, given_extents(choice), choice.options);
}

runtime::NvrtcBinary compiled(const cuda::CudaText& text, const std::string& architecture) {
  return runtime::NvrtcCompiler::get().compile(text.text, text.symbol, {.architecture = architecture});
}

// The kernels whose names contain the text; all when it is empty.
std::vector<const plan::Kernel*> kernels_named(const plan::Plan& plan, const std::string& text) {
  std::vector<const plan::Kernel*> found;
  std::vector<std::string> names;
  for (const plan::Kernel& kernel : plan.kernels) {
    names.push_back(kernel.name);
    if (kernel.name.find(text) != std::string::npos) found.push_back(&kernel);
  }
  if (!found.empty() || text.empty()) return found;
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  throw Error({.function = plan.name,
               .argument = "--kernel",
               .found = "`" + text + "`",
               .expected = all.empty() ? "nothing: the plan has no kernels" : "a part of one of " + all,
               .cure = runtime::suggestion(text, names)},
              "the plan has no kernel of this name");
}

}  // namespace

int explain(const Asked& asked, bool json) {
  const Choice choice = choose(asked);
  tell_defaults(asked, choice);
  const plan::Plan plan = planned(choice, asked.target);
  out(json ? plan::explain_json(plan) : plan::print(plan));
  return exit_ok;
}

int emit(const Asked& asked, const std::string& what, const std::string& kernel, bool json) {
  const std::vector<std::string> forms = {"graph", "plan", "loops", "llvm", "cuda", "ptx", "sass", "resources"};
  if (std::find(forms.begin(), forms.end(), what) == forms.end()) {
    throw Error({.argument = "--what",
                 .found = "`" + what + "`",
                 .expected = fmt::format("one of {}", fmt::join(forms, ", ")),
                 .cure = runtime::suggestion(what, forms)},
                "there is no such form");
  }
  if (json && what != "resources") {
    throw Error({.argument = "--json",
                 .found = "--what " + what,
                 .expected = "--what resources",
                 .cure = "`tigon explain --json` gives a plan as JSON"},
                "this form is text only");
  }
  const bool for_gpu = what == "cuda" || what == "ptx" || what == "sass" || what == "resources";
  const std::string target = for_gpu && asked.target == "cpu" ? "h200" : asked.target;
  const bool gpu = schedule::gpu_model(target).has_value();
  if (for_gpu != gpu && (for_gpu || what == "llvm")) {
    throw Error({.argument = "--target",
                 .found = "`" + asked.target + "`",
                 .expected = for_gpu ? fmt::format("one of {}", fmt::join(schedule::gpu_names(), ", ")) : "a CPU"},
                "kernels for this target have no such form");
  }
  const Choice choice = choose(asked);
  tell_defaults(asked, choice);
  if (what == "graph") {
    out(dsl::print(dsl::prepare(*choice.graph, choice.extents, {.exact = choice.options.exact})));
    return exit_ok;
  }
  const plan::Plan plan = planned(choice, target);
  if (what == "plan") {
    out(plan::print(plan));
    return exit_ok;
  }
  const std::vector<const plan::Kernel*> kernels = kernels_named(plan, kernel);
  if (what == "resources") {
    const std::string architecture = schedule::gpu_model(target)->architecture;
    KernelTable table;
    for (const plan::Kernel* one : kernels) {
      const cuda::CudaText text = runtime::cuda_text(*one);
      const auto found = runtime::cubin_resources(compiled(text, architecture).cubin);
      table.emplace_back(text.symbol, found.at(text.symbol));
    }
    out(json ? resources_json(table, architecture) : resources_text(table, architecture));
    return exit_ok;
  }
  bool first = true;
  for (const plan::Kernel* one : kernels) {
    if (!std::exchange(first, false)) out("\n");
    if (what == "loops") {
      out(loops::print(one->scheduled.nest));
    } else if (for_gpu) {
      const cuda::CudaText text = runtime::cuda_text(*one);
      const std::string architecture = schedule::gpu_model(target)->architecture;
      if (what == "cuda") {
        out(text.text);
      } else {
        const runtime::NvrtcBinary binary = compiled(text, architecture);
        out(what == "ptx" ? binary.ptx : disassemble(binary.cubin));
      }
    } else {
      out(runtime::llvm_text(one->scheduled.nest, runtime::cpu_model().vector_bytes).text);
    }
  }
  return exit_ok;
}

}  // namespace tigon::tools
