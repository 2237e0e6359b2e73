// Prelude functions compiled into loops over arrays, by every installed LLVM, for the tests of their values.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/llvm/prelude.hpp"
#include "runtime/llvm/compiler.hpp"

namespace tigon::testing {

// out[i] = f(x[i], y[i]) for i < count, a multiple of the width; functions of one operand ignore y.
using ArrayFunction = void (*)(const void* x, const void* y, void* out, std::int64_t count);

// All functions that the prelude offers for a dtype, at one width.
class PreludeModule {
 public:
  PreludeModule(const runtime::LlvmCompiler& compiler, const runtime::CpuTarget& target, DType dtype, int width);
  [[nodiscard]] ArrayFunction function(std::string_view name) const;
  [[nodiscard]] const std::string& label() const { return label_; }  // "LLVM 19.1.7, host, width 16"

 private:
  DType dtype_;
  int width_;
  std::string label_;
  std::shared_ptr<runtime::LoadedObject> object_;
};

// The text of the loop that applies one function, called "run_<symbol>".
std::string loop_text(const llvm::PreludeUse& use);
// A module of such loops and all they need.
std::string loops_text(const std::vector<llvm::PreludeUse>& uses);

// Modules of every installed LLVM at widths 16, 8 and 1 for the host, and at 8 for x86-64-v3 where the host is x86-64;
// the newest LLVM's width 16 first. Compiled once per dtype.
const std::vector<PreludeModule>& prelude_modules(DType dtype);

}  // namespace tigon::testing
