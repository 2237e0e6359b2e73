// pow keeps its stated error on random pairs and C99's special cases on all pairs of special numbers.
#include <bit>
#include <cmath>
#include <random>

#include "prelude_kernels.hpp"
#include "prelude_reference.hpp"

using namespace tigon;
using namespace tigon::testing;

namespace {

constexpr int samples = 1 << 18;

template <class T>
struct Pairs {
  std::vector<T> x, y;
};

// Bases over all exponents and near one; exponents that keep the result in range, small integers, halves, and some that
// leave it.
template <class T>
Pairs<T> random_pairs(double largest_log2) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> unit(-1, 1);
  Pairs<T> pairs;
  for (int i = 0; i < samples; ++i) {
    T x = i % 4 == 0 ? static_cast<T>(1 + unit(random) * 0.01)
                     : static_cast<T>(std::exp2(unit(random) * (i % 4 == 1 ? 2 : largest_log2)));
    T y = static_cast<T>(unit(random) * 1.02 * largest_log2 / std::max(std::fabs(std::log2(double(x))), 1e-9));
    if (i % 16 == 5) y = static_cast<T>(i / 16 % 41 - 20);
    if (i % 16 == 6) y = static_cast<T>(i / 16 % 41 - 20) / 2;
    if (i % 16 == 7) y = static_cast<T>(y * 1.2);
    if (i % 8 == 5) x = -x;
    pairs.x.push_back(x);
    pairs.y.push_back(y);
  }
  return pairs;
}

template <class T>
Pairs<T> special_pairs() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values;
  for (const T v : {T(0), T(0.5), T(1), T(1.5), T(2), T(3), T(7), T(1e5), T(16777215), T(16777216), T(1e30),
                    Limits::min(), Limits::denorm_min(), Limits::max(), Limits::infinity(), std::nextafter(T(1), T(0)),
                    std::nextafter(T(1), T(2)), Limits::quiet_NaN()}) {
    values.push_back(v);
    values.push_back(-v);
  }
  Pairs<T> pairs;
  for (const T x : values) {
    for (const T y : values) {
      pairs.x.push_back(x);
      pairs.y.push_back(y);
    }
  }
  while (pairs.x.size() % 16 != 0) {
    pairs.x.push_back(T(2));
    pairs.y.push_back(T(3));
  }
  return pairs;
}

template <class T>
double distance(T got, T x, T y) {
  if constexpr (sizeof(T) == 4) return ulp_distance_f32(got, std::pow(double(x), double(y)));
  if constexpr (sizeof(T) == 8) return ulp_distance_f64(got, std::pow(Extended(x), Extended(y)));
}

template <class T>
void check_pairs(const Pairs<T>& pairs, bool signs_too) {
  const DType dtype = dtype_v<T>;
  const auto count = static_cast<std::int64_t>(pairs.x.size());
  std::vector<T> first(pairs.x.size()), other(pairs.x.size());
  const std::vector<PreludeModule>& modules = prelude_modules(dtype);
  REQUIRE_FALSE(modules.empty());
  modules[0].function("pow")(pairs.x.data(), pairs.y.data(), first.data(), count);
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < pairs.x.size(); ++i) {
    const double error = distance(first[i], pairs.x[i], pairs.y[i]);
    if (error > worst) {
      worst = error;
      at = i;
    }
    if (!signs_too || std::isnan(first[i])) continue;
    if (std::signbit(first[i]) != std::signbit(std::pow(pairs.x[i], pairs.y[i]))) {
      FAIL("sign of " << pairs.x[i] << " ^ " << pairs.y[i] << " = " << first[i]);
    }
  }
  const llvm::PreludeFunction& function = llvm::prelude_function("pow");
  const double stated = dtype == DType::f32 ? function.ulp_f32 : function.ulp_f64;
  UNSCOPED_INFO(
      fmt::format("pow: worst {} ulp of {} at {} ^ {} = {}", worst, stated, pairs.x[at], pairs.y[at], first[at]));
  CHECK(worst <= stated);
  for (std::size_t m = 1; m < modules.size(); ++m) {
    modules[m].function("pow")(pairs.x.data(), pairs.y.data(), other.data(), count);
    int different = 0;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const bool both_nan = std::isnan(first[i]) && std::isnan(other[i]);
      if (!both_nan && (first[i] != other[i] || std::signbit(first[i]) != std::signbit(other[i]))) ++different;
    }
    INFO(modules[m].label() << " against " << modules[0].label());
    CHECK(different == 0);
  }
}

}  // namespace

TEST_CASE("prelude: pow keeps its stated error", "[prelude]") {
  check_pairs(random_pairs<float>(128), true);
  check_pairs(random_pairs<double>(1024), true);
}

TEST_CASE("prelude: pow's special cases", "[prelude]") {
  check_pairs(special_pairs<float>(), true);
  check_pairs(special_pairs<double>(), true);
}
