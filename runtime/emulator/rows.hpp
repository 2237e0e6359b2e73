// Loops over the 32 lanes of a warp's registers: every lane is computed, and those that are active are written.
#pragma once
#include <cstring>

#include "runtime/emulator/machine.hpp"

namespace tigon::emulator {

template <class T>
struct alignas(64) Row {
  T lane[lanes_per_warp];
};

// d = F(a)
template <class Result, class A, class F>
void unary_row(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<A>(instruction.operand[1]);
  Row<Result> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) result.lane[lane] = F::of(a[lane]);
  warp.put(instruction.operand[0], result.lane);
}

// d = F(a, b)
template <class Result, class A, class F>
void binary_row(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<A>(instruction.operand[1]);
  const auto* b = warp.row<A>(instruction.operand[2]);
  Row<Result> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) result.lane[lane] = F::of(a[lane], b[lane]);
  warp.put(instruction.operand[0], result.lane);
}

// d = F(a, b, c), where c may be wider
template <class Result, class A, class C, class F>
void ternary_row(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<A>(instruction.operand[1]);
  const auto* b = warp.row<A>(instruction.operand[2]);
  const auto* c = warp.row<C>(instruction.operand[3]);
  Row<Result> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) result.lane[lane] = F::of(a[lane], b[lane], c[lane]);
  warp.put(instruction.operand[0], result.lane);
}

// For the rarer instructions: a function of the active lane's number.
template <class T, class Function>
void each_lane(Warp& warp, std::uint32_t to, const Function& function) {
  Row<T> result;
  for (Mask left = warp.active; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    result.lane[lane] = function(lane);
  }
  warp.put(to, result.lane);
}

// 32 bytes of 0 or 1 as a mask.
inline Mask pack(const Row<std::uint8_t>& truth) {
  Mask mask = 0;
  for (unsigned part = 0; part < 4; ++part) {
    std::uint64_t word = 0;
    std::memcpy(&word, truth.lane + std::size_t{8} * part, 8);
    mask |= static_cast<Mask>(word * 0x0102040810204080 >> 56) << (8 * part);
  }
  return mask;
}

}  // namespace tigon::emulator
