// Bounds of single operations where cancellation makes a result small against what it is made from.
#include "dsl/reference/bounded.hpp"

#include "dsl/monoid.hpp"
#include "dsl/scalar_table.hpp"

using namespace tigon;
using namespace tigon::dsl;

TEST_CASE("bounded: logaddexp near 0 is as accurate as the larger operand") {
  const Rounding f32 = rounding_of(DType::f32, true);
  const double ulps = 2 * info(ScalarOp::logaddexp).ulp * f32.unit;
  // max(a, b) + log1p(exp(-|a - b|)) with a = -0.6931: the sum cancels to 4.7e-5.
  const Bounded near_zero[] = {{static_cast<double>(-0.6931F), 0, false}, {static_cast<double>(-0.6931F), 0, false}};
  const Bounded small = apply(ScalarOp::logaddexp, near_zero, f32);
  CHECK(std::abs(small.value) < 1e-4);
  CHECK(small.bound == Approx(ulps * 0.6931).epsilon(1e-3));
  // Without cancellation the result is what counts.
  const Bounded large[] = {{3, 0, false}, {-20, 0, false}};
  const Bounded plain = apply(ScalarOp::logaddexp, large, f32);
  CHECK(plain.bound == Approx(ulps * plain.value).epsilon(1e-6));
  // A much smaller operand does not count, however large its size.
  const Bounded apart[] = {{1e-3, 0, false}, {-50, 0, false}};
  CHECK(apply(ScalarOp::logaddexp, apart, f32).bound < ulps * 1.1e-3);
}

TEST_CASE("bounded: a result that is exact by chance is still rounded when its operands were") {
  // The mean of two numbers: their difference rounds, their exact mean would not.
  const Monoid& moments = builtin_monoid(BuiltinMonoid::moments);
  const double a = static_cast<double>(1.0F + 0x1p-23F);
  const double b = static_cast<double>(-3.0F + 0x1p-22F);
  const double mean = (a + b) / 2;
  REQUIRE(round_to(DType::f32, mean) == mean);
  REQUIRE(round_to(DType::f32, b - a) != b - a);
  const Bounded states[] = {{1, 0, false}, {a, 0, false}, {0, 0, false}, {1, 0, false}, {b, 0, false}, {0, 0, false}};
  Bounded merged[3];
  run_bounded(moments.merge, states, merged, DType::f32, true);
  CHECK(merged[1].value == mean);
  CHECK(merged[1].bound >= 0x1p-24 * (std::abs(mean) + std::abs(b - a) / 2));
}
