// Exact results at zeros, infinities, poles and NaN, at every width, target and LLVM.
#include <bit>
#include <cmath>

#include "prelude_kernels.hpp"

using namespace tigon;
using namespace tigon::testing;

namespace {

struct Case {
  std::string_view function;
  double x;
  double result;
};

const double nan = std::numeric_limits<double>::quiet_NaN();
const double inf = std::numeric_limits<double>::infinity();

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"exp", 0, 1},
      {"exp", -0.0, 1},
      {"exp", inf, inf},
      {"exp", -inf, 0},
      {"exp", nan, nan},
      {"exp", 1e4, inf},
      {"exp", -1e4, 0},
      {"exp2", 0, 1},
      {"exp2", 10, 1024},
      {"exp2", -3, 0.125},
      {"exp2", inf, inf},
      {"exp2", -inf, 0},
      {"exp2", nan, nan},
      {"exp2", 1e5, inf},
      {"exp2", -1e5, 0},
      {"expm1", 0, 0},
      {"expm1", -0.0, -0.0},
      {"expm1", inf, inf},
      {"expm1", -inf, -1},
      {"expm1", nan, nan},
      {"expm1", 1e4, inf},
      {"expm1", -1e4, -1},
      {"log", 1, 0},
      {"log", 0, -inf},
      {"log", -0.0, -inf},
      {"log", -1, nan},
      {"log", -inf, nan},
      {"log", inf, inf},
      {"log", nan, nan},
      {"log2", 1, 0},
      {"log2", 8, 3},
      {"log2", 0x1p-100, -100},
      {"log2", 0, -inf},
      {"log2", -0.0, -inf},
      {"log2", -2, nan},
      {"log2", inf, inf},
      {"log2", nan, nan},
      {"log1p", 0, 0},
      {"log1p", -0.0, -0.0},
      {"log1p", -1, -inf},
      {"log1p", -1.5, nan},
      {"log1p", inf, inf},
      {"log1p", -inf, nan},
      {"log1p", nan, nan},
      {"tanh", 0, 0},
      {"tanh", -0.0, -0.0},
      {"tanh", inf, 1},
      {"tanh", -inf, -1},
      {"tanh", nan, nan},
      {"tanh", 1e4, 1},
      {"erf", 0, 0},
      {"erf", -0.0, -0.0},
      {"erf", inf, 1},
      {"erf", -inf, -1},
      {"erf", nan, nan},
      {"sin", 0, 0},
      {"sin", -0.0, -0.0},
      {"sin", inf, nan},
      {"sin", -inf, nan},
      {"sin", nan, nan},
      {"sin", 0x1p41, nan},
      {"cos", 0, 1},
      {"cos", -0.0, 1},
      {"cos", inf, nan},
      {"cos", -inf, nan},
      {"cos", nan, nan},
      {"cos", 0x1p41, nan},
      {"sigmoid", 0, 0.5},
      {"sigmoid", inf, 1},
      {"sigmoid", -inf, 0},
      {"sigmoid", nan, nan},
      {"sigmoid", 1e4, 1},
      {"sigmoid", -1e4, 0},
      {"softplus", inf, inf},
      {"softplus", -inf, 0},
      {"softplus", nan, nan},
      {"softplus", 1e4, 1e4},
      {"softplus", -1e4, 0},
      {"log_sigmoid", inf, 0},
      {"log_sigmoid", -inf, -inf},
      {"log_sigmoid", nan, nan},
      {"log_sigmoid", -1e4, -1e4},
      {"rsqrt", 4, 0.5},
      {"rsqrt", 0, inf},
      {"rsqrt", -0.0, -inf},
      {"rsqrt", inf, 0},
      {"rsqrt", -1, nan},
      {"rsqrt", nan, nan},
  };
  return list;
}

// -log(1) is zero of either sign; elsewhere the sign of zero counts.
bool equal(double got, double expected, bool any_zero) {
  if (std::isnan(expected)) return std::isnan(got);
  return got == expected && (any_zero || std::signbit(got) == std::signbit(expected));
}

template <class T>
void check_all() {
  for (const PreludeModule& module : prelude_modules(dtype_v<T>)) {
    for (const Case& test : cases()) {
      const std::vector<T> x(16, static_cast<T>(test.x));
      std::vector<T> got(16, T(-7));
      module.function(test.function)(x.data(), x.data(), got.data(), 16);
      INFO(test.function << "(" << test.x << ") by " << module.label() << " gives " << got[0]);
      for (const T value : got) CHECK(equal(value, test.result, test.function == "log_sigmoid"));
    }
  }
}

}  // namespace

TEST_CASE("prelude: special values of f32", "[prelude]") { check_all<float>(); }
TEST_CASE("prelude: special values of f64", "[prelude]") { check_all<double>(); }
