// A straight-line program over scalars: what a monoid's lift, merge and finishes are made of, inlined by every backend.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "tigon/dtype.hpp"
#include "tigon/scalar_op.hpp"

namespace tigon {

// A program is generic in the dtype it runs on: `element` becomes the fold's accumulation dtype.
enum class ValueClass : std::uint8_t { element, index /* i64 */, truth /* boolean */ };

struct ProgramValue {
  enum class Kind : std::uint8_t { input, constant, operation };
  Kind kind = Kind::input;
  ValueClass value_class = ValueClass::element;
  std::uint8_t input = 0;                             // kind input: which one
  ScalarOp op = ScalarOp::add;                        // kind operation
  std::array<std::uint16_t, 3> args{};                // kind operation: earlier values of the program
  double constant = 0;                                // kind constant
  bool operator==(const ProgramValue& other) const {  // bitwise: a NaN equals itself
    return kind == other.kind && value_class == other.value_class && input == other.input && op == other.op &&
           args == other.args && std::bit_cast<std::uint64_t>(constant) == std::bit_cast<std::uint64_t>(other.constant);
  }
};

struct ScalarProgram {
  std::vector<ProgramValue> values;
  std::vector<std::uint16_t> results;
  bool operator==(const ScalarProgram&) const = default;
};

constexpr DType dtype_of_class(ValueClass value_class, DType element) {
  if (value_class == ValueClass::index) return DType::i64;
  return value_class == ValueClass::truth ? DType::boolean : element;
}

}  // namespace tigon
