// The prelude's f64 functions keep their stated error on random numbers, with the same bits from every LLVM, target and
// width.
#include <bit>
#include <cmath>
#include <random>

#include "prelude_kernels.hpp"
#include "prelude_reference.hpp"

using namespace tigon;
using namespace tigon::testing;

namespace {

constexpr int samples = 1 << 17;

// Half over all exponents, half where the functions bend, and the neighbourhoods of their bounds.
std::vector<double> inputs() {
  std::mt19937_64 random(20240607);
  std::vector<double> values = {
      0.0, -0.0, INFINITY, -INFINITY, NAN, 5e-324, -5e-324, 0x1p-1022, 0x1.fffffffffffffp1023};
  for (const double bound : {709.782712893384, -708.3964185322641, 1024.0, -1022.0, 1.0, 6.0, 20.0, 40.0,
                             0.7071067811865476, 1.4142135623730951, 0x1p-54, 0x1p-27, -1.0, 0x1p40}) {
    for (std::uint64_t offset = 0; offset < 9; ++offset) {
      values.push_back(std::bit_cast<double>(std::bit_cast<std::uint64_t>(bound) + offset - 4));
      values.push_back(-values.back());
    }
  }
  std::uniform_real_distribution<double> near(-8, 8), wide(-760, 760), angle(-1e6, 1e6), near_one(-1e-3, 1e-3);
  while (values.size() < samples) {
    switch (values.size() % 8) {
      case 0:
        values.push_back(wide(random));
        break;
      case 1:
        values.push_back(angle(random));
        break;
      case 2:
        values.push_back(1 + near_one(random));
        break;
      case 3:
        values.push_back(near_one(random));
        break;
      case 4:
      case 5:
        values.push_back(near(random));
        break;
      default:
        values.push_back(std::bit_cast<double>(random()));
    }
  }
  return values;
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

}  // namespace

TEST_CASE("prelude f64: functions keep their stated error", "[prelude]") {
  const std::vector<PreludeModule>& modules = prelude_modules(DType::f64);
  REQUIRE_FALSE(modules.empty());
  const std::vector<double> x = inputs();
  std::vector<double> first(samples), other(samples);
  for (const PreludeReference& reference : prelude_references) {
    modules[0].function(reference.name)(x.data(), x.data(), first.data(), samples);
    double worst = 0;
    double where = 0;
    for (int i = 0; i < samples; ++i) {
      Extended exact = reference.of_f64(x[i]);
      if (reference.flushes && std::fabs(exact) < 0x1p-1022L && first[i] == 0) exact = 0;
      const bool turns = reference.name == "sin" || reference.name == "cos";
      if (turns && std::fabs(x[i]) > llvm::sincos_limit) exact = NAN;
      const double distance = ulp_distance_f64(first[i], exact);
      if (distance > worst) {
        worst = distance;
        where = x[i];
      }
    }
    const double stated = llvm::prelude_function(reference.name).ulp_f64;
    UNSCOPED_INFO(reference.name << ": worst " << worst << " ulp of " << stated << fmt::format(" at {}", where));
    CHECK(worst <= stated);
    for (std::size_t m = 1; m < modules.size(); ++m) {
      modules[m].function(reference.name)(x.data(), x.data(), other.data(), samples);
      int different = 0;
      for (int i = 0; i < samples; ++i) different += same(first[i], other[i]) ? 0 : 1;
      INFO(reference.name << " by " << modules[m].label() << " against " << modules[0].label());
      CHECK(different == 0);
    }
  }
}
