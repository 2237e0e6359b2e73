// The functions under measurement, and small tools for their buffers.
#pragma once
#include <algorithm>
#include <cstring>

#include "tigon/ops/cross_entropy.hpp"
#include "tigon/ops/rms_norm.hpp"
#include "tigon/ops/softmax.hpp"
#include "tigon/tigon.hpp"

namespace tigon::benchmarks {

struct Rows : axis<"rows"> {};
struct Columns : axis<"columns"> {};
struct Tokens : axis<"tokens"> {};
struct Hidden : axis<"hidden"> {};
struct Vocab : axis<"vocab"> {};

template <template <class> class Slot>
struct NormArgs {
  TIGON_ARGS(NormArgs, (Slot<f32(Rows, Columns)>, x), (Slot<f32(Columns)>, weight));
};
template <template <class> class Slot>
struct SoftmaxArgs {
  TIGON_ARGS(SoftmaxArgs, (Slot<f32(Rows, Columns)>, x));
};
template <template <class> class Slot>
struct LogitsArgs {
  TIGON_ARGS(LogitsArgs, (Slot<f32(Rows, Columns)>, logits), (Slot<i32(Rows)>, target));
};
template <template <class> class Slot>
struct LinearArgs {
  TIGON_ARGS(LinearArgs, (Slot<f32(Tokens, Hidden)>, x), (Slot<f32(Vocab, Hidden)>, weight),
             (Slot<i32(Tokens)>, target));
};

inline auto rms_norm_function() {
  return function("rms_norm", [](NormArgs<Tensor> in) { return ops::rms_norm<Columns>(in.x, in.weight); });
}
inline auto softmax_function() {
  return function("softmax", [](SoftmaxArgs<Tensor> in) { return ops::softmax<Columns>(in.x); });
}
inline auto cross_entropy_function() {
  return function("cross_entropy",
                  [](LogitsArgs<Tensor> in) { return ops::cross_entropy<Columns>(in.logits, in.target); });
}
inline auto linear_cross_entropy_function() {
  return function("linear_cross_entropy", [](LinearArgs<Tensor> in) {
    return ops::linear_cross_entropy<Hidden, Vocab>(in.x, in.weight, in.target);
  });
}

// Numbers in [-scale, scale) that repeat after a prime number of elements, so that no two rows are alike.
inline void fill(float* data, std::int64_t count, float scale, std::uint32_t seed = 1) {
  constexpr std::int64_t period = 1'048'573;
  std::uint32_t state = seed;
  const std::int64_t drawn = std::min(count, period);
  for (std::int64_t i = 0; i < drawn; ++i) {
    state = state * 1664525u + 1013904223u;
    data[i] = (static_cast<float>(state >> 8) * 0x1p-23f - 1.0f) * scale;
  }
  for (std::int64_t i = drawn; i < count; i += period) {
    std::memcpy(data + i, data, sizeof(float) * static_cast<std::size_t>(std::min(period, count - i)));
  }
}
inline void fill_classes(std::int32_t* data, std::int64_t count, std::int64_t classes) {
  for (std::int64_t i = 0; i < count; ++i) data[i] = static_cast<std::int32_t>(i * 7919 % classes);
}

// A workspace as large as these arguments need; never null.
template <class Step, class Arguments>
Storage workspace_for(const Step& step, const Arguments& arguments) {
  return Storage(std::max<std::size_t>(step.workspace_bytes(arguments), 64));
}

}  // namespace tigon::benchmarks
