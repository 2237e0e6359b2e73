// Makes random graphs: a pool of values that grows by recipes, each of which keeps numbers well-scaled.
#include "dsl/reference/random_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "dsl/build.hpp"
#include "dsl/reference/random_source.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::dsl {
namespace {

using enum ScalarOp;

// A value that later recipes may read.
struct Entry {
  NodeId node = no_node;
  double scale = 0;     // log2 of about the largest magnitude
  bool coarse = false;  // rounded to 16 bits somewhere: too blunt for a discontinuous function
  bool used = false;
};

std::vector<AxisId> listed(AxisSet axes) {
  std::vector<AxisId> list;
  for (const AxisId axis : axes) list.push_back(axis);
  return list;
}

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomGraphOptions& options)
      : random_(seed), options_(options), b_(fmt::format("random_{}", seed)) {}

  RandomGraph make() {
    make_axes();
    const auto inputs = 2 + random_.below(3);
    for (std::int64_t i = 0; i < inputs; ++i) pool_.push_back(new_input(random_axes()));
    for (int step = 0; step < options_.steps; ++step) recipe();
    make_outputs();
    RandomGraph result{std::move(b_).finish(), {}};
    result.extents = resolve_extents(result.graph, extents_);
    return result;
  }

 private:
  // --- axes
  AxisId new_axis(const std::string& name, i64 extent) {
    const AxisId axis = b_.axis(nullptr, name);
    if (extents_.size() <= axis) extents_.resize(axis + 1u, -1);
    extents_[axis] = extent;
    return axis;
  }
  i64 random_extent() {
    static const std::vector<i64> usual{1,  2,  3,  4,  5,  7,  8,  9,  11, 13, 15, 16,  17,  19,
                                        23, 29, 31, 32, 33, 37, 47, 61, 63, 64, 65, 127, 128, 129};
    if (options_.empty_axes && random_.chance(0.03)) return 0;
    return random_.pick(usual);
  }
  void make_axes() {
    const auto count = 2 + random_.below(3);
    const bool with_long = options_.long_axes && random_.chance(0.12);
    i64 elements = 1;
    for (std::int64_t i = 0; i < count; ++i) {
      i64 extent = i == 0 && with_long ? 1000 + random_.below(4001) : random_extent();
      while (std::max<i64>(extent, 1) * elements > options_.most_elements) extent /= 2;
      elements *= std::max<i64>(extent, 1);
      base_.push_back(new_axis(std::string(1, static_cast<char>('a' + i)), extent));
    }
  }
  AxisSet random_axes() {
    AxisSet axes;
    for (const AxisId axis : base_) {
      if (random_.chance(0.65)) axes |= AxisSet::of(axis);
    }
    if (axes.empty()) axes = AxisSet::of(random_.pick(base_));
    return axes;
  }
  i64 elements(AxisSet axes) const {
    i64 count = 1;
    for (const AxisId axis : axes) count *= std::max<i64>(extents_[axis], 1);
    return count;
  }
  AxisSet axes_of(NodeId node) const { return b_.node(node).axes; }

  // --- leaves
  DType float_dtype() {
    const double u = random_.uniform();
    if (options_.sixteen_bits && u < 0.2) return DType::bf16;
    if (options_.sixteen_bits && u < 0.3) return DType::f16;
    return u > 0.94 ? DType::f64 : DType::f32;
  }
  NodeId input(DType dtype, AxisSet set) {
    std::vector<AxisId> axes = listed(set);
    for (std::size_t i = axes.size(); i > 1; --i) {  // any layout
      std::swap(axes[i - 1], axes[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(i)))]);
    }
    return b_.input(fmt::format("x{}", b_.graph().inputs.size()), dtype, std::move(axes));
  }
  Entry new_input(AxisSet axes) { return {input(float_dtype(), axes), 2, false, false}; }
  NodeId number(const Entry& like, double value) { return b_.constant(arithmetic(b_.node(like.node).dtype), value); }

  // --- reading the pool
  Entry read(double most_scale = 1000) {
    const auto size = static_cast<std::int64_t>(pool_.size());
    // The later a value was made, the likelier it is read.
    std::int64_t at = std::max(random_.below(size), random_.below(size));
    Entry& entry = pool_[static_cast<std::size_t>(at)];
    entry.used = true;
    Entry copy = entry;
    if (copy.scale > most_scale) copy = {b_.map(tanh, {copy.node}), 0, copy.coarse, false};
    return copy;
  }
  Entry unary(ScalarOp op, const Entry& x, double scale) { return {b_.map(op, {x.node}), scale, x.coarse, false}; }
  Entry binary(ScalarOp op, const Entry& x, const Entry& y, double scale) {
    return {b_.map(op, {x.node, y.node}), scale, x.coarse || y.coarse, false};
  }
  Entry positive(const Entry& x) {  // |x| + 1/2, or x^2 + 1/2
    const NodeId size =
        !options_.differentiable && random_.chance(0.5) ? b_.map(abs, {x.node}) : b_.map(mul, {x.node, x.node});
    return {b_.map(add, {size, number(x, 0.5)}), std::max(0.0, 2 * x.scale), x.coarse, false};
  }
  std::vector<AxisId> axes_to_fold(NodeId node, bool may_lack = true) {
    std::vector<AxisId> axes;
    for (const AxisId axis : axes_of(node)) {
      if (random_.chance(0.5)) axes.push_back(axis);
    }
    if (axes.empty()) axes = axes_of(node).empty() ? axes : std::vector<AxisId>{random_.pick(listed(axes_of(node)))};
    if (may_lack && random_.chance(0.06)) {
      const AxisId other = random_.pick(base_);
      if (!axes_of(node).contains(other) && elements(axes_of(node) | AxisSet::of(other)) <= options_.most_elements) {
        axes.push_back(other);
      }
    }
    if (axes.size() > 1 && random_.chance(0.5)) std::swap(axes[0], axes[1]);
    return axes;
  }
  double count_bits(const std::vector<AxisId>& axes) const {
    double count = 1;
    for (const AxisId axis : axes) count *= static_cast<double>(std::max<i64>(extents_[axis], 1));
    return std::log2(count);
  }
  void keep(Entry entry) {
    if (entry.node != no_node && is_floating(b_.node(entry.node).dtype)) {
      if (entry.scale > 12) entry = unary(tanh, entry, 0);
      pool_.push_back(entry);
    }
  }

  // --- recipes
  void recipe() {
    const double u = random_.uniform();
    if (u < 0.17) return keep(some_unary());
    if (u < 0.33) return keep(some_binary());
    if (u < 0.40) return keep(some_choice());
    if (u < 0.45) return keep(some_cast());
    if (u < 0.52) return keep(some_view());
    if (u < 0.64) return keep(some_fold());
    if (u < 0.74) return keep(contraction());
    if (u < 0.80) return keep(some_gather());
    if (u < 0.85) return keep(some_scatter());
    if (u < 0.90) return keep(softmax_like());
    if (u < 0.94) return keep(norm_like());
    if (u < 0.97) return keep(with_integers());
    keep(new_input(random_axes()));
  }

  Entry some_unary() {
    static const std::vector<ScalarOp> gentle{tanh, sigmoid, sin, cos, erf, softplus, log_sigmoid, neg, exp, expm1};
    static const std::vector<ScalarOp> kinked{relu, abs, sign, floor, ceil, round};
    if (random_.chance(0.25)) {  // functions of a positive number
      const Entry x = positive(read(3));
      static const std::vector<ScalarOp> rooted{sqrt, rsqrt, log, log1p, log1mexp, pow};
      const ScalarOp op = random_.pick(rooted);
      if (op == log1mexp) return unary(op, unary(neg, x, x.scale), 3);
      if (op == pow)
        return {b_.map(pow, {x.node, number(x, random_.uniform(-1.5, 1.5))}), 1.5 * x.scale + 2, x.coarse, false};
      return unary(op, x, x.scale / 2 + 1);
    }
    const Entry x = read();
    if (!options_.differentiable && random_.chance(0.3)) {
      const ScalarOp op = random_.pick(kinked);
      if (op == relu || op == abs || (options_.discontinuous && !x.coarse)) return unary(op, x, x.scale);
    }
    const ScalarOp op = random_.pick(gentle);
    if (op == exp || op == expm1) {
      const Entry small = x.scale > 2.5 ? unary(tanh, x, 0) : x;
      return unary(op, small, std::exp2(small.scale) * 1.45);
    }
    return unary(op, x, op == neg || op == softplus || op == log_sigmoid ? x.scale : 0);
  }

  Entry some_binary() {
    static const std::vector<ScalarOp> smooth{add, sub, mul, div, logaddexp};
    static const std::vector<ScalarOp> all{add, sub, mul, div, logaddexp, mul0, min, max, clamp};
    const Entry x = read();
    Entry y = read();
    if (elements(axes_of(x.node) | axes_of(y.node)) > options_.most_elements) return unary(tanh, x, 0);
    const ScalarOp op = random_.pick(options_.differentiable ? smooth : all);
    if (op == div) {
      y = positive(y.scale > 3 ? unary(tanh, y, 0) : y);
      return binary(div, x, y, x.scale + 1);
    }
    if (op == clamp) {
      const double low = random_.uniform(-1, 0);
      return {b_.map(clamp, {x.node, number(x, low), number(x, low + random_.uniform(0.5, 2))}), 1, x.coarse, false};
    }
    return binary(op, x, y, op == mul || op == mul0 ? x.scale + y.scale : std::max(x.scale, y.scale) + 1);
  }

  NodeId mask_for(AxisSet axes, const Entry& x) {
    const double u = random_.uniform();
    if (u < 0.4) return input(DType::boolean, axes);
    if (u < 0.7 || !options_.discontinuous || x.coarse || options_.differentiable) {  // causal, or a prefix
      const std::vector<AxisId> list = listed(axes);
      if (list.empty()) return b_.map(less, {b_.scalar("flag", DType::i32), b_.integer(DType::i32, 1)});
      const AxisId first = random_.pick(list);
      const AxisId second = random_.pick(list);
      if (first != second) return b_.map(less_equal, {b_.iota(first), b_.iota(second)});
      return b_.map(less,
                    {b_.iota(first), b_.integer(DType::i64, 1 + random_.below(std::max<i64>(extents_[first], 1)))});
    }
    const ScalarOp op = random_.chance(0.5) ? less : less_equal;
    const NodeId compared = b_.map(op, {x.node, number(x, random_.uniform(-1, 1))});
    return random_.chance(0.3) ? b_.map(logical_not, {compared}) : compared;
  }

  Entry some_choice() {
    const Entry x = read();
    AxisSet axes;
    for (const AxisId axis : axes_of(x.node)) {
      if (random_.chance(0.7)) axes |= AxisSet::of(axis);
    }
    const NodeId mask = mask_for(axes, x);
    if (random_.chance(0.6)) return {b_.masked(mask, x.node), x.scale, x.coarse, false};
    const Entry y = read();
    if (elements(axes_of(x.node) | axes_of(y.node)) > options_.most_elements)
      return {b_.masked(mask, x.node), x.scale, x.coarse, false};
    return {b_.map(where, {mask, x.node, y.node}), std::max(x.scale, y.scale), x.coarse || y.coarse, false};
  }

  Entry some_cast() {
    const Entry x = read(8);
    const DType dtype = float_dtype();
    return {b_.cast(dtype, x.node), x.scale, x.coarse || is_16_bit_float(dtype), false};
  }

  Entry some_view() {
    const Entry x = read();
    const std::vector<AxisId> axes = listed(axes_of(x.node));
    if (axes.empty()) {
      return {b_.broadcast(x.node, AxisSet::of(random_.pick(base_))), x.scale, x.coarse, false};
    }
    const AxisId axis = random_.pick(axes);
    const double u = random_.uniform();
    if (u < 0.4) {
      const AxisId twin = new_axis(b_.graph().axes[axis].name + "t", extents_[axis]);
      if (axes_of(x.node).contains(twin)) return unary(tanh, x, 0);
      return {b_.rename(x.node, axis, twin), x.scale, x.coarse, false};
    }
    if (u < 0.7) {
      for (const i64 inner : {2, 3, 4, 8, 5}) {
        if (extents_[axis] < inner || extents_[axis] % inner != 0) continue;
        const std::string name = b_.graph().axes[axis].name;
        const AxisId outer_axis = new_axis(fmt::format("{}o{}", name, inner), extents_[axis] / inner);
        const AxisId inner_axis = new_axis(fmt::format("{}i{}", name, inner), inner);
        if (axes_of(x.node).contains(outer_axis) || axes_of(x.node).contains(inner_axis)) continue;
        return {b_.split(x.node, axis, outer_axis, inner_axis), x.scale, x.coarse, false};
      }
    }
    const AxisId other = random_.pick(axes);
    if (other != axis) {
      const std::string name = b_.graph().axes[axis].name + "_" + b_.graph().axes[other].name;
      const AxisId whole = new_axis(name, extents_[axis] * extents_[other]);
      if (axes_of(x.node).contains(whole)) return unary(tanh, x, 0);
      return {b_.merge(x.node, axis, other, whole), x.scale, x.coarse, false};
    }
    const AxisSet more = axes_of(x.node) | AxisSet::of(random_.pick(base_));
    if (elements(more) > options_.most_elements) return x;
    return {b_.broadcast(x.node, more), x.scale, x.coarse, false};
  }

  Entry some_fold() {
    static const std::vector<BuiltinMonoid> smooth{BuiltinMonoid::sum, BuiltinMonoid::logsumexp,
                                                   BuiltinMonoid::moments};
    static const std::vector<BuiltinMonoid> all{BuiltinMonoid::sum,     BuiltinMonoid::sum,    BuiltinMonoid::product,
                                                BuiltinMonoid::max,     BuiltinMonoid::min,    BuiltinMonoid::logsumexp,
                                                BuiltinMonoid::moments, BuiltinMonoid::argmax, BuiltinMonoid::argmin,
                                                BuiltinMonoid::any,     BuiltinMonoid::all};
    const BuiltinMonoid monoid = random_.pick(options_.differentiable ? smooth : all);
    Entry x = read(8);
    std::vector<AxisId> axes = axes_to_fold(x.node);
    const double bits = count_bits(axes);
    if (monoid == BuiltinMonoid::sum) {
      if (axes.empty()) return x;
      return {b_.map(mul, {b_.sum(x.node, axes), number(x, std::exp2(-bits / 2))}), x.scale + bits / 2, x.coarse,
              false};
    }
    if (monoid == BuiltinMonoid::product) {  // of numbers near 1
      const NodeId near = b_.map(add, {b_.map(mul, {b_.map(tanh, {x.node}), number(x, 0.3)}), number(x, 1)});
      axes.resize(std::min<std::size_t>(axes.size(), 1));
      x.node = near;
      return unary(tanh, {b_.finish(b_.fold(b_.monoid(monoid), {near}, axes), 0), 8, x.coarse, false}, 0);
    }
    if (monoid == BuiltinMonoid::any || monoid == BuiltinMonoid::all) {
      const NodeId mask = mask_for(axes_of(x.node), x);
      const AxisSet present = axes_of(mask);
      std::erase_if(axes, [&](AxisId axis) { return !present.contains(axis); });
      const NodeId found = b_.finish(b_.fold(b_.monoid(monoid), {mask}, axes), 0);
      return {b_.masked(found, x.node), x.scale, x.coarse, false};
    }
    if (monoid == BuiltinMonoid::argmax || monoid == BuiltinMonoid::argmin) {
      if (!options_.discontinuous || x.coarse || axes_of(x.node).empty()) return unary(tanh, x, 0);
      const AxisId axis = axes.front();
      const NodeId state = b_.fold(b_.monoid(monoid), {x.node}, {axis});
      const NodeId index = b_.finish(state, arg_index);
      const Entry y = read();
      if (axes_of(y.node).contains(axis) && random_.chance(0.6)) {  // take another tensor's value there
        return {b_.gather(y.node, index, axis, IndexPolicy::fill, 0.25), y.scale, y.coarse, false};
      }
      const NodeId share =
          b_.map(div, {b_.cast(DType::f32, index), b_.map(add, {b_.extent(axis), b_.integer(DType::i64, 1)})});
      return random_.chance(0.5) ? Entry{b_.finish(state, arg_value), x.scale, x.coarse, false}
                                 : Entry{share, 62, false, false};
    }
    const auto finishes = static_cast<std::int64_t>(builtin_monoid(monoid).finishes.size());
    int finish = static_cast<int>(random_.below(finishes));
    if (options_.differentiable && monoid == BuiltinMonoid::logsumexp) finish = lse_value;
    const NodeId state = b_.fold(b_.monoid(monoid), {x.node}, axes);
    const double scale = monoid == BuiltinMonoid::moments && finish == moments_variance ? 2 * x.scale
                         : monoid == BuiltinMonoid::moments && finish == moments_count  ? bits
                                                                                        : x.scale + 1;
    return {b_.finish(state, finish), scale, x.coarse, false};
  }

  Entry contraction() {
    const Entry x = read(6);
    Entry y = read(6);
    AxisSet shared = axes_of(x.node) & axes_of(y.node);
    if (shared.empty() || x.node == y.node || random_.chance(0.3)) {  // against fresh weights
      AxisSet axes = random_axes();
      AxisSet common;
      if (!axes_of(x.node).empty()) common = AxisSet::of(random_.pick(listed(axes_of(x.node))));
      axes = elements(axes | common) <= options_.most_elements ? axes | common : common;
      if (axes.empty()) return unary(tanh, x, 0);
      y = new_input(axes);
      shared = axes_of(x.node) & axes;
    }
    if (shared.empty() || elements(axes_of(x.node) | axes_of(y.node)) > 4 * options_.most_elements)
      return unary(tanh, x, 0);
    const AxisId axis = random_.pick(listed(shared));
    const AxisSet result = (axes_of(x.node) | axes_of(y.node)) - AxisSet::of(axis);
    if (elements(result) > options_.most_elements) return unary(tanh, x, 0);
    NodeId product = b_.sum(b_.map(mul, {x.node, y.node}), {axis});
    const double bits = count_bits({axis});
    product = b_.map(mul, {product, number(x, std::exp2(-bits / 2))});
    return {product, x.scale + y.scale + bits / 2 - 1, x.coarse || y.coarse, false};
  }

  Entry some_gather() {
    const Entry x = read();
    const std::vector<AxisId> axes = listed(axes_of(x.node));
    if (axes.empty()) return unary(tanh, x, 0);
    const AxisId axis = random_.pick(axes);
    auto policy = static_cast<IndexPolicy>(random_.below(3));
    if (extents_[axis] == 0) policy = IndexPolicy::fill;
    const double fill = random_.chance(0.5) ? 0 : 0.5;
    if (random_.chance(0.3)) {  // a window along the axis itself
      const NodeId shifted = b_.map(sub, {b_.iota(axis), b_.integer(DType::i64, random_.below(5) - 2)});
      if (policy == IndexPolicy::checked) policy = IndexPolicy::clamp;
      return {b_.gather(x.node, shifted, axis, policy, fill), x.scale, x.coarse, false};
    }
    AxisSet over;
    for (const AxisId other : base_) {
      if (random_.chance(0.4)) over |= AxisSet::of(other);
    }
    if (elements(over | axes_of(x.node)) > options_.most_elements) over = axes_of(x.node) - AxisSet::of(axis);
    return {b_.gather(x.node, input(random_.chance(0.5) ? DType::i32 : DType::i64, over), axis, policy, fill), x.scale,
            x.coarse, false};
  }

  Entry some_scatter() {
    const Entry x = read();
    const std::vector<AxisId> axes = listed(axes_of(x.node));
    if (axes.empty()) return unary(tanh, x, 0);
    const AxisId folded = random_.pick(axes);
    AxisSet over = AxisSet::of(folded);
    for (const AxisId axis : axes) {
      if (random_.chance(0.3)) over |= AxisSet::of(axis);
    }
    // Onto the same axis, one that the values lack, or a new one.
    AxisId target = folded;
    if (random_.chance(0.6)) {
      target = random_.pick(base_);
      if (axes_of(x.node).contains(target))
        target = new_axis(fmt::format("s{}", extents_.size()), 1 + random_.below(40));
    }
    const AxisSet result = (axes_of(x.node) - AxisSet::of(folded)) | AxisSet::of(target);
    if (elements(result) > options_.most_elements) return unary(tanh, x, 0);
    const NodeId at = input(DType::i32, over);
    const double bits = count_bits({folded});
    NodeId sum = b_.scatter(x.node, at, target, {folded});
    sum = b_.map(mul, {sum, number(x, std::exp2(-bits / 2))});
    return {sum, x.scale + bits / 2, x.coarse, false};
  }

  Entry softmax_like() {
    Entry x = read(5);
    if (axes_of(x.node).empty()) return unary(tanh, x, 0);
    const std::vector<AxisId> axes{random_.pick(listed(axes_of(x.node)))};
    const double u = random_.uniform();
    if (u < 0.3) {  // masked with -infinity first
      const NodeId mask = mask_for(AxisSet::of(axes[0]), {x.node, x.scale, true, false});
      const NodeId low = b_.constant(b_.node(x.node).dtype, -std::numeric_limits<double>::infinity());
      x.node = b_.map(where, {mask, x.node, low});
    }
    const NodeId state = b_.fold(b_.monoid(BuiltinMonoid::logsumexp), {x.node}, axes);
    if (u < 0.6) return {b_.map(exp, {b_.map(sub, {x.node, b_.finish(state, lse_value)})}), 0, x.coarse, false};
    if (u < 0.8) {
      return {b_.map(sub, {b_.map(sub, {x.node, b_.finish(state, lse_max)}), b_.finish(state, lse_log_rest)}),
              x.scale + 1, x.coarse, false};
    }
    const NodeId top = b_.finish(b_.fold(b_.monoid(BuiltinMonoid::max), {x.node}, axes), 0);
    const NodeId power = b_.map(exp, {b_.map(sub, {x.node, top})});
    return {b_.map(div, {power, b_.sum(power, axes)}), 0, x.coarse, false};
  }

  Entry norm_like() {
    const Entry x = read(5);
    if (axes_of(x.node).empty()) return unary(tanh, x, 0);
    const std::vector<AxisId> axes{random_.pick(listed(axes_of(x.node)))};
    const NodeId weight = input(float_dtype(), AxisSet::of(axes[0]));
    const NodeId epsilon = number(x, 1e-2);
    NodeId centred = x.node;
    NodeId variance = no_node;
    if (random_.chance(0.5)) {
      const NodeId state = b_.fold(b_.monoid(BuiltinMonoid::moments), {x.node}, axes);
      centred = b_.map(sub, {x.node, b_.finish(state, moments_mean)});
      variance = b_.finish(state, moments_variance);
    } else {
      const NodeId count = b_.cast(arithmetic(b_.node(x.node).dtype), b_.extent(axes[0]));
      variance = b_.map(div, {b_.sum(b_.map(mul, {x.node, x.node}), axes), count});
    }
    const NodeId scale = b_.map(rsqrt, {b_.map(add, {variance, epsilon})});
    return {b_.map(mul, {b_.map(mul, {centred, scale}), weight}), 3, x.coarse, false};
  }

  Entry with_integers() {
    const Entry x = read();
    const std::vector<AxisId> axes = listed(axes_of(x.node));
    if (!options_.discontinuous || axes.empty()) return unary(tanh, x, 0);
    const AxisId axis = random_.pick(axes);
    static const std::vector<ScalarOp> ops{add, sub, mul, floor_div, rem, bit_and, bit_or, bit_xor, min, max};
    const NodeId values = input(DType::i32, AxisSet::of(axis));
    NodeId whole = b_.map(random_.pick(ops),
                          {values, b_.map(add, {b_.cast(DType::i32, b_.iota(axis)), b_.integer(DType::i32, 1)})});
    whole = b_.map(rem, {whole, b_.integer(DType::i32, 7)});
    if (random_.chance(0.5)) {
      const NodeId shifted = b_.map(random_.chance(0.5) ? shift_left : shift_right, {whole, b_.integer(DType::i32, 1)});
      return {b_.masked(b_.map(not_equal, {shifted, b_.integer(DType::i32, 2)}), x.node), x.scale, x.coarse, false};
    }
    return {b_.map(mul, {b_.map(mul, {b_.cast(DType::f32, whole), number(x, 0.25)}), x.node}), x.scale + 1, x.coarse,
            false};
  }

  void make_outputs() {
    int number = 0;
    const auto most = 1 + random_.below(3);
    const auto give = [&](const Entry& entry) {
      std::vector<AxisId> axes = listed(axes_of(entry.node));
      for (std::size_t i = axes.size(); i > 1; --i) {
        if (random_.chance(0.3))
          std::swap(axes[i - 1], axes[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(i)))]);
      }
      DType dtype = b_.node(entry.node).dtype;
      if (random_.chance(0.1) && options_.sixteen_bits && entry.scale < 10) dtype = DType::bf16;
      b_.output({fmt::format("y{}", number++), entry.node, dtype, std::move(axes)});
    };
    for (std::size_t i = pool_.size(); i-- > 0 && number < most;) {
      if (!pool_[i].used && b_.node(pool_[i].node).kind != NodeKind::input) give(pool_[i]);
    }
    if (number == 0) give(unary(tanh, pool_.back(), 0));
  }

  RandomSource random_;
  RandomGraphOptions options_;
  Builder b_;
  Extents extents_;
  std::vector<AxisId> base_;
  std::vector<Entry> pool_;
};

}  // namespace

RandomGraph random_graph(std::uint64_t seed, const RandomGraphOptions& options) {
  return Generator(seed, options).make();
}

}  // namespace tigon::dsl
