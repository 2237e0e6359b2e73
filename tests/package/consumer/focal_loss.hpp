// A loss of one's own: a focal loss behind a linear head. README.md shows these lines.
#pragma once
// [README]
#include "tigon/tigon.hpp"
using namespace tigon;

struct Tokens : axis<"tokens"> {};
struct Vocab : axis<"vocab"> {};
struct Hidden : axis<"hidden"> {};

template <template <class> class Slot>
struct FocalArgs {
  TIGON_ARGS(FocalArgs, (Slot<f32(Tokens, Hidden)>, x), (Slot<f32(Vocab, Hidden)>, weight), (Slot<i32(Tokens)>, target),
             (Slot<scalar<f32>>, gamma));
};

const auto focal_loss = function("focal_loss", [](const FocalArgs<Tensor>& in) {
  auto logits = dot<Hidden>(in.x, in.weight);  // f32(Tokens, Vocab): a chunk at a time, under a budget
  auto log_p = at<Vocab>(logits, in.target) - logsumexp<Vocab>(logits);
  return -mean<Tokens>(pow(1 - exp(log_p), in.gamma) * log_p);
});
// [README end]
