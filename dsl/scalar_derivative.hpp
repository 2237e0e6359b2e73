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
    case rsqrt: {
      const Number half = times(g, c(-0.5));
      return times(half, times(y, times(y, y)));
    }
    case exp: return times(g, y);
    case expm1: return times(g, f(exp, x[0]));  // y + 1 would lose all precision where y is near -1
    case log: return f2(div, g, x[0]);
    case log1p: return f2(div, g, f2(add, x[0], c(1)));
    case sin: return times(g, f(cos, x[0]));
    case cos: {
      const Number negative = f(neg, g);
      return times(negative, f(sin, x[0]));
    }
    case tanh: {
      const Number one = c(1);
      return times(g, f2(sub, one, times(y, y)));
    }
    case erf: {
      const Number slope = c(1.1283791670955125739);  // 2 / sqrt(pi)
      return times(g, times(slope, f(exp, f(neg, times(x[0], x[0])))));
    }
    case sigmoid: return times(g, times(y, f2(sub, c(1), y)));
    case softplus: return times(g, f(sigmoid, x[0]));
    case log_sigmoid: return times(g, f(sigmoid, f(neg, x[0])));
    case relu: return calculus.masked(f2(less, c(0), x[0]), g);
    case log1mexp: return f(neg, f2(div, g, f(expm1, f(neg, x[0]))));
    case pow: {
      if (k == 0) return times(g, f2(mul0, x[1], f2(pow, x[0], f2(sub, x[1], c(1)))));
      const Number grown = times(y, f(log, x[0]));
      const Number base_is_not_zero = f2(not_equal, x[0], c(0));
      return calculus.masked(base_is_not_zero, times(g, grown));
    }
    case logaddexp: {
      const Number share = f(sigmoid, f2(sub, x[k], x[1 - k]));
      const Number is_something = f2(not_equal, x[k], c(-std::numeric_limits<double>::infinity()));
      return calculus.masked(is_something, times(g, share));
    }
    case mul0: {
      if (k == 1) return f2(mul0, x[0], g);
      const Number is_not_zero = f2(not_equal, x[0], c(0));
      return calculus.masked(is_not_zero, times(g, x[1]));
    }
    case clamp: {
      if (k == 1) return calculus.masked(f2(less, x[0], x[1]), g);
      if (k == 2) return calculus.masked(f2(less, x[2], x[0]), g);
      const Number above = f2(less_equal, x[1], x[0]);
      const Number below = f2(less_equal, x[0], x[2]);
      return calculus.masked(f2(logical_and, above, below), g);
    }
    case fma: return k == 2 ? g : times(g, x[1 - k]);
    default: return c(0);
  }
  // clang-format on
}

}  // namespace tigon::dsl
