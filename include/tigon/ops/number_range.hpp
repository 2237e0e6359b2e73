// The numbers that an op's options take: one range for each, checked when the op is written down in C++ and listed by
// the catalogue.
#pragma once
#include <limits>
#include <string>
#include <string_view>

#include "tigon/detail/trace.hpp"

namespace tigon::ops {

// Finite numbers from low to high; an empty range (low > high) takes none.
struct NumberRange {
  double low = 1, high = 0;
  bool above_low = false, below_high = false;  // the end itself is out
  bool whole = false;

  [[nodiscard]] constexpr bool empty() const { return low > high; }
  [[nodiscard]] bool holds(double value) const;
  // "a number in [0, 1)", "a whole number", "a number above 0"
  [[nodiscard]] std::string text() const;
};

inline constexpr double largest_number = std::numeric_limits<double>::max();
inline constexpr double largest_whole = 9007199254740992.0;  // 2^53: a double holds every whole number up to it
inline constexpr NumberRange no_number{};
inline constexpr NumberRange any_number{-largest_number, largest_number};
inline constexpr NumberRange not_negative{0, largest_number};
inline constexpr NumberRange positive{.low = 0, .high = largest_number, .above_low = true};
inline constexpr NumberRange any_whole{.low = -largest_whole, .high = largest_whole, .whole = true};
inline constexpr NumberRange whole_not_negative{.low = 0, .high = largest_whole, .whole = true};
inline constexpr NumberRange share_below_one{.low = 0, .high = 1, .below_high = true};

// Throws Error naming op and option where the number is not in the range. Defined in dsl/number_range.cpp.
void check_option(std::string_view op, std::string_view option, double value, const NumberRange& range,
                  const detail::Location& location);

}  // namespace tigon::ops
