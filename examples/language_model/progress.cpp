// The progress bar.
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace language_model {

Progress::Progress() : terminal_(isatty(STDOUT_FILENO) != 0) {}

void Progress::show(double fraction, std::int64_t step, double loss, double tokens_per_second, double seconds_left) {
  const auto now = std::chrono::steady_clock::now();
  const std::string numbers = fmt::format("step {:5}  loss {:.3f}  {:6.0f} tokens/s  {:3.0f} s left", step, loss,
                                          tokens_per_second, seconds_left);
  if (!terminal_) {
    if (fraction < next_fraction_) return;
    next_fraction_ = fraction + 0.1;
    fmt::print("  {}\n", numbers);
    std::fflush(stdout);
    return;
  }
  if (shown_ && fraction < 1 && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  shown_ = true;
  constexpr int width = 24;
  const int full = static_cast<int>(fraction * width);
  fmt::print("\r  [{}{}] {}\x1b[K", std::string(static_cast<std::size_t>(full), '#'),
             std::string(static_cast<std::size_t>(width - full), '.'), numbers);
  std::fflush(stdout);
}

void Progress::finish() {
  if (terminal_ && shown_) fmt::print("\n");
}

}  // namespace language_model
