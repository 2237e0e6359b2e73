// Holds a backend's numbers to the reference's bounds.
#include "dsl/reference/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tigon::dsl {
namespace {

double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x1p-14;
    case DType::bf16:
    case DType::f32:
      return 0x1p-126;
    case DType::f64:
      return 0x1p-1022;
    default:
      return 0;
  }
}

bool same_kind(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

std::string index_of(const TensorValue& tensor, i64 flat) {
  std::string text = ")";
  for (std::size_t d = tensor.extents.size(); d-- > 0;) {
    text = fmt::format("{}{}{}", flat % tensor.extents[d], text.size() > 1 ? ", " : "", text);
    flat /= tensor.extents[d];
  }
  return "(" + text;
}

}  // namespace

Comparison compare(const TensorValue& expected, std::span<const double> computed) {
  Comparison result;
  const auto count = static_cast<i64>(expected.value.size());
  if (computed.size() != expected.value.size()) {
    result.passed = false;
    result.wrong = count;
    result.worst_ratio = std::numeric_limits<double>::infinity();
    result.sentence = fmt::format("{} elements were computed, {} expected", computed.size(), count);
    return result;
  }
  const double tiny = smallest_normal(expected.dtype);
  for (i64 i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!expected.undetermined.empty() && expected.undetermined[at] != 0) {
      ++result.undetermined;
      continue;
    }
    const double value = expected.value[at];
    const double bound = expected.bound.empty() ? 0 : expected.bound[at];
    const double got = computed[at];
    double ratio = 0;
    if (!same_kind(value, got)) {
      ratio = std::numeric_limits<double>::infinity();
    } else if (std::isfinite(value) && value != got) {
      const double allowed = 2 * bound + tiny;
      ratio = allowed > 0 ? std::abs(got - value) / allowed : std::numeric_limits<double>::infinity();
    }
    if (!(ratio <= 1)) ++result.wrong;
    if (ratio > result.worst_ratio) {
      result.worst_ratio = ratio;
      result.worst_index = i;
    }
  }
  const bool too_many = result.undetermined * 100 > count;
  result.passed = result.wrong == 0 && !too_many;
  if (result.worst_index >= 0) {
    const auto at = static_cast<std::size_t>(result.worst_index);
    result.sentence = fmt::format(
        "{} of {} elements outside; worst at {}: computed {:.17g}, expected {:.17g} within 2 x {:.3g}, error/allowed "
        "{:.3g}",
        result.wrong, count, index_of(expected, result.worst_index), computed[at], expected.value[at],
        expected.bound.empty() ? 0 : expected.bound[at], result.worst_ratio);
  } else {
    result.sentence = fmt::format("all {} elements are equal", count - result.undetermined);
  }
  if (result.undetermined > 0) result.sentence += fmt::format("; {} of {} undetermined", result.undetermined, count);
  if (too_many) result.sentence += ", more than one in a hundred";
  return result;
}

void ErrorHistogram::add(const TensorValue& expected, std::span<const double> computed) {
  for (std::size_t i = 0; i < expected.value.size() && i < computed.size(); ++i) {
    if (!expected.undetermined.empty() && expected.undetermined[i] != 0) continue;
    const double bound = expected.bound.empty() ? 0 : expected.bound[i];
    if (!std::isfinite(expected.value[i]) || bound == 0) continue;
    const double error = std::abs(computed[i] - expected.value[i]);
    if (error == 0) {
      ++exact;
      continue;
    }
    const double ratio = error / bound;
    ratios.push_back(ratio);
    const double decade = -std::log10(ratio);
    if (!(ratio < 1)) {
      ++above;
    } else if (decade >= decades) {
      ++below;
    } else {
      ++counts[static_cast<std::size_t>(decade)];
    }
  }
}

double ErrorHistogram::median() const {
  if (ratios.empty()) return 0;
  std::vector<double> sorted = ratios;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

std::string ErrorHistogram::print() const {
  std::string text = fmt::format("error/bound: exact {}, >= 1: {}", exact, above);
  for (int d = 0; d < decades; ++d) text += fmt::format(", 1e-{}: {}", d + 1, counts[static_cast<std::size_t>(d)]);
  return text + fmt::format(", less: {}, median {:.3g}", below, median());
}

}  // namespace tigon::dsl
