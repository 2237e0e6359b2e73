// Memory for the weights and for what stands beside them: gradients and the optimiser's running means.
#pragma once
#include "model.hpp"
#include "text.hpp"

namespace language_model {

// On the host they are zeros; memory of other devices holds anything.
Weights<tigon::Owned> allocate_weights(const ModelSize& size, tigon::Device device = tigon::Device::cpu());
// In the host's memory: matrices around 0 with variance 1 / (number of inputs), smaller where a layer adds to the
// residual; norms at 1.
void draw_weights(const Weights<tigon::Owned>& weights, Random& random);
void copy_weights(const tigon::Stream& stream, const Weights<tigon::Owned>& to, const Weights<tigon::Owned>& from);
Weights<Buffer> view(const Weights<tigon::Owned>& weights);
std::int64_t count_parameters(const Weights<tigon::Owned>& weights);

}  // namespace language_model
