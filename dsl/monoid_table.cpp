// The built-in monoids: their programs, corner cases and adjoints.
#include <limits>

#include "dsl/build.hpp"
#include "dsl/program.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl {
namespace {

using enum ScalarOp;
using Value = ProgramBuilder::Value;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double no_index = 4611686018427387904.0;  // 2^62: above every index, exact in f64

Value operator+(Value a, Value b) { return a.program->apply(add, {a, b}); }
Value operator-(Value a, Value b) { return a.program->apply(sub, {a, b}); }
Value operator*(Value a, Value b) { return a.program->apply(mul, {a, b}); }
Value operator/(Value a, Value b) { return a.program->apply(div, {a, b}); }
Value choose(Value condition, Value a, Value b) { return a.program->apply(where, {condition, a, b}); }
Value equals(Value a, Value b) { return a.program->apply(equal, {a, b}); }
Value below(Value a, Value b) { return a.program->apply(less, {a, b}); }
Value both(Value a, Value b) { return a.program->apply(logical_and, {a, b}); }
Value either(Value a, Value b) { return a.program->apply(logical_or, {a, b}); }
Value negate(Value a) { return a.program->apply(logical_not, {a}); }
Value is_nan(Value a) { return a.program->apply(not_equal, {a, a}); }

// A program of one operation on inputs 0 and 1.
ScalarProgram binary(ScalarOp op, ValueClass value_class = ValueClass::element) {
  ProgramBuilder p;
  const Value a = p.input(0, value_class);
  const Value b = p.input(1, value_class);
  return p.finish({p.apply(op, {a, b})});
}
ScalarProgram identity(int input = 0, ValueClass value_class = ValueClass::element) {
  ProgramBuilder p;
  const Value value = p.input(input, value_class);
  return p.finish({value});
}

// The masks of the one element that a max (min) over the axes takes: the lowest index on the first axis, then the next.
std::vector<NodeId> extreme_masks(Builder& builder, NodeId x, std::vector<AxisId> axes, BuiltinMonoid value_of,
                                  BuiltinMonoid index_of) {
  std::vector<NodeId> masks;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::vector<AxisId> inner(axes.begin() + static_cast<std::ptrdiff_t>(k) + 1, axes.end());
    const NodeId best = inner.empty() ? x : builder.finish(builder.fold(builder.monoid(value_of), {x}, inner), 0);
    const NodeId state = builder.fold(builder.monoid(index_of), {best}, {axes[k]});
    masks.push_back(builder.map(equal, {builder.iota(axes[k]), builder.finish(state, arg_index)}));
  }
  return masks;
}

NodeId added(Builder& builder, NodeId a, NodeId b) {
  if (a == no_node) return b;
  return b == no_node ? a : builder.map(add, {a, b});
}

FoldAdjoint extreme_adjoint(BuiltinMonoid value_of, BuiltinMonoid index_of) {
  return [=](Builder& builder, const FoldCotangents& at) -> std::vector<NodeId> {
    if (at.cotangents[0] == no_node) return {no_node};
    const std::vector<AxisId> axes = builder.graph().fold(at.fold).axes;
    return {builder.masked(extreme_masks(builder, at.operands[0], axes, value_of, index_of), at.cotangents[0])};
  };
}

// The product of the other elements, without dividing by zero: product / x where no element is zero; where one is, the
// product of the rest at its place and 0 elsewhere; where several are, 0.
std::vector<NodeId> product_adjoint(Builder& builder, const FoldCotangents& at) {
  const NodeId g = at.cotangents[0];
  if (g == no_node) return {no_node};
  const NodeId x = at.operands[0];
  const DType dtype = builder.node(x).dtype;
  const std::vector<AxisId> axes = builder.graph().fold(at.fold).axes;
  const NodeId zero = builder.constant(dtype, 0), one = builder.constant(dtype, 1);
  const NodeId is_zero = builder.map(equal, {x, zero});
  const NodeId divisor = builder.map(where, {is_zero, one, x});
  const NodeId rest = builder.finish(builder.fold(builder.monoid(BuiltinMonoid::product), {divisor}, axes), 0);
  const NodeId zeros = builder.sum(builder.map(where, {is_zero, one, zero}), axes);
  const NodeId alone = builder.map(where, {builder.map(equal, {zeros, one}), builder.map(mul, {g, rest}), zero});
  const NodeId others = builder.map(div, {builder.map(mul, {g, rest}), divisor});
  const NodeId none = builder.map(where, {builder.map(equal, {zeros, zero}), others, zero});
  return {builder.map(where, {is_zero, alone, none})};
}

Monoid sum_monoid() {
  Monoid m{.name = "sum", .state = {ValueClass::element}, .identity = {-0.0}, .lift = identity(), .merge = binary(add)};
  ProgramBuilder p;
  const Value total = p.input(0);
  m.finishes = {{"sum", ValueClass::element, p.finish({total + p.constant(0.0)})}};  // an empty sum is +0
  m.adjoint = [](Builder&, const FoldCotangents& at) -> std::vector<NodeId> { return {at.cotangents[0]}; };
  return m;
}

Monoid plain(std::string name, double start, ScalarOp op) {
  Monoid m{.name = name, .state = {ValueClass::element}, .identity = {start}, .lift = identity(), .merge = binary(op)};
  m.finishes = {{name, ValueClass::element, identity()}};
  return m;
}

Monoid truth(std::string name, double start, ScalarOp op) {
  Monoid m{.name = name, .state = {ValueClass::truth}, .identity = {start}};
  m.lift = identity(0, ValueClass::truth);
  m.merge = binary(op, ValueClass::truth);
  m.finishes = {{name, ValueClass::truth, identity(0, ValueClass::truth)}};
  return m;
}

// A contest for the place of the maximum: rest gets the exponential of each loser, and the winner's is what it leaves
// out. Only the state's own rest is rescaled, once. Beside a maximum of +infinity rest may become anything but NaN; a
// NaN among the elements may reach rest alone.
ScalarProgram logsumexp_absorb(int count) {
  ProgramBuilder p;
  const Value top = p.input(0), rest = p.input(1);
  std::vector<Value> losers;
  const auto contest = [&](Value a, Value b) {
    const Value second = below(a, b);
    losers.push_back(choose(second, a, b));  // a NaN loses, unless it was the first
    return choose(second, b, a);
  };
  std::vector<Value> winners;
  for (int i = 0; i < count; ++i) winners.push_back(p.input(2 + 2 * i));
  while (winners.size() > 1) {
    std::vector<Value> next;
    for (std::size_t i = 0; i + 1 < winners.size(); i += 2) next.push_back(contest(winners[i], winners[i + 1]));
    winners = std::move(next);
  }
  const Value best = contest(top, winners[0]);
  const Value zero = p.constant(0), one = p.constant(1);
  const Value finite = p.apply(is_finite, {best});
  const Value shift = choose(finite, best, zero);
  std::vector<Value> terms;
  for (const Value loser : losers) terms.push_back(p.apply(exp, {loser - shift}));
  const Value last = terms.back();
  while (terms.size() > 1) {
    std::vector<Value> next;
    for (std::size_t i = 0; i + 1 < terms.size(); i += 2) next.push_back(terms[i] + terms[i + 1]);
    terms = std::move(next);
  }
  // The last loser is the state's own maximum, unless that has won.
  const Value same = equals(top, best);
  const Value fallen = choose(finite, last, zero);
  const Value rescaled = rest * choose(same, one, fallen);
  return p.finish({best, rescaled + terms[0]});
}

// State (max, rest): rest is the sum of exp(x - max) without one maximal element. Equal maxima skip the exponential, so
// that two +infinities do not make NaN; a smaller maximum of -infinity adds nothing.
Monoid logsumexp_monoid() {
  // A rest is never negative, so that this is certain even where the rest is known to a bound only.
  const auto not_nan = [](Value rest) { return rest.program->apply(less_equal, {rest.program->constant(-1), rest}); };
  Monoid m{.name = "logsumexp", .state = {ValueClass::element, ValueClass::element}, .identity = {-infinity, 0.0}};
  {
    ProgramBuilder p;
    const Value x = p.input(0);
    m.lift = p.finish({x, p.constant(0)});
  }
  {
    ProgramBuilder p;
    const Value m1 = p.input(0), r1 = p.input(1), m2 = p.input(2), r2 = p.input(3);
    const Value one = p.constant(1);
    const Value first = p.apply(less_equal, {m2, m1});
    const Value big = p.apply(max, {m1, m2});
    const Value small = choose(first, m2, m1);
    const Value same = equals(m1, m2);
    const Value power = p.apply(exp, {small - big});
    const Value ratio = choose(same, one, power);
    const Value nothing = p.constant(-infinity);
    const Value small_is_nothing = equals(small, nothing);
    const Value zero = p.constant(0);
    const Value e = choose(small_is_nothing, zero, ratio);
    const Value kept = choose(first, r1, r2);
    const Value other = choose(first, r2, r1);
    const Value added_rest = (one + other) * e;
    m.merge = p.finish({big, kept + added_rest});
  }
  m.absorb_count = 4;
  m.absorb = logsumexp_absorb(m.absorb_count);
  {
    ProgramBuilder p;
    const Value top = p.input(0), rest = p.input(1);
    const Value number = not_nan(rest);
    m.finishes.push_back({"max", ValueClass::element, p.finish({choose(number, top, rest)})});
  }
  {
    ProgramBuilder p;
    const Value top = p.input(0), rest = p.input(1);
    const Value infinite = equals(top, p.constant(infinity)), number = not_nan(rest);
    const Value nothing = both(infinite, number);
    const Value zero = p.constant(0);
    const Value log_rest = p.apply(log1p, {rest});
    m.finishes.push_back({"log_rest", ValueClass::element, p.finish({choose(nothing, zero, log_rest)})});
  }
  {
    ProgramBuilder p;
    const Value top = p.input(0), rest = p.input(1);
    m.finishes.push_back({"lse", ValueClass::element, p.finish({top + p.apply(log1p, {rest})})});
  }
  m.adjoint = [](Builder& builder, const FoldCotangents& at) -> std::vector<NodeId> {
    const NodeId g_max = added(builder, at.cotangents[lse_max], at.cotangents[lse_value]);
    const NodeId g_rest = added(builder, at.cotangents[lse_log_rest], at.cotangents[lse_value]);
    const NodeId x = at.operands[0];
    NodeId dx = no_node;
    if (g_rest != no_node) dx = builder.map(mul, {g_rest, softmax_of(builder, x, at.fold)});
    if (g_max == g_rest) return {dx};
    NodeId g_top = g_max;
    if (g_rest != no_node) {
      g_top = g_max == no_node ? builder.map(neg, {g_rest}) : builder.map(sub, {g_max, g_rest});
    }
    const std::vector<AxisId> axes = builder.graph().fold(at.fold).axes;
    const std::vector<NodeId> masks = extreme_masks(builder, x, axes, BuiltinMonoid::max, BuiltinMonoid::argmax);
    return {added(builder, dx, builder.masked(masks, g_top))};
  };
  return m;
}

// State (value, index): NaN first, then the better value, then the lowest index.
Monoid arg_monoid(std::string name, double start, bool largest) {
  Monoid m{.name = std::move(name), .state = {ValueClass::element, ValueClass::index}, .identity = {start, no_index}};
  {
    ProgramBuilder p;
    const Value x = p.input(0);
    const Value index = p.input(1, ValueClass::index);
    m.lift = p.finish({x, index});
  }
  {
    ProgramBuilder p;
    const Value v1 = p.input(0), i1 = p.input(1, ValueClass::index);
    const Value v2 = p.input(2), i2 = p.input(3, ValueClass::index);
    const Value n1 = is_nan(v1), n2 = is_nan(v2);
    const Value beats = largest ? below(v1, v2) : below(v2, v1);
    const Value wins = either(n2, beats);
    const Value first_counts = negate(n1);
    const Value better = both(first_counts, wins);
    const Value both_nan = both(n1, n2);
    const Value equal_values = equals(v1, v2);
    const Value tie = either(both_nan, equal_values);
    const Value earlier = below(i2, i1);
    const Value lowest = both(tie, earlier);
    const Value second = either(better, lowest);
    m.merge = p.finish({choose(second, v2, v1), choose(second, i2, i1)});
  }
  m.finishes = {{"value", ValueClass::element, identity(0)},
                {"index", ValueClass::index, identity(1, ValueClass::index)}};
  m.adjoint = largest ? extreme_adjoint(BuiltinMonoid::max, BuiltinMonoid::argmax)
                      : extreme_adjoint(BuiltinMonoid::min, BuiltinMonoid::argmin);
  return m;
}

// State (count, mean, M2), merged by Chan's formula.
Monoid moments_monoid() {
  Monoid m{.name = "moments", .state = {3, ValueClass::element}, .identity = {0, 0, 0}};
  {
    ProgramBuilder p;
    const Value x = p.input(0);
    m.lift = p.finish({p.constant(1), x, p.constant(0)});
  }
  {
    ProgramBuilder p;
    const Value n1 = p.input(0), mean1 = p.input(1), s1 = p.input(2);
    const Value n2 = p.input(3), mean2 = p.input(4), s2 = p.input(5);
    const Value zero = p.constant(0);
    const Value n = n1 + n2;
    const Value delta = mean2 - mean1;
    const Value share = n2 / n;
    const Value mean = mean1 + delta * share;
    const Value within = s1 + s2;
    const Value square = delta * delta;
    const Value weight = n1 * share;
    const Value between = square * weight;
    const Value spread = within + between;
    const Value first_empty = equals(n1, zero), second_empty = equals(n2, zero);
    m.merge = p.finish({n, choose(first_empty, mean2, choose(second_empty, mean1, mean)),
                        choose(first_empty, s2, choose(second_empty, s1, spread))});
  }
  {
    ProgramBuilder p;
    const Value n = p.input(0), mean = p.input(1);
    const Value undefined = p.constant(std::numeric_limits<double>::quiet_NaN());
    const Value zero = p.constant(0);
    m.finishes.push_back({"mean", ValueClass::element, p.finish({choose(equals(n, zero), undefined, mean)})});
  }
  {
    ProgramBuilder p;
    const Value n = p.input(0), s = p.input(2);
    m.finishes.push_back({"variance", ValueClass::element, p.finish({s / n})});
  }
  m.finishes.push_back({"count", ValueClass::element, identity()});
  m.adjoint = [](Builder& builder, const FoldCotangents& at) -> std::vector<NodeId> {
    const NodeId x = at.operands[0];
    NodeId g = at.cotangents[moments_mean];
    if (at.cotangents[moments_variance] != no_node) {
      const NodeId centred = builder.map(sub, {x, builder.finish(at.fold, moments_mean)});
      const NodeId two = builder.constant(builder.node(x).dtype, 2);
      g = added(builder, g, builder.map(mul, {builder.map(mul, {two, at.cotangents[moments_variance]}), centred}));
    }
    if (g == no_node) return {no_node};
    const std::vector<AxisId> axes = builder.graph().fold(at.fold).axes;
    NodeId count = builder.integer(DType::i64, 1);
    for (const AxisId axis : axes) count = builder.map(mul, {count, builder.extent(axis)});
    return {builder.map(div, {g, count})};
  };
  return m;
}

std::vector<Monoid> make_table() {
  std::vector<Monoid> table;
  table.push_back(sum_monoid());
  table.push_back(plain("product", 1, mul));
  table.push_back(plain("max", -infinity, max));
  table.push_back(plain("min", infinity, min));
  table[1].adjoint = product_adjoint;
  table[2].adjoint = extreme_adjoint(BuiltinMonoid::max, BuiltinMonoid::argmax);
  table[3].adjoint = extreme_adjoint(BuiltinMonoid::min, BuiltinMonoid::argmin);
  table.push_back(logsumexp_monoid());
  table.push_back(arg_monoid("argmax", -infinity, true));
  table.push_back(arg_monoid("argmin", infinity, false));
  table.push_back(moments_monoid());
  table.push_back(truth("any", 0, logical_or));
  table.push_back(truth("all", 1, logical_and));
  return table;
}

}  // namespace

const Monoid& builtin_monoid(BuiltinMonoid monoid) {
  static const std::vector<Monoid> table = make_table();
  return table[static_cast<std::size_t>(monoid)];
}

NodeId softmax_of(Builder& builder, NodeId x, NodeId logsumexp_fold) {
  const NodeId top = builder.finish(logsumexp_fold, lse_max);
  const DType dtype = builder.node(top).dtype;
  const NodeId empty = builder.map(equal, {top, builder.constant(dtype, -infinity)});
  const NodeId shift = builder.map(where, {empty, builder.constant(dtype, 0), top});
  const NodeId lead = builder.map(sub, {x, shift});
  return builder.map(exp, {builder.map(sub, {lead, builder.finish(logsumexp_fold, lse_log_rest)})});
}

}  // namespace tigon::dsl
