// Holds a backend's numbers to the reference's bounds: the one tolerance.
#pragma once
#include <array>
#include <span>
#include <string>

#include "dsl/reference/evaluate.hpp"

namespace tigon::dsl {

struct Comparison {
  bool passed = true;
  double worst_ratio = 0;  // largest |computed - value| / (2 bound + smallest normal); infinite where the kinds differ
  i64 worst_index = -1;
  i64 wrong = 0;         // elements outside their bound or of another kind
  i64 undetermined = 0;  // elements that were skipped
  std::string sentence;  // what was found, with the worst element
};

// An element passes when |computed - value| <= 2 bound + the dtype's smallest normal number; NaN and infinities must
// agree in kind. Undetermined elements are skipped, but at most one in a hundred may be.
Comparison compare(const TensorValue& expected, std::span<const double> computed);

// How errors are spread within their bounds: counts per decade of |computed - value| / bound.
struct ErrorHistogram {
  static constexpr int decades = 8;  // bin d counts ratios in [10^-(d+1), 10^-d)
  std::array<i64, decades> counts{};
  i64 exact = 0;               // error zero
  i64 below = 0;               // smaller than all bins, not zero
  i64 above = 0;               // ratio of 1 or more
  std::vector<double> ratios;  // of every element with a bound and an error
  void add(const TensorValue& expected, std::span<const double> computed);
  [[nodiscard]] double median() const;  // of `ratios`; 0 when there are none
  [[nodiscard]] std::string print() const;
};

}  // namespace tigon::dsl
