// What each operator and function of values traces to.
#include <catch2/catch.hpp>

#include "tests/language/support.hpp"

using namespace tigon;
using Args = XYArgs<Tensor>;

TEST_CASE("arithmetic broadcasts by axis name and widens 16-bit floats") {
  CHECK(traced([](Args in) { return in.x + in.y; }) == "add(x, y) : f32[tokens,hidden]");
  CHECK(traced([](Args in) { return in.x - in.h; }) == "sub(x, f32(h)) : f32[tokens,hidden]");
  CHECK(traced([](Args in) { return in.y * in.h; }) == "mul(y, f32(h)) : f32[hidden,tokens]");
  CHECK(traced([](Args in) { return in.h * in.h; }) == "mul(f32(h), f32(h)) : f32[tokens]");
  CHECK(traced([](Args in) { return in.x / in.s; }) == "div(x, s) : f32[tokens,hidden]");
  CHECK(traced([](Args in) { return -in.x; }) == "neg(x) : f32[tokens,hidden]");
  CHECK(traced([](Args in) { return in.b + in.b; }) == "add(i32(b), i32(b)) : i32[tokens]");
  static_assert(std::is_same_v<decltype(Args().x + Args().h), Tensor<f32(Tokens, Hidden)>>);
  static_assert(std::is_same_v<decltype(Args().h + Args().x), Tensor<f32(Tokens, Hidden)>>);
  static_assert(std::is_same_v<decltype(Args().s * Args().y), Tensor<f32(Hidden)>>);
}

TEST_CASE("numbers are weak") {
  CHECK(traced([](Args in) { return 2.0 * in.y; }) == "mul(y, 2) : f32[hidden]");
  CHECK(traced([](Args in) { return in.h + 1; }) == "add(1, f32(h)) : f32[tokens]");
  CHECK(traced([](Args in) { return in.i + 1; }) == "add(i, 1i32) : i32[tokens]");
  CHECK(traced([](Args in) { return in.i * 0.5; }) == "mul(0.5, f32(i)) : f32[tokens]");
  CHECK(traced([](Args in) { return where(in.b, in.h, 0); }) == "where(b, f32(h), 0) : f32[tokens]");
  CHECK(traced([](Args in) { return where(in.b, in.i, -1); }) == "where(b, i, -1i32) : i32[tokens]");
  CHECK(traced([](Args in) { return where(in.i > 0, 1.0, 2.0); }) == "where(less(0i32, i), 1, 2) : f32[tokens]");
}

TEST_CASE("integer division and remainder round towards minus infinity") {
  CHECK(traced([](Args in) { return in.i / 2; }) == "floor_div(i, 2i32) : i32[tokens]");
  CHECK(traced([](Args in) { return in.i % 2; }) == "rem(i, 2i32) : i32[tokens]");
  CHECK(traced([](Args in) { return (in.i >> 1) & 3; }) == "bit_and(shift_right(i, 1i32), 3i32) : i32[tokens]");
  CHECK(traced([](Args in) { return (in.i << 1) | 5; }) == "bit_or(shift_left(i, 1i32), 5i32) : i32[tokens]");
  CHECK(traced([](Args in) { return in.i ^ 5; }) == "bit_xor(i, 5i32) : i32[tokens]");
}

TEST_CASE("comparisons and logic yield booleans") {
  CHECK(traced([](Args in) { return in.x < in.y; }) == "less(x, y) : bool[tokens,hidden]");
  CHECK(traced([](Args in) { return in.x > in.y; }) == "less(y, x) : bool[hidden,tokens]");
  CHECK(traced([](Args in) { return in.x <= in.y; }) == "less_equal(x, y) : bool[tokens,hidden]");
  CHECK(traced([](Args in) { return in.x >= in.y; }) == "less_equal(y, x) : bool[hidden,tokens]");
  CHECK(traced([](Args in) { return in.i == 3; }) == "equal(i, 3i32) : bool[tokens]");
  CHECK(traced([](Args in) { return in.i != 3; }) == "not_equal(i, 3i32) : bool[tokens]");
  CHECK(traced([](Args in) { return in.b && in.i < 3; }) == "logical_and(b, less(i, 3i32)) : bool[tokens]");
  CHECK(traced([](Args in) { return in.b || in.i < 3; }) == "logical_or(b, less(i, 3i32)) : bool[tokens]");
  CHECK(traced([](Args in) { return !in.b; }) == "logical_not(b) : bool[tokens]");
}

TEST_CASE("every function of one value is the scalar operation of its name") {
#define ONE(function) CHECK(traced([](Args in) { return function(in.y); }) == #function "(y) : f32[hidden]")
  ONE(abs);
  ONE(sign);
  ONE(floor);
  ONE(ceil);
  ONE(round);
  ONE(sqrt);
  ONE(rsqrt);
  ONE(exp);
  ONE(expm1);
  ONE(log);
  ONE(log1p);
  ONE(sin);
  ONE(cos);
  ONE(tanh);
  ONE(erf);
  ONE(sigmoid);
  ONE(softplus);
  ONE(log_sigmoid);
  ONE(relu);
  ONE(log1mexp);
#undef ONE
  CHECK(traced([](Args in) { return exp(in.i); }) == "exp(f32(i)) : f32[tokens]");
  CHECK(traced([](Args in) { return abs(in.i); }) == "abs(i) : i32[tokens]");
  CHECK(traced([](Args in) { return is_finite(in.y); }) == "is_finite(y) : bool[hidden]");
  CHECK(traced([](Args in) { return square(in.h); }) == "mul(f32(h), f32(h)) : f32[tokens]");
  CHECK(traced([](Args in) { return silu(in.h); }) == "mul(f32(h), sigmoid(f32(h))) : f32[tokens]");
}

TEST_CASE("functions of two and three values") {
  CHECK(traced([](Args in) { return min(in.x, in.y); }) == "min(x, y) : f32[tokens,hidden]");
  CHECK(traced([](Args in) { return max(in.y, 0); }) == "max(y, 0) : f32[hidden]");
  CHECK(traced([](Args in) { return pow(in.y, 3); }) == "pow(y, 3) : f32[hidden]");
  CHECK(traced([](Args in) { return logaddexp(in.y, in.h); }) == "logaddexp(y, f32(h)) : f32[hidden,tokens]");
  CHECK(traced([](Args in) { return mul0(in.y, in.h); }) == "mul0(y, f32(h)) : f32[hidden,tokens]");
  CHECK(traced([](Args in) { return clamp(in.y, -1, in.s); }) == "clamp(y, -1, s) : f32[hidden]");
  CHECK(traced([](Args in) { return where(in.b, in.x, in.y); }) == "where(b, x, y) : f32[tokens,hidden]");
}

TEST_CASE("casts, positions and extents") {
  CHECK(traced([](Args in) { return cast<bf16>(in.y); }) == "bf16(y) : bf16[hidden]");
  CHECK(traced([](Args in) { return cast<f32>(in.y); }) == "y : f32[hidden]");
  CHECK(traced([](Args) { return iota<Hidden>(); }) == "iota(hidden) : i64[hidden]");
  CHECK(traced([](Args in) { return in.y * extent<Tokens>(); }) == "mul(y, f32(extent(tokens))) : f32[hidden]");
  CHECK(traced([](Args in) { return where(iota<Tokens>() < 3, in.h, 1.0); }) ==
        "where(less(iota(tokens), 3i64), f32(h), 1) : f32[tokens]");
}

TEST_CASE("assignment: order of axes does not matter, += keeps the type") {
  CHECK(traced([](Args in) {
          Tensor<f32(Tokens, Hidden)> x = in.y * in.h;
          x += 1;
          x *= in.y;
          x -= in.h;
          x /= 2;
          return x;
        }) == "div(sub(mul(y, add(mul(y, f32(h)), 1)), f32(h)), 2) : f32[tokens,hidden]");
}

TEST_CASE("attach and stop_gradient stand in the graph until differentiation") {
  CHECK(traced([](Args in) { return attach(floor(in.y), in.y); }) == "attach(floor(y), y) : f32[hidden]");
  CHECK(traced([](Args in) { return in.y - stop_gradient(in.y); }) == "sub(y, attach(y)) : f32[hidden]");
}

TEST_CASE("a scalar slot is a tensor without axes") {
  CHECK(traced([](Args in) {
          Tensor<f32()> s = in.s;
          return s + number<f32>(2);
        }) == "add(s, 2) : f32[]");
}
