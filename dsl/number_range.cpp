// Ranges of numbers in words, and the refusal of a number outside its range.
#include <cmath>

#include "tigon/error.hpp"
#include "tigon/ops/number_range.hpp"

namespace tigon::ops {

bool NumberRange::holds(double value) const {
  if (!std::isfinite(value) || (whole && value != std::trunc(value))) return false;
  return (above_low ? value > low : value >= low) && (below_high ? value < high : value <= high);
}

std::string NumberRange::text() const {
  if (empty()) return "no number";
  const std::string kind = whole ? "a whole number" : "a number";
  const double unbounded = whole ? largest_whole : largest_number;
  const bool from = low > -unbounded, to = high < unbounded;
  if (from && to)
    return fmt::format("{} in {}{}, {}{}", kind, above_low ? '(' : '[', low, high, below_high ? ')' : ']');
  if (from) return above_low ? fmt::format("{} above {}", kind, low) : fmt::format("{}, {} or more", kind, low);
  if (to) return below_high ? fmt::format("{} below {}", kind, high) : fmt::format("{}, {} or less", kind, high);
  return whole ? "a whole number" : "a finite number";
}

void check_option(std::string_view op, std::string_view option, double value, const NumberRange& range,
                  const detail::Location& location) {
  if (range.holds(value)) return;
  std::string_view file = location.file_name();
  file = file.substr(file.rfind('/') + 1);
  throw Error({.kind = ErrorKind::usage,
               .function = std::string(op),
               .argument = std::string(option),
               .found = fmt::format("{} at {}:{}", value, file, location.line()),
               .expected = range.text()},
              "the option does not take this value");
}

}  // namespace tigon::ops
