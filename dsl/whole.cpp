// In unsigned words, which wrap; the divisors 0 and -1 are singled out, for no quotient of theirs may trap.
#include "dsl/whole.hpp"

#include <algorithm>

namespace tigon::dsl {

namespace {

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return number(0 - bits(a));
  const std::int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

}  // namespace

std::int64_t wrap(DType dtype, std::int64_t value) {
  return dtype == DType::i32 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(bits(value))) : value;
}

std::optional<std::int64_t> whole_result(ScalarOp op, DType dtype, std::span<const std::int64_t> operands) {
  using enum ScalarOp;
  const auto at = [&](std::size_t i) { return i < operands.size() ? operands[i] : 0; };
  const std::int64_t a = at(0), b = at(1), c = at(2);
  const auto wrapped = [&](std::uint64_t value) { return wrap(dtype, number(value)); };
  const std::uint64_t count = bits(b) & (dtype == DType::i64 ? 63 : 31);
  switch (op) {
    case neg:
      return wrapped(0 - bits(a));
    case abs:
      return wrapped(a < 0 ? 0 - bits(a) : bits(a));
    case sign:
      return (a > 0) - (a < 0);
    case add:
      return wrapped(bits(a) + bits(b));
    case sub:
      return wrapped(bits(a) - bits(b));
    case mul:
    case mul0:
      return wrapped(bits(a) * bits(b));
    case fma:
      return wrapped(bits(a) * bits(b) + bits(c));
    case min:
      return std::min(a, b);
    case max:
      return std::max(a, b);
    case relu:
      return std::max<std::int64_t>(a, 0);
    case clamp:
      return std::min(std::max(a, b), c);
    case floor_div:
      return wrapped(bits(floor_quotient(a, b)));
    case rem:
      return b == 0 ? a : wrapped(bits(a) - bits(floor_quotient(a, b)) * bits(b));
    case bit_and:
      return a & b;
    case bit_or:
      return a | b;
    case bit_xor:
      return a ^ b;
    case shift_left:
      return wrapped(bits(a) << count);
    case shift_right:
      return a >> count;
    case equal:
      return a == b;
    case not_equal:
      return a != b;
    case less:
      return a < b;
    case less_equal:
      return a <= b;
    case where:
      return a != 0 ? b : c;
    default:
      return std::nullopt;
  }
}

}  // namespace tigon::dsl
