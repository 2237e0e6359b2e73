// Embedding: rows of a table by index, with an index whose row is zero.
#pragma once
#include <optional>

#include "tigon/ops/support.hpp"

namespace tigon::ops {

// table[ids]; where ids is the padding index the result is 0 and the table gets no gradient.
template <class Vocab, detail::TensorLike W, detail::TensorLike I>
auto embedding(const W& table, const I& ids, std::optional<std::int64_t> padding_index = {},
               const Location& location = Location::current()) {
  check_axis<Vocab, W>();
  using Row = decltype(at<Vocab>(table, ids, checked, location));
  if (!padding_index) return at<Vocab>(table, ids, checked, location);
  const auto is_padding = ids == *padding_index;
  const auto place = where(is_padding, 0, ids, location);
  return Row(rounded_like<W>(where(is_padding, 0, at<Vocab>(table, place, checked, location), location), location));
}

}  // namespace tigon::ops
