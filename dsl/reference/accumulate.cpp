// The states of folds: sums, extrema, log-sum-exp and any monoid by its own programs.
#include "dsl/reference/accumulate.hpp"

#include <array>

#include "dsl/scalar_table.hpp"

namespace tigon::dsl {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class SumAccumulator final : public Accumulator {
 public:
  SumAccumulator(double depth, const Rounding& rounding) : depth_(depth), rounding_(rounding) {}
  void begin() override { sum_ = BoundedSum(); }
  void take(const Bounded* operands, i64) override { sum_.add(operands[0]); }
  void end(std::span<Bounded> state) override { state[0] = sum_.result(depth_, rounding_); }

 private:
  double depth_;
  Rounding rounding_;
  BoundedSum sum_;
};

// The largest number of a sequence within bounds: it lies between the largest lower and the largest upper end.
class Extremum {
 public:
  void add(const Bounded& x) {
    undetermined_ = undetermined_ || x.undetermined;
    if (std::isnan(x.value)) {
      if (!std::isnan(value_)) value_ = x.value;
      return;
    }
    value_ = x.value > value_ ? x.value : value_;
    low_ = std::max(low_, x.value - x.bound);
    high_ = std::max(high_, x.value + x.bound);
  }
  [[nodiscard]] double value() const { return value_; }
  [[nodiscard]] Bounded result() const {
    const double bound = std::isfinite(value_) ? std::max(high_ - value_, value_ - low_) : 0;
    return {value_, bound, undetermined_};
  }

 private:
  double value_ = -infinity;
  double low_ = -infinity;
  double high_ = -infinity;
  bool undetermined_ = false;
};

class MaxAccumulator final : public Accumulator {
 public:
  MaxAccumulator(double sign, double identity) : sign_(sign), identity_(identity) {}
  void begin() override {
    extremum_ = Extremum();
    empty_ = true;
  }
  void take(const Bounded* operands, i64) override {
    extremum_.add({sign_ * operands[0].value, operands[0].bound, operands[0].undetermined});
    empty_ = false;
  }
  void end(std::span<Bounded> state) override {
    state[0] = extremum_.result();
    state[0].value = empty_ ? identity_ : sign_ * state[0].value;
  }

 private:
  double sign_;  // 1: max, -1: min
  double identity_;
  Extremum extremum_;
  bool empty_ = true;
};

// The extremum with its index, which is undetermined when another element could take its place.
class ArgumentAccumulator final : public Accumulator {
 public:
  ArgumentAccumulator(double sign, const FoldShape& shape) : sign_(sign), shape_(shape) {}
  void begin() override {
    extremum_ = Extremum();
    best_ = {};
    index_ = -1;
    exact_rival_ = rival_ = -infinity;
  }
  void take(const Bounded* operands, i64 index) override {
    const Bounded x{sign_ * operands[0].value, operands[0].bound, operands[0].undetermined};
    extremum_.add(x);
    const i64 at = shape_.of_states ? static_cast<i64>(operands[1].value) : index;
    undetermined_index_ = (index_ >= 0 && undetermined_index_) || (shape_.of_states && operands[1].undetermined);
    const bool better = index_ < 0 || (!std::isnan(best_.value) && (std::isnan(x.value) || x.value > best_.value)) ||
                        (x.value == best_.value && at < index_) ||
                        (std::isnan(x.value) && std::isnan(best_.value) && at < index_);
    const Bounded loser = better ? best_ : x;
    if (index_ >= 0 && !std::isnan(loser.value)) {
      double& rival = loser.bound > 0 ? rival_ : exact_rival_;
      rival = std::max(rival, loser.value + 2 * loser.bound);
    }
    if (better) {
      best_ = x;
      index_ = at;
    }
  }
  void end(std::span<Bounded> state) override {
    if (index_ < 0) {
      state[0] = {shape_.monoid.identity[0], 0, false};
      state[1] = {shape_.monoid.identity[1], 0, false};
      return;
    }
    state[0] = extremum_.result();
    state[0].value *= sign_;
    const double reach = best_.value - 2 * best_.bound;
    const bool close = !std::isnan(best_.value) && (rival_ >= reach || (best_.bound > 0 && exact_rival_ >= reach));
    state[1] = {static_cast<double>(index_), 0, state[0].undetermined || close || undetermined_index_};
  }

 private:
  double sign_;
  FoldShape shape_;
  Extremum extremum_;
  Bounded best_;
  i64 index_ = -1;
  double rival_ = -infinity;        // upper end of the other elements that have a bound
  double exact_rival_ = -infinity;  // and of those without: they tie by index alone
  bool undetermined_index_ = false;
};

// A monoid by its programs. Merged as the longest chain allowed would: 64 runs, each in order, then the runs in order.
class ProgramAccumulator final : public Accumulator {
 public:
  explicit ProgramAccumulator(const FoldShape& shape)
      : shape_(shape), run_(shape.count <= 65 ? shape.count : (shape.count + 63) / 64) {}
  void begin() override {
    within_ = 0;
    has_total_ = false;
  }
  void take(const Bounded* operands, i64 index) override {
    std::array<Bounded, 4> lifted;
    lift(operands, index, lifted);
    if (within_ == 0) {
      part_ = lifted;
    } else {
      merge(part_, lifted);
    }
    if (++within_ == run_) close();
  }
  void end(std::span<Bounded> state) override {
    if (within_ > 0) close();
    for (std::size_t s = 0; s < state.size(); ++s) {
      state[s] = has_total_ ? total_[s] : Bounded{shape_.monoid.identity[s], 0, false};
    }
  }

  void lift(const Bounded* operands, i64 index, std::array<Bounded, 4>& state) const {
    const std::size_t slots = shape_.monoid.state.size();
    if (shape_.of_states) {
      std::copy_n(operands, slots, state.begin());
      return;
    }
    std::array<Bounded, 16> inputs;
    const auto count = static_cast<std::size_t>(shape_.monoid.operand_count);
    std::copy_n(operands, count, inputs.begin());
    inputs[count] = {static_cast<double>(index), 0, false};
    run_bounded(shape_.monoid.lift, std::span(inputs).first(count + 1), std::span(state).first(slots), shape_.element,
                shape_.honour_casts);
  }
  void merge(std::array<Bounded, 4>& earlier, const std::array<Bounded, 4>& later) const {
    const std::size_t slots = shape_.monoid.state.size();
    std::array<Bounded, 8> inputs;
    std::copy_n(earlier.begin(), slots, inputs.begin());
    std::copy_n(later.begin(), slots, inputs.begin() + static_cast<std::ptrdiff_t>(slots));
    run_bounded(shape_.monoid.merge, std::span(inputs).first(2 * slots), std::span(earlier).first(slots),
                shape_.element, shape_.honour_casts);
  }

 private:
  void close() {
    if (has_total_) {
      merge(total_, part_);
    } else {
      total_ = part_;
    }
    has_total_ = true;
    within_ = 0;
  }

  FoldShape shape_;
  i64 run_;
  i64 within_ = 0;
  bool has_total_ = false;
  std::array<Bounded, 4> part_;
  std::array<Bounded, 4> total_;
};

// (max, rest): rest is the sum of exp(x - max) without one maximal element. Infinities and NaN go by the programs.
class LogSumExpAccumulator final : public Accumulator {
 public:
  explicit LogSumExpAccumulator(const FoldShape& shape)
      : shape_(shape), rounding_(rounding_of(shape.element, shape.honour_casts)), programs_(shape) {}
  void begin() override {
    extremum_ = Extremum();
    empty_ = true;
    fast_ = special_ = undetermined_ = false;
    rest_ = propagated_ = distance_ = flushed_ = 0;
  }
  void take(const Bounded* operands, i64 index) override {
    std::array<Bounded, 4> state;
    programs_.lift(operands, index, state);
    const Bounded& x = state[0];
    undetermined_ = undetermined_ || x.undetermined || state[1].undetermined;
    if (std::isfinite(x.value) && std::isfinite(state[1].value) && !special_) {
      take_finite(x, state[1]);
      return;
    }
    if (fast_ && x.value == -infinity) return;  // adds exp(-infinity)
    if (fast_) {
      fast_ = false;
      std::array<Bounded, 4> so_far;
      result(so_far);
      general_ = so_far;
    }
    special_ = special_ || x.value != -infinity;
    if (empty_) {
      general_ = state;
    } else {
      programs_.merge(general_, state);
    }
    empty_ = false;
  }
  void end(std::span<Bounded> state) override {
    std::array<Bounded, 4> found = general_;
    if (empty_) {
      for (std::size_t s = 0; s < 2; ++s) found[s] = {shape_.monoid.identity[s], 0, false};
    } else if (fast_) {
      result(found);
    }
    state[0] = found[0];
    state[1] = found[1];
  }

 private:
  void take_finite(const Bounded& x, const Bounded& rest) {
    if (!fast_) {  // whatever came before was -infinity
      extremum_ = Extremum();
      extremum_.add(x);
      max_ = x.value;
      rest_ = rest.value;
      propagated_ = rest.bound;
      distance_ = flushed_ = 0;
      fast_ = true;
      empty_ = false;
      max_bound_ = x.bound;
      return;
    }
    extremum_.add(x);
    if (x.value > max_) {
      const double shift = x.value - max_;
      const double scale = std::exp(-shift);
      distance_ = scale * (distance_ + shift * (1 + rest_));
      propagated_ = scale * (propagated_ + std::expm1(std::min(max_bound_, 64.0)));
      if (scale < rounding_.smallest) flushed_ += scale * (1 + rest_);
      rest_ = scale * (rest_ + 1) + rest.value;
      propagated_ += rest.bound;
      max_ = x.value;
      max_bound_ = x.bound;
      return;
    }
    const double shift = max_ - x.value;
    const double scale = std::exp(-shift);
    rest_ += scale * (1 + rest.value);
    propagated_ += scale * ((1 + rest.value) * std::expm1(std::min(x.bound, 64.0)) + rest.bound);
    distance_ += scale * shift * (1 + rest.value);
    if (scale < rounding_.smallest) flushed_ += scale * (1 + rest.value);
  }

  void result(std::array<Bounded, 4>& state) const {
    // Each element's exponential is rounded once and rescaled along the chain of merges: an exponential's error, a
    // product's and an addition's at each; the differences to the maximum round by their distance.
    const double steps = 2 * info(ScalarOp::exp).ulp + 4 * fold_depth(static_cast<double>(shape_.count));
    const Bounded top = extremum_.result();
    const double bound = propagated_ + rest_ * std::expm1(std::min(top.bound, 64.0)) + flushed_ +
                         rounding_.unit * (distance_ + steps * rest_);
    state[0] = {top.value, top.bound, undetermined_};
    state[1] = settle(rest_, bound, undetermined_, 0, rounding_);
  }

  FoldShape shape_;
  Rounding rounding_;
  ProgramAccumulator programs_;
  Extremum extremum_;
  std::array<Bounded, 4> general_;
  bool empty_ = true;
  bool fast_ = false;     // the maximum so far is finite
  bool special_ = false;  // +infinity or NaN was met
  bool undetermined_ = false;
  double max_ = 0;
  double max_bound_ = 0;  // of the element that is left out
  double rest_ = 0;
  double propagated_ = 0;  // what the elements' bounds do to rest
  double distance_ = 0;    // sum of exp(x - max) * (max - x)
  double flushed_ = 0;     // what exponentials below the smallest normal number add
};

bool is_builtin(const Monoid& monoid, BuiltinMonoid builtin) { return monoid.name == builtin_monoid(builtin).name; }

}  // namespace

Bounded BoundedSum::result(double depth, const Rounding& rounding) const {
  const double value = sum_.value();
  if (!rounding.floating) return settle(value, 0, undetermined_, 0, rounding);
  const bool exact = grains_ > 0 && magnitude_ * grains_ <= 1 / rounding.unit;
  const double bound = exact ? 0 : bound_ + depth * rounding.unit * magnitude_;
  const bool may_overflow = std::isfinite(value) && magnitude_ + bound > rounding.largest;
  return settle(value, std::isfinite(value) ? bound : 0, undetermined_ || may_overflow, 0, rounding);
}

std::unique_ptr<Accumulator> make_accumulator(const FoldShape& shape) {
  const Monoid& monoid = shape.monoid;
  const Rounding rounding = rounding_of(shape.element, shape.honour_casts);
  const auto count = static_cast<double>(shape.count);
  if (is_builtin(monoid, BuiltinMonoid::sum)) {
    return std::make_unique<SumAccumulator>(shape.contraction ? count : fold_depth(count), rounding);
  }
  if (is_builtin(monoid, BuiltinMonoid::max)) return std::make_unique<MaxAccumulator>(1, monoid.identity[0]);
  if (is_builtin(monoid, BuiltinMonoid::min)) return std::make_unique<MaxAccumulator>(-1, monoid.identity[0]);
  if (is_builtin(monoid, BuiltinMonoid::argmax)) return std::make_unique<ArgumentAccumulator>(1, shape);
  if (is_builtin(monoid, BuiltinMonoid::argmin)) return std::make_unique<ArgumentAccumulator>(-1, shape);
  if (is_builtin(monoid, BuiltinMonoid::logsumexp)) return std::make_unique<LogSumExpAccumulator>(shape);
  return std::make_unique<ProgramAccumulator>(shape);
}

}  // namespace tigon::dsl
