// The rows of the scalar table and its dtype rules.
#include "dsl/scalar_table.hpp"

#include <cmath>
#include <limits>

#include "dsl/scalar_derivative.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl {
namespace {

using enum ScalarOp;
using enum ResultRule;
using enum LlvmKind;

constexpr double ln2 = 0.693147180559945309417;

double first_of_min(double a, double b) { return a <= b || std::isnan(a) ? a : b; }
double first_of_max(double a, double b) { return a >= b || std::isnan(a) ? a : b; }
double sigmoid_of(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}
double softplus_of(double x) { return std::isnan(x) ? x : std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double log1mexp_of(double x) { return x > -ln2 ? std::log(-std::expm1(x)) : std::log1p(-std::exp(x)); }
double logaddexp_of(double a, double b) {
  if (a == b) return a + ln2;
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return std::fmax(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}
double floor_div_of(double a, double b) { return b == 0 ? 0 : std::floor(a / b); }
double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
std::int64_t whole(double x) { return static_cast<std::int64_t>(x); }
double truth(bool b) { return b ? 1 : 0; }

// clang-format off
#define ROW(...) [](double a, [[maybe_unused]] double b, [[maybe_unused]] double c) -> double { return __VA_ARGS__; }
constexpr ScalarOpInfo table[] = {
  // op, name, arity, rule, commutative, f64 reference, tie rule, CUDA, LLVM kind, LLVM, cost, exponentials, f32 ulp, of the larger operand
  {neg, "neg", 1, number, false, ROW(-a), "", "-{0}", instruction, "fneg", 1, 0, 0},
  {abs, "abs", 1, number, false, ROW(std::fabs(a)), "derivative 0 at 0", "tigon_abs({0})", intrinsic, "llvm.fabs", 1, 0, 0},
  {sign, "sign", 1, number, false, ROW(sign_of(a)), "sign(0) = 0, NaN stays", "tigon_sign({0})", prelude, "tigon_sign", 2, 0, 0},
  {add, "add", 2, number, true, ROW(a + b), "", "{0} + {1}", instruction, "fadd", 1, 0, 0.5},
  {sub, "sub", 2, number, false, ROW(a - b), "", "{0} - {1}", instruction, "fsub", 1, 0, 0.5},
  {mul, "mul", 2, number, true, ROW(a * b), "", "{0} * {1}", instruction, "fmul", 1, 0, 0.5},
  {div, "div", 2, floating, false, ROW(a / b), "", "{0} / {1}", instruction, "fdiv", 4, 0, 0.5},
  {min, "min", 2, number, false, ROW(first_of_min(a, b)), "first operand; NaN wins", "tigon_min({0}, {1})", prelude, "tigon_min", 1, 0, 0},
  {max, "max", 2, number, false, ROW(first_of_max(a, b)), "first operand; NaN wins", "tigon_max({0}, {1})", prelude, "tigon_max", 1, 0, 0},
  {floor_div, "floor_div", 2, integer, false, ROW(floor_div_of(a, b)), "x / 0 = 0", "tigon_floor_div({0}, {1})", prelude, "tigon_floor_div", 8, 0, 0},
  {rem, "rem", 2, integer, false, ROW(a - b * floor_div_of(a, b)), "sign of the divisor; x % 0 = x", "tigon_rem({0}, {1})", prelude, "tigon_rem", 8, 0, 0},
  {bit_and, "bit_and", 2, integer, true, ROW(static_cast<double>(whole(a) & whole(b))), "", "{0} & {1}", instruction, "and", 1, 0, 0},
  {bit_or, "bit_or", 2, integer, true, ROW(static_cast<double>(whole(a) | whole(b))), "", "{0} | {1}", instruction, "or", 1, 0, 0},
  {bit_xor, "bit_xor", 2, integer, true, ROW(static_cast<double>(whole(a) ^ whole(b))), "", "{0} ^ {1}", instruction, "xor", 1, 0, 0},
  {shift_left, "shift_left", 2, integer, false, ROW(static_cast<double>(whole(a) << (whole(b) & 63))), "", "{0} << {1}", instruction, "shl", 1, 0, 0},
  {shift_right, "shift_right", 2, integer, false, ROW(static_cast<double>(whole(a) >> (whole(b) & 63))), "", "{0} >> {1}", instruction, "ashr", 1, 0, 0},
  {equal, "equal", 2, comparison, true, ROW(truth(a == b)), "", "{0} == {1}", instruction, "fcmp oeq", 1, 0, 0},
  {not_equal, "not_equal", 2, comparison, true, ROW(truth(a != b)), "", "{0} != {1}", instruction, "fcmp une", 1, 0, 0},
  {less, "less", 2, comparison, false, ROW(truth(a < b)), "", "{0} < {1}", instruction, "fcmp olt", 1, 0, 0},
  {less_equal, "less_equal", 2, comparison, false, ROW(truth(a <= b)), "", "{0} <= {1}", instruction, "fcmp ole", 1, 0, 0},
  {logical_and, "logical_and", 2, logical, true, ROW(truth(a != 0 && b != 0)), "", "{0} && {1}", instruction, "and", 1, 0, 0},
  {logical_or, "logical_or", 2, logical, true, ROW(truth(a != 0 || b != 0)), "", "{0} || {1}", instruction, "or", 1, 0, 0},
  {logical_not, "logical_not", 1, logical, false, ROW(truth(a == 0)), "", "!{0}", instruction, "xor", 1, 0, 0},
  {where, "where", 3, select, false, ROW(a != 0 ? b : c), "", "{0} ? {1} : {2}", instruction, "select", 1, 0, 0},
  {floor, "floor", 1, floating, false, ROW(std::floor(a)), "", "tigon_floor({0})", intrinsic, "llvm.floor", 1, 0, 0},
  {ceil, "ceil", 1, floating, false, ROW(std::ceil(a)), "", "tigon_ceil({0})", intrinsic, "llvm.ceil", 1, 0, 0},
  {round, "round", 1, floating, false, ROW(std::nearbyint(a)), "halves to even", "tigon_round({0})", intrinsic, "llvm.nearbyint", 1, 0, 0},
  {sqrt, "sqrt", 1, floating, false, ROW(std::sqrt(a)), "", "tigon_sqrt({0})", intrinsic, "llvm.sqrt", 4, 0, 0.5},
  {rsqrt, "rsqrt", 1, floating, false, ROW(1 / std::sqrt(a)), "", "tigon_rsqrt({0})", prelude, "tigon_rsqrt", 4, 0, 2},
  {exp, "exp", 1, floating, false, ROW(std::exp(a)), "", "tigon_exp({0})", prelude, "tigon_exp", 8, 1, 2},
  {expm1, "expm1", 1, floating, false, ROW(std::expm1(a)), "", "tigon_expm1({0})", prelude, "tigon_expm1", 12, 1, 2},
  {log, "log", 1, floating, false, ROW(std::log(a)), "", "tigon_log({0})", prelude, "tigon_log", 10, 1, 2},
  {log1p, "log1p", 1, floating, false, ROW(std::log1p(a)), "", "tigon_log1p({0})", prelude, "tigon_log1p", 12, 1, 2},
  {sin, "sin", 1, floating, false, ROW(std::sin(a)), "", "tigon_sin({0})", prelude, "tigon_sin", 16, 0, 2},
  {cos, "cos", 1, floating, false, ROW(std::cos(a)), "", "tigon_cos({0})", prelude, "tigon_cos", 16, 0, 2},
  {tanh, "tanh", 1, floating, false, ROW(std::tanh(a)), "", "tigon_tanh({0})", prelude, "tigon_tanh", 12, 1, 2},
  {erf, "erf", 1, floating, false, ROW(std::erf(a)), "", "tigon_erf({0})", prelude, "tigon_erf", 16, 1, 4},
  {sigmoid, "sigmoid", 1, floating, false, ROW(sigmoid_of(a)), "", "tigon_sigmoid({0})", prelude, "tigon_sigmoid", 12, 1, 4},
  {softplus, "softplus", 1, floating, false, ROW(softplus_of(a)), "", "tigon_softplus({0})", prelude, "tigon_softplus", 20, 2, 4},
  {log_sigmoid, "log_sigmoid", 1, floating, false, ROW(-softplus_of(-a)), "", "tigon_log_sigmoid({0})", prelude, "tigon_log_sigmoid", 20, 2, 4},
  {relu, "relu", 1, number, false, ROW(first_of_max(a, 0)), "derivative 0 at 0; NaN stays", "tigon_relu({0})", prelude, "tigon_relu", 1, 0, 0},
  {log1mexp, "log1mexp", 1, floating, false, ROW(log1mexp_of(a)), "log(1 - exp(x)), x <= 0; -infinity at 0", "tigon_log1mexp({0})", prelude, "tigon_log1mexp", 24, 2, 4},
  {is_finite, "is_finite", 1, predicate, false, ROW(truth(std::isfinite(a))), "", "tigon_is_finite({0})", prelude, "tigon_is_finite", 1, 0, 0},
  {pow, "pow", 2, floating, false, ROW(std::pow(a, b)), "derivatives 0 at base 0 where pow is flat", "tigon_pow({0}, {1})", prelude, "tigon_pow", 24, 2, 4},
  {logaddexp, "logaddexp", 2, floating, true, ROW(logaddexp_of(a, b)), "both -infinity: -infinity, derivatives 0", "tigon_logaddexp({0}, {1})", prelude, "tigon_logaddexp", 24, 2, 4, true},
  {mul0, "mul0", 2, number, false, ROW(a == 0 ? 0 : a * b), "0 where the first is 0, derivatives too", "tigon_mul0({0}, {1})", prelude, "tigon_mul0", 2, 0, 0.5},
  {clamp, "clamp", 3, number, false, ROW(first_of_min(first_of_max(a, b), c)), "the derivative passes at the bounds; NaN stays", "tigon_clamp({0}, {1}, {2})", prelude, "tigon_clamp", 2, 0, 0},
  {fma, "fma", 3, number, false, ROW(std::fma(a, b, c)), "", "tigon_fma({0}, {1}, {2})", intrinsic, "llvm.fma", 1, 0, 0.5},
};
#undef ROW
// clang-format on

constexpr bool in_order() {
  for (int i = 0; i < scalar_op_count; ++i)
    if (static_cast<int>(table[i].op) != i) return false;
  return std::size(table) == scalar_op_count;
}
static_assert(in_order(), "the scalar table has one row per ScalarOp, in the enumeration's order");

DType promoted(std::span<const DType> dtypes) {
  DType result = arithmetic(dtypes[0]);
  for (const DType dtype : dtypes.subspan(1)) result = promote(result, dtype);
  return result;
}
DType as_float(DType dtype) { return is_floating(dtype) ? dtype : DType::f32; }

// Numbers for the derivative rules: plain f64.
struct RealCalculus {
  using Number = double;
  double map(ScalarOp op, std::initializer_list<double> x) const {
    const double* v = x.begin();
    return info(op).reference(v[0], x.size() > 1 ? v[1] : 0, x.size() > 2 ? v[2] : 0);
  }
  double constant(double value) const { return value; }
  double masked(double condition, double value) const { return condition != 0 ? value : 0; }
};

}  // namespace

const ScalarOpInfo& info(ScalarOp op) { return table[static_cast<int>(op)]; }

DType operand_dtype(ScalarOp op, std::span<const DType> operands, int operand) {
  switch (info(op).rule) {
    case number:
    case comparison:
      return promoted(operands);
    case floating:
    case predicate:
      return as_float(promoted(operands));
    case integer: {
      const DType dtype = promoted(operands);
      if (is_floating(dtype)) {
        throw Error({.function = std::string(info(op).name),
                     .found = std::string(tigon::name(dtype)),
                     .expected = "an integer dtype",
                     .cure = "Cast the operands to i32 or i64"},
                    "this operation works on integers only");
      }
      return dtype;
    }
    case logical:
      return DType::boolean;
    case select:
      if (operand == 0 || (operands[1] == DType::boolean && operands[2] == DType::boolean)) return DType::boolean;
      return promote(operands[1], operands[2]);
  }
  return DType::f32;
}

DType result_dtype(ScalarOp op, std::span<const DType> operands) {
  switch (info(op).rule) {
    case comparison:
    case logical:
    case predicate:
      return DType::boolean;
    default:
      return operand_dtype(op, operands, info(op).arity - 1);
  }
}

double derivative(ScalarOp op, int operand, std::span<const double> x) {
  if (!has_derivative(op, operand)) return 0;
  const RealCalculus calculus;
  const double y = info(op).reference(x[0], x.size() > 1 ? x[1] : 0, x.size() > 2 ? x[2] : 0);
  return std::fabs(cotangent(calculus, op, operand, x, y, 1.0));
}

std::int64_t nearest_integer(DType dtype, double value) {
  const double end = dtype == DType::i32 ? 2147483648.0 : 9223372036854775808.0;  // one past the largest
  if (std::isnan(value)) return 0;
  if (value >= end) {
    return dtype == DType::i32 ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int64_t>::max();
  }
  return static_cast<std::int64_t>(std::max(value, -end));
}

}  // namespace tigon::dsl
