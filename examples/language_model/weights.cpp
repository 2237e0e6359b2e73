// Allocates and initialises the weights.
#include "weights.hpp"

#include <algorithm>
#include <cmath>

namespace language_model {
namespace {

template <class Tensor>
std::int64_t size_of(const Tensor& tensor) {
  std::int64_t size = 1;
  for (const std::int64_t extent : tensor.extents) size *= extent;
  return size;
}

template <class Tensor>
void draw(const Tensor& tensor, Random& random, double deviation) {
  std::generate_n(tensor.data, size_of(tensor), [&] { return static_cast<f32>(deviation * random.normal()); });
}

}  // namespace

Weights<tigon::Owned> allocate_weights(const ModelSize& size, tigon::Device device) {
  using tigon::allocate;
  const std::int64_t hidden = size.hidden, heads = size.heads, channels = size.channels(), inner = size.inner;
  Weights<tigon::Owned> weights;
  weights.embedding = allocate<f32(Vocab, Hidden)>({size.vocab, hidden}, device);
  weights.layers.resize(static_cast<std::size_t>(size.layers));
  for (LayerWeights<tigon::Owned>& layer : weights.layers) {
    layer.attention_norm = allocate<f32(Hidden)>({hidden}, device);
    layer.query = allocate<f32(Heads, Channels, Hidden)>({heads, channels, hidden}, device);
    layer.key = allocate<f32(Heads, Channels, Hidden)>({heads, channels, hidden}, device);
    layer.value = allocate<f32(Heads, Channels, Hidden)>({heads, channels, hidden}, device);
    layer.output = allocate<f32(Hidden, Heads, Channels)>({hidden, heads, channels}, device);
    layer.inner_norm = allocate<f32(Hidden)>({hidden}, device);
    layer.gate = allocate<f32(Inner, Hidden)>({inner, hidden}, device);
    layer.up = allocate<f32(Inner, Hidden)>({inner, hidden}, device);
    layer.down = allocate<f32(Hidden, Inner)>({hidden, inner}, device);
  }
  weights.final_norm = allocate<f32(Hidden)>({hidden}, device);
  weights.head = allocate<f32(Vocab, Hidden)>({size.vocab, hidden}, device);
  if (device == tigon::Device::cpu()) {
    for_each_weight([](const auto& tensor) { std::fill_n(tensor.data, size_of(tensor), 0.0F); }, weights);
  }
  return weights;
}

void draw_weights(const Weights<tigon::Owned>& weights, Random& random) {
  const auto hidden = static_cast<double>(weights.final_norm.extents[0]);
  const double residual = 1 / std::sqrt(2.0 * static_cast<double>(weights.layers.size()));
  const auto ones = [](const auto& norm) { std::fill_n(norm.data, size_of(norm), 1.0F); };
  draw(weights.embedding, random, 1 / std::sqrt(hidden));
  for (const LayerWeights<tigon::Owned>& layer : weights.layers) {
    ones(layer.attention_norm);
    for (const auto& projection : {layer.query, layer.key, layer.value})
      draw(projection, random, 1 / std::sqrt(hidden));
    draw(layer.output, random, residual / std::sqrt(hidden));
    ones(layer.inner_norm);
    draw(layer.gate, random, 1 / std::sqrt(hidden));
    draw(layer.up, random, 1 / std::sqrt(hidden));
    draw(layer.down, random, residual / std::sqrt(static_cast<double>(layer.down.extents[1])));
  }
  ones(weights.final_norm);
  draw(weights.head, random, 1 / std::sqrt(hidden));
}

void copy_weights(const tigon::Stream& stream, const Weights<tigon::Owned>& to, const Weights<tigon::Owned>& from) {
  for_each_weight([&](const auto& target, const auto& source) { tigon::copy(stream, target, source); }, to, from);
}

Weights<Buffer> view(const Weights<tigon::Owned>& weights) {
  Weights<Buffer> views;
  views.layers.resize(weights.layers.size());
  for_each_weight([](auto& mine, const auto& owned) { mine = owned; }, views, weights);
  return views;
}

std::int64_t count_parameters(const Weights<tigon::Owned>& weights) {
  std::int64_t count = 0;
  for_each_weight([&](const auto& tensor) { count += size_of(tensor); }, weights);
  return count;
}

}  // namespace language_model
