// The 16-bit conversions agree in every bit with the library's own, on all 16-bit values and around all rounding ties.
#include <bit>
#include <cmath>

#include "prelude_kernels.hpp"

using namespace tigon;
using namespace tigon::testing;

namespace {

template <class Storage>
float widened(std::uint16_t bits) {
  return to_f32(Storage{bits});
}
std::uint16_t narrowed(float value, bf16*) { return to_bf16(value).bits; }
std::uint16_t narrowed(float value, f16*) { return to_f16(value).bits; }

template <class Storage>
void check_widening(std::string_view function) {
  std::vector<std::uint16_t> x(1 << 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(i);
  std::vector<float> got(x.size());
  for (const PreludeModule& module : prelude_modules(DType::f32)) {
    module.function(function)(x.data(), x.data(), got.data(), static_cast<std::int64_t>(x.size()));
    int wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float expected = widened<Storage>(x[i]);
      const bool nan = std::isnan(expected);
      if (nan ? !std::isnan(got[i]) : std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(expected))
        ++wrong;
    }
    INFO(function << " by " << module.label());
    CHECK(wrong == 0);
  }
}

// Each 16-bit value widened, the midpoint to the next in magnitude, both with their neighbours, and a sweep of all f32.
template <class Storage>
std::vector<float> narrowing_inputs() {
  std::vector<float> values;
  for (std::uint32_t i = 0; i < (1u << 16); ++i) {
    const auto here = std::bit_cast<std::uint32_t>(widened<Storage>(static_cast<std::uint16_t>(i)));
    const auto next = std::bit_cast<std::uint32_t>(
        widened<Storage>(static_cast<std::uint16_t>((i & 0x7fffu) == 0x7fffu ? i : i + 1)));
    const std::uint32_t middle = here + (next - here) / 2;
    for (const std::uint32_t bits : {here - 1, here, here + 1, middle - 1, middle, middle + 1}) {
      values.push_back(std::bit_cast<float>(bits));
    }
  }
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4801) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  while (values.size() % 16 != 0) values.push_back(1.0F);
  return values;
}

template <class Storage>
void check_narrowing(std::string_view function) {
  const std::vector<float> x = narrowing_inputs<Storage>();
  std::vector<std::uint16_t> got(x.size());
  for (const PreludeModule& module : prelude_modules(DType::f32)) {
    module.function(function)(x.data(), x.data(), got.data(), static_cast<std::int64_t>(x.size()));
    int wrong = 0;
    float where = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (got[i] == narrowed(x[i], static_cast<Storage*>(nullptr))) continue;
      ++wrong;
      where = x[i];
    }
    INFO(function << " by " << module.label() << " at bits " << std::bit_cast<std::uint32_t>(where));
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("prelude: bf16 widens and narrows as the library does", "[prelude]") {
  check_widening<bf16>("widen_bf16");
  check_narrowing<bf16>("narrow_bf16");
}

TEST_CASE("prelude: f16 widens and narrows as the library does", "[prelude]") {
  check_widening<f16>("widen_f16");
  check_narrowing<f16>("narrow_f16");
}
