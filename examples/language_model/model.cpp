// The model written in the expression language: a Llama-style decoder over bytes, its loss and its update.
#include "model.hpp"

#include "tigon/ops/all.hpp"

namespace language_model {
namespace ops = tigon::ops;

namespace {

using Activation = Tensor<f32(Batch, Time, Hidden)>;
using Angles = Tensor<f32(Time, Half)>;

Activation attention(const LayerWeights<Tensor>& layer, const Activation& x, const Angles& cos, const Angles& sin) {
  const auto query = ops::rope<Channels, Half>(tigon::dot<Hidden>(x, layer.query), cos, sin);
  const auto key = ops::rope<Channels, Half>(tigon::dot<Hidden>(x, layer.key), cos, sin);
  const auto value = tigon::dot<Hidden>(x, layer.value);
  const auto keys = tigon::rename<Time, Keys>(key);
  const auto values = tigon::rename<Time, Keys>(value);

  const auto scores = tigon::dot<Channels>(query, keys) * rsqrt(tigon::cast<f32>(tigon::extent<Channels>()));
  const auto seen = tigon::iota<Keys>() <= tigon::iota<Time>();
  const auto masked = where(seen, scores, -std::numeric_limits<f32>::infinity());
  const auto mixed = tigon::dot<Keys>(tigon::softmax<Keys>(masked), values);
  return tigon::dot<Heads, Channels>(mixed, layer.output);
}

Activation perceptron(const LayerWeights<Tensor>& layer, const Activation& x) {
  const auto gated = ops::swiglu(tigon::dot<Hidden>(x, layer.gate), tigon::dot<Hidden>(x, layer.up));
  return tigon::dot<Inner>(gated, layer.down);
}

Activation transformer(const Weights<Tensor>& weights, const Tensor<i32(Batch, Time)>& bytes, const Angles& cos,
                       const Angles& sin) {
  Activation x = ops::embedding<Vocab>(weights.embedding, bytes);
  for (const LayerWeights<Tensor>& layer : weights.layers) {
    x += attention(layer, ops::rms_norm<Hidden>(x, layer.attention_norm), cos, sin);
    x += perceptron(layer, ops::rms_norm<Hidden>(x, layer.inner_norm));
  }
  return ops::rms_norm<Hidden>(x, weights.final_norm);
}

}  // namespace

tigon::Function<RotationArgs, Rotation<Tensor>> rotation() {
  return tigon::function("rotation", [](RotationArgs<Tensor> in) {
    const auto exponent = tigon::cast<f32>(tigon::iota<Half>()) / tigon::cast<f32>(tigon::extent<Half>());
    const auto angle = tigon::cast<f32>(tigon::iota<Time>()) * exp(-log(in.base) * exponent);
    return Rotation<Tensor>{.cos = cos(angle), .sin = sin(angle)};
  });
}

tigon::Function<LossArgs, Tensor<f32()>> training_loss() {
  return tigon::function("training_loss", [](const LossArgs<Tensor>& in) {
    const Activation x = transformer(in.weights, in.bytes, in.cos, in.sin);
    return Tensor<f32()>(ops::linear_cross_entropy<Hidden, Vocab>(x, in.weights.head, in.target));
  });
}

tigon::Function<LossArgs, Tensor<f32()>> total_loss() {
  return tigon::function("total_loss", [](const LossArgs<Tensor>& in) {
    const Activation x = transformer(in.weights, in.bytes, in.cos, in.sin);
    return Tensor<f32()>(
        ops::linear_cross_entropy<Hidden, Vocab, ops::LossReduction::sum>(x, in.weights.head, in.target));
  });
}

tigon::Function<NextArgs, Tensor<f32(Batch, Vocab)>> next_byte() {
  return tigon::function("next_byte", [](const NextArgs<Tensor>& in) {
    const Activation x = transformer(in.weights, in.bytes, in.cos, in.sin);
    const auto logits = tigon::dot<Hidden>(tigon::at<Time>(x, in.last), in.weights.head);
    return Tensor<f32(Batch, Vocab)>(tigon::softmax<Vocab>(logits / in.temperature));
  });
}

tigon::Function<UpdateArgs, UpdateOut<Tensor>> update() {
  return tigon::function("update", [](const UpdateArgs<Tensor>& in) {
    Tensor<f32()> norm_squared = tigon::number<f32>(0);
    for_each_weight([&](const auto& gradient) { norm_squared += ops::global_norm_squared(gradient); }, in.gradients);

    UpdateOut<Tensor> out;
    out.gradient_norm = sqrt(norm_squared);
    const auto with_layers = [&](auto&... weights) { (weights.layers.resize(in.weights.layers.size()), ...); };
    with_layers(out.weights, out.first, out.second);
    ops::AdamwNumbers numbers{.learning_rate = in.learning_rate,
                              .beta1 = tigon::number<f32>(0.9),
                              .beta2 = tigon::number<f32>(0.98),
                              .epsilon = tigon::number<f32>(1e-8),
                              .weight_decay = tigon::number<f32>(0.1),
                              .step = in.step,
                              .clip = ops::clip_factor(norm_squared, 1.0)};
    for_each_weight(
        [&](const auto& weight, const auto& gradient, const auto& first, const auto& second, auto& new_weight,
            auto& new_first, auto& new_second) {
          const auto next = ops::adamw(weight, gradient, first, second, numbers);
          new_weight = next.parameter;
          new_first = next.first;
          new_second = next.second;
        },
        in.weights, in.gradients, in.first, in.second, out.weights, out.first, out.second);
    return out;
  });
}

}  // namespace language_model
