// The prelude's text: inside the subset, complete, each part once, readable by every LLVM at odd widths, and in zmm.
#include <set>

#include "codegen/llvm/subset.hpp"
#include "loader_versions.hpp"
#include "prelude_kernels.hpp"

using namespace tigon;
using namespace tigon::testing;

namespace {

std::vector<llvm::PreludeUse> all_uses(int width) {
  std::vector<llvm::PreludeUse> uses;
  for (const llvm::PreludeFunction& function : llvm::prelude_functions()) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      if (llvm::offers(function, dtype)) uses.push_back({function.name, dtype, width});
    }
  }
  return uses;
}

int occurrences(std::string_view text, std::string_view word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// EVEX-encoded instructions of 512 bits: the prefix byte 0x62 with its fixed bits and a vector length of 2.
int zmm_instructions(const std::vector<std::byte>& object) {
  int count = 0;
  for (std::size_t i = 0; i + 3 < object.size(); ++i) {
    const auto at = [&](std::size_t offset) { return std::to_integer<unsigned>(object[i + offset]); };
    if (at(0) == 0x62 && (at(1) & 0x08) == 0 && (at(2) & 0x04) != 0 && (at(3) & 0x60) == 0x40) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("prelude text lies in the subset and compiles without undefined symbols at any width", "[prelude]") {
  for (const int width : {1, 2, 3, 4, 8, 16}) {
    const std::vector<llvm::PreludeUse> uses = all_uses(width);
    const std::string text = loops_text(uses);
    CHECK(llvm::outside_subset(text) == "");
    for (const auto& compiler : installed_llvms()) {
      INFO("width " << width << " by LLVM " << compiler->version());
      CHECK(!compiler->compile(text, compiler->host_target()).empty());  // throws on undefined symbols
    }
  }
}

TEST_CASE("prelude text holds each needed part once, in one order", "[prelude]") {
  const std::vector<llvm::PreludeUse> uses = {{"softplus", DType::f32, 8},
                                              {"exp", DType::f32, 8},
                                              {"log_sigmoid", DType::f32, 8},
                                              {"softplus", DType::f32, 8},
                                              {"exp", DType::f32, 1}};
  const std::string text = llvm::prelude_text(uses);
  CHECK(text == llvm::prelude_text(uses));
  CHECK(occurrences(text, "define internal") == 5);
  for (const char* symbol : {"exp_f32_v8", "log1p_f32_v8", "softplus_f32_v8", "log_sigmoid_f32_v8", "exp_f32_v1"}) {
    CHECK(occurrences(text, fmt::format(" @tigon_{}(", symbol)) >= 1);
  }
  CHECK(text.find("define internal <8 x float> @tigon_exp_f32_v8") <
        text.find("define internal <8 x float> @tigon_softplus_f32_v8"));
  CHECK(occurrences(text, "declare <8 x float> @llvm.fma.v8f32") == 1);
  const std::vector<std::string> declarations = llvm::prelude_declarations(uses);
  CHECK(std::is_sorted(declarations.begin(), declarations.end()));
  CHECK(std::set<std::string>(declarations.begin(), declarations.end()).size() == declarations.size());
  CHECK(text.substr(text.size() - llvm::prelude_definitions(uses).size()) == llvm::prelude_definitions(uses));
}

TEST_CASE("prelude functions call only what they say they need", "[prelude]") {
  for (const llvm::PreludeUse& use : all_uses(4)) {
    const llvm::PreludeFunction& function = llvm::prelude_function(use.function);
    const std::string text = llvm::prelude_text(std::vector{use});
    const std::size_t last = text.rfind("\ndefine ");
    for (std::size_t at = text.find(" @tigon_", last + 8 + function.name.size()); at != std::string::npos;
         at = text.find(" @tigon_", at + 1)) {
      const std::string_view rest = std::string_view(text).substr(at + 2);
      if (rest.substr(0, rest.find('(')) == llvm::prelude_symbol(use.function, use.dtype, use.width)) continue;
      bool known = false;
      for (const std::string_view needed : function.needs) {
        known |= rest.substr(0, rest.find('(')) == llvm::prelude_symbol(needed, use.dtype, use.width);
      }
      INFO(function.name << " calls " << rest.substr(0, 30));
      CHECK(known);
    }
  }
}

TEST_CASE("prelude refuses what it does not have", "[prelude]") {
  CHECK(llvm::prelude_symbol("exp", DType::f32, 16) == "tigon_exp_f32_v16");
  CHECK_THROWS_AS(llvm::prelude_text(std::vector<llvm::PreludeUse>{{"gamma", DType::f32, 8}}), Error);
  CHECK_THROWS_AS(llvm::prelude_text(std::vector<llvm::PreludeUse>{{"exp", DType::i32, 8}}), Error);
  CHECK_THROWS_AS(llvm::prelude_text(std::vector<llvm::PreludeUse>{{"narrow_bf16", DType::f64, 8}}), Error);
  CHECK_THROWS_AS(llvm::prelude_text(std::vector<llvm::PreludeUse>{{"exp", DType::f32, 0}}), Error);
}

#if defined(__x86_64__)
TEST_CASE("prelude exp of 16 floats is made of 512-bit instructions", "[prelude]") {
  for (const auto& compiler : installed_llvms()) {
    const runtime::CpuTarget target = runtime::named_target("x86-64-v4");
    const auto wide = compiler->compile(loops_text({{"exp", DType::f32, 16}}), target);
    const auto narrow = compiler->compile(loops_text({{"exp", DType::f32, 8}}), target);
    INFO("LLVM " << compiler->version());
    CHECK(zmm_instructions(wide) >= 15);  // 8 fma and 9 others
    CHECK(zmm_instructions(narrow) <= 2);
  }
}
#endif
