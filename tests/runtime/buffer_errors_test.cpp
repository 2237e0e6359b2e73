// Buffers that overlap, repeat themselves or cannot exist are refused, naming argument, axis, values and cure; layouts
// that only look as if they did are taken.
#include "tests/runtime/error_text.hpp"
#include "tigon/tigon.hpp"

namespace {

using namespace tigon;
using test::message_of;

struct Tokens : axis<"tokens"> {};
struct Hidden : axis<"hidden"> {};
struct Pair : axis<"pair", 2> {};

template <template <class> class Slot>
struct TwoMatrices {
  TIGON_ARGS(TwoMatrices, (Slot<f32(Tokens, Hidden)>, x), (Slot<f32(Tokens, Hidden)>, y));
};
template <template <class> class Slot>
struct SumAndDifference {
  TIGON_OUT(SumAndDifference, (Slot<f32(Tokens, Hidden)>, sum), (Slot<f32(Tokens, Hidden)>, difference));
};
template <template <class> class Slot>
struct DoubledInPlace {
  TIGON_OUT(DoubledInPlace, (Slot<inplace<"x", f32(Tokens, Hidden)>>, x));
};
const auto both = function("both", [](const TwoMatrices<Tensor>& in) {
  return SumAndDifference<Tensor>{.sum = in.x + in.y, .difference = in.x - in.y};
});
const auto doubled = function(
    "doubled", [](const TwoMatrices<Tensor>& in) { return DoubledInPlace<Tensor>{.x = in.x + in.x + in.y * 0}; });

template <template <class> class Slot>
struct VectorArguments {
  TIGON_ARGS(VectorArguments, (Slot<f32(Tokens, Hidden)>, x), (Slot<f32(Hidden)>, weight), (Slot<f32()>, scale));
};
template <template <class> class Slot>
struct VectorResults {
  TIGON_OUT(VectorResults, (Slot<f32(Tokens, Hidden)>, y), (Slot<f32()>, total));
};

template <template <class> class Slot>
struct OuterArguments {
  TIGON_ARGS(OuterArguments, (Slot<f32(Tokens, Pair)>, a), (Slot<f32(Hidden)>, b));
};

using Matrix = Buffer<f32(Tokens, Hidden)>;

// A launch of `both` on buffers that a test then spoils, in one piece of memory.
struct Bench {
  Compiled<TwoMatrices, SumAndDifference<Tensor>> step = compile(both, extents<Tokens, Hidden>(from_to(1, 64), 8));
  Storage memory{1 << 20};
  float* base = static_cast<float*>(memory.data());
  TwoMatrices<Buffer> in{.x = Matrix(base, {4, 8}), .y = Matrix(base + 100, {4, 8})};
  SumAndDifference<Buffer> out{.sum = Matrix(base + 200, {4, 8}), .difference = Matrix(base + 300, {4, 8})};
  void* workspace = base + 4096;
  std::string launch() {
    return message_of([&] { step.into(Stream(), in, out, workspace, std::size_t{1} << 16); });
  }
  Bench() {
    for (int i = 0; i < 1000; ++i) base[i] = static_cast<float>(i);
  }
};

}  // namespace

TEST_CASE("allocate refuses extents that no memory has") {
  CHECK(message_of([] { (void)allocate<f32(Tokens, Hidden)>({4, -1}); }) ==
        "allocate: the extent is negative or too large (axis `hidden`): found -1, expected 0 to 2147483647");
  CHECK(message_of([] { (void)allocate<f32(Tokens, Hidden)>({1LL << 33, 1}); }) ==
        "allocate: the extent is negative or too large (axis `tokens`): found 8589934592, expected 0 to 2147483647");
  CHECK(message_of([] { (void)allocate<f32(Tokens, Hidden)>({2147483647, 2147483647}); }) ==
        "allocate: a buffer of these extents cannot be addressed: found tokens = 2147483647, hidden = 2147483647 of "
        "f32, expected at most 281474976710656 bytes");
  CHECK(message_of([] { (void)allocate<f32(Tokens, Pair)>({4, 3}); }) ==
        "allocate: the axis' type fixes another extent (axis `pair`): found 3, expected 2");
  CHECK(allocate<f32(Tokens, Hidden)>({0, 8}).data != nullptr);
  CHECK(test::says(message_of([] { (void)allocate<f64(Tokens, Hidden)>({1 << 24, 1 << 20}); }),
                   {"140737488355328 bytes of memory on cpu could not be had"}));
}

TEST_CASE("a workspace that overlaps an argument or a result is refused") {
  Bench f;
  CHECK(f.launch() == "no error");
  f.workspace = f.base;
  CHECK(test::says(f.launch(), {"both: the workspace overlaps the buffer of `x` (argument `workspace`): found bytes 0x",
                                "expected none of `x`'s, 0x", "memory of its own"}));
  f.workspace = f.base + 192;  // its first bytes lie before `sum`, its rest in it
  CHECK(test::says(f.launch(), {"the workspace overlaps the buffer of `sum`"}));
  f.workspace = f.base + 4096;
  CHECK(f.launch() == "no error");
}

TEST_CASE("results that overlap an argument or each other are refused") {
  Bench f;
  f.out.sum = Matrix(f.base + 31, {4, 8});
  CHECK(
      f.launch() ==
      "both: the result's buffer overlaps that of `x` (argument `sum`). Give the result memory of its own, or declare "
      "it as sharing that input");
  f.out.sum = Matrix(f.base + 269, {4, 8});
  CHECK(f.launch() ==
        "both: the result's buffer overlaps that of `sum` (argument `difference`). Give each result memory of its own");
  f.out.sum = Matrix(f.base + 268, {4, 8});
  CHECK(f.launch() == "no error");
}

TEST_CASE("columns of one matrix are apart, however their spans interleave") {
  Bench f;
  const auto columns = [&](int first) { return Matrix(f.base + first, {4, 8}, {32, 1}); };
  f.in = {.x = columns(0), .y = columns(8)};
  f.out = {.sum = columns(16), .difference = columns(24)};
  for (int i = 0; i < 128; ++i) f.base[i] = static_cast<float>(i);
  REQUIRE(f.launch() == "no error");
  for (int token = 0; token < 4; ++token) {
    for (int h = 0; h < 8; ++h) {
      CHECK(f.base[token * 32 + 16 + h] == static_cast<float>(token * 64 + 2 * h + 8));
      CHECK(f.base[token * 32 + 24 + h] == -8.0F);
    }
  }
  f.out.difference = columns(17);
  CHECK(test::says(f.launch(), {"overlaps that of `sum`", "argument `difference`"}));
  f.out.difference = Matrix(f.base + 28, {4, 8}, {32, 1});  // its last elements are the next row's first of `x`
  CHECK(test::says(f.launch(), {"overlaps that of `x`"}));
}

TEST_CASE("a result whose rows share memory is refused, an argument may repeat itself") {
  Bench f;
  f.out.sum = Matrix(f.base + 200, {4, 8}, {0, 1});
  CHECK(f.launch() ==
        "both: the result's buffer overlaps itself (argument `sum`, axis `tokens`): found a stride of 0, expected 8 or "
        "more. Give the result a buffer of its own, without broadcast or overlapping rows");
  f.out.sum = Matrix(f.base + 200, {4, 8}, {7, 1});
  CHECK(test::says(f.launch(), {"axis `tokens`", "found a stride of 7, expected 8 or more"}));
  f.out.sum = Matrix(f.base + 200, {1, 8}, {0, 1});
  f.in = {.x = Matrix(f.base, {1, 8}, {0, 1}), .y = Matrix(f.base + 100, {1, 8}, {0, 1})};
  f.out.difference = Matrix(f.base + 300, {1, 8}, {0, 1});
  CHECK(f.launch() == "no error");  // one row: its stride says nothing
  f = Bench();
  f.in.y = Matrix(f.base + 100, {4, 8}, {0, 1});
  CHECK(f.launch() == "no error");
  CHECK(f.base[200 + 3 * 8] == 24.0F + 100.0F);
}

TEST_CASE("an argument may be read backwards, and overlaps where it reaches back") {
  Bench f;
  f.in.x = Matrix(f.base + 24, {4, 8}, {-8, 1});
  REQUIRE(f.launch() == "no error");
  CHECK(f.base[200] == 24.0F + 100.0F);
  CHECK(f.base[200 + 3 * 8] == 0.0F + 124.0F);
  f.in.x = Matrix(f.base + 240, {4, 8}, {-8, 1});
  CHECK(test::says(f.launch(), {"overlaps that of `x` (argument `sum`)"}));
}

TEST_CASE("strides that leave the address space are refused") {
  Bench f;
  f.in.x = Matrix(f.base, {4, 8}, {std::int64_t{1} << 62, 1});
  CHECK(
      test::says(f.launch(), {"the buffer's strides overflow", "argument `x`, axis `tokens`", "4611686018427387904"}));
  f = Bench();
  f.in.x = Matrix(f.base, {3, 8}, {-(std::int64_t{1} << 62), 1});  // the last row lies 2^63 elements before the first
  CHECK(
      test::says(f.launch(), {"the buffer's strides overflow", "argument `x`, axis `tokens`", "-4611686018427387904"}));
  f = Bench();
  f.in.x = Matrix(f.base, {1LL << 40, 8});
  CHECK(test::says(f.launch(), {"argument `x`, axis `tokens`", "found 1099511627776 along dimension 0"}));
}

TEST_CASE("a result that no memory holds is refused before memory is asked for") {
  const auto outer = function("outer", [](const OuterArguments<Tensor>& in) { return in.a * in.b; });
  const auto step = compile(outer, extents<Tokens, Hidden>(from_to(1, 1 << 30), 1 << 20));
  float element = 1;
  const OuterArguments<Buffer> args{.a = Buffer<f32(Tokens, Pair)>(&element, {1 << 30, 2}, {0, 1}),
                                    .b = Buffer<f32(Hidden)>(&element, {1 << 20})};
  CHECK(test::says(message_of([&] { step(Stream(), args); }),
                   {"outer: the result cannot be addressed (argument `value`, axis `tokens`): found 1073741824",
                    "at most 281474976710656 elements"}));
}

TEST_CASE("a buffer that was left out is named") {
  Bench f;
  f.in.y = {};
  CHECK(f.launch() ==
        "both: argument `y` is null (argument `y`): found no memory, expected a buffer over tokens, hidden. Give it a "
        "buffer");
  f = Bench();
  f.out.difference = {};
  CHECK(test::says(f.launch(), {"both: argument `difference` is null", "Give it a buffer"}));
  f = Bench();
  f.in.x.data = nullptr;
  CHECK(test::says(f.launch(), {"both: argument `x` is null", "Give it a buffer"}));
}

TEST_CASE("an argument that the function does not read may be left out") {
  const auto squares = function("squares", [](const TwoMatrices<Tensor>& in) { return square(in.x); });
  const auto step = compile(squares, extents<Tokens, Hidden>(from_to(1, 4), 8));
  const auto x = allocate<f32(Tokens, Hidden)>({3, 8});
  std::fill_n(x.data, 24, 3.0F);
  CHECK(step(Stream(), {.x = x, .y = {}}).value.data[23] == 9.0F);
  CHECK(test::says(message_of([&] { step(Stream(), {.x = {}, .y = x}); }), {"squares: argument `x` is null"}));
}

TEST_CASE("a vector or a number that was left out is named, an empty one is not") {
  const auto scaled = function("scaled", [](const VectorArguments<Tensor>& in) {
    return VectorResults<Tensor>{.y = in.x * in.weight, .total = sum<Tokens, Hidden>(in.x * in.weight) * in.scale};
  });
  const auto step = compile(scaled, extents<Tokens, Hidden>(from_to(0, 4), 8));
  const Storage memory(1 << 16);
  auto* base = static_cast<float*>(memory.data());
  std::fill_n(base, 1000, 1.0F);
  const VectorArguments<Buffer> good{.x = Matrix(base, {4, 8}),
                                     .weight = Buffer<f32(Hidden)>(base + 100, {8}),
                                     .scale = Buffer<f32()>(base + 120, {})};
  const VectorResults<Buffer> out{.y = Matrix(base + 200, {4, 8}), .total = Buffer<f32()>(base + 300, {})};
  const auto launch = [&](const VectorArguments<Buffer>& in, const VectorResults<Buffer>& results) {
    return message_of([&] { step.into(Stream(), in, results, base + 4096, std::size_t{1} << 14); });
  };
  CHECK(launch(good, out) == "no error");
  CHECK(base[300] == 32.0F);
  VectorArguments<Buffer> in = good;
  in.weight = {};
  CHECK(test::says(launch(in, out), {"scaled: argument `weight` is null", "expected a buffer over hidden"}));
  in = good;
  in.scale = {};
  CHECK(test::says(launch(in, out), {"scaled: argument `scale` is null", "expected one element"}));
  VectorResults<Buffer> results = out;
  results.total = {};
  CHECK(test::says(launch(good, results), {"scaled: argument `total` is null", "expected one element"}));
  in = good;
  in.x = Matrix(nullptr, {0, 8});
  results = out;
  results.y = Matrix(nullptr, {0, 8});
  CHECK(launch(in, results) == "no error");
  CHECK(base[300] == 0.0F);
}

TEST_CASE("a result in place is written where its input lies, and refuses another buffer") {
  const auto step = compile(doubled, extents<Tokens, Hidden>(4, 8));
  const Storage memory(1 << 16);
  auto* base = static_cast<float*>(memory.data());
  for (int i = 0; i < 1000; ++i) base[i] = static_cast<float>(i);
  TwoMatrices<Buffer> in{.x = Matrix(base, {4, 8}), .y = Matrix(base + 100, {4, 8})};
  DoubledInPlace<Buffer> out;
  const auto launch = [&] {
    return message_of([&] { step.into(Stream(), in, out, base + 4096, std::size_t{1} << 14); });
  };
  CHECK(launch() == "no error");
  CHECK(base[5] == 10.0F);
  out.x = in.x;
  CHECK(launch() == "no error");
  CHECK(base[5] == 20.0F);
  out.x = Matrix(base + 300, {4, 8});
  CHECK(test::says(launch(), {"doubled: a result in place has a buffer of its own (argument `x`): found 0x",
                              "that of `x`", "Leave the result's buffer empty"}));
  out.x = Matrix(base, {4, 8}, {16, 1});
  CHECK(test::says(launch(), {"other strides than its input (argument `x`, axis `tokens`): found a stride of 16",
                              "expected 8, that of `x`"}));
  out = {};
  in.x = Matrix(base, {4, 8}, {4, 1});
  CHECK(test::says(launch(), {"the result's buffer overlaps itself (argument `x`, axis `tokens`)"}));
  in.x = Matrix(base, {4, 8});
  in.y = Matrix(base + 8, {4, 8});
  CHECK(test::says(launch(), {"the result's buffer overlaps that of `y` (argument `x`)"}));
}
