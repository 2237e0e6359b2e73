// The nests, built by hand.
#include "loops_nests.hpp"

#include "dsl/monoid.hpp"
#include "loops_run.hpp"

namespace tigon::testing {

using loops::Access;
using loops::Block;
using loops::ExprId;
using loops::Loop;

loops::Nest norm_nest() {
  Rows rows("norm", 4096);
  auto& b = rows.builder;
  b.nest.formula = "y = x * rsqrt(mean(x^2) + eps) * weight";
  const auto x = rows.matrix("x", DType::bf16);
  const auto w = rows.vector_of(rows.column_axis, "weight", DType::bf16);
  const auto y = rows.matrix("y", DType::bf16, Access::write);
  const auto eps = b.scalar(b.scalar_parameter("eps", DType::f32));
  const auto fold = b.fold("total", b.monoid(dsl::builtin_monoid(dsl::BuiltinMonoid::sum)), DType::f32);
  rows.rows_part([&](Block& body, ExprId row) {
    Loop first = rows.lanes();
    first.folds = {fold};
    const ExprId v = b.cast(DType::f32, b.load(x, {row, rows.index(first)}));
    first.body.push_back(loops::update(fold, {b.mul(v, v)}));
    body.push_back(statement(first));
    const ExprId mean = b.div(b.finish(fold, 0), b.number(DType::f32, 4096));
    const ExprId r = b.op(ScalarOp::rsqrt, {b.add(mean, eps)});
    body.push_back(loops::let("r", r));
    Loop second = rows.lanes();
    const ExprId i = rows.index(second);
    const ExprId scaled = b.mul(b.mul(b.load(x, {row, i}), r), b.load(w, {i}));
    second.body.push_back(loops::store(y, {row, i}, b.cast(DType::bf16, scaled)));
    body.push_back(statement(second));
  });
  return b.nest;
}

loops::Nest softmax_nest() {
  Rows rows("softmax");
  auto& b = rows.builder;
  b.nest.formula = "y = softmax(x)";
  const auto x = rows.matrix("x");
  const auto y = rows.matrix("y", DType::f32, Access::write);
  const auto lse = b.fold("total", b.monoid(dsl::builtin_monoid(dsl::BuiltinMonoid::logsumexp)), DType::f32);
  rows.rows_part([&](Block& body, ExprId row) {
    Loop first = rows.lanes();
    first.folds = {lse};
    first.body.push_back(loops::update(lse, {b.load(x, {row, rows.index(first)})}));
    body.push_back(statement(first));
    Loop second = rows.lanes();
    const ExprId i = rows.index(second);
    const ExprId logsumexp = b.finish(lse, dsl::lse_value);
    const ExprId shifted = b.sub(b.load(x, {row, i}), logsumexp);
    second.body.push_back(loops::store(y, {row, i}, b.op(ScalarOp::exp, {shifted})));
    body.push_back(statement(second));
  });
  return b.nest;
}

}  // namespace tigon::testing
