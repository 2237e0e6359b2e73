// Writes scalar programs and runs them in f64.
#include "dsl/program.hpp"

#include "dsl/scalar_table.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl {

ProgramBuilder::Value ProgramBuilder::input(int number, ValueClass value_class) {
  for (std::size_t i = 0; i < program_.values.size(); ++i) {
    const ProgramValue& known = program_.values[i];
    if (known.kind == ProgramValue::Kind::input && known.input == number) return {this, static_cast<std::uint16_t>(i)};
  }
  ProgramValue value;
  value.kind = ProgramValue::Kind::input;
  value.value_class = value_class;
  value.input = static_cast<std::uint8_t>(number);
  program_.values.push_back(value);
  return {this, static_cast<std::uint16_t>(program_.values.size() - 1)};
}

ProgramBuilder::Value ProgramBuilder::constant(double number, ValueClass value_class) {
  ProgramValue value;
  value.kind = ProgramValue::Kind::constant;
  value.value_class = value_class;
  value.constant = number;
  program_.values.push_back(value);
  return {this, static_cast<std::uint16_t>(program_.values.size() - 1)};
}

ProgramBuilder::Value ProgramBuilder::apply(ScalarOp op, std::initializer_list<Value> args) {
  ProgramValue value;
  value.kind = ProgramValue::Kind::operation;
  value.op = op;
  std::size_t i = 0;
  for (const Value& arg : args) value.args[i++] = arg.id;
  const ResultRule rule = info(op).rule;
  const bool truth = rule == ResultRule::comparison || rule == ResultRule::logical || rule == ResultRule::predicate;
  value.value_class = truth ? ValueClass::truth : program_.values[value.args[i - 1]].value_class;
  program_.values.push_back(value);
  return {this, static_cast<std::uint16_t>(program_.values.size() - 1)};
}

ScalarProgram ProgramBuilder::finish(std::initializer_list<Value> results) {
  for (const Value& result : results) program_.results.push_back(result.id);
  return std::move(program_);
}

std::vector<double> run_program(const ScalarProgram& program, std::span<const double> inputs) {
  std::vector<double> values;
  values.reserve(program.values.size());
  for (const ProgramValue& value : program.values) {
    switch (value.kind) {
      case ProgramValue::Kind::input:
        if (value.input >= inputs.size()) {
          throw Error({.kind = ErrorKind::internal}, "a scalar program reads an input that it is not given");
        }
        values.push_back(inputs[value.input]);
        break;
      case ProgramValue::Kind::constant:
        values.push_back(value.constant);
        break;
      case ProgramValue::Kind::operation: {
        const int arity = info(value.op).arity;
        const auto arg = [&](int i) { return i < arity ? values[value.args[i]] : 0.0; };
        values.push_back(info(value.op).reference(arg(0), arg(1), arg(2)));
        break;
      }
    }
  }
  std::vector<double> results;
  for (const std::uint16_t result : program.results) results.push_back(values[result]);
  return results;
}

}  // namespace tigon::dsl
