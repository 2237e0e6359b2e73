// The text behind PreludeWriter.
#include "codegen/llvm/prelude_writer.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "codegen/llvm/prelude.hpp"

namespace tigon::llvm {
namespace {

std::string_view scalar_type(Lane lane) {
  constexpr std::array<std::string_view, 7> names = {"i1", "i16", "i32", "i64", "half", "float", "double"};
  return names[static_cast<std::size_t>(lane)];
}

// The suffix of an overloaded intrinsic: "f32", "v16f32".
std::string overload(Lane lane, int width) {
  const std::string_view element = lane == Lane::f32 ? "f32" : "f64";
  return width == 1 ? std::string(element) : fmt::format("v{}{}", width, element);
}

}  // namespace

PreludeWriter::PreludeWriter(std::string symbol, DType dtype, int width)
    : symbol_(std::move(symbol)), dtype_(dtype), width_(width) {}

std::string PreludeWriter::type(Lane lane) const {
  return width_ == 1 ? std::string(scalar_type(lane)) : fmt::format("<{} x {}>", width_, scalar_type(lane));
}

std::string PreludeWriter::fresh(std::string_view name) {
  const auto found = names_.try_emplace(std::string(name), 0).first;
  const int count = found->second++;
  return count == 0 ? fmt::format("%{}", name) : fmt::format("%{}.{}", name, count);
}

Value PreludeWriter::assign(std::string_view name, Lane lane, const std::string& text) {
  Value value{fresh(name), lane};
  body_ += fmt::format("  {} = {}\n", value.text, text);
  return value;
}

Value PreludeWriter::parameter(std::string_view name, Lane lane) {
  Value value{fresh(name), lane};
  parameters_.push_back(type(lane) + " " + value.text);
  return value;
}

void PreludeWriter::result(const Value& value) {
  result_type_ = type(value.lane);
  body_ += fmt::format("  ret {} {}\n", result_type_, value.text);
}

// A splat without the `splat` keyword, which LLVM 15 lacks; early-cse folds the shuffle into a constant.
Value PreludeWriter::spread(std::string_view name, const std::string& literal, const std::string& comment, Lane lane) {
  if (width_ == 1) return Value{literal, lane};
  const std::string_view element = scalar_type(lane);
  const std::string key = fmt::format("{} {}", element, literal);
  const auto known = constants_.find(key);
  if (known != constants_.end()) return Value{known->second, lane};
  const Value value =
      assign(name, lane,
             fmt::format("shufflevector <1 x {0}> <{0} {1}>, <1 x {0}> poison, <{2} x i32> zeroinitializer  ; {3}",
                         element, literal, width_, comment));
  constants_.emplace(key, value.text);
  return value;
}

Value PreludeWriter::number(std::string_view name, double value, Lane lane) {
  const double rounded = lane == Lane::f32 ? static_cast<double>(static_cast<float>(value)) : value;
  const std::string decimal =
      lane == Lane::f32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  return spread(name, fmt::format("0x{:016X}", std::bit_cast<std::uint64_t>(rounded)), decimal, lane);
}

Value PreludeWriter::whole(std::string_view name, std::uint64_t value, Lane lane) {
  const auto literal = lane == Lane::i64   ? static_cast<std::int64_t>(value)
                       : lane == Lane::i32 ? std::int64_t{static_cast<std::int32_t>(value)}
                                           : std::int64_t{static_cast<std::int16_t>(value)};
  return spread(name, fmt::format("{}", literal), fmt::format("0x{:x}", value), lane);
}

Value PreludeWriter::binary(std::string_view name, std::string_view opcode, const Value& a, const Value& b) {
  return assign(name, a.lane, fmt::format("{} {} {}, {}", opcode, type(a.lane), a.text, b.text));
}

Value PreludeWriter::negate(std::string_view name, const Value& a) {
  return assign(name, a.lane, fmt::format("fneg {} {}", type(a.lane), a.text));
}

Value PreludeWriter::compare(std::string_view name, std::string_view predicate, const Value& a, const Value& b) {
  return assign(name, Lane::i1, fmt::format("{} {} {}, {}", predicate, type(a.lane), a.text, b.text));
}

Value PreludeWriter::select(std::string_view name, const Value& condition, const Value& a, const Value& b) {
  return assign(name, a.lane,
                fmt::format("select {} {}, {} {}, {} {}", type(Lane::i1), condition.text, type(a.lane), a.text,
                            type(b.lane), b.text));
}

Value PreludeWriter::cast(std::string_view name, std::string_view opcode, const Value& a, Lane to) {
  return assign(name, to, fmt::format("{} {} {} to {}", opcode, type(a.lane), a.text, type(to)));
}

Value PreludeWriter::bits(std::string_view name, const Value& a) {
  return cast(name, "bitcast", a, a.lane == Lane::f32 ? Lane::i32 : Lane::i64);
}

Value PreludeWriter::from_bits(std::string_view name, const Value& a) {
  return cast(name, "bitcast", a, a.lane == Lane::i32 ? Lane::f32 : Lane::f64);
}

Value PreludeWriter::intrinsic(std::string_view name, std::string_view function, std::span<const Value> arguments) {
  const Lane lane = arguments[0].lane;
  const std::string callee = fmt::format("@llvm.{}.{}", function, overload(lane, width_));
  std::string typed;
  std::string types;
  for (const Value& argument : arguments) {
    const std::string_view comma = typed.empty() ? "" : ", ";
    typed += fmt::format("{}{} {}", comma, type(lane), argument.text);
    types += fmt::format("{}{}", comma, type(lane));
  }
  declarations_.insert(fmt::format("declare {} {}({})", type(lane), callee, types));
  return assign(name, lane, fmt::format("call {} {}({})", type(lane), callee, typed));
}

Value PreludeWriter::fma(std::string_view name, const Value& a, const Value& b, const Value& c) {
  return intrinsic(name, "fma", std::array{a, b, c});
}
Value PreludeWriter::absolute(std::string_view name, const Value& a) { return intrinsic(name, "fabs", std::array{a}); }
Value PreludeWriter::copy_sign(std::string_view name, const Value& magnitude, const Value& sign) {
  return intrinsic(name, "copysign", std::array{magnitude, sign});
}
Value PreludeWriter::square_root(std::string_view name, const Value& a) {
  return intrinsic(name, "sqrt", std::array{a});
}
Value PreludeWriter::nearest(std::string_view name, const Value& a) { return intrinsic(name, "rint", std::array{a}); }

Value PreludeWriter::call(std::string_view name, std::string_view function, const Value& a) {
  calls_.push_back(function);
  return assign(name, a.lane,
                fmt::format("call {0} @{1}({0} {2})", type(a.lane), prelude_symbol(function, dtype_, width_), a.text));
}

Value PreludeWriter::polynomial(std::string_view name, const Value& x, std::span<const double> coefficients) {
  const std::string base = fmt::format("{}_c", name);
  std::size_t power = coefficients.size() - 1;
  Value sum = number(base + fmt::format_int(power).str(), coefficients[power], x.lane);
  while (power-- > 0) {
    sum = fma(name, sum, x, number(base + fmt::format_int(power).str(), coefficients[power], x.lane));
  }
  return sum;
}

std::string PreludeWriter::definition(std::string_view comment) const {
  std::string parameters;
  for (const std::string& parameter : parameters_) parameters += (parameters.empty() ? "" : ", ") + parameter;
  return fmt::format("; {}\ndefine internal {} @{}({}) alwaysinline nounwind {{\n{}}}\n", comment, result_type_,
                     symbol_, parameters, body_);
}

}  // namespace tigon::llvm
