// Memory for the weights and for what stands beside them: gradients and the optimiser's running means.
#pragma once
#include "model.hpp"
#include "text.hpp"

namespace language_model {

// Zeros.
Weights<tigon::Owned> allocate_weights(const ModelSize& size);
// Matrices around 0 with variance 1 / (number of inputs), smaller where a layer adds to the residual; norms at 1.
void draw_weights(const Weights<tigon::Owned>& weights, Random& random);
Weights<Buffer> view(const Weights<tigon::Owned>& weights);
std::int64_t count_parameters(const Weights<tigon::Owned>& weights);

}  // namespace language_model
