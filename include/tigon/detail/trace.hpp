// The untyped half of the language: values are node numbers of the function being traced. Defined in dsl/trace*.cpp.
#pragma once
#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include "tigon/detail/signature.hpp"
#include "tigon/scalar_op.hpp"

namespace tigon {

// What at<A> does with an index outside the axis. `checked` raises a flag on the device, reported at the next
// synchronisation.
struct IndexRule {
  enum class Kind : std::uint8_t { checked, fill, clamp } kind = Kind::checked;
  double value = 0;
};
inline constexpr IndexRule checked{};
inline constexpr IndexRule clamped{IndexRule::Kind::clamp};
constexpr IndexRule fill(double value) { return {IndexRule::Kind::fill, value}; }

namespace detail {

struct UserMonoid;  // a monoid that a user wrote; dsl/trace.hpp
using Location = std::source_location;

struct Value {
  std::uint32_t node = 0xffffffffu;
  std::uint32_t trace = 0;  // serial number of the trace it belongs to; 0: an empty value
};

// Where the nodes made from now on come from.
void set_location(const Location& location);

// Throws Error for a number that the dtype does not hold: an integer that is out of range or a fraction, a finite
// number that is too large for a float.
Value constant(DType dtype, double number);
Value constant(DType dtype, std::int64_t number);
Value constant(DType dtype, std::uint64_t number);
Value iota(const AxisRef& axis);
Value extent(const AxisRef& axis);
Value map(ScalarOp op, const TypeRef& type, Value a);
Value map(ScalarOp op, const TypeRef& type, Value a, Value b);
Value map(ScalarOp op, const TypeRef& type, Value a, Value b, Value c);
Value cast(DType dtype, Value value);

// Several axes at once; an empty list gives the operand in its arithmetic dtype.
enum class Reduction : std::uint8_t { sum, product, max, min, logsumexp, argmax, argmin, mean, any, all };
Value reduce(Reduction reduction, const TypeRef& type, Value operand, AxisRefs axes);
// Finishes `first`, then `second`, of one state.
struct Pair {
  Value first, second;
};
Pair moments(const TypeRef& type, Value operand, AxisRefs axes);            // mean, variance
Pair log_softmax_parts(const TypeRef& type, Value operand, AxisRefs axes);  // max, log_rest
Value fold(const UserMonoid& monoid, std::span<const Value> operands, AxisRefs axes);
Value finish(Value state, int number, const TypeRef& type);
Value finish(Value state, std::string_view name, const TypeRef& type);

// `extent` >= 0 fixes the new axis' extent for this use.
Value rename(Value operand, const AxisRef& from, const AxisRef& to);
Value split(Value operand, const AxisRef& whole, const AxisRef& outer, const AxisRef& inner, std::int64_t extent);
Value merge(Value operand, const AxisRef& outer, const AxisRef& inner, const AxisRef& whole);
Value broadcast(Value operand, const TypeRef& type);

Value gather(const TypeRef& type, Value table, Value index, const AxisRef& axis, IndexRule rule);
Value scatter(const TypeRef& type, Value values, Value index, const AxisRef& into, AxisRefs folded);
// iota of an axis whose extent is given at this place.
Value sized_iota(const AxisRef& axis, std::int64_t extent);
Value attach(Value value, Value surrogate);
Value stop_gradient(Value value);
void name(Value value, std::string_view name);

}  // namespace detail
}  // namespace tigon
