// Cross entropy over a vocabulary with its options, alone and behind the projection that makes the logits.
#pragma once
#include <limits>

#include "tigon/ops/softmax.hpp"

namespace tigon::ops {

// Changes the result's axes, hence a template argument.
enum class LossReduction { mean, sum, none };

// Each option that is 0 leaves nothing behind in the graph.
struct CrossEntropyOptions {
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;  // in [0, 1)
  double z_loss = 0;           // weight of logsumexp(x)^2, not negative
  double softcap = 0;          // c tanh(x / c), not negative
  bool token_scaling = false;  // weighs each token by its own probability, held constant

  static constexpr NumberRange smoothing_range = share_below_one, z_loss_range = not_negative,
                               softcap_range = not_negative;
  void check(std::string_view op, const Location& location) const {
    check_option(op, "label_smoothing", label_smoothing, smoothing_range, location);
    check_option(op, "z_loss", z_loss, z_loss_range, location);
    check_option(op, "softcap", softcap, softcap_range, location);
  }
};

// Everything that cross entropy can say about its rows; each member function makes only what it needs. Rows whose
// target is ignored give 0 (and -1 as prediction) whatever their logits hold, and so do their gradients.
template <class Vocab, class X, class Y>
class CrossEntropy {
 public:
  using D = detail::DTypeOf<X>;
  using RowAxes = detail::Union<detail::Remove<detail::AxesOf<X>, detail::List<Vocab>>, detail::AxesOf<Y>>;
  using Row = detail::TensorOf<D, RowAxes>;
  using Weight = Tensor<D(Vocab)>;

  template <class L>
  CrossEntropy(const L& logits, const Y& target, const Tensor<maybe<D(Vocab)>>& weight,
               const CrossEntropyOptions& options, const Location& location)
      : options_(options),
        location_(location),
        x_(capped(widened(logits, location))),
        valid_(target != options.ignore_index),
        target_(where(valid_, target, 0, location)),
        weight_(weight) {}

  // -log p(target), of every row, also of ignored ones.
  [[nodiscard]] auto raw_nll() const {
    const auto parts = log_softmax_parts<Vocab>(x_, location_);
    return (parts.max - at<Vocab>(x_, target_, checked, location_)) + parts.log_rest;
  }
  // log p(target)
  [[nodiscard]] Row log_probability() const { return where(valid_, -raw_nll(), 0, location_); }
  // logsumexp(x) - sum(p x)
  [[nodiscard]] Row entropy() const {
    const auto p = probabilities();
    return where(valid_, logsumexp<Vocab>(x_, location_) - sum<Vocab>(mul0(p, x_, location_), location_), 0, location_);
  }
  [[nodiscard]] auto predicted() const { return where(valid_, argmax<Vocab>(x_, location_), -1, location_); }
  [[nodiscard]] auto correct() const { return valid_ && argmax<Vocab>(x_, location_) == target_; }
  [[nodiscard]] auto valid() const { return valid_; }
  [[nodiscard]] auto count() const { return sum_all(valid_, location_); }

  // Each row's loss with smoothing and class weights, without the z-loss.
  [[nodiscard]] Row row_loss() const { return where(valid_, scaled(unmasked_loss()), 0, location_); }
  [[nodiscard]] Row row_z_loss() const {
    return where(valid_, scaled(square(logsumexp<Vocab>(x_, location_), location_) * options_.z_loss), 0, location_);
  }
  // What the mean divides by: the number of valid rows, or the sum of their weights. The z-loss always divides by the
  // number.
  [[nodiscard]] auto normaliser() const {
    auto total = cast<D>(max(count(), 1, location_), location_);
    if (weight_) {
      const auto weights = where(valid_, at<Vocab>(*weight_, target_, checked, location_), 0, location_);
      total = max(sum_all(weights, location_), static_cast<double>(std::numeric_limits<float>::min()), location_);
    }
    return total;
  }

  template <LossReduction reduction = LossReduction::mean>
  [[nodiscard]] auto loss() const {
    if constexpr (reduction == LossReduction::none) {
      Row rows = row_loss();
      if (options_.z_loss != 0) rows = rows + row_z_loss();
      return rows;
    } else {
      auto total = sum_all(row_loss(), location_);
      if constexpr (reduction == LossReduction::mean) total = total / normaliser();
      if (options_.z_loss != 0) total = total + z_loss<reduction>();
      return total;
    }
  }
  template <LossReduction reduction = LossReduction::mean>
  [[nodiscard]] auto z_loss() const {
    if constexpr (reduction == LossReduction::none) {
      return row_z_loss();
    } else if constexpr (reduction == LossReduction::sum) {
      return sum_all(row_z_loss(), location_);
    } else {
      return sum_all(row_z_loss(), location_) / max(count(), 1, location_);
    }
  }
  // The share of valid rows whose largest logit is the target's.
  [[nodiscard]] auto accuracy() const {
    return cast<f32>(sum_all(correct(), location_), location_) / max(count(), 1, location_);
  }

 private:
  [[nodiscard]] X capped(X x) const {
    if (options_.softcap == 0) return x;
    return tanh(x / options_.softcap, location_) * options_.softcap;
  }
  [[nodiscard]] auto probabilities() const { return ops::softmax<Vocab>(x_, location_); }

  [[nodiscard]] Row unmasked_loss() const {
    const double smoothing = options_.label_smoothing;
    Row loss = raw_nll();
    if (weight_) loss = loss * at<Vocab>(*weight_, target_, checked, location_);
    if (smoothing == 0) return loss;
    const auto lse = logsumexp<Vocab>(x_, location_);
    const auto classes = cast<D>(extent<Vocab>(location_), location_);
    const auto share = smoothing / classes;
    if (weight_) {
      const auto others = sum<Vocab>(*weight_, location_) * lse - sum<Vocab>(*weight_ * x_, location_);
      return (1 - smoothing) * loss + share * others;
    }
    return (1 - smoothing) * loss + share * (classes * lse - sum<Vocab>(x_, location_));
  }
  [[nodiscard]] Row scaled(const Row& loss) const {
    if (!options_.token_scaling) return loss;
    return loss * stop_gradient(exp(-raw_nll(), location_), location_);
  }

  CrossEntropyOptions options_;
  Location location_;
  X x_;
  detail::TensorOf<bool, detail::AxesOf<Y>> valid_;
  detail::TensorOf<detail::DTypeOf<Y>, detail::AxesOf<Y>> target_;
  Tensor<maybe<D(Vocab)>> weight_;
};

// The logits may be of any float dtype; all arithmetic is in f32. The target holds class numbers or ignore_index;
// classes are weighed if `weight`, f32(Vocab), is given.
template <class Vocab, detail::TensorLike L, detail::TensorLike Y>
auto cross_entropy_terms(const L& logits, const Y& target, const CrossEntropyOptions& options = {},
                         const Tensor<maybe<f32(Vocab)>>& weight = {}, const Location& location = Location::current()) {
  check_float<L>();
  check_axis<Vocab, L>();
  static_assert(detail::is_integer_dtype<detail::DTypeOf<Y>>, "tigon: cross_entropy: the target is not integer.");
  static_assert(detail::is_subset<detail::AxesOf<Y>, detail::AxesOf<L>> && !detail::contains<Vocab, detail::AxesOf<Y>>,
                "tigon: cross_entropy: the target has the logits' axes without the vocabulary.");
  options.check("cross_entropy", location);
  using X = detail::TensorOf<detail::Floating<detail::DTypeOf<L>>, detail::AxesOf<L>>;
  detail::set_location(location);
  return CrossEntropy<Vocab, X, Y>(logits, target, weight, options, location);
}

template <class Vocab, LossReduction reduction = LossReduction::mean, detail::TensorLike L, detail::TensorLike Y>
auto cross_entropy(const L& logits, const Y& target, const CrossEntropyOptions& options = {},
                   const Tensor<maybe<f32(Vocab)>>& weight = {}, const Location& location = Location::current()) {
  return cross_entropy_terms<Vocab>(logits, target, options, weight, location).template loss<reduction>();
}

// logits = x weight^T + bias, which are never stored whole.
template <class Hidden, class Vocab, detail::TensorLike T, detail::TensorLike W, detail::TensorLike Y>
auto linear_cross_entropy_terms(
    const T& x, const W& weight, const Y& target, const CrossEntropyOptions& options = {},
    const Tensor<maybe<detail::MakeSignature<detail::DTypeOf<W>, detail::List<Vocab>>>>& bias = {},
    const Tensor<maybe<f32(Vocab)>>& class_weight = {}, const Location& location = Location::current()) {
  auto logits = dot<Hidden>(x, weight, location);
  if (bias) logits = logits + *bias;
  return cross_entropy_terms<Vocab>(named(logits, "logits"), target, options, class_weight, location);
}

template <class Hidden, class Vocab, LossReduction reduction = LossReduction::mean, detail::TensorLike T,
          detail::TensorLike W, detail::TensorLike Y>
auto linear_cross_entropy(
    const T& x, const W& weight, const Y& target, const CrossEntropyOptions& options = {},
    const Tensor<maybe<detail::MakeSignature<detail::DTypeOf<W>, detail::List<Vocab>>>>& bias = {},
    const Tensor<maybe<f32(Vocab)>>& class_weight = {}, const Location& location = Location::current()) {
  return linear_cross_entropy_terms<Hidden, Vocab>(x, weight, target, options, bias, class_weight, location)
      .template loss<reduction>();
}

}  // namespace tigon::ops
