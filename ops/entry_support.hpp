// What op files share: axes, dtype lists, and the choice of a C++ type by dtype.
#pragma once
#include "ops/entries.hpp"
#include "tigon/function.hpp"
#include "tigon/ops/support.hpp"

namespace tigon::ops {

struct Tokens : axis<"tokens"> {};
struct Vocab : axis<"vocab"> {};
struct Hidden : axis<"hidden"> {};

inline constexpr DType float_dtypes[] = {DType::f32, DType::bf16, DType::f16};
inline constexpr std::string_view off_on[] = {"off", "on"};
inline constexpr std::string_view absent_present[] = {"absent", "present"};

// make.operator()<D>() for the float dtype D that the settings name.
template <class Make>
dsl::Graph for_float(const Settings& settings, Make make) {
  switch (settings.dtype()) {
    case DType::bf16:
      return make.template operator()<bf16>();
    case DType::f16:
      return make.template operator()<f16>();
    default:
      return make.template operator()<f32>();
  }
}

}  // namespace tigon::ops
