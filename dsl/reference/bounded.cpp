// Values and bounds of the scalar operations, of casts and of monoids' programs.
#include "dsl/reference/bounded.hpp"

#include <array>

#include "dsl/scalar_derivative.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::dsl {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double reference(ScalarOp op, const double* x) { return info(op).reference(x[0], x[1], x[2]); }

bool same_kind(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

// Two numbers that a comparison cannot tell apart. Twice the bound, as results are held to.
bool straddles(const Bounded& a, const Bounded& b) {
  const double reach = 2 * (a.bound + b.bound);
  return reach > 0 && std::abs(a.value - b.value) <= reach;
}
bool near_zero(const Bounded& a) { return a.bound > 0 && std::abs(a.value) <= 2 * a.bound; }

// The value of a monotone function within the operands' bounds.
Bounded hull(double value, double low, double high, bool undetermined, double ulps, const Rounding& rounding) {
  const double bound = std::isfinite(value) ? std::max(high - value, value - low) : 0;
  return settle(value, bound, undetermined, ulps, rounding);
}

Bounded choose(const Bounded* x, const Rounding& rounding) {
  const Bounded& taken = x[0].value != 0 ? x[1] : x[2];
  Bounded result = taken;
  if (x[0].undetermined) {
    // Near a kink both sides agree: relu spelled as a choice.
    const double gap = std::abs(x[1].value - x[2].value);
    const double reach = x[1].bound + x[2].bound;
    const bool equal = x[1].value == x[2].value && reach == 0;
    result.bound = std::max(x[1].bound, x[2].bound) + (equal ? 0 : gap);
    result.undetermined = x[1].undetermined || x[2].undetermined || !(equal || gap <= 4 * reach);
  }
  return settle(result.value, result.bound, result.undetermined, 0, rounding);
}

// Any other function: to first order by its derivative, and by its values at the ends of the bounds.
Bounded smooth(ScalarOp op, const double* x, const Bounded* arguments, int arity, bool undetermined,
               const Rounding& rounding) {
  const double value = reference(op, x);
  double propagated = 0;
  for (int i = 0; i < arity; ++i) {
    const double bound = arguments[i].bound;
    if (bound == 0) continue;
    double moved[3] = {x[0], x[1], x[2]};
    double change = 0;
    for (const double step : {bound, -bound}) {
      moved[i] = x[i] + step;
      const double there = reference(op, moved);
      moved[i] = x[i] + 2 * step;
      if (!same_kind(there, value) || !same_kind(reference(op, moved), value)) undetermined = true;
      if (std::isfinite(value) && std::isfinite(there)) change = std::max(change, std::abs(there - value));
    }
    if (std::isfinite(value)) {
      const double slope = derivative(op, i, std::span(x, static_cast<std::size_t>(arity)));
      if (std::isfinite(slope)) change = std::max(change, slope * bound);
    }
    propagated += change;
  }
  if (info(op).ulp_of_larger_operand && std::isfinite(value)) {
    const double larger = std::abs(std::max(x[0], x[1]));
    propagated += 2 * info(op).ulp * rounding.unit * std::max(0.0, larger - std::abs(value));
  }
  return settle(value, propagated, undetermined, info(op).ulp, rounding);
}

// Derivatives with their signs.
struct SignedCalculus {
  using Number = double;
  double map(ScalarOp op, std::initializer_list<double> x) const {
    const double* v = x.begin();
    return info(op).reference(v[0], x.size() > 1 ? v[1] : 0, x.size() > 2 ? v[2] : 0);
  }
  double constant(double value) const { return value; }
  double masked(double condition, double value) const { return condition != 0 ? value : 0; }
};

bool is_choice(ScalarOp op) {
  return op == ScalarOp::where || op == ScalarOp::min || op == ScalarOp::max || op == ScalarOp::clamp ||
         op == ScalarOp::relu || op == ScalarOp::abs || op == ScalarOp::mul0;
}

}  // namespace

Rounding rounding_of(DType dtype, bool honour_casts) {
  if (is_floating(dtype) && !honour_casts) dtype = DType::f64;
  switch (dtype) {
    case DType::f64:
      return {dtype, true, 0x1p-53, 0x1p-1022, 0x1p-1074, std::numeric_limits<double>::max()};
    case DType::f32:
      return {dtype, true, 0x1p-24, 0x1p-126, 0x1p-149, 0x1.fffffefffffffp127};
    case DType::bf16:
      return {dtype, true, 0x1p-8, 0x1p-126, 0x1p-133, 0x1.fefffffffffffp127};
    case DType::f16:
      return {dtype, true, 0x1p-11, 0x1p-14, 0x1p-24, 0x1.ffdffffffffffp15};
    default:
      return {dtype, false, 0, 0, 0, infinity};
  }
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::f64:
      return value;
    case DType::f32:
      return static_cast<double>(static_cast<float>(value));
    case DType::bf16:
      return static_cast<double>(to_f32(to_bf16(static_cast<float>(value))));
    case DType::f16:
      return static_cast<double>(to_f32(to_f16(static_cast<float>(value))));
    case DType::boolean:
      return value != 0 ? 1 : 0;
    case DType::i32:
      if (!(std::abs(value) < 0x1p62)) return 0;
      return static_cast<double>(
          static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(value))));
    case DType::i64:
      return value;
  }
  return value;
}

Bounded cast_to(const Bounded& operand, DType from, const Rounding& to, bool honour_casts) {
  const double value = operand.value;
  if (to.dtype == DType::boolean) return {value != 0 ? 1.0 : 0.0, 0, operand.undetermined || near_zero(operand)};
  if (!to.floating) {
    if (!is_floating(from)) return settle(value, operand.bound, operand.undetermined, 0, to);
    if (std::isnan(value)) return {0, 0, operand.undetermined};
    const double limit = to.dtype == DType::i32 ? 0x1p31 : 0x1p63;
    const auto whole = [&](double x) {
      return std::clamp(std::trunc(x), -limit, to.dtype == DType::i32 ? limit - 1 : limit);
    };
    const bool split = whole(value - 2 * operand.bound) != whole(value + 2 * operand.bound);
    return {whole(value), 0, operand.undetermined || split};
  }
  if (!honour_casts || !std::isfinite(value)) return operand;
  const bool narrows = !is_floating(from) || tigon::info(to.dtype).mantissa < tigon::info(from).mantissa ||
                       (to.dtype == DType::f16 && from == DType::bf16);
  if (!narrows) return operand;
  const double rounded = round_to(to.dtype, value);
  double bound = operand.bound;
  // An exact number rounds alike everywhere, but for f64 to 16 bits, which may round twice.
  if (bound > 0 || (from == DType::f64 && is_16_bit_float(to.dtype) && rounded != value)) {
    bound += to.unit * std::abs(value) + to.subnormal / 2;
  }
  if (!std::isfinite(rounded)) return settle(value, bound, operand.undetermined, 0, to);
  return settle(rounded, bound, operand.undetermined, 0, to);
}

Bounded apply(ScalarOp op, const Bounded* arguments, const Rounding& rounding) {
  using enum ScalarOp;
  const int arity = info(op).arity;
  double x[3] = {0, 0, 0};
  bool undetermined = false;
  for (int i = 0; i < arity; ++i) {
    x[i] = arguments[i].value;
    undetermined = undetermined || arguments[i].undetermined;
  }
  const Bounded& a = arguments[0];
  switch (op) {
    case neg:
      return {-a.value, a.bound, undetermined};
    case abs:
      return {std::abs(a.value), a.bound, undetermined};
    case where:
      return choose(arguments, rounding);
    case add:
      return settle(x[0] + x[1], a.bound + arguments[1].bound, undetermined, 0.5, rounding);
    case sub:
      return settle(x[0] - x[1], a.bound + arguments[1].bound, undetermined, 0.5, rounding);
    case mul0:
      if (a.value == 0 && a.bound == 0) return {0, 0, a.undetermined};
      if (near_zero(a) && !std::isfinite(x[1])) undetermined = true;
      if (a.value == 0) x[0] = 0;
      [[fallthrough]];
    case mul: {
      const Bounded& b = arguments[1];
      const double value = reference(op, x);
      double propagated = 0;
      if (std::isfinite(value)) {
        propagated = b.bound * std::abs(a.value) + a.bound * (std::isfinite(b.value) ? std::abs(b.value) + b.bound : 0);
      } else if (near_zero(a) || near_zero(b)) {
        undetermined = true;
      }
      return settle(value, propagated, undetermined, 0.5, rounding);
    }
    case div: {
      const Bounded& b = arguments[1];
      const double value = x[0] / x[1];
      double propagated = 0;
      if (near_zero(b) || (!std::isfinite(value) && near_zero(a))) {
        undetermined = true;
      } else if (std::isfinite(value)) {
        propagated = (a.bound + std::abs(value) * b.bound) / (std::abs(b.value) - b.bound);
      }
      return settle(value, propagated, undetermined, info(op).ulp, rounding);
    }
    case min:
    case max:
    case clamp: {
      double low[3];
      double high[3];
      for (int i = 0; i < 3; ++i) {
        low[i] = i < arity ? x[i] - arguments[i].bound : 0;
        high[i] = i < arity ? x[i] + arguments[i].bound : 0;
      }
      return hull(reference(op, x), reference(op, low), reference(op, high), undetermined, 0, rounding);
    }
    case relu:
      return hull(reference(op, x), std::fmax(x[0] - a.bound, 0), std::fmax(x[0] + a.bound, 0), undetermined, 0,
                  rounding);
    case equal:
    case not_equal:
    case less:
    case less_equal:
      return {reference(op, x), 0, undetermined || straddles(a, arguments[1])};
    case logical_and:
    case logical_or: {
      const double deciding = op == logical_and ? 0 : 1;
      const bool decided = (!a.undetermined && (x[0] != 0) == (deciding != 0)) ||
                           (!arguments[1].undetermined && (x[1] != 0) == (deciding != 0));
      return {decided ? deciding : reference(op, x), 0, undetermined && !decided};
    }
    case sign:
    case floor:
    case ceil:
    case round: {
      const double below[3] = {x[0] - 2 * a.bound, 0, 0};
      const double above[3] = {x[0] + 2 * a.bound, 0, 0};
      const bool split = a.bound > 0 && reference(op, below) != reference(op, above);
      return {reference(op, x), 0, undetermined || split};
    }
    case logical_not:
    case is_finite:
    case floor_div:
    case rem:
    case bit_and:
    case bit_or:
    case bit_xor:
    case shift_left:
    case shift_right:
      return settle(reference(op, x), 0, undetermined, 0, rounding);
    default:
      return smooth(op, x, arguments, arity, undetermined, rounding);
  }
}

void run_bounded(const ScalarProgram& program, std::span<const Bounded> inputs, std::span<Bounded> results,
                 DType element, bool honour_casts) {
  constexpr std::size_t most = 96;
  const std::size_t count = program.values.size();
  std::array<Bounded, most> small;
  std::array<double, most> small_noise{};
  std::vector<Bounded> large;
  std::vector<double> large_noise;
  if (count > most) {
    large.resize(count);
    large_noise.resize(count);
  }
  Bounded* const values = count > most ? large.data() : small.data();
  double* const noise =
      count > most ? large_noise.data() : small_noise.data();  // what the value itself adds to the bound

  bool bounds = false;
  for (std::size_t i = 0; i < count; ++i) {
    const ProgramValue& v = program.values[i];
    noise[i] = 0;
    if (v.kind == ProgramValue::Kind::input) {
      values[i] = inputs[v.input];
      noise[i] = values[i].bound;
    } else if (v.kind == ProgramValue::Kind::constant) {
      const DType dtype = dtype_of_class(v.value_class, element);
      values[i] = {honour_casts ? round_to(dtype, v.constant) : v.constant, 0, false};
    } else {
      const Rounding rounding = rounding_of(dtype_of_class(v.value_class, element), honour_casts);
      Bounded arguments[3];
      Bounded exact[3];
      for (int k = 0; k < info(v.op).arity; ++k) {
        arguments[k] = values[v.args[static_cast<std::size_t>(k)]];
        exact[k] = {arguments[k].value, 0, false};
      }
      values[i] = apply(v.op, arguments, rounding);
      if (values[i].bound > 0 && !is_choice(v.op)) {
        noise[i] = apply(v.op, exact, rounding).bound;
        // A result that needs no rounding from exact operands may need it from the ones a backend has.
        if (rounding.floating && std::isfinite(values[i].value)) {
          noise[i] = std::max(noise[i], 2 * info(v.op).ulp * rounding.unit * std::abs(values[i].value));
        }
      }
    }
    bounds = bounds || values[i].bound > 0;
  }
  for (std::size_t r = 0; r < program.results.size(); ++r) results[r] = values[program.results[r]];
  if (!bounds) return;

  std::array<double, most> small_slope;
  std::vector<double> large_slope(count > most ? count : 0);
  double* const slope = count > most ? large_slope.data() : small_slope.data();
  const SignedCalculus calculus;
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    if (results[r].bound == 0) continue;
    std::fill(slope, slope + count, 0.0);
    slope[program.results[r]] = 1;
    double total = 0;
    for (std::size_t i = program.results[r] + 1u; i-- > 0;) {
      if (slope[i] == 0) continue;
      const ProgramValue& v = program.values[i];
      total += std::abs(slope[i]) * noise[i];
      if (v.kind != ProgramValue::Kind::operation) continue;
      double x[3] = {0, 0, 0};
      bool certain = true;  // which side a choice takes
      const int arity = info(v.op).arity;
      for (int k = 0; k < arity; ++k) {
        const Bounded& argument = values[v.args[static_cast<std::size_t>(k)]];
        x[k] = argument.value;
        if (is_choice(v.op) && k > 0 && v.op != ScalarOp::where) {
          certain = certain && !straddles(argument, values[v.args[static_cast<std::size_t>(k - 1)]]);
        }
      }
      const Bounded& first = values[v.args[0]];
      if (v.op == ScalarOp::where) certain = !first.undetermined;
      if (v.op == ScalarOp::relu || v.op == ScalarOp::abs || v.op == ScalarOp::mul0) certain = !near_zero(first);
      if (!certain) {
        total += std::abs(slope[i]) * values[i].bound;
        continue;
      }
      for (int k = 0; k < arity; ++k) {
        const std::size_t source = v.args[static_cast<std::size_t>(k)];
        if (values[source].bound == 0 || !has_derivative(v.op, k)) continue;
        slope[source] += cotangent(calculus, v.op, k, std::span<const double>(x, static_cast<std::size_t>(arity)),
                                   values[i].value, slope[i]);
      }
    }
    // To first order; where that fails (an infinite derivative), the step by step bound stands.
    if (std::isfinite(total)) results[r].bound = std::min(results[r].bound, total);
  }
}

}  // namespace tigon::dsl
