// The model written in the expression language: a Llama-style decoder over bytes, its loss and its update.
#include "model.hpp"

#include "tigon/ops/all.hpp"

namespace language_model {
namespace ops = tigon::ops;

namespace {

template <class Number>
using Activation = Tensor<Number(Batch, Time, Hidden)>;
using Angles = Tensor<f32(Time, Half)>;

// The product with a weight, summed over the axes, in x's dtype.
template <class... Axes, class X, class W>
auto linear(const X& x, const W& weight, const ops::Location& line = ops::Location::current()) {
  return ops::rounded_like<X>(tigon::dot<Axes...>(x, ops::rounded_like<X>(weight, line), line), line);
}

template <class Number>
Activation<Number> attention(const LayerWeights<Tensor>& layer, const Activation<Number>& x, const Angles& cos,
                             const Angles& sin) {
  const auto query = ops::rope<Channels, Half>(linear<Hidden>(x, layer.query), cos, sin);
  const auto key = ops::rope<Channels, Half>(linear<Hidden>(x, layer.key), cos, sin);
  const auto value = linear<Hidden>(x, layer.value);
  const auto keys = tigon::rename<Time, Keys>(key);
  const auto values = tigon::rename<Time, Keys>(value);

  const auto scores = tigon::dot<Channels>(query, keys) * rsqrt(tigon::cast<f32>(tigon::extent<Channels>()));
  const auto seen = tigon::iota<Keys>() <= tigon::iota<Time>();
  const auto masked = where(seen, scores, -std::numeric_limits<f32>::infinity());
  const auto mixed = tigon::dot<Keys>(tigon::softmax<Keys>(masked), values);
  return linear<Heads, Channels>(tigon::cast<Number>(mixed), layer.output);
}

template <class Number>
Activation<Number> perceptron(const LayerWeights<Tensor>& layer, const Activation<Number>& x) {
  return linear<Inner>(ops::swiglu(linear<Hidden>(x, layer.gate), linear<Hidden>(x, layer.up)), layer.down);
}

template <class Number>
Activation<Number> transformer(const Weights<Tensor>& weights, const Tensor<i32(Batch, Time)>& bytes, const Angles& cos,
                               const Angles& sin) {
  Activation<Number> x = tigon::cast<Number>(ops::embedding<Vocab>(weights.embedding, bytes));
  for (const LayerWeights<Tensor>& layer : weights.layers) {
    x = tigon::cast<Number>(x + attention<Number>(layer, ops::rms_norm<Hidden>(x, layer.attention_norm), cos, sin));
    x = tigon::cast<Number>(x + perceptron<Number>(layer, ops::rms_norm<Hidden>(x, layer.inner_norm)));
  }
  return ops::rms_norm<Hidden>(x, weights.final_norm);
}

template <class Number, ops::LossReduction reduction>
Tensor<f32()> loss(const LossArgs<Tensor>& in) {
  const auto x = transformer<Number>(in.weights, in.bytes, in.cos, in.sin);
  return ops::linear_cross_entropy<Hidden, Vocab, reduction>(x, tigon::cast<Number>(in.weights.head), in.target);
}

}  // namespace

tigon::Extents ModelSize::of_weights() const {
  return tigon::extents<Vocab, Hidden, Heads, Channels, Inner>(vocab, hidden, heads, channels(), inner);
}

tigon::Extents ModelSize::of_windows(std::int64_t batch, std::int64_t context) const {
  tigon::Extents all = tigon::extents<Batch, Time, Half>(batch, context, channels() / 2);
  const tigon::Extents more = of_weights();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

tigon::Function<RotationArgs, Rotation<Tensor>> rotation() {
  return tigon::function("rotation", [](RotationArgs<Tensor> in) {
    const auto exponent = tigon::cast<f32>(tigon::iota<Half>()) / tigon::cast<f32>(tigon::extent<Half>());
    const auto angle = tigon::cast<f32>(tigon::iota<Time>()) * exp(-log(in.base) * exponent);
    return Rotation<Tensor>{.cos = cos(angle), .sin = sin(angle)};
  });
}

template <class Number>
tigon::Function<LossArgs, Tensor<f32()>> training_loss() {
  return tigon::function("training_loss",
                         [](const LossArgs<Tensor>& in) { return loss<Number, ops::LossReduction::mean>(in); });
}
template tigon::Function<LossArgs, Tensor<f32()>> training_loss<f32>();
template tigon::Function<LossArgs, Tensor<f32()>> training_loss<bf16>();

template <class Number>
tigon::Function<LossArgs, Tensor<f32()>> total_loss() {
  return tigon::function("total_loss",
                         [](const LossArgs<Tensor>& in) { return loss<Number, ops::LossReduction::sum>(in); });
}
template tigon::Function<LossArgs, Tensor<f32()>> total_loss<f32>();
template tigon::Function<LossArgs, Tensor<f32()>> total_loss<bf16>();

template <class Number>
tigon::Function<NextArgs, Tensor<f32(Batch, Vocab)>> next_byte() {
  return tigon::function("next_byte", [](const NextArgs<Tensor>& in) {
    const auto x = transformer<Number>(in.weights, in.bytes, in.cos, in.sin);
    const auto logits = linear<Hidden>(tigon::at<Time>(x, in.last), in.weights.head);
    return Tensor<f32(Batch, Vocab)>(tigon::softmax<Vocab>(logits / in.temperature));
  });
}
template tigon::Function<NextArgs, Tensor<f32(Batch, Vocab)>> next_byte<f32>();
template tigon::Function<NextArgs, Tensor<f32(Batch, Vocab)>> next_byte<bf16>();

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

LossArgs<tigon::Shape> loss_shape(const ModelSize& size) {
  LossArgs<tigon::Shape> shape;
  shape.weights.layers.resize(static_cast<std::size_t>(size.layers));
  return shape;
}

NextArgs<tigon::Shape> next_shape(const ModelSize& size) {
  NextArgs<tigon::Shape> shape;
  shape.weights.layers.resize(static_cast<std::size_t>(size.layers));
  return shape;
}

UpdateArgs<tigon::Shape> update_shape(const ModelSize& size) {
  UpdateArgs<tigon::Shape> shape;
  for (Weights<tigon::Shape>* weights : {&shape.weights, &shape.gradients, &shape.first, &shape.second})
    weights->layers.resize(static_cast<std::size_t>(size.layers));
  return shape;
}

}  // namespace language_model
