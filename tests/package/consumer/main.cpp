// What a user's program does with a loss of its own: compiles it with its gradient, launches it; checked by plain
// loops.
#include <cmath>
#include <cstdio>
#include <vector>

#include "focal_loss.hpp"

namespace {

constexpr std::int64_t tokens = 512, vocab = 4099, hidden = 16;
constexpr float gamma_value = 2;
constexpr std::size_t budget = 2_MiB;  // a quarter of the logits
static_assert(4 * budget <= sizeof(float) * tokens * vocab);

// The same loss by its definition, in f64.
double plain_loss(const std::vector<float>& x, const std::vector<float>& weight,
                  const std::vector<std::int32_t>& target) {
  double total = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::vector<double> logits(vocab);
    double sum = 0;
    for (std::int64_t v = 0; v < vocab; ++v) {
      for (std::int64_t h = 0; h < hidden; ++h) logits[v] += double{x[t * hidden + h]} * weight[v * hidden + h];
      sum += std::exp(logits[v]);
    }
    const double log_p = logits[target[t]] - std::log(sum);
    total -= std::pow(1 - std::exp(log_p), gamma_value) * log_p;
  }
  return total / tokens;
}

}  // namespace

int main() {
  std::vector<float> x(tokens * hidden), weight(vocab * hidden);
  std::vector<std::int32_t> target(tokens);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37F * static_cast<float>(i));
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = 0.5F * std::cos(0.71F * static_cast<float>(i));
  for (std::size_t i = 0; i < target.size(); ++i) target[i] = static_cast<std::int32_t>(i * 53 % vocab);

  const auto step =
      compile(value_and_grad(focal_loss, wrt<"x", "weight">), extents<Tokens, Vocab, Hidden>(tokens, vocab, hidden),
              {.device = Device::cpu(), .memory_budget = budget});
  FocalArgs<Buffer> args;
  args.x = Buffer<f32(Tokens, Hidden)>(x.data(), {tokens, hidden});
  args.weight = Buffer<f32(Vocab, Hidden)>(weight.data(), {vocab, hidden});
  args.target = Buffer<i32(Tokens)>(target.data(), {tokens});
  args.gamma = gamma_value;
  const auto result = step(Stream(), args);

  // The directional derivative along the gradient, by central differences, is the gradient's squared length.
  const auto gradient = result.grad.weight.buffer();
  double length = 0;
  std::vector<float> above = weight, below = weight;
  constexpr double reach = 0.05;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    length += double{gradient.data[i]} * gradient.data[i];
    above[i] += static_cast<float>(reach) * gradient.data[i];
    below[i] -= static_cast<float>(reach) * gradient.data[i];
  }
  const double loss = *result.value.data;
  const double expected = plain_loss(x, weight, target);
  const double slope = (plain_loss(x, above, target) - plain_loss(x, below, target)) / (2 * reach);
  std::printf("loss %.6f, plain loops %.6f; |d weight|^2 %.6f, differences %.6f; %zu bytes of workspace\n", loss,
              expected, length, slope, step.workspace_bytes());
  const bool good = std::abs(loss - expected) < 1e-5 * expected && std::abs(length - slope) < 1e-3 * length &&
                    step.workspace_bytes() <= budget;
  if (!good) std::printf("they differ, or the workspace exceeds the budget\n");
  return good ? 0 : 1;
}
