// Loops around prelude functions, as text and compiled.
#include "prelude_kernels.hpp"

#include "loader_versions.hpp"

namespace tigon::testing {
namespace {

std::string vector_type(std::string_view element, int width) {
  return width == 1 ? std::string(element) : fmt::format("<{} x {}>", width, element);
}

// Element types of the operands and the result: conversions take or give i16.
std::string_view element(std::string_view function, DType dtype, bool of_result) {
  const std::string_view converts = of_result ? "narrow" : "widen";
  if (function.substr(0, converts.size()) == converts) return "i16";
  return dtype == DType::f32 ? "float" : "double";
}

}  // namespace

std::string loop_text(const llvm::PreludeUse& use) {
  const std::string symbol = llvm::prelude_symbol(use.function, use.dtype, use.width);
  const std::string_view in = element(use.function, use.dtype, false);
  const std::string_view out = element(use.function, use.dtype, true);
  const std::string in_type = vector_type(in, use.width);
  const std::string out_type = vector_type(out, use.width);
  const bool two = llvm::prelude_function(use.function).arity == 2;
  std::string text = fmt::format(
      "define void @run_{}(ptr %x, ptr %y, ptr %out, i64 %count) {{\nentry:\n  br label %loop\nloop:\n"
      "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
      "  %px = getelementptr {}, ptr %x, i64 %i\n  %vx = load {}, ptr %px, align 2\n",
      symbol, in, in_type);
  if (two)
    text += fmt::format("  %py = getelementptr {}, ptr %y, i64 %i\n  %vy = load {}, ptr %py, align 2\n", in, in_type);
  text += fmt::format("  %r = call {} @{}({} %vx{})\n", out_type, symbol, in_type,
                      two ? fmt::format(", {} %vy", in_type) : std::string());
  text += fmt::format(
      "  %po = getelementptr {}, ptr %out, i64 %i\n  store {} %r, ptr %po, align 2\n"
      "  %next = add i64 %i, {}\n  %more = icmp slt i64 %next, %count\n"
      "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}}\n",
      out, out_type, use.width);
  return text;
}

std::string loops_text(const std::vector<llvm::PreludeUse>& uses) {
  std::string text = llvm::prelude_text(uses);
  for (const llvm::PreludeUse& use : uses) text += '\n' + loop_text(use);
  return text;
}

PreludeModule::PreludeModule(const runtime::LlvmCompiler& compiler, const runtime::CpuTarget& target, DType dtype,
                             int width)
    : dtype_(dtype),
      width_(width),
      label_(fmt::format("LLVM {}, {}, width {}", compiler.version(), target.cpu, width)) {
  std::vector<llvm::PreludeUse> uses;
  for (const llvm::PreludeFunction& function : llvm::prelude_functions()) {
    if (llvm::offers(function, dtype)) uses.push_back({function.name, dtype, width});
  }
  object_ = runtime::load_object(compiler.compile(loops_text(uses), target), compiler);
}

ArrayFunction PreludeModule::function(std::string_view name) const {
  return reinterpret_cast<ArrayFunction>(object_->symbol("run_" + llvm::prelude_symbol(name, dtype_, width_)));
}

const std::vector<PreludeModule>& prelude_modules(DType dtype) {
  const auto build = [](DType of) {
    std::vector<PreludeModule> modules;
    for (const auto& compiler : installed_llvms()) {
      const runtime::CpuTarget host = compiler->host_target();
      for (const int width : {16, 8, 1}) modules.emplace_back(*compiler, host, of, width);
      if (host.triple.substr(0, 6) == "x86_64") {
        modules.emplace_back(*compiler, runtime::named_target("x86-64-v3"), of, 8);
      }
    }
    return modules;
  };
  static const std::vector<PreludeModule> of_f32 = build(DType::f32);
  static const std::vector<PreludeModule> of_f64 = build(DType::f64);
  return dtype == DType::f32 ? of_f32 : of_f64;
}

}  // namespace tigon::testing
