// AdamW's update of one tensor, the norm of all gradients, and the factor that clips them.
#pragma once
#include <vector>

#include "tigon/ops/support.hpp"

namespace tigon::ops {

// Host scalars, rank-0 tensors of the device, or number<f32>(0.9).
struct AdamwNumbers {
  Tensor<f32()> learning_rate;
  Tensor<f32()> beta1;
  Tensor<f32()> beta2;
  Tensor<f32()> epsilon;
  Tensor<f32()> weight_decay;
  Tensor<f32()> step;           // 1 at the first update
  Tensor<maybe<f32()>> clip{};  // multiplies the gradient
};

template <class P, class M, class V>
struct AdamwUpdate {
  P parameter;
  M first;   // running mean of the gradient
  V second;  // running mean of its square
};

// m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,
// p = p (1 - lr wd) - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps); each result in its tensor's dtype.
template <detail::TensorLike P, detail::TensorLike G, detail::TensorLike M, detail::TensorLike V>
auto adamw(const P& parameter, const G& gradient, const M& first, const V& second, const AdamwNumbers& with,
           const Location& location = Location::current()) {
  check_float<P>();
  auto g = widened(gradient, location);
  if (with.clip) g = g * *with.clip;
  const auto m = with.beta1 * first + (1 - with.beta1) * g;
  const auto v = with.beta2 * second + (1 - with.beta2) * square(g, location);
  // 1 - beta^t without the cancellation that 1 - pow(beta, t) has for beta near 1.
  const auto correction1 = -expm1(with.step * log(with.beta1, location), location);
  const auto correction2 = -expm1(with.step * log(with.beta2, location), location);
  const auto direction = (m / correction1) / (sqrt(v / correction2, location) + with.epsilon);
  const auto decayed = parameter * (1 - with.learning_rate * with.weight_decay);
  const auto p = rounded_like<P>(decayed - with.learning_rate * direction, location);
  const auto m_out = rounded_like<M>(m, location);
  const auto v_out = rounded_like<V>(v, location);
  return AdamwUpdate<std::remove_const_t<decltype(p)>, std::remove_const_t<decltype(m_out)>,
                     std::remove_const_t<decltype(v_out)>>{p, m_out, v_out};
}

// The sum of squares of all elements of all tensors, in f32.
template <detail::TensorLike T, detail::TensorLike... More>
Tensor<f32()> global_norm_squared(const T& tensor, const More&... more) {
  Tensor<f32()> total = cast<f32>(sum_all(square(tensor)));
  ((total = total + cast<f32>(sum_all(square(more)))), ...);
  return total;
}
template <class S>
Tensor<f32()> global_norm_squared(const std::vector<Tensor<S>>& tensors) {
  Tensor<f32()> total = number<f32>(0);
  for (const Tensor<S>& tensor : tensors) total = total + cast<f32>(sum_all(square(tensor)));
  return total;
}

// min(1, largest / (norm + 1e-6))
template <detail::TensorLike T, detail::Operand L>
auto clip_factor(const T& norm_squared, const L& largest, const Location& location = Location::current()) {
  if constexpr (detail::Number<L>) {
    check_option("clip_factor", "largest", static_cast<double>(largest), positive, location);
  }
  return min(largest / (sqrt(norm_squared, location) + 1e-6), 1, location);
}

}  // namespace tigon::ops
