// Asks the matmul library for a product in each dtype.
#include "runtime/cpu/matmul_support.hpp"

#include "runtime/cpu/matmul.hpp"

namespace tigon::runtime {

plan::MatmulSupport cpu_matmul_support() {
  static const bool bf16 = [] {
    constexpr std::int64_t size = 64;
    MatmulSpec spec;
    spec.axes = {{MatmulClass::m, size, size, 0, size},  //
                 {MatmulClass::n, size, 0, 1, 1},
                 {MatmulClass::k, size, 1, size, 0}};
    spec.a = spec.b = DType::bf16;
    return static_cast<bool>(supports_matmul(spec));
  }();
  return {.bf16 = bf16};
}

}  // namespace tigon::runtime
