// Takes losses in, smooths them and writes them down.
#include "losses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace language_model {

bool Losses::look(const std::vector<f32>& numbers, double seconds) {
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
    loss_ = numbers[i];
    norm_ = numbers[i + 1];
    ++step_;
    if (!std::isfinite(loss_) || !std::isfinite(norm_)) return false;
    if (file_ != nullptr) fmt::print(file_, "{:.9g}\n", loss_);
    smooth_ = step_ == 1 ? loss_ : 0.95 * smooth_ + 0.05 * loss_;
  }
  const double each = std::max(seconds / static_cast<double>(std::max<std::int64_t>(step_, 1)), 1e-6);
  next_look_ = step_ + std::max<std::int64_t>(1, static_cast<std::int64_t>(0.1 / each));
  return true;
}

}  // namespace language_model
