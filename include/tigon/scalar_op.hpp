// The scalar operations by name; dsl/scalar_table.cpp says everything else about each.
#pragma once
#include <cstdint>

namespace tigon {

enum class ScalarOp : std::uint8_t {
  // arithmetic, any number dtype
  neg,
  abs,
  sign,
  add,
  sub,
  mul,
  div,
  min,
  max,
  // integers; floor_div and rem round towards minus infinity, as index arithmetic wants
  floor_div,
  rem,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  // comparisons and logic, result boolean
  equal,
  not_equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  logical_not,
  // where(condition, a, b)
  where,
  // floats
  floor,
  ceil,
  round,
  sqrt,
  rsqrt,
  exp,
  expm1,
  log,
  log1p,
  sin,
  cos,
  tanh,
  erf,
  sigmoid,
  softplus,
  log_sigmoid,
  relu,
  log1mexp,
  is_finite,
  pow,
  logaddexp,
  // mul0(p, v) is 0 where p is 0, whatever v holds
  mul0,
  // clamp(x, low, high); the derivative passes at the bounds
  clamp,
  // fma(a, b, c): formed by lowering only, never in a graph
  fma,
};
inline constexpr int scalar_op_count = static_cast<int>(ScalarOp::fma) + 1;

}  // namespace tigon
