// The kernels of every op, written for CPUs that this machine need not be, are assembled by the installed LLVMs.
#include <elf.h>

#include <cstdlib>
#include <set>

#include "pairwise.hpp"
#include "runtime/compiled.hpp"
#include "runtime/llvm/elf.hpp"
#include "runtime/program.hpp"
#include "tests/llvm/loader_versions.hpp"

using namespace tigon;
using namespace tigon::ops;

namespace {

// $TIGON_CPU for as long as this lives.
struct WrittenFor {
  explicit WrittenFor(const std::string& target) { ::setenv("TIGON_CPU", target.c_str(), 1); }
  ~WrittenFor() { ::unsetenv("TIGON_CPU"); }
};

// The distinct kernel texts of an op's first case in each dtype, with its gradient if it has one; and whether the text
// is one of the first dtype's.
std::map<std::string, bool> texts_of(const OpEntry& entry) {
  std::map<std::string, bool> texts;
  std::set<DType> seen;
  for (const OpCase& one : op_cases()) {
    if (one.entry != &entry || !seen.insert(one.choice.dtype).second) continue;
    for (const bool gradient : {false, true}) {
      if (gradient && !entry.has_gradient()) continue;
      OpChoice choice = one.choice;
      choice.gradient = gradient;
      const dsl::Graph graph = entry.trace(choice);
      NamedExtents asked;  // none of them empty: an empty sweep's kernel may have no loops at all
      for (const AxisDefault& axis : entry.axes) asked[std::string(axis.name)] = 41 * axis.multiple;
      const dsl::Extents extents = extents_of(entry, graph, asked);
      std::vector<detail::GivenExtent> given;
      for (std::size_t i = 0; i < graph.axes.size(); ++i)
        given.push_back({{graph.axes[i].tag, graph.axes[i].name, graph.axes[i].fixed}, extents[i], extents[i]});
      const plan::Plan plan = runtime::make_plan(graph, given, {.device = Device::cpu()});
      for (const plan::Kernel& kernel : plan.kernels)
        texts.try_emplace(runtime::llvm_text(kernel.scheduled.nest, runtime::cpu_model().vector_bytes).text,
                          seen.size() == 1);
    }
  }
  return texts;
}

// The newest LLVM takes every text; the others, where asked for, those of each op's first dtype.
void check_target(const std::string& target, std::uint16_t elf_machine, const std::string& vector, bool every_llvm) {
  const WrittenFor written(target);
  for (const OpEntry* entry : catalogue()) {
    INFO(entry->name << " for " << target);
    const std::map<std::string, bool> texts = texts_of(*entry);
    CHECK_FALSE(texts.empty());
    bool vectors = false;
    for (const auto& [text, of_first_dtype] : texts) {
      vectors |= text.find(vector) != std::string::npos;
      for (const auto& compiler : testing::installed_llvms()) {
        if (!(every_llvm && of_first_dtype) && compiler != testing::installed_llvms().front()) break;
        INFO("LLVM " << compiler->version() << "\n" << text);
        try {
          // Undefined symbols, calls of a library that no kernel has, would throw.
          CHECK(runtime::read_elf(compiler->compile(text, runtime::named_target(target))).machine == elf_machine);
        } catch (const Error& error) {
          FAIL_CHECK(error.what() << "\n" << error.details().log);
        }
      }
    }
    CHECK(vectors);
  }
}

}  // namespace

TEST_CASE("kernels of the catalogue are written and assembled for AArch64") {
  check_target("aarch64", EM_AARCH64, "<4 x float>", true);
}
TEST_CASE("kernels of the catalogue are written and assembled for AVX-512") {
  check_target("x86-64-v4", EM_X86_64, "<16 x float>", false);
}
