// The prelude's f32 functions keep their stated error on every 97th of all numbers, with the same bits from every LLVM,
// target and width.
#include <bit>
#include <cmath>
#include <cstring>

#include "prelude_kernels.hpp"
#include "prelude_reference.hpp"

using namespace tigon;
using namespace tigon::testing;

namespace {

constexpr int block = 4096;  // inputs per call
constexpr std::uint64_t stride = 97;
constexpr std::uint64_t all = std::uint64_t{1} << 32;

// Every stride-th bit pattern from a start on, block by block.
void fill(std::vector<float>& x, std::uint64_t start) {
  for (int i = 0; i < block; ++i) x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(start + i * stride));
}

// Bit patterns around every power of two, small integers, multiples of log 2 and pi / 2, and the bounds of exp.
std::vector<float> boundaries() {
  std::vector<float> values = {0.0F, -0.0F, INFINITY, -INFINITY, NAN};
  const auto around = [&](double centre) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(centre));
    for (std::uint32_t offset = 0; offset < 17; ++offset) {
      values.push_back(std::bit_cast<float>(bits + offset - 8));
      values.push_back(-values.back());
    }
  };
  for (int exponent = -148; exponent < 128; ++exponent) around(std::ldexp(1.0, exponent));
  for (int n = 1; n < 150; ++n) {
    around(n);
    around(n * std::log(2.0));
    around((n + 0.5) * std::log(2.0));
    around(n * std::acos(-1.0) / 4);
    around(n * 1000003.0 * std::acos(-1.0) / 4);
  }
  for (const double bound : {88.722839, 87.336544, 103.97, 0.6, 0.925, 4.0, 20.0, 0.70710678, 1.41421356})
    around(bound);
  while (values.size() % block != 0) values.push_back(1.0F);
  return values;
}

struct Worst {
  double distance = 0;
  float x = 0;
  float got = 0;
  double exact = 0;
};

// The largest error over the values; a flushed result of a function made of exp counts as exact.
void measure(const PreludeReference& reference, const std::vector<float>& x, const std::vector<float>& got,
             Worst& worst) {
  for (int i = 0; i < block; ++i) {
    double exact = reference.of_f32(x[i]);
    if (reference.flushes && std::fabs(exact) < 0x1p-126 && got[i] == 0) exact = 0;
    if (std::fabs(x[i]) > llvm::sincos_limit && (reference.name == "sin" || reference.name == "cos")) exact = NAN;
    if (got[i] == static_cast<float>(exact) && worst.distance >= 0.5) continue;  // rounded correctly
    const double distance = ulp_distance_f32(got[i], exact);
    if (distance > worst.distance) worst = {distance, x[i], got[i], exact};
  }
}

void check_function(const PreludeReference& reference) {
  const std::vector<PreludeModule>& modules = prelude_modules(DType::f32);
  REQUIRE_FALSE(modules.empty());
  std::vector<ArrayFunction> runs;
  for (const PreludeModule& module : modules) runs.push_back(module.function(reference.name));
  std::vector<float> x(block), first(block), other(block);
  Worst worst;
  const auto compare_all = [&] {
    for (std::size_t m = 1; m < runs.size(); ++m) {
      runs[m](x.data(), x.data(), other.data(), block);
      INFO(reference.name << " by " << modules[m].label() << " against " << modules[0].label());
      for (int i = 0; i < block; ++i) {
        if (std::isnan(first[i]) && std::isnan(other[i])) continue;
        if (std::bit_cast<std::uint32_t>(first[i]) == std::bit_cast<std::uint32_t>(other[i])) continue;
        INFO("x " << x[i] << " first " << first[i] << " other " << other[i]);
        FAIL();
      }
    }
  };
  int blocks = 0;
  for (std::uint64_t start = 0; start + block * stride <= all; start += block * stride) {
    fill(x, start);
    runs[0](x.data(), x.data(), first.data(), block);
    measure(reference, x, first, worst);
    if (blocks++ % 32 == 0) compare_all();
  }
  const std::vector<float> edges = boundaries();
  for (std::size_t start = 0; start < edges.size(); start += block) {
    std::memcpy(x.data(), edges.data() + start, block * sizeof(float));
    runs[0](x.data(), x.data(), first.data(), block);
    measure(reference, x, first, worst);
    compare_all();
  }
  const double stated = llvm::prelude_function(reference.name).ulp_f32;
  UNSCOPED_INFO(reference.name << ": worst " << worst.distance << " ulp of " << stated << " at x = " << worst.x
                               << ", got " << worst.got << ", exact " << worst.exact);
  CHECK(worst.distance <= stated);
}

const PreludeReference& reference_of(std::string_view name) {
  for (const PreludeReference& reference : prelude_references) {
    if (reference.name == name) return reference;
  }
  throw std::logic_error("no such reference");
}

}  // namespace

TEST_CASE("prelude f32: exponentials keep their stated error", "[prelude]") {
  for (const char* name : {"exp", "exp2", "expm1"}) check_function(reference_of(name));
}
TEST_CASE("prelude f32: logarithms keep their stated error", "[prelude]") {
  for (const char* name : {"log", "log2", "log1p"}) check_function(reference_of(name));
}
TEST_CASE("prelude f32: activations keep their stated error", "[prelude]") {
  for (const char* name : {"tanh", "erf", "sigmoid", "softplus", "log_sigmoid"}) check_function(reference_of(name));
}
TEST_CASE("prelude f32: sin, cos and rsqrt keep their stated error", "[prelude]") {
  for (const char* name : {"sin", "cos", "rsqrt"}) check_function(reference_of(name));
}
