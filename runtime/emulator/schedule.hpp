// In which order blocks and warps run, and how far approximate instructions may stray: chosen by the host of a test.
#pragma once
#include <cstdint>

namespace tigon::emulator {

enum class Order : std::uint8_t {
  forward,  // block 0 first; warp 0 runs to its next barrier, then warp 1
  reverse,  // the last block first, the last warp first
  seeded,   // blocks in a random order; a random warp runs for 1 to 400 instructions
};

struct Schedule {
  Order order = Order::forward;
  std::uint64_t seed = 1;
  // Moves the results of approximate instructions within their documented error, and sums of mma into another order,
  // by the seed and the operands alone: equal operands still give equal results.
  bool perturb = false;
  // Warp instructions without any block finishing, after which a launch is given up as one that never ends.
  std::uint64_t instruction_limit = std::uint64_t{1} << 27;
};

// A small generator with the same numbers everywhere (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    auto z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace tigon::emulator
