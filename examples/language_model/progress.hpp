// Shows how far training is: a bar on a terminal, else a line now and then.
#pragma once
#include <chrono>
#include <cstdint>

namespace language_model {

class Progress {
 public:
  Progress();
  // fraction: of the work done, in [0, 1]
  void show(double fraction, std::int64_t step, double loss, double tokens_per_second, double seconds_left);
  void finish();

 private:
  bool terminal_ = false;
  bool shown_ = false;
  double next_fraction_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace language_model
