// Scalar operations, conversions and literals in CUDA C++.
#include <fmt/format.h>

#include "codegen/cuda/printer_state.hpp"
#include "dsl/scalar_table.hpp"
#include "tigon/error.hpp"

namespace tigon::cuda {

using lower::Instruction;
using lower::ValueId;

std::string_view type_text(DType dtype) {
  constexpr std::string_view names[] = {"bool", "int", "i64", "f16", "bf16", "float", "double"};
  return names[static_cast<int>(dtype)];
}

std::string literal(DType dtype, double number, std::int64_t integer) {
  if (dtype == DType::boolean) return integer != 0 ? "true" : "false";
  if (!is_floating(dtype)) {
    if (dtype == DType::i32 && integer == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
    const bool small = integer > -(std::int64_t{1} << 31) && integer < (std::int64_t{1} << 31);
    return fmt::format("{}{}", integer, small ? "" : "ll");
  }
  if (is_16_bit_float(dtype))
    return fmt::format("{}({})", type_text(dtype), literal(DType::f32, static_cast<float>(number), 0));
  if (dtype == DType::f32) {
    const auto value = static_cast<float>(number);
    if (!std::isfinite(value)) return fmt::format("__int_as_float(0x{:08x})", std::bit_cast<std::uint32_t>(value));
    const std::string digits = fmt::format("{}", value);
    return digits + (digits.find_first_of(".e") == std::string::npos ? ".0f" : "f");
  }
  if (!std::isfinite(number))
    return fmt::format("__longlong_as_double(0x{:016x}ll)", std::bit_cast<std::uint64_t>(number));
  const std::string digits = fmt::format("{}", number);
  return digits + (digits.find_first_of(".e") == std::string::npos ? ".0" : "");
}

void Printer::join(Pending& into, const Pending& from) {
  into.reads.insert(from.reads.begin(), from.reads.end());
  into.reads_memory = into.reads_memory || from.reads_memory;
}

namespace {

struct Infix {
  std::string_view sign;
  int precedence;
};

Infix infix_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::add:
      return {"+", by_sum};
    case ScalarOp::sub:
      return {"-", by_sum};
    case ScalarOp::mul:
      return {"*", by_product};
    case ScalarOp::div:
    case ScalarOp::floor_div:
      return {"/", by_product};
    case ScalarOp::rem:
      return {"%", by_product};
    case ScalarOp::bit_and:
      return {"&", by_bit_and};
    case ScalarOp::bit_or:
      return {"|", by_bit_or};
    case ScalarOp::bit_xor:
      return {"^", by_bit_xor};
    case ScalarOp::equal:
      return {"==", by_equality};
    case ScalarOp::not_equal:
      return {"!=", by_equality};
    case ScalarOp::less:
      return {"<", by_order};
    case ScalarOp::less_equal:
      return {"<=", by_order};
    case ScalarOp::logical_and:
      return {"&&", by_and};
    case ScalarOp::logical_or:
      return {"||", by_or};
    default:
      return {"", by_nothing};
  }
}

}  // namespace

Printer::Pending Printer::operation(const Instruction& i) {
  const DType dtype = type(i.args.back()).dtype;
  std::vector<Pending> args;
  for (const ValueId arg : i.args) args.push_back(take(arg));
  Pending result;
  for (const Pending& arg : args) join(result, arg);
  const auto call = [&](std::string_view function) {
    std::string list;
    for (std::size_t n = 0; n < args.size(); ++n) {
      // A 64-bit literal says so where overloads choose by type.
      const bool wide = dtype == DType::i64 && args[n].text.find_first_not_of("-0123456789") == std::string::npos;
      list += (n == 0 ? "" : ", ") + (wide ? "i64(" + args[n].text + ")" : args[n].text);
    }
    result.text = fmt::format("{}({})", function, list);
    result.precedence = by_nothing;
  };
  const std::string_view spelling = dsl::info(i.op).cuda;
  const bool whole = dtype == DType::i32 || dtype == DType::i64;
  const bool division = i.op == ScalarOp::floor_div || i.op == ScalarOp::rem;
  if (i.op == ScalarOp::where) {
    result.text = fmt::format("{} ? {} : {}", bracketed(args[0], by_question + 1), bracketed(args[1], by_question + 1),
                              bracketed(args[2], by_question));
    result.precedence = by_question;
  } else if (i.op == ScalarOp::neg || i.op == ScalarOp::logical_not) {
    result.text = (i.op == ScalarOp::neg ? "-" : "!") + bracketed(args[0], by_prefix + 1);
    result.precedence = by_prefix;
  } else if (whole && i.op == ScalarOp::fma) {
    result.text = fmt::format("{} * {} + {}", bracketed(args[0], by_product), bracketed(args[1], by_product + 1),
                              bracketed(args[2], by_sum + 1));
    result.precedence = by_sum;
  } else if (i.op == ScalarOp::shift_left || i.op == ScalarOp::shift_right) {
    // Only the low bits of the count are looked at.
    result.text =
        fmt::format("{} {} ({} & {})", bracketed(args[0], by_shift), i.op == ScalarOp::shift_left ? "<<" : ">>",
                    bracketed(args[1], by_bit_and), dtype == DType::i64 ? 63 : 31);
    result.precedence = by_shift;
  } else if (i.op == ScalarOp::rsqrt || i.op == ScalarOp::mul0 || infix_of(i.op).sign.empty() ||
             (division && !i.non_negative)) {
    call(function_for(spelling.substr(0, spelling.find('(')), dtype, used_));
  } else {
    const Infix infix = infix_of(i.op);
    // Of mixed `&&` and `||`, and of bits beside comparisons, compilers want brackets.
    const bool strict = infix.precedence < by_shift;
    result.text = fmt::format("{} {} {}", bracketed(args[0], strict ? by_shift : infix.precedence), infix.sign,
                              bracketed(args[1], strict ? by_shift : infix.precedence + 1));
    if (infix.precedence == by_and) {
      result.text = fmt::format("{} && {}", bracketed(args[0], by_and), bracketed(args[1], by_and));
    }
    result.precedence = infix.precedence;
  }
  return result;
}

Printer::Pending Printer::conversion(const Instruction& i) {
  Pending value = take(i.args[0]);
  const DType from = type(i.args[0]).dtype;
  const DType to = i.type.dtype;
  const auto as = [&](DType dtype) { value.text = fmt::format("{}({})", type_text(dtype), value.text); };
  if (to == DType::boolean) {
    if (is_16_bit_float(from)) as(DType::f32);
    value.text = fmt::format("{} != {}", is_16_bit_float(from) ? value.text : bracketed(value, by_equality + 1),
                             is_floating(from) ? literal(is_16_bit_float(from) ? DType::f32 : from, 0, 0) : "0");
    value.precedence = by_equality;
    return value;
  }
  // 16-bit floats pass through f32.
  if (is_16_bit_float(from) && to != DType::f32) as(DType::f32);
  if (is_16_bit_float(to) && from != DType::f32 && !is_16_bit_float(from)) as(DType::f32);
  if (!is_floating(to) && is_floating(from)) {
    const DType source = is_16_bit_float(from) ? DType::f32 : from;
    value.text = fmt::format("{}({})", function_for(to == DType::i32 ? "to_int" : "to_i64", source, used_), value.text);
  } else {
    as(to);
  }
  value.precedence = by_nothing;
  return value;
}

}  // namespace tigon::cuda
