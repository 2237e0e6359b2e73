// extents<Tokens, Vocab>(8192, 128256): what compile specialises for; from_to(1, 8192) leaves an axis to run time.
#pragma once
#include <vector>

#include "tigon/detail/compiled.hpp"
#include "tigon/detail/signature.hpp"

namespace tigon {

struct ExtentRange {
  std::int64_t low, high;
  ExtentRange(std::int64_t value) : low(value), high(value) {}
  ExtentRange(std::int64_t lowest, std::int64_t highest) : low(lowest), high(highest) {}
};
inline ExtentRange from_to(std::int64_t low, std::int64_t high) { return {low, high}; }

using Extents = std::vector<detail::GivenExtent>;

namespace detail {
template <class>
using RangeOf = ExtentRange;
}

// Each axis once, and only axes that the function has: compile refuses others.
template <class... A>
Extents extents(detail::RangeOf<A>... ranges) {
  static_assert(detail::all_different<detail::List<A...>>, "tigon: extents<...> names an axis twice.");
  return {detail::GivenExtent{detail::axis_ref<A>(), ranges.low, ranges.high}...};
}

template <class... A, class... Given>
  requires(sizeof...(Given) != sizeof...(A))
Extents extents(const Given&...) {
  static_assert(sizeof...(Given) == sizeof...(A), "tigon: extents<...> takes one extent, or from_to, for each axis.");
  return {};
}

inline namespace literals {
constexpr std::size_t operator""_KiB(unsigned long long n) { return n << 10; }
constexpr std::size_t operator""_MiB(unsigned long long n) { return n << 20; }
constexpr std::size_t operator""_GiB(unsigned long long n) { return n << 30; }
}  // namespace literals

}  // namespace tigon
