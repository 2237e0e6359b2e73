// The derivative of each scalar operation, written once for numbers (bounds) and for graph nodes (gradients).
#pragma once
#include <limits>
#include <span>

#include "tigon/scalar_op.hpp"

namespace tigon::dsl {

// Whether a change of this operand changes the result at all, almost everywhere.
constexpr bool has_derivative(ScalarOp op, int operand) {
  using enum ScalarOp;
  // clang-format off
  switch (op) {
    case sign: case floor_div: case rem: case bit_and: case bit_or: case bit_xor: case shift_left: case shift_right:
    case equal: case not_equal: case less: case less_equal: case logical_and: case logical_or: case logical_not:
    case floor: case ceil: case round: case is_finite:
      return false;
    case where:
      return operand != 0;
    default:
      return true;
  }
  // clang-format on
}

// The cotangent of operand `k` at operands x and result y, given the result's cotangent g. A calculus offers `Number`,
// `map(op, {numbers})`, `constant(double)` and `masked(condition, value)`: value where the condition holds, else
// exactly 0 whatever value holds. Requires has_derivative(op, k).
template <class Calculus>
typename Calculus::Number cotangent(const Calculus& calculus, ScalarOp op, int k,
                                    std::span<const typename Calculus::Number> x, typename Calculus::Number y,
                                    typename Calculus::Number g) {
  using Number = typename Calculus::Number;
  using enum ScalarOp;
  const auto c = [&](double value) { return calculus.constant(value); };
  const auto f = [&](ScalarOp function, Number a) { return calculus.map(function, {a}); };
  const auto f2 = [&](ScalarOp function, Number a, Number b) { return calculus.map(function, {a, b}); };
  const auto times = [&](Number a, Number b) { return f2(mul, a, b); };
  // clang-format off
  switch (op) {
    case neg: return f(neg, g);
    case abs: return times(g, f(sign, x[0]));
    case add: return g;
    case sub: return k == 0 ? g : f(neg, g);
    case mul: return times(g, x[1 - k]);
    case div: return k == 0 ? f2(div, g, x[1]) : f(neg, f2(div, times(g, y), x[1]));
    case min: return calculus.masked(k == 0 ? f2(less_equal, x[0], x[1]) : f2(less, x[1], x[0]), g);
    case max: return calculus.masked(k == 0 ? f2(less_equal, x[1], x[0]) : f2(less, x[0], x[1]), g);
    case where: return calculus.masked(k == 1 ? x[0] : f(logical_not, x[0]), g);
    case sqrt: return f2(div, times(g, c(0.5)), y);
    case rsqrt: return times(times(g, c(-0.5)), times(y, times(y, y)));
    case exp: return times(g, y);
    case expm1: return times(g, f(exp, x[0]));  // y + 1 would lose all precision where y is near -1
    case log: return f2(div, g, x[0]);
    case log1p: return f2(div, g, f2(add, x[0], c(1)));
    case sin: return times(g, f(cos, x[0]));
    case cos: return times(f(neg, g), f(sin, x[0]));
    case tanh: return times(g, f2(sub, c(1), times(y, y)));
    case erf: return times(g, times(c(1.1283791670955125739), f(exp, f(neg, times(x[0], x[0])))));
    case sigmoid: return times(g, times(y, f2(sub, c(1), y)));
    case softplus: return times(g, f(sigmoid, x[0]));
    case log_sigmoid: return times(g, f(sigmoid, f(neg, x[0])));
    case relu: return calculus.masked(f2(less, c(0), x[0]), g);
    case log1mexp: return f(neg, f2(div, g, f(expm1, f(neg, x[0]))));
    case pow:
      if (k == 0) return times(g, f2(mul0, x[1], f2(pow, x[0], f2(sub, x[1], c(1)))));
      return calculus.masked(f2(not_equal, x[0], c(0)), times(g, times(y, f(log, x[0]))));
    case logaddexp:
      return calculus.masked(f2(not_equal, x[k], c(-std::numeric_limits<double>::infinity())),
                             times(g, f(sigmoid, f2(sub, x[k], x[1 - k]))));
    case mul0:
      if (k == 0) return calculus.masked(f2(not_equal, x[0], c(0)), times(g, x[1]));
      return f2(mul0, x[0], g);
    case clamp:
      if (k == 1) return calculus.masked(f2(less, x[0], x[1]), g);
      if (k == 2) return calculus.masked(f2(less, x[2], x[0]), g);
      return calculus.masked(f2(logical_and, f2(less_equal, x[1], x[0]), f2(less_equal, x[0], x[2])), g);
    case fma: return k == 2 ? g : times(g, x[1 - k]);
    default: return c(0);
  }
  // clang-format on
}

}  // namespace tigon::dsl
