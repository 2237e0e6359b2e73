// Scalar programs: a small builder for writing them down, and an interpreter in f64.
#pragma once
#include <span>

#include "dsl/scalar_program.hpp"

namespace tigon::dsl {

// A value of the program that is being written; arithmetic on it appends an operation.
class ProgramBuilder {
 public:
  struct Value {
    ProgramBuilder* program;
    std::uint16_t id;
  };
  Value input(int number, ValueClass value_class = ValueClass::element);
  Value constant(double value, ValueClass value_class = ValueClass::element);
  Value apply(ScalarOp op, std::initializer_list<Value> args);
  ScalarProgram finish(std::initializer_list<Value> results);  // once: the builder is empty afterwards

 private:
  ScalarProgram program_;
};

// The results of a program on f64 inputs; truth values are 0 and 1.
std::vector<double> run_program(const ScalarProgram& program, std::span<const double> inputs);

}  // namespace tigon::dsl
