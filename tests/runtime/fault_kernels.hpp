// Small functions whose kernels faults are planted in, with arguments that show each fault.
#pragma once
#include "losses.hpp"
#include "problem.hpp"
#include "tigon/ops/rms_norm.hpp"
#include "tigon/ops/softmax.hpp"

namespace tigon::test {

template <template <class> class Slot>
struct MatrixArgs {
  TIGON_ARGS(MatrixArgs, (Slot<f32(Tokens, Hidden)>, x));
};
template <template <class> class Slot>
struct MatrixOut {
  TIGON_OUT(MatrixOut, (Slot<f32(Tokens, Hidden)>, y));
};
template <template <class> class Slot>
struct WeightedArgs {
  TIGON_ARGS(WeightedArgs, (Slot<bf16(Tokens, Hidden)>, x), (Slot<bf16(Hidden)>, weight));
};
template <template <class> class Slot>
struct WeightedOut {
  TIGON_OUT(WeightedOut, (Slot<bf16(Tokens, Hidden)>, y));
};
template <template <class> class Slot>
struct IndexOut {
  TIGON_OUT(IndexOut, (Slot<i64(Tokens)>, index), (Slot<f32(Tokens)>, value));
};
template <template <class> class Slot>
struct TableArgs {
  TIGON_ARGS(TableArgs, (Slot<f32(Vocab, Hidden)>, table), (Slot<i32(Tokens)>, token));
};
template <template <class> class Slot>
struct RowsOut {
  TIGON_OUT(RowsOut, (Slot<f32(Tokens, Hidden)>, rows));
};
template <template <class> class Slot>
struct AffineArgs {
  TIGON_ARGS(AffineArgs, (Slot<f32(Tokens, Hidden)>, a), (Slot<f32(Tokens, Hidden)>, b));
};
template <template <class> class Slot>
struct AffineOut {
  TIGON_OUT(AffineOut, (Slot<f32(Tokens)>, rows), (Slot<f32(Hidden)>, columns));
};

inline Problem softmax_problem() {
  const auto softmax =
      function("softmax", [](MatrixArgs<Tensor> in) { return MatrixOut<Tensor>{.y = ops::softmax<Hidden>(in.x)}; });
  return make_problem(*softmax.trace(), {{"tokens", 37}, {"hidden", 53}}, 1);
}

inline Problem norm_backward_problem() {
  const auto norm = function(
      "norm", [](WeightedArgs<Tensor> in) { return WeightedOut<Tensor>{.y = ops::rms_norm<Hidden>(in.x, in.weight)}; });
  return make_problem(*vjp(norm, wrt<"x", "weight">).trace(), {{"tokens", 150}, {"hidden", 53}}, 1);
}

// Of numbers with many ties.
inline Problem argmax_problem() {
  const auto largest = function("largest", [](MatrixArgs<Tensor> in) {
    return IndexOut<Tensor>{.index = argmax<Hidden>(in.x), .value = max<Hidden>(in.x)};
  });
  Problem problem = make_problem(*largest.trace(), {{"tokens", 37}, {"hidden", 53}}, 1);
  for (double& value : argument(problem, "x")) value = std::floor(value * 2) - 8;  // all below 0
  // The largest of some rows stands alone, first or last.
  for (std::size_t row = 0; row < 37; row += 3) argument(problem, "x")[row * 53 + (row % 2 == 0 ? 52 : 0)] = 4;
  return problem;
}

inline Problem scatter_problem() {
  const auto embed = function(
      "embed", [](TableArgs<Tensor> in) { return RowsOut<Tensor>{.rows = at<Vocab>(in.table, in.token, fill(0))}; });
  return make_problem(*vjp(embed, wrt<"table">).trace(), {{"tokens", 150}, {"vocab", 20}, {"hidden", 53}}, 20);
}

inline Problem cross_entropy_problem() {
  return make_problem(*value_and_grad(focal(), wrt<"logits">).trace(), {{"tokens", 150}, {"vocab", 53}}, 53);
}

// Composition of x -> a x + b, which does not commute.
inline Problem affine_problem() {
  const auto compose = monoid<2, 2>("affine", {1.0, 0.0}, false)
                           .lift([](auto x, Scalar) { return std::array<Scalar, 2>{x[0], x[1]}; })
                           .merge([](auto f, auto g) {
                             return std::array<Scalar, 2>{f[0] * g[0], where(f[1] == 0, g[1], f[1] * g[0] + g[1])};
                           })
                           .finish("offset", [](auto f) { return f[1]; });
  const auto affine = function("affine", [compose](AffineArgs<Tensor> in) {
    return AffineOut<Tensor>{.rows = reduce<Hidden>(compose, in.a, in.b),
                             .columns = reduce<Tokens>(compose, in.a, in.b)};
  });
  Problem problem = make_problem(*affine.trace(), {{"tokens", 150}, {"hidden", 53}}, 1);
  for (double& a : argument(problem, "a")) a = static_cast<double>(static_cast<float>(1 + a / 64));
  return problem;
}

// bf16 numbers in f32: exact, so that a rounding left out shows.
inline Problem rounding_problem() {
  const auto rounded = function(
      "rounded", [](MatrixArgs<Tensor> in) { return MatrixOut<Tensor>{.y = cast<f32>(cast<bf16>(in.x)) * 4}; });
  return make_problem(*rounded.trace(), {{"tokens", 37}, {"hidden", 53}}, 1);
}

}  // namespace tigon::test
