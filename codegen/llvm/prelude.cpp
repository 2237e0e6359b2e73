// The table of the prelude's functions and the collection of those that a kernel uses.
#include "codegen/llvm/prelude.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/llvm/prelude_parts.hpp"
#include "codegen/llvm/prelude_writer.hpp"
#include "tigon/error.hpp"

namespace tigon::llvm {
namespace {

// The stated errors are what the dense tests allow; most functions stay well below.
const std::vector<PreludeFunction>& table() {
  static const std::vector<PreludeFunction> functions = {
      {"exp", 1, 1.5, 1.5, {}, "e^x: x = n ln2 + r, 2^n (1 + r (1 + r q(r))); 0 below the normal numbers", write_exp},
      {"exp2", 1, 1.5, 1.5, {}, "2^x: x = n + r, 2^n (1 + r q(r)); 0 below the normal numbers", write_exp2},
      {"expm1", 1, 2.0, 2.0, {}, "e^x - 1: 2^n (r + r^2 q(r)) + (2^n - 1)", write_expm1},
      {"log", 1, 1.5, 1.5, {}, "log(x): x = 2^k (1 + f), k ln2 + log(1 + f)", write_log},
      {"log2", 1, 2.0, 2.0, {}, "log2(x): x = 2^k (1 + f), k + log(1 + f) log2(e)", write_log2},
      {"log1p", 1, 2.0, 2.0, {}, "log(1 + x): 1 + x = 2^k (1 + f), with f computed from x", write_log1p},
      {"tanh", 1, 2.0, 4.0, {"exp", "expm1"}, "tanh(x) of |x|, with the sign put back", write_tanh},
      {"erf", 1, 2.0, 2.0, {"exp"}, "erf(x): a + a q(a^2) near zero, 1 - exp(q(a)) beyond, a = |x|", write_erf},
      {"sin", 1, 2.0, 2.0, {}, "sin(x): x = n pi/2 + r; NaN for |x| > 2^40", write_sin},
      {"cos", 1, 2.0, 2.0, {}, "cos(x): x = n pi/2 + r; NaN for |x| > 2^40", write_cos},
      {"pow",
       2,
       1.0,
       2.0,
       {},
       "x^y = exp(y log|x|) with the logarithm in more bits, and the special cases of C99",
       write_pow},
      {"sigmoid", 1, 2.5, 3.0, {"exp"}, "1 / (1 + exp(-x))", write_sigmoid},
      {"softplus", 1, 2.5, 2.5, {"exp", "log1p"}, "log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))", write_softplus},
      {"log_sigmoid",
       1,
       2.5,
       2.5,
       {"exp", "log1p"},
       "log(1 / (1 + exp(-x))) = min(x, 0) - log(1 + exp(-|x|))",
       write_log_sigmoid},
      {"rsqrt", 1, 1.5, 1.5, {}, "1 / sqrt(x)", write_rsqrt},
      {"widen_bf16", 1, 0.5, 0, {}, "the f32 of a bf16 held in i16", write_widen_bf16},
      {"narrow_bf16", 1, 0.5, 0, {}, "the bf16, held in i16, nearest to an f32, ties to even", write_narrow_bf16},
      {"widen_f16", 1, 0.5, 0, {}, "the f32 of an f16 held in i16", write_widen_f16},
      {"narrow_f16", 1, 0.5, 0, {}, "the f16, held in i16, nearest to an f32, ties to even", write_narrow_f16},
  };
  return functions;
}

struct Collected {
  std::set<std::string> done;
  std::set<std::string> declarations;
  std::string definitions;
};

void collect(const PreludeUse& use, Collected& collected) {
  const PreludeFunction& function = prelude_function(use.function);
  if (!offers(function, use.dtype) || use.width < 1) {
    throw Error({.kind = ErrorKind::internal, .function = std::string(use.function)},
                fmt::format("the CPU prelude has no {} for {} of width {}", use.function, name(use.dtype), use.width));
  }
  std::string symbol = prelude_symbol(use.function, use.dtype, use.width);
  if (!collected.done.insert(symbol).second) return;
  PreludeWriter writer(std::move(symbol), use.dtype, use.width);
  function.write(writer);
  for (const std::string_view needed : writer.calls()) collect({needed, use.dtype, use.width}, collected);
  collected.declarations.insert(writer.declarations().begin(), writer.declarations().end());
  if (!collected.definitions.empty()) collected.definitions += '\n';
  collected.definitions += writer.definition(function.comment);
}

Collected collect(std::span<const PreludeUse> uses) {
  Collected collected;
  for (const PreludeUse& use : uses) collect(use, collected);
  return collected;
}

}  // namespace

std::span<const PreludeFunction> prelude_functions() { return table(); }

const PreludeFunction& prelude_function(std::string_view name) {
  for (const PreludeFunction& function : table()) {
    if (function.name == name) return function;
  }
  throw Error({.kind = ErrorKind::internal, .function = std::string(name)},
              fmt::format("the CPU prelude has no function called {}", name));
}

bool offers(const PreludeFunction& function, DType dtype) {
  return (dtype == DType::f32 && function.ulp_f32 > 0) || (dtype == DType::f64 && function.ulp_f64 > 0);
}

std::string prelude_symbol(std::string_view function, DType dtype, int width) {
  return fmt::format("tigon_{}_{}_v{}", function, name(dtype), width);
}

std::vector<std::string> prelude_declarations(std::span<const PreludeUse> uses) {
  const Collected collected = collect(uses);
  return {collected.declarations.begin(), collected.declarations.end()};
}

std::string prelude_definitions(std::span<const PreludeUse> uses) { return collect(uses).definitions; }

std::string prelude_text(std::span<const PreludeUse> uses) {
  const Collected collected = collect(uses);
  std::string text;
  for (const std::string& declaration : collected.declarations) text += declaration + '\n';
  if (!text.empty()) text += '\n';
  return text + collected.definitions;
}

}  // namespace tigon::llvm
