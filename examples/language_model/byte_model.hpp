// What the model is measured against: an interpolated byte model of order 2, by counting.
#pragma once
#include "text.hpp"

namespace language_model {

// Bits per byte on the held-out text after counting the training text. Each byte's probability is interpolated with
// that of the next lower order by Witten and Bell's rule: p(c | context) = (n(context c) + t p(c | shorter)) /
// (n(context) + t), t being the number of distinct bytes that followed the context.
double byte_model_bits(const Text& text);

}  // namespace language_model
