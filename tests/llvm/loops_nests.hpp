// Two nests that several tests look at.
#pragma once
#include "codegen/loops/nest.hpp"

namespace tigon::testing {

loops::Nest norm_nest();     // y = x * rsqrt(mean(x^2) + eps) * weight, bf16, 4096 columns
loops::Nest softmax_nest();  // f32, a streaming logsumexp and a second sweep

}  // namespace tigon::testing
