// The CPU device prelude: vector math as LLVM IR text, of which a kernel pastes only the functions it uses.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tigon/dtype.hpp"

namespace tigon::llvm {

class PreludeWriter;

// One function of the prelude, for every width and for the dtypes with a stated error (0 = not offered).
//
// Subset: the text is valid for LLVM 15, 19 and 22, uses llvm.fma, llvm.fabs, llvm.copysign, llvm.sqrt and llvm.rint
// only, no flag and no value that can be poison, and assumes the caller's rounding mode to be nearest-even. Run the
// pass `always-inline` before any function pass, or the bodies stay calls.
//
// Special values: NaN propagates (except pow(1, y) and pow(x, 0), which are 1); the odd functions keep signed zero.
// Results of exp, exp2 below the smallest normal number are 0, as ex2.approx.ftz of the CUDA target flushes them; a
// subnormal result of pow is kept. sin and cos give NaN for |x| > sincos_limit, where their reduction would lose its
// bits.
struct PreludeFunction {
  std::string_view name;                // "exp"
  int arity;                            // operands, all of the function's dtype
  double ulp_f32;                       // largest error in units of the last place, f32 results
  double ulp_f64;                       // the same for f64 results
  std::vector<std::string_view> needs;  // other functions that its text may call
  std::string_view comment;             // one sentence over the definition
  void (*write)(PreludeWriter&);
};

// What a kernel uses: the function for one dtype and width. Width 1 takes and gives plain scalars.
struct PreludeUse {
  std::string_view function;
  DType dtype;
  int width;
};

// Largest |x| for which sin and cos hold their stated error: 2^40.
inline constexpr double sincos_limit = 1099511627776.0;

std::span<const PreludeFunction> prelude_functions();
// The function of that name; an internal Error when there is none.
const PreludeFunction& prelude_function(std::string_view name);
bool offers(const PreludeFunction& function, DType dtype);

// The symbol to call, without '@': "tigon_exp_f32_v16".
std::string prelude_symbol(std::string_view function, DType dtype, int width);

// The `declare` lines of the intrinsics that the definitions use, sorted, without duplicates or line ends. A module may
// hold each only once: a caller with declarations of its own merges these into them.
std::vector<std::string> prelude_declarations(std::span<const PreludeUse> uses);
// The definitions of the functions and of all that they need, each once, needed ones first.
std::string prelude_definitions(std::span<const PreludeUse> uses);
// Declarations and definitions: a complete module's text.
std::string prelude_text(std::span<const PreludeUse> uses);

}  // namespace tigon::llvm
