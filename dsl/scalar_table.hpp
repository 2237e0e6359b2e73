// The table of scalar operations: one row each says what the operation is called, yields, costs and how it is spelled.
#pragma once
#include <span>
#include <string_view>

#include "tigon/dtype.hpp"
#include "tigon/scalar_op.hpp"

namespace tigon::dsl {

// What operands are converted to, and what comes out.
enum class ResultRule : std::uint8_t {
  number,      // operands promoted (16-bit floats to f32, booleans to i32); the result has that dtype
  floating,    // as number, but integers become f32 first
  integer,     // as number; floats are refused
  comparison,  // operands promoted as for number; the result is boolean
  logical,     // operands and result boolean; a number operand counts as "is not zero"
  select,      // the first operand is boolean, the others promoted (two booleans stay boolean); their dtype results
  predicate,   // as floating; the result is boolean
};

// How LLVM IR computes it in f32: one instruction, an intrinsic, or a function of the device prelude.
enum class LlvmKind : std::uint8_t { instruction, intrinsic, prelude };

struct ScalarOpInfo {
  ScalarOp op;
  std::string_view name;
  int arity;
  ResultRule rule;
  bool commutative;  // exactly, bit for bit; min and max are not: ties go to the first operand
  double (*reference)(double, double, double);
  std::string_view tie;   // what happens at a tie, a kink or a special value; empty where IEEE says it all
  std::string_view cuda;  // f32 text, {0} {1} {2} stand for the operands
  LlvmKind llvm_kind;
  std::string_view llvm;  // instruction, intrinsic or prelude function, for floats
  int cost;               // relative to an addition
  int exponentials;       // evaluations of the special function unit's exponential or logarithm
  double ulp;             // accuracy in f32: at most this many units in the last place from the exact value
  // The units are those of the larger operand where that is larger in size than the result: the operation ends in an
  // addition to it, which may cancel.
  bool ulp_of_larger_operand = false;
};

const ScalarOpInfo& info(ScalarOp op);
inline std::string_view name(ScalarOp op) { return info(op).name; }

// The dtype an operand is cast to, and the result's; throws Error where the operation refuses a dtype.
DType operand_dtype(ScalarOp op, std::span<const DType> operands, int operand);
DType result_dtype(ScalarOp op, std::span<const DType> operands);

// |d result / d operand| in f64, by the same rules as the gradient's nodes; 0 where the operation has no derivative.
double derivative(ScalarOp op, int operand, std::span<const double> operands);

// What a float becomes as an integer, in casts and in constants: cut towards zero, kept in the dtype's range; NaN is 0.
std::int64_t nearest_integer(DType dtype, double value);

}  // namespace tigon::dsl
