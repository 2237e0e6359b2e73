// Integer arithmetic as kernels do it: exact, wrapped to 32 or 64 bits, defined for every operand.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "tigon/dtype.hpp"
#include "tigon/scalar_op.hpp"

namespace tigon::dsl {

inline bool is_whole(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }

// The value wrapped to the dtype, i32 or i64.
std::int64_t wrap(DType dtype, std::int64_t value);

// What the operation yields of operands of this dtype, i32 or i64 (the condition of `where` is 0 or 1): a comparison 0
// or 1, division by 0 gives 0, and a shift looks at the low 5 or 6 bits of its count. Nothing where the operation is
// not computed in integers.
std::optional<std::int64_t> whole_result(ScalarOp op, DType dtype, std::span<const std::int64_t> operands);

}  // namespace tigon::dsl
