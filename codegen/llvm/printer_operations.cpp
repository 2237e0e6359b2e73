// Arithmetic of a lowered nest in LLVM IR: instructions, intrinsics and prelude calls of the scalar table.
#include <limits>

#include <fmt/format.h>

#include "codegen/llvm/printer_state.hpp"
#include "dsl/scalar_table.hpp"
#include "tigon/error.hpp"

namespace tigon::llvm {

using lower::Instruction;
using lower::Type;

namespace {

constexpr double ln2 = 0.693147180559945309417;

std::string joined(const std::string& type, const std::vector<std::string>& args) {
  std::string list;
  for (const std::string& arg : args) list += (list.empty() ? "" : ", ") + type + " " + arg;
  return list;
}

bool is_comparison(ScalarOp op) { return dsl::info(op).rule == dsl::ResultRule::comparison; }

}  // namespace

std::string Printer::temporary(Spelling& s, const std::string& right) {
  const std::string name = fmt::format("{}.s{}", s.result, s.temporaries++);
  line(name + " = " + right);
  return name;
}

void Printer::finish(const Spelling& s, const std::string& right) { line(s.result + " = " + right); }

std::string Printer::call_prelude(std::string_view function, DType dtype, int lanes, const std::string& args) {
  const std::string symbol = prelude_symbol(function, dtype, lanes);
  // The table's names live as long as the program.
  if (prelude_names_.insert(symbol).second) prelude_.push_back({prelude_function(function).name, dtype, lanes});
  const bool narrows = function.starts_with("narrow");
  const Type type{narrows ? DType::bf16 : dtype, static_cast<std::uint16_t>(lanes)};
  return fmt::format("call {} @{}({})", type_text(type), symbol, args);
}

std::string Printer::call_intrinsic(std::string_view name, const Type& type, const std::vector<std::string>& args) {
  const std::string element = type.dtype == DType::f32 ? "f32" : "f64";
  const std::string callee =
      fmt::format("@{}.{}", name, type.lanes == 1 ? element : fmt::format("v{}{}", type.lanes, element));
  const std::string of = type_text(type);
  std::string types;
  for (std::size_t i = 0; i < args.size(); ++i) types += (i == 0 ? "" : ", ") + of;
  declarations_.insert(fmt::format("declare {} {}({})", of, callee, types));
  return fmt::format("call {} {}({})", of, callee, joined(of, args));
}

void Printer::print_operation(const Instruction& i) {
  const Type& operands = type(i.args.back());
  const std::string result = text(i.result);
  if (i.op == ScalarOp::where) {
    line(fmt::format("{} = select {}, {}, {}", result, typed(i.args[0]), typed(i.args[1]), typed(i.args[2])));
    return;
  }
  if (operands.dtype == DType::boolean) {
    const std::string of = type_text(operands);
    if (i.op == ScalarOp::logical_not) {
      line(fmt::format("{} = xor {} {}, {}", result, of, text(i.args[0]), constant(operands, 0, 1)));
      return;
    }
    line(fmt::format("{} = {} {} {}, {}", result, dsl::info(i.op).llvm, of, text(i.args[0]), text(i.args[1])));
    return;
  }
  if (is_floating(operands.dtype)) return print_float(i);
  if (i.op == ScalarOp::floor_div || i.op == ScalarOp::rem) return print_division(i);
  print_whole(i);
}

void Printer::print_float(const Instruction& i) {
  const Type operands = type(i.args[0]);
  const std::string of = type_text(operands);
  const std::string truth = type_text({DType::boolean, operands.lanes});
  const dsl::ScalarOpInfo& row = dsl::info(i.op);
  std::vector<std::string> args;
  for (const lower::ValueId arg : i.args) args.push_back(text(arg));
  Spelling s{text(i.result), 0, i.type};
  const auto number = [&](double value) { return constant(operands, value, 0); };
  const auto compare = [&](std::string_view predicate, const std::string& a, const std::string& b) {
    return temporary(s, fmt::format("fcmp {} {} {}, {}", predicate, of, a, b));
  };
  const auto select = [&](const std::string& c, const std::string& a, const std::string& b) {
    return fmt::format("select {} {}, {} {}, {} {}", truth, c, of, a, of, b);
  };
  const auto prelude = [&](std::string_view function, const std::string& a) {
    return call_prelude(function, operands.dtype, operands.lanes, of + " " + a);
  };
  // The extreme of two: ties give the first, a NaN in either wins.
  const auto extreme = [&](std::string_view predicate, const std::string& a, const std::string& b) {
    const std::string better = temporary(s, select(compare(predicate, b, a), b, a));
    return select(compare("uno", b, b), b, better);
  };
  switch (i.op) {
    case ScalarOp::min:
      return finish(s, extreme("olt", args[0], args[1]));
    case ScalarOp::max:
      return finish(s, extreme("ogt", args[0], args[1]));
    case ScalarOp::clamp: {
      const std::string low = temporary(s, extreme("ogt", args[0], args[1]));
      return finish(s, extreme("olt", low, args[2]));
    }
    case ScalarOp::relu:
      return finish(s, select(compare("olt", args[0], number(0)), number(0), args[0]));
    case ScalarOp::sign: {
      const std::string below = temporary(s, select(compare("olt", args[0], number(0)), number(-1), args[0]));
      return finish(s, select(compare("ogt", args[0], number(0)), number(1), below));
    }
    case ScalarOp::is_finite: {
      const std::string size = temporary(s, call_intrinsic("llvm.fabs", operands, {args[0]}));
      return finish(s, fmt::format("fcmp olt {} {}, {}", of, size, number(std::numeric_limits<double>::infinity())));
    }
    case ScalarOp::mul0: {
      const std::string product = temporary(s, fmt::format("fmul {} {}, {}", of, args[0], args[1]));
      return finish(s, select(compare("oeq", args[0], number(0)), number(0), product));
    }
    case ScalarOp::round:
      return finish(s, call_intrinsic("llvm.roundeven", operands, args));
    case ScalarOp::log1mexp: {
      const std::string minus = temporary(s, prelude("expm1", args[0]));
      const std::string near = temporary(s, fmt::format("fneg {} {}", of, minus));
      const std::string near_log = temporary(s, prelude("log", near));
      const std::string power = temporary(s, prelude("exp", args[0]));
      const std::string far = temporary(s, fmt::format("fneg {} {}", of, power));
      const std::string far_log = temporary(s, prelude("log1p", far));
      return finish(s, select(compare("ogt", args[0], number(-ln2)), near_log, far_log));
    }
    case ScalarOp::logaddexp: {
      const std::string larger = temporary(s, extreme("ogt", args[0], args[1]));
      const std::string apart = temporary(s, fmt::format("fsub {} {}, {}", of, args[0], args[1]));
      const std::string size = temporary(s, call_intrinsic("llvm.fabs", operands, {apart}));
      const std::string minus = temporary(s, fmt::format("fneg {} {}", of, size));
      const std::string power = temporary(s, prelude("exp", minus));
      const std::string rest = temporary(s, prelude("log1p", power));
      const std::string sum = temporary(s, fmt::format("fadd {} {}, {}", of, larger, rest));
      const std::string twice = temporary(s, fmt::format("fadd {} {}, {}", of, args[0], number(ln2)));
      return finish(s, select(compare("oeq", args[0], args[1]), twice, sum));
    }
    default:
      break;
  }
  if (row.llvm_kind == dsl::LlvmKind::intrinsic) return finish(s, call_intrinsic(row.llvm, operands, args));
  if (row.llvm_kind == dsl::LlvmKind::prelude) {
    std::string_view function = row.llvm;
    function.remove_prefix(std::string_view("tigon_").size());
    return finish(s, call_prelude(function, operands.dtype, operands.lanes, joined(of, args)));
  }
  if (args.size() == 1) return finish(s, fmt::format("{} {} {}", row.llvm, of, args[0]));
  finish(s, fmt::format("{} {} {}, {}", row.llvm, of, args[0], args[1]));
}

void Printer::print_whole(const Instruction& i) {
  const Type operands = type(i.args[0]);
  const std::string of = type_text(operands);
  const std::string truth = type_text({DType::boolean, operands.lanes});
  std::vector<std::string> args;
  for (const lower::ValueId arg : i.args) args.push_back(text(arg));
  Spelling s{text(i.result), 0, i.type};
  const auto number = [&](std::int64_t value) { return constant(operands, 0, value); };
  const auto binary = [&](std::string_view opcode, const std::string& a, const std::string& b) {
    return fmt::format("{} {} {}, {}", opcode, of, a, b);
  };
  const auto choose = [&](std::string_view predicate, const std::string& a, const std::string& b,
                          const std::string& yes, const std::string& no) {
    const std::string c = temporary(s, fmt::format("icmp {} {} {}, {}", predicate, of, a, b));
    return fmt::format("select {} {}, {} {}, {} {}", truth, c, of, yes, of, no);
  };
  if (is_comparison(i.op)) {
    const std::string_view predicate = i.op == ScalarOp::equal       ? "eq"
                                       : i.op == ScalarOp::not_equal ? "ne"
                                       : i.op == ScalarOp::less      ? "slt"
                                                                     : "sle";
    return finish(s, fmt::format("icmp {} {} {}, {}", predicate, of, args[0], args[1]));
  }
  switch (i.op) {
    case ScalarOp::neg:
      return finish(s, binary("sub", number(0), args[0]));
    case ScalarOp::abs: {
      const std::string minus = temporary(s, binary("sub", number(0), args[0]));
      return finish(s, choose("slt", args[0], number(0), minus, args[0]));
    }
    case ScalarOp::sign: {
      const std::string below = temporary(s, choose("slt", args[0], number(0), number(-1), args[0]));
      return finish(s, choose("sgt", args[0], number(0), number(1), below));
    }
    case ScalarOp::add:
      return finish(s, binary("add", args[0], args[1]));
    case ScalarOp::sub:
      return finish(s, binary("sub", args[0], args[1]));
    case ScalarOp::mul:
    case ScalarOp::mul0:
      return finish(s, binary("mul", args[0], args[1]));
    case ScalarOp::fma: {
      const std::string product = temporary(s, binary("mul", args[0], args[1]));
      return finish(s, binary("add", product, args[2]));
    }
    case ScalarOp::min:
      return finish(s, choose("sle", args[0], args[1], args[0], args[1]));
    case ScalarOp::max:
      return finish(s, choose("sge", args[0], args[1], args[0], args[1]));
    case ScalarOp::relu:
      return finish(s, choose("sge", args[0], number(0), args[0], number(0)));
    case ScalarOp::clamp: {
      const std::string low = temporary(s, choose("sge", args[0], args[1], args[0], args[1]));
      return finish(s, choose("sle", low, args[2], low, args[2]));
    }
    case ScalarOp::shift_left:
    case ScalarOp::shift_right: {
      // A shift by the width or more would be poison: only the low bits of the count are looked at.
      const std::string count = temporary(s, binary("and", args[1], number(operands.dtype == DType::i64 ? 63 : 31)));
      return finish(s, binary(i.op == ScalarOp::shift_left ? "shl" : "ashr", args[0], count));
    }
    case ScalarOp::bit_and:
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor:
      return finish(s, binary(dsl::info(i.op).llvm, args[0], args[1]));
    default:
      throw Error({.kind = ErrorKind::internal, .function = lowered_.name},
                  fmt::format("{} of {} has no spelling in LLVM IR", dsl::name(i.op), name(operands.dtype)));
  }
}

// Towards minus infinity, x / 0 = 0, x % 0 = x, and no trap whatever the operands.
void Printer::print_division(const Instruction& i) {
  const Type operands = type(i.args[0]);
  const std::string of = type_text(operands);
  const std::string truth = type_text({DType::boolean, operands.lanes});
  const std::string a = text(i.args[0]);
  const std::string b = text(i.args[1]);
  const bool remainder = i.op == ScalarOp::rem;
  const bool known = is_constant_[i.args[1]] && integers_[i.args[1]] > 0;
  Spelling s{text(i.result), 0, i.type};
  const auto number = [&](std::int64_t value) { return constant(operands, 0, value); };
  const auto select = [&](const std::string& c, const std::string& yes, const std::string& no) {
    return fmt::format("select {} {}, {} {}, {} {}", truth, c, of, yes, of, no);
  };
  const auto compare = [&](std::string_view predicate, const std::string& x, const std::string& y) {
    return temporary(s, fmt::format("icmp {} {} {}, {}", predicate, of, x, y));
  };
  if (i.non_negative) {
    const std::string_view opcode = remainder ? "urem" : "udiv";
    if (known) return finish(s, fmt::format("{} {} {}, {}", opcode, of, a, b));
    const std::string zero = compare("eq", b, number(0));
    const std::string divisor = temporary(s, select(zero, number(1), b));
    const std::string raw = temporary(s, fmt::format("{} {} {}, {}", opcode, of, a, divisor));
    return finish(s, select(zero, remainder ? a : number(0), raw));
  }
  const std::string zero = compare("eq", b, number(0));
  const std::string minus_one = compare("eq", b, number(-1));
  const std::string special = temporary(s, fmt::format("or {} {}, {}", truth, zero, minus_one));
  const std::string divisor = temporary(s, select(special, number(1), b));
  const std::string rest = temporary(s, fmt::format("srem {} {}, {}", of, a, divisor));
  const std::string inexact = compare("ne", rest, number(0));
  const std::string signs = temporary(s, fmt::format("xor {} {}, {}", of, rest, divisor));
  const std::string opposite = compare("slt", signs, number(0));
  const std::string below = temporary(s, fmt::format("and {} {}, {}", truth, inexact, opposite));
  if (remainder) {
    const std::string lift = temporary(s, select(below, divisor, number(0)));
    const std::string lifted = temporary(s, fmt::format("add {} {}, {}", of, rest, lift));
    return finish(s, select(zero, a, lifted));
  }
  const std::string quotient = temporary(s, fmt::format("sdiv {} {}, {}", of, a, divisor));
  const std::string drop = temporary(s, select(below, number(-1), number(0)));
  const std::string floored = temporary(s, fmt::format("add {} {}, {}", of, quotient, drop));
  const std::string negated = temporary(s, fmt::format("sub {} {}, {}", of, number(0), a));
  const std::string either = temporary(s, select(minus_one, negated, floored));
  finish(s, select(zero, number(0), either));
}

// Towards zero, out of range to the nearest integer, NaN to 0. fptosi by itself is poison for those, so it is given 0
// in their place; llvm.fptosi.sat says the same, but x86 gets it one lane at a time.
void Printer::print_to_integer(Spelling s, const Type& from, const std::string& value) {
  const DType to = s.type.dtype;
  const std::string of = type_text(from), integers = type_text(s.type);
  const std::string truth = type_text({DType::boolean, from.lanes});
  const double end = to == DType::i32 ? 2147483648.0 : 9223372036854775808.0;  // one past the largest
  const std::int64_t largest =
      to == DType::i32 ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int64_t>::max();
  const auto compare = [&](std::string_view predicate, double bound) {
    return temporary(s, fmt::format("fcmp {} {} {}, {}", predicate, of, value, constant(from, bound, 0)));
  };
  const auto select = [&](const std::string& type, const std::string& c, const std::string& yes,
                          const std::string& no) {
    return fmt::format("select {} {}, {} {}, {} {}", truth, c, type, yes, type, no);
  };
  const std::string above = compare("oge", end), below = compare("olt", -end), fits = compare("olt", end);
  const std::string kept = temporary(s, select(of, fits, value, constant(from, 0, 0)));
  const std::string raised = temporary(s, select(of, below, constant(from, -end, 0), kept));
  const std::string whole = temporary(s, fmt::format("fptosi {} {} to {}", of, raised, integers));
  finish(s, select(integers, above, constant(s.type, 0, largest), whole));
}

void Printer::print_cast(const Instruction& i) {
  const auto lanes = i.type.lanes;
  Spelling s{text(i.result), 0, i.type};
  DType from = type(i.args[0]).dtype;
  const DType to = i.type.dtype;
  std::string value = text(i.args[0]);
  const auto at = [&](DType dtype) { return type_text({dtype, lanes}); };
  const auto convert = [&](std::string_view opcode, DType target) {
    return fmt::format("{} {} {} to {}", opcode, at(from), value, at(target));
  };
  // One step at a time: 16-bit floats pass through f32, booleans through i32.
  while (true) {
    std::string step;
    DType next = to;
    if (is_16_bit_float(from)) {
      next = DType::f32;
      step = call_prelude(from == DType::bf16 ? "widen_bf16" : "widen_f16", DType::f32, lanes, at(from) + " " + value);
    } else if (from == DType::boolean) {
      next = to == DType::i64 ? DType::i64 : DType::i32;
      step = convert("zext", next);
    } else if (to == DType::boolean) {
      const Type type{from, lanes};
      step = is_floating(from) ? fmt::format("fcmp une {} {}, {}", at(from), value, constant(type, 0, 0))
                               : fmt::format("icmp ne {} {}, {}", at(from), value, constant(type, 0, 0));
    } else if (is_16_bit_float(to)) {
      if (from == DType::f32) {
        step =
            call_prelude(to == DType::bf16 ? "narrow_bf16" : "narrow_f16", DType::f32, lanes, at(from) + " " + value);
      } else {
        next = DType::f32;
        step = convert(from == DType::f64 ? "fptrunc" : "sitofp", next);
      }
    } else if (is_floating(from)) {
      if (!is_floating(to)) return print_to_integer(s, {from, lanes}, value);
      step = convert(to == DType::f64 ? "fpext" : "fptrunc", to);
    } else {
      step = convert(is_floating(to) ? "sitofp" : to == DType::i64 ? "sext" : "trunc", to);
    }
    if (next == to) return finish(s, step);
    value = temporary(s, step);
    from = next;
  }
}

}  // namespace tigon::llvm
