// The builder: sharing, folding of index arithmetic, dtypes, inlined programs; and what preparation makes of sums.
#include "codegen/loops/builder.hpp"

#include <limits>

#include "codegen/loops/print.hpp"
#include "codegen/lower/fma.hpp"
#include "dsl/monoid.hpp"
#include "tigon/error.hpp"

using namespace tigon;
using loops::ExprId;
using loops::NestBuilder;

TEST_CASE("equal expressions are one, and index arithmetic folds", "[nest]") {
  NestBuilder b;
  const auto n = b.axis("n");
  const ExprId i = b.loop_index(b.new_loop());
  CHECK(b.add(i, b.extent(n)) == b.add(i, b.extent(n)));
  CHECK(b.nest.slots.size() == 1);
  CHECK(b.add(i, b.integer(0)) == i);
  CHECK(b.mul(b.integer(1), i) == i);
  CHECK(b.mul(i, b.integer(0)) == b.integer(0));
  CHECK(b.sub(i, i) == b.integer(0));
  CHECK(b.add(b.integer(3), i) == b.add(i, b.integer(3)));
  CHECK(b.floor_div(b.integer(-7), b.integer(2)) == b.integer(-4));
  CHECK(b.rem(b.integer(-7), b.integer(2)) == b.integer(1));
  CHECK(b.ceil_div(b.integer(9), b.integer(4)) == b.integer(3));
  CHECK(b.less(b.integer(2), b.integer(3)) == b.truth(true));
  // Floats keep every operation: x + 0 is not x for -0.
  const ExprId x = b.scalar(b.scalar_parameter("x", DType::f32));
  CHECK(b.add(x, b.number(DType::f32, 0)) != x);
}

TEST_CASE("constant indices fold as kernels compute them", "[nest]") {
  NestBuilder b;
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const ExprId lowest = b.integer(least), minus_one = b.integer(-1);
  CHECK(b.floor_div(lowest, minus_one) == lowest);
  CHECK(b.rem(lowest, minus_one) == b.integer(0));
  CHECK(b.floor_div(lowest, b.integer(0)) == b.integer(0));
  CHECK(b.rem(lowest, b.integer(0)) == lowest);
  CHECK(b.op(ScalarOp::neg, {lowest}) == lowest);
  CHECK(b.op(ScalarOp::abs, {lowest}) == lowest);
  CHECK(b.add(lowest, minus_one) == b.integer(std::numeric_limits<std::int64_t>::max()));
  CHECK(b.mul(lowest, minus_one) == lowest);
  CHECK(b.op(ScalarOp::shift_left, {b.integer(1), b.integer(64)}) == b.integer(1));
}

TEST_CASE("operands are promoted and wrong ones refused", "[nest]") {
  NestBuilder b;
  const auto n = b.axis("n", 8);
  const auto p = b.parameter({"p", DType::bf16, {n}, {1}, loops::Access::read, ""});
  const auto k = b.parameter({"k", DType::i32, {n}, {1}, loops::Access::read, ""});
  const ExprId x = b.load(p, {b.integer(0)});
  const ExprId y = b.load(k, {b.integer(0)});
  CHECK(b.dtype(b.add(x, x)) == DType::f32);
  CHECK(b.dtype(b.add(x, y)) == DType::f32);
  CHECK(b.dtype(b.div(y, y)) == DType::f32);
  CHECK(b.dtype(b.less(y, x)) == DType::boolean);
  CHECK(b.dtype(b.op(ScalarOp::where, {b.truth(true), y, y})) == DType::i32);
  CHECK_THROWS_AS(b.op(ScalarOp::floor_div, {x, x}), Error);
  CHECK_THROWS_AS(b.op(ScalarOp::add, {x}), Error);
  CHECK_THROWS_AS(b.load(p, {}), Error);
  CHECK_THROWS_AS(b.load(p, {y}), Error);
  const DType mixed[] = {DType::f32, DType::i32};
  CHECK_THROWS_AS(loops::operation_dtype(ScalarOp::add, mixed), Error);
}

TEST_CASE("programs are inlined", "[nest]") {
  NestBuilder b;
  const int sum = b.monoid(dsl::builtin_monoid(dsl::BuiltinMonoid::sum));
  CHECK(b.monoid(dsl::builtin_monoid(dsl::BuiltinMonoid::sum)) == sum);
  const auto fold = b.fold("total", sum, DType::f32);
  CHECK(loops::print_expr(b.nest, b.finish(fold, 0)) == "total + 0");
  CHECK(loops::print_expr(b.nest, b.identity(sum, DType::f32)[0]) == "-0");
}

TEST_CASE("products that are only added become fma", "[nest]") {
  NestBuilder b;
  b.nest.name = "fma";
  const auto n = b.axis("n");
  const auto x = b.parameter({"x", DType::f32, {n}, {1}, loops::Access::read, ""});
  const auto y = b.parameter({"y", DType::f32, {n}, {1}, loops::Access::write, ""});
  const auto z = b.parameter({"z", DType::f32, {n}, {1}, loops::Access::write, ""});
  b.part("all");
  auto loop = b.loop("i", loops::Bind::lanes, b.integer(0), b.extent(n));
  const ExprId i = b.loop_index(loop.id);
  const ExprId v = b.load(x, {i});
  const ExprId three = b.number(DType::f32, 3);
  const ExprId kept = b.mul(v, v);  // read twice: stays a product
  loop.body.push_back(loops::store(y, {i}, b.add(kept, b.mul(v, three))));
  loop.body.push_back(loops::store(z, {i}, b.sub(three, b.mul(kept, v))));
  b.nest.parts[0].grid.body.push_back(loops::statement(loop));
  const lower::Prepared prepared = lower::prepare(b.nest);
  const std::string text = loops::print(prepared.nest);
  INFO(text);
  CHECK(text.find("store y[i] = fma(load x[i], 3, load x[i] * load x[i])") != std::string::npos);
  CHECK(text.find("store z[i] = fma(neg(load x[i] * load x[i]), load x[i], 3)") != std::string::npos);
}
