// The prelude's pieces in the order in which a text holds them.
#include "codegen/cuda/prelude.hpp"

#include <fmt/format.h>

#include "tigon/error.hpp"

namespace tigon::cuda {
namespace {

struct Piece {
  std::string_view name;
  std::string_view needs;  // names, separated by spaces
  std::string_view text;
};

// bf16 and f16 are bits with conversions, as PTX has them: nearest even. Larger and smaller of two: a tie gives the
// first, a NaN in either wins. Division of integers rounds towards minus infinity, x / 0 = 0, x % 0 = x.
constexpr Piece pieces[] = {
    {"i64", "", "using i64 = long long;\n"},
    {"bf16", "", R"(
struct bf16 {
  unsigned short bits;
  bf16() = default;
  explicit bf16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  explicit operator float() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
};
)"},
    {"f16", "", R"(
struct f16 {
  unsigned short bits;
  f16() = default;
  explicit f16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  explicit operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
)"},
    {"pack", "", R"(
// N neighbours in memory, moved by accesses of 16 bytes.
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) pack {
  T at[N];
};
)"},
    {"load", "pack", R"(
template <int N, class T>
pack<T, N> load(const T* from) { return *reinterpret_cast<const pack<T, N>*>(from); }
)"},
    {"store", "pack", R"(
template <class T, int N>
void store(T* to, const pack<T, N>& values) { *reinterpret_cast<pack<T, N>*>(to) = values; }
)"},
    {"store_streaming", "pack", R"(
// Will not be read soon: evicted from the cache first.
template <class T, int N>
void store_streaming(T* to, const pack<T, N>& values) {
  if constexpr (sizeof(values) % 16 == 0) {
    const auto words = reinterpret_cast<const uint4*>(&values);
    #pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(values)) / 16; ++i) __stcs(reinterpret_cast<uint4*>(to) + i, words[i]);
  } else {
    *reinterpret_cast<pack<T, N>*>(to) = values;
  }
}
)"},
    {"head_length", "i64", R"(
// Elements from `at` to the next multiple of 16 bytes, at most `limit`.
template <class T>
int head_length(const T* at, int limit) {
  const int missing = static_cast<int>(-reinterpret_cast<i64>(at) & 15) / static_cast<int>(sizeof(T));
  return missing < limit ? missing : limit;
}
)"},
    {"larger", "", R"(
template <class T>
T larger(T a, T b) { return b > a || b != b ? b : a; }
)"},
    {"smaller", "", R"(
template <class T>
T smaller(T a, T b) { return b < a || b != b ? b : a; }
)"},
    {"clamp", "larger smaller", R"(
template <class T>
T clamp(T x, T low, T high) { return smaller(larger(x, low), high); }
)"},
    {"relu", "", R"(
template <class T>
T relu(T x) { return x < T(0) ? T(0) : x; }
)"},
    {"sign", "", R"(
template <class T>
T sign(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }
)"},
    {"mul0", "", R"(
// 0 where the first is 0, whatever the second holds.
template <class T>
T mul0(T a, T b) { return a == T(0) ? T(0) : a * b; }
)"},
    {"is_finite", "", R"(
template <class T>
bool is_finite(T x) { return x - x == T(0); }
)"},
    {"floor_div", "", R"(
template <class T>
T floor_div(T a, T b) {
  if (b == 0) return 0;
  if (b == -1) return 0 - a;
  const T quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
)"},
    {"floor_rem", "", R"(
template <class T>
T floor_rem(T a, T b) {
  if (b == 0) return a;
  if (b == -1) return 0;
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
)"},
    // Towards zero, out of range to the nearest integer; what the machine makes of NaN differs from type to type.
    {"to_int", "", R"(
int to_int(float x) { return __float2int_rz(x); }  // NaN to 0
)"},
    {"to_int64", "", R"(
int to_int(double x) { return x == x ? __double2int_rz(x) : 0; }
)"},
    {"to_i64", "i64", R"(
i64 to_i64(float x) { return x == x ? __float2ll_rz(x) : 0; }
)"},
    {"to_i6464", "i64", R"(
i64 to_i64(double x) { return x == x ? __double2ll_rz(x) : 0; }
)"},
    {"rsqrt", "", ""},  // CUDA has it for f32
    {"rsqrt64", "", R"(
double rsqrt64(double x) { return 1.0 / sqrt(x); }
)"},
    {"sigmoid", "", R"(
float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
)"},
    {"sigmoid64", "", R"(
double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
)"},
    {"softplus", "", R"(
// log(1 + exp(x))
float softplus(float x) { return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x))); }
)"},
    {"softplus64", "", R"(
double softplus(double x) { return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x))); }
)"},
    {"log_sigmoid", "softplus", R"(
float log_sigmoid(float x) { return -softplus(-x); }
)"},
    {"log_sigmoid64", "softplus64", R"(
double log_sigmoid(double x) { return -softplus(-x); }
)"},
    {"log1mexp", "", R"(
// log(1 - exp(x)), x <= 0
float log1mexp(float x) { return x > -0.6931472f ? logf(-expm1f(x)) : log1pf(-expf(x)); }
)"},
    {"log1mexp64", "", R"(
double log1mexp(double x) { return x > -0.6931471805599453 ? log(-expm1(x)) : log1p(-exp(x)); }
)"},
    {"logaddexp", "larger", R"(
// log(exp(a) + exp(b))
float logaddexp(float a, float b) {
  return a == b ? a + 0.6931472f : larger(a, b) + log1pf(expf(-fabsf(a - b)));
}
)"},
    {"logaddexp64", "larger", R"(
double logaddexp(double a, double b) {
  return a == b ? a + 0.6931471805599453 : larger(a, b) + log1p(exp(-fabs(a - b)));
}
)"},
};

struct Function {
  std::string_view table_name;
  std::string_view f32, f64;  // CUDA's own function, or a piece's
  std::string_view piece;     // empty: CUDA's own
  bool by_dtype = false;      // the piece for f64 is called NAME64
};

constexpr Function functions[] = {
    {"to_int", "to_int", "to_int", "to_int", true},
    {"to_i64", "to_i64", "to_i64", "to_i64", true},
    {"tigon_sqrt", "sqrtf", "sqrt", ""},
    {"tigon_rsqrt", "rsqrtf", "rsqrt64", "rsqrt", true},
    {"tigon_exp", "expf", "exp", ""},
    {"tigon_expm1", "expm1f", "expm1", ""},
    {"tigon_log", "logf", "log", ""},
    {"tigon_log1p", "log1pf", "log1p", ""},
    {"tigon_sin", "sinf", "sin", ""},
    {"tigon_cos", "cosf", "cos", ""},
    {"tigon_tanh", "tanhf", "tanh", ""},
    {"tigon_erf", "erff", "erf", ""},
    {"tigon_pow", "powf", "pow", ""},
    {"tigon_floor", "floorf", "floor", ""},
    {"tigon_ceil", "ceilf", "ceil", ""},
    {"tigon_round", "rintf", "rint", ""},
    {"tigon_fma", "__fmaf_rn", "__fma_rn", ""},
    {"tigon_max", "larger", "larger", "larger"},
    {"tigon_min", "smaller", "smaller", "smaller"},
    {"tigon_clamp", "clamp", "clamp", "clamp"},
    {"tigon_relu", "relu", "relu", "relu"},
    {"tigon_sign", "sign", "sign", "sign"},
    {"tigon_mul0", "mul0", "mul0", "mul0"},
    {"tigon_is_finite", "is_finite", "is_finite", "is_finite"},
    {"tigon_floor_div", "floor_div", "floor_div", "floor_div"},
    {"tigon_rem", "floor_rem", "floor_rem", "floor_rem"},
    {"tigon_sigmoid", "sigmoid", "sigmoid", "sigmoid", true},
    {"tigon_softplus", "softplus", "softplus", "softplus", true},
    {"tigon_log_sigmoid", "log_sigmoid", "log_sigmoid", "log_sigmoid", true},
    {"tigon_log1mexp", "log1mexp", "log1mexp", "log1mexp", true},
    {"tigon_logaddexp", "logaddexp", "logaddexp", "logaddexp", true},
};

void need(std::string_view name, std::set<std::string>& all) {
  for (const Piece& piece : pieces) {
    if (piece.name != name) continue;
    if (!all.insert(std::string(name)).second) return;
    for (std::size_t start = 0; start < piece.needs.size();) {
      const std::size_t end = std::min(piece.needs.find(' ', start), piece.needs.size());
      need(piece.needs.substr(start, end - start), all);
      start = end + 1;
    }
    return;
  }
  throw Error({.kind = ErrorKind::internal, .function = std::string(name)},
              fmt::format("the CUDA prelude has no piece called {}", name));
}

}  // namespace

std::string function_for(std::string_view table_name, DType dtype, std::set<std::string>& used) {
  const bool whole = dtype == DType::i32 || dtype == DType::i64;
  if (table_name == "tigon_abs")
    return whole ? (dtype == DType::i64 ? "llabs" : "abs") : dtype == DType::f64 ? "fabs" : "fabsf";
  if (whole && table_name == "tigon_max") return "max";
  if (whole && table_name == "tigon_min") return "min";
  for (const Function& function : functions) {
    if (function.table_name != table_name) continue;
    if (whole && function.piece.empty()) break;
    if (!function.piece.empty())
      used.insert(std::string(function.piece) + (function.by_dtype && dtype == DType::f64 ? "64" : ""));
    return std::string(dtype == DType::f64 ? function.f64 : function.f32);
  }
  throw Error({.kind = ErrorKind::internal, .function = std::string(table_name)},
              fmt::format("{} of {} has no spelling in CUDA", table_name, name(dtype)));
}

bool is_function(std::string_view name) {
  for (const std::string_view own : {"abs", "llabs", "fabs", "fabsf", "min", "max", "load", "store"})
    if (name == own) return true;
  for (const Piece& piece : pieces)
    if (piece.name == name) return true;
  for (const Function& function : functions)
    if (function.f32 == name || function.f64 == name) return true;
  return false;
}

std::string prelude_text(const std::set<std::string>& used) {
  std::set<std::string> all;
  for (const std::string& name : used) need(name, all);
  std::string text;
  for (const Piece& piece : pieces)
    if (all.count(std::string(piece.name)) != 0) text += piece.text;
  return text;
}

}  // namespace tigon::cuda
