// Compiles every row of the IR subset with every installed LLVM for each target, and runs it where this CPU can.
#include "codegen/llvm/prelude.hpp"
#include "loader_samples.hpp"
#include "loader_versions.hpp"
#include "runtime/llvm/compiler.hpp"
#include "runtime/llvm/elf.hpp"
#include "tigon/error.hpp"

namespace tigon {
namespace {

using runtime::CpuTarget;
using runtime::LlvmCompiler;

struct NamedTarget {
  std::string name;
  CpuTarget target;
  bool runs;
};

std::vector<NamedTarget> targets(const LlvmCompiler& compiler) {
  std::vector<NamedTarget> result{{"host", compiler.host_target(), true}};
#if defined(__x86_64__)
  result.push_back({"x86-64-v3", runtime::named_target("x86-64-v3"), true});
  result.push_back({"aarch64", runtime::named_target("aarch64"), false});
#else
  result.push_back({"x86-64-v3", runtime::named_target("x86-64-v3"), false});
#endif
  return result;
}

void check_row(const llvm::SubsetRow& row) {
  const std::vector<samples::Sample> all = samples::samples_of(row);
  INFO("row " << row.name);
  REQUIRE_FALSE(all.empty());
  for (const std::string& element : samples::words(row.elements.substr(0, row.elements.find('|')))) {
    const std::string type = element.substr(element.find('>') + 1);  // npos + 1 is 0
    CHECK(std::any_of(all.begin(), all.end(),
                      [&](const auto& sample) { return sample.name.find(type) != std::string::npos; }));
  }
  const std::string text = samples::module_of(all);
  CHECK(llvm::outside_subset(text) == "");
  for (const auto& compiler : testing::installed_llvms()) {
    for (const NamedTarget& target : targets(*compiler)) {
      INFO("LLVM " << compiler->version() << ", target " << target.name);
      std::vector<std::byte> object;
      try {
        object = compiler->compile(text, target.target);
      } catch (const Error& error) {
        FAIL_CHECK(error.what());
        continue;
      }
      CHECK(runtime::read_elf(object).undefined().empty());
      if (!target.runs) continue;
      const auto loaded = runtime::load_object(object, *compiler);
      for (const samples::Sample& sample : all) {
        INFO(sample.name);
        CHECK(sample.check(reinterpret_cast<samples::Function>(loaded->symbol(sample.name))) == "");
      }
    }
  }
}

TEST_CASE("every row of the IR subset compiles without undefined symbols and computes what it says") {
  for (const llvm::SubsetRow& row : llvm::subset()) {
    DYNAMIC_SECTION(row.name) { check_row(row); }
  }
}

TEST_CASE("the whole prelude lies in the subset") {
  for (const llvm::PreludeFunction& function : llvm::prelude_functions()) {
    for (DType dtype : {DType::f32, DType::f64}) {
      if (!llvm::offers(function, dtype)) continue;
      for (int width : {1, 64 / size_of(dtype)}) {
        const llvm::PreludeUse use{function.name, dtype, width};
        CHECK(llvm::outside_subset(llvm::prelude_text({&use, 1})) == "");
      }
    }
  }
}

TEST_CASE("text outside the subset is named with its line and the reason") {
  const auto refusal = [](const std::string& line) {
    return llvm::outside_subset("define float @f(float %x, float %y) {\n" + line + "\n  ret float %x\n}\n");
  };
  CHECK(refusal("  %z = fadd float %x, %y  ; fast") == "");
  CHECK(refusal("  %fast = fadd float %x, %y") == "");
  CHECK(refusal("contract:") == "");
  CHECK(refusal("  %z = frem float %x, %y").find("line 2: the instruction `frem`") == 0);
  CHECK(refusal("  %z = fadd fast float %x, %y").find("fast-math") != std::string::npos);
  CHECK(refusal("  %z = call float @llvm.exp2.f32(float %x)").find("@llvm.exp2.f32") != std::string::npos);
  CHECK(refusal("  %z = call float @llvm.fmaximum.f32(float %x)").find("@llvm.fmaximum.f32") != std::string::npos);
  CHECK(refusal("  %z = fptrunc float %x to bfloat").find("bfloat") != std::string::npos);
  CHECK(refusal("  %z = fptrunc double %d to half").find("library call") != std::string::npos);
  CHECK(refusal("  %z = fadd half %h, %h").find("half") != std::string::npos);
  CHECK(refusal("  %z = zext nneg i32 %i to i64").find("LLVM 15") != std::string::npos);
  CHECK(refusal("  %z = add <4 x i32> %v, splat (i32 1)").find("splat") != std::string::npos);
  CHECK(refusal("  store atomic i32 %i, ptr %p seq_cst, align 4").find("monotonic") != std::string::npos);
  CHECK(refusal("  unreachable").find("unreachable") != std::string::npos);
}

}  // namespace
}  // namespace tigon
