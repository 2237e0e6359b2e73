// What the host sees of training: losses and gradients' norms as they come back, and when to look for more.
#pragma once
#include <cstdint>
#include <cstdio>
#include <vector>

#include "model.hpp"

namespace language_model {

class Losses {
 public:
  // Each loss is a line of the file, if there is one.
  explicit Losses(std::FILE* file) : file_(file) {}
  // Loss and norm of one update after the other, and the seconds since the first began. Stops at the first that is not
  // finite, and returns false.
  bool look(const std::vector<f32>& numbers, double seconds);
  // After which update the host should look again: waiting for the device costs time, so ten times a second.
  [[nodiscard]] std::int64_t next_look() const { return next_look_; }

  // Of the last update that was seen.
  [[nodiscard]] std::int64_t step() const { return step_; }
  [[nodiscard]] f32 loss() const { return loss_; }
  [[nodiscard]] f32 norm() const { return norm_; }
  [[nodiscard]] double smooth() const { return smooth_; }  // the mean, recent ones counting more

 private:
  std::FILE* file_;
  std::int64_t step_ = 0, next_look_ = 1;
  f32 loss_ = 0, norm_ = 0;
  double smooth_ = 0;
};

}  // namespace language_model
