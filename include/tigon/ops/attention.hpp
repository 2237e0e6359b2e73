// Scaled dot-product attention written with dot, where and softmax.
#pragma once
#include <limits>

#include "tigon/ops/softmax.hpp"

namespace tigon::ops {

enum class AttentionMask { causal, none };

struct AttentionOptions {
  AttentionMask mask = AttentionMask::causal;
  double scale = 0;              // 0: 1 / sqrt(channels)
  std::int64_t first_query = 0;  // the position of query 0 among the keys

  static constexpr NumberRange scale_range = any_number, first_query_range = whole_not_negative;
};

// softmax(scale q k^T) v over Keys, in q's dtype. q has Queries and Channels, k has Keys and Channels, v has Keys and
// its own channels; heads and batches are shared by name, so grouped queries need an axis that k and v lack. A row
// whose keys are all masked gives 0.
template <class Queries, class Keys, class Channels, detail::TensorLike Q, detail::TensorLike K, detail::TensorLike V>
auto attention(const Q& q, const K& k, const V& v, const AttentionOptions& options = {},
               const Location& location = Location::current()) {
  check_float<Q>();
  check_axis<Queries, Q>();
  check_axis<Channels, Q>();
  check_axis<Keys, K>();
  check_axis<Channels, K>();
  check_axis<Keys, V>();
  check_option("attention", "scale", options.scale, AttentionOptions::scale_range, location);
  check_option("attention", "first_query", static_cast<double>(options.first_query),
               AttentionOptions::first_query_range, location);
  auto scores = dot<Channels>(q, k, location);
  if (options.scale != 0) {
    scores = scores * options.scale;
  } else {
    scores = scores * rsqrt(cast<detail::DTypeOf<decltype(scores)>>(extent<Channels>(location), location), location);
  }
  if (options.mask == AttentionMask::causal) {
    auto last = iota<Queries>(location);
    if (options.first_query != 0) last = last + options.first_query;
    scores = where(iota<Keys>(location) <= last, scores, -std::numeric_limits<double>::infinity(), location);
  }
  return rounded_like<Q>(dot<Keys>(ops::softmax<Keys>(scores, location), v, location), location);
}

}  // namespace tigon::ops
