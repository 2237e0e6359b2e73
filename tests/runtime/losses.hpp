// Losses of large matmuls, written in the public language, that no operation of the catalogue spells.
#pragma once
#include "dsl/reference/random_source.hpp"
#include "tigon/tigon.hpp"

namespace tigon::test {

struct Tokens : axis<"tokens"> {};
struct Vocab : axis<"vocab"> {};
struct Hidden : axis<"hidden"> {};

template <class D>
struct LossOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Tokens, Hidden)>, x), (Slot<D(Vocab, Hidden)>, weight), (Slot<i32(Tokens)>, target));
  };
};
// The same with the logits as an argument, so that a test can choose each of them.
template <template <class> class Slot>
struct LogitsArgs {
  TIGON_ARGS(LogitsArgs, (Slot<f32(Tokens, Vocab)>, logits), (Slot<i32(Tokens)>, target));
};

// mean over valid rows of (1 - p)^2 nll + 1e-3 logsumexp^2; rows whose target is -100 count nothing.
template <class L, class Y>
auto focal_with_z_loss(const L& logits, const Y& target) {
  const auto valid = target != -100;
  const auto parts = log_softmax_parts<Vocab>(logits);
  const auto nll = (parts.max - at<Vocab>(logits, where(valid, target, 0))) + parts.log_rest;
  const auto miss = -expm1(-nll);
  const auto row = square(miss) * nll + 1e-3 * square(parts.max + parts.log_rest);
  return sum<Tokens>(where(valid, row, 0)) / max(cast<f32>(sum<Tokens>(cast<i32>(valid))), 1);
}

template <class D>
auto linear_focal() {
  return function("linear_focal", [](typename LossOf<D>::template Args<Tensor> in) {
    return focal_with_z_loss(dot<Hidden>(in.x, in.weight), in.target);
  });
}
inline auto focal() {
  return function("focal", [](LogitsArgs<Tensor> in) { return focal_with_z_loss(in.logits, in.target); });
}

// A loss drawn at random around a contraction: a few smooth functions of the logits, a reduction or two over the
// vocabulary, a few of the rows, the mean.
inline auto random_loss(std::uint64_t seed) {
  return function("random_loss_" + std::to_string(seed), [seed](LossOf<f32>::Args<Tensor> in) {
    dsl::RandomSource random(seed);
    const auto smooth = [&](auto x) {
      for (std::int64_t i = 1 + random.below(3); i > 0; --i) {
        switch (random.below(6)) {
          case 0:
            x = tanh(x);
            break;
          case 1:
            x = x * sigmoid(x);
            break;
          case 2:
            x = softplus(x) - 0.5;
            break;
          case 3:
            x = sin(x) + 0.5 * x;
            break;
          case 4:
            x = x / sqrt(1 + square(x));
            break;
          default:
            x = 0.3 * x + 0.1;
            break;
        }
      }
      return x;
    };
    const auto logits = dot<Hidden>(in.x, in.weight) * 0.25;
    const auto shaped = smooth(logits);
    const auto row = [&]() -> Tensor<f32(Tokens)> {
      switch (random.below(3)) {
        case 0:
          return logsumexp<Vocab>(shaped);
        case 1:
          return moments<Vocab>(shaped).variance;
        default:
          return mean<Vocab>(square(shaped));
      }
    };
    const auto first = row();
    const auto second = sum<Vocab>(softmax<Vocab>(logits) * shaped);  // a second pass
    return mean<Tokens>(smooth(first) + square(second));
  });
}

}  // namespace tigon::test
