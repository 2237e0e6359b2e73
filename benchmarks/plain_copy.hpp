// The limit of kernels bound by memory: a copy past the caches that moves each byte once.
#pragma once
#include <cstddef>

#include "tigon/buffer.hpp"

namespace tigon::benchmarks {

class PlainCopy {
 public:
  // Reads half of `moved` and writes the other half, rounded up to whole pieces.
  explicit PlainCopy(double moved);
  void run();  // on as many threads as a kernel gets
  [[nodiscard]] double moved_bytes() const { return 2.0 * static_cast<double>(piece_bytes_) * pieces; }
  static const char* instructions();  // what this CPU copies with

 private:
  static constexpr int pieces = 64;
  std::size_t piece_bytes_;
  Storage from_, to_;
};

}  // namespace tigon::benchmarks
