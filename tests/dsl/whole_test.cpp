// Integer arithmetic at its edges: two's complement, no trap, a shift by the low bits of its count.
#include "dsl/whole.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "dsl/build.hpp"

using namespace tigon;

namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least32 = std::numeric_limits<std::int32_t>::min();

std::int64_t wide(ScalarOp op, std::vector<std::int64_t> x) { return dsl::whole_result(op, DType::i64, x).value(); }
std::int64_t narrow(ScalarOp op, std::vector<std::int64_t> x) { return dsl::whole_result(op, DType::i32, x).value(); }

}  // namespace

TEST_CASE("sums, products and negations wrap") {
  CHECK(wide(ScalarOp::add, {most, 1}) == least);
  CHECK(wide(ScalarOp::sub, {least, 1}) == most);
  CHECK(wide(ScalarOp::mul, {most, 2}) == -2);
  CHECK(wide(ScalarOp::neg, {least}) == least);
  CHECK(wide(ScalarOp::abs, {least}) == least);
  CHECK(narrow(ScalarOp::mul, {65536, 65536}) == 0);
  CHECK(narrow(ScalarOp::abs, {least32}) == least32);
  CHECK(narrow(ScalarOp::add, {least32, -1}) == 2147483647);
}

TEST_CASE("no quotient traps, and quotients round towards minus infinity") {
  CHECK(wide(ScalarOp::floor_div, {least, -1}) == least);
  CHECK(wide(ScalarOp::rem, {least, -1}) == 0);
  CHECK(narrow(ScalarOp::floor_div, {least32, -1}) == least32);
  CHECK(wide(ScalarOp::floor_div, {7, 0}) == 0);
  CHECK(wide(ScalarOp::rem, {7, 0}) == 7);
  CHECK(wide(ScalarOp::floor_div, {-7, 2}) == -4);
  CHECK(wide(ScalarOp::rem, {-7, 2}) == 1);
  CHECK(wide(ScalarOp::rem, {7, -2}) == -1);
  CHECK(wide(ScalarOp::floor_div, {least, most}) == -2);
}

TEST_CASE("a shift looks at the low bits of its count") {
  CHECK(wide(ScalarOp::shift_left, {1, 63}) == least);
  CHECK(wide(ScalarOp::shift_left, {1, 64}) == 1);
  CHECK(wide(ScalarOp::shift_right, {-8, 65}) == -4);
  CHECK(narrow(ScalarOp::shift_left, {1, 31}) == least32);
  CHECK(narrow(ScalarOp::shift_left, {1, 32}) == 1);
  CHECK(narrow(ScalarOp::shift_right, {-8, -1}) == -1);
}

TEST_CASE("the graph folds constant integers the same way") {
  dsl::Builder b("constants");
  const auto folded = [&](ScalarOp op, DType dtype, std::int64_t x, std::int64_t y) {
    const dsl::NodeId node = b.map(op, {b.integer(dtype, x), b.integer(dtype, y)});
    REQUIRE(b.node(node).kind == dsl::NodeKind::constant);
    return b.graph().constants[b.node(node).payload].integer;
  };
  CHECK(folded(ScalarOp::floor_div, DType::i64, least, -1) == least);
  CHECK(folded(ScalarOp::rem, DType::i64, least, -1) == 0);
  CHECK(folded(ScalarOp::shift_left, DType::i64, 1, 63) == least);
  CHECK(folded(ScalarOp::shift_left, DType::i32, 1, 31) == least32);
  CHECK(folded(ScalarOp::shift_left, DType::i32, 1, 32) == 1);
  CHECK(folded(ScalarOp::bit_xor, DType::i64, most, 1) == most - 1);
}
