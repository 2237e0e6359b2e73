// Numbers arrive as they were written or are refused: scalars of the host, literals, floats that become integers.
#include <cmath>
#include <limits>

#include "tests/runtime/error_text.hpp"
#include "tigon/linearize.hpp"
#include "tigon/ops/cross_entropy.hpp"
#include "tigon/tigon.hpp"

namespace {

using namespace tigon;
using test::message_of;
using test::says;

struct Tokens : axis<"tokens"> {};
struct Vocab : axis<"vocab"> {};

constexpr i64 beyond_f64 = (i64{1} << 53) + 1;  // the first whole number that f64 rounds
constexpr i64 lowest = std::numeric_limits<i64>::min(), highest = std::numeric_limits<i64>::max();

template <template <class> class Slot>
struct ScaledArgs {
  TIGON_ARGS(ScaledArgs, (Slot<f32(Tokens)>, x), (Slot<scalar<i64>>, whole), (Slot<scalar<f64>>, real),
             (Slot<scalar<bf16>>, half), (Slot<scalar<bool>>, truth), (Slot<scalar<i32>>, small));
};
template <template <class> class Slot>
struct ScaledOut {
  TIGON_OUT(ScaledOut, (Slot<i64(Tokens)>, whole), (Slot<f64(Tokens)>, real), (Slot<f32(Tokens)>, half),
            (Slot<bool(Tokens)>, truth), (Slot<i32(Tokens)>, small));
};
template <template <class> class Slot>
struct IndexArgs {
  TIGON_ARGS(IndexArgs, (Slot<i32(Tokens)>, i), (Slot<f32(Tokens, Vocab)>, x));
};
template <template <class> class Slot>
struct FloatArgs {
  TIGON_ARGS(FloatArgs, (Slot<f32(Tokens)>, x), (Slot<f64(Tokens)>, wide), (Slot<bf16(Tokens)>, half));
};
template <template <class> class Slot>
struct WholeOut {
  TIGON_OUT(WholeOut, (Slot<i32(Tokens)>, x32), (Slot<i64(Tokens)>, x64), (Slot<i32(Tokens)>, wide32),
            (Slot<i64(Tokens)>, wide64), (Slot<i32(Tokens)>, half32), (Slot<i64(Tokens)>, half64));
};

template <template <class> class Slot>
struct EndsArgs {
  TIGON_ARGS(EndsArgs, (Slot<i32(Tokens, Vocab)>, i), (Slot<i64(Tokens, Vocab)>, wide));
};
template <template <class> class Slot>
struct EndsOut {
  TIGON_OUT(EndsOut, (Slot<i32(Tokens)>, highest), (Slot<i32(Tokens)>, lowest), (Slot<i64(Vocab)>, columns_high),
            (Slot<i64(Vocab)>, columns_low), (Slot<i32()>, all_high), (Slot<i64()>, all_low),
            (Slot<i64(Tokens)>, highest_at), (Slot<i64(Tokens)>, lowest_at));
};

template <class Integer>
Integer nearest(double value) {
  constexpr double end = -static_cast<double>(std::numeric_limits<Integer>::min());
  if (std::isnan(value)) return 0;
  if (value >= end) return std::numeric_limits<Integer>::max();
  return value < -end ? std::numeric_limits<Integer>::min() : static_cast<Integer>(value);
}

}  // namespace

TEST_CASE("scalars of every dtype reach the kernel with all their bits") {
  const auto f = function("scaled", [](const ScaledArgs<Tensor>& in) {
    const auto one = where(in.x == in.x, 1, 0);
    return ScaledOut<Tensor>{.whole = one * in.whole,
                             .real = one * in.real,
                             .half = one * cast<f32>(in.half),
                             .truth = in.x == in.x && in.truth,
                             .small = one * in.small};
  });
  const auto step = compile(f, extents<Tokens>(3));
  float x[3] = {1, 2, 3};
  ScaledArgs<Buffer> args{.x = Buffer<f32(Tokens)>(x, {3})};
  for (const i64 whole : {beyond_f64, -beyond_f64, lowest, highest, lowest + 1, highest - 1, i64{0}, i64{-1}}) {
    args.whole = whole;
    args.real = 0.1;
    args.half = to_bf16(1.5F);
    args.truth = whole % 2 == 0;
    args.small = static_cast<i32>(whole);
    const auto out = step(Stream(), args);
    CHECK(out.whole.data[2] == whole);
    CHECK(out.real.data[1] == 0.1);
    CHECK(out.half.data[0] == 1.5F);
    CHECK(out.truth.data[0] == (whole % 2 == 0));
    CHECK(out.small.data[2] == static_cast<i32>(whole));
  }
}

TEST_CASE("linearize keeps scalars exactly, and refuses another number of them") {
  const auto f = function("slope", [](const ScaledArgs<Tensor>& in) {
    return in.x * cast<f32>(in.whole - (beyond_f64 - 1)) * cast<f32>(in.real);
  });
  const auto both = compile(linearize(f, wrt<"x">), extents<Tokens>(2));
  float x[2] = {3, 4}, dy[2] = {1, 10};
  const auto forward = both.forward(
      Stream(),
      {.x = Buffer<f32(Tokens)>(x, {2}), .whole = beyond_f64, .real = 2.0, .half = bf16{}, .truth = false, .small = 0});
  CHECK(forward.out.value.data[1] == 8);
  const auto backward = [&](const Saved& saved) {
    return both.backward(Stream(), saved, {.value = Buffer<f32(Tokens)>(dy, {2})}).x.buffer();
  };
  const auto dx = backward(forward.saved);
  CHECK(dx.data[0] == 2);
  CHECK(dx.data[1] == 20);
  for (const std::size_t count : {0, 1, 4, 6, 100}) {
    Saved saved = forward.saved;
    saved.scalars.resize(count);
    CHECK(says(message_of([&] { backward(saved); }),
               {"slope/backward: the arguments hold another number of scalars than the function was compiled for",
                "found " + std::to_string(count) + ", expected 5"}));
  }
  Saved fewer = forward.saved;
  fewer.arguments.pop_back();
  CHECK(says(message_of([&] { backward(fewer); }), {"another number of buffers", "found ", "expected "}));
  Saved more = forward.saved;
  more.values.resize(more.values.size() + 100);
  CHECK(says(message_of([&] { backward(more); }), {"another number of buffers", "found ", "expected "}));
}

TEST_CASE("a number that an integer does not hold is refused, whatever it meets") {
  const auto refusal = [](auto body) {
    return message_of([&] { (void)function("f", [&](const IndexArgs<Tensor>& in) { return body(in); }).trace(); });
  };
  CHECK(refusal([](const auto& in) { return in.i == 4294967299l; }) ==
        "f: a number is written that i32 does not hold: found 4294967299, expected a whole number from -2147483648 to "
        "2147483647. Cast the tensor that it meets: cast<i64>(x) holds more, cast<f32>(x) fractions");
  CHECK(says(refusal([](const auto& in) { return in.i + 10000000000l; }), {"i32", "found 10000000000"}));
  CHECK(says(refusal([](const auto& in) { return clamp(in.i, -2147483649l, 0); }), {"found -2147483649"}));
  CHECK(says(refusal([](const auto& in) { return where(in.i > 0, in.i, 1l << 40); }), {"found 1099511627776"}));
  CHECK(says(refusal([](const auto& in) { return at<Vocab>(in.x, ~0ull); }), {"i64", "found 18446744073709551615"}));
  CHECK(says(refusal([](const auto& in) { return in.i + number<i32>(1e20); }), {"i32", "found 1e+20"}));
  CHECK(says(refusal([](const auto& in) { return in.i + number<i32>(2.5); }), {"found 2.5"}));
  CHECK(says(refusal([](const auto& in) { return in.i + number<i64>(std::nan("")); }), {"i64", "found nan"}));
  CHECK(says(refusal([](const auto&) { return number<bool>(2); }), {"bool", "found 2, expected 0 or 1"}));
  CHECK(says(refusal([](const auto& in) { return at<Tokens>(in.i, iota<Tokens>() - 1, fill(0.5)); }), {"found 0.5"}));
  CHECK(says(refusal([](const auto& in) { return in.x + 1e39; }), {"f32", "found 1e+39", "or an infinity"}));
  CHECK(says(refusal([](const auto&) { return number<f16>(65520); }), {"f16", "found 65520", "-65504 to 65504"}));
  CHECK(says(refusal([](const auto& in) {
               return ops::cross_entropy<Vocab>(in.x, in.i, {.ignore_index = (i64{1} << 32) + 3});
             }),
             {"i32", "found 4294967299"}));
}

TEST_CASE("numbers at the ends of a dtype's range are held") {
  const auto f = function("f", [](const IndexArgs<Tensor>& in) {
    const auto ends = (in.i == -2147483648l) || (in.i == 2147483647l) || (in.i == number<i32>(-2147483648.0));
    const auto wide = where(ends, number<i64>(highest), number<i64>(lowest)) + 0;
    return where(in.i == 7, number<i64>(beyond_f64), wide);
  });
  const auto step = compile(f, extents<Tokens, Vocab>(4, 1));
  i32 i[4] = {std::numeric_limits<i32>::min(), std::numeric_limits<i32>::max(), 0, 7};
  float x[4] = {};
  const auto out = step(Stream(), {.i = Buffer<i32(Tokens)>(i, {4}), .x = Buffer<f32(Tokens, Vocab)>(x, {4, 1})});
  CHECK(out.value.data[0] == highest);
  CHECK(out.value.data[1] == highest);
  CHECK(out.value.data[2] == lowest);
  CHECK(out.value.data[3] == beyond_f64);
  const auto floats = function("g", [](const IndexArgs<Tensor>& in) {
    return in.x + static_cast<double>(std::numeric_limits<float>::max()) - std::numeric_limits<double>::infinity();
  });
  CHECK(compile(floats, extents<Tokens, Vocab>(4, 1))(
            Stream(), {.i = Buffer<i32(Tokens)>(i, {4}), .x = Buffer<f32(Tokens, Vocab)>(x, {4, 1})})
            .value.data[0] == -std::numeric_limits<float>::infinity());
}

TEST_CASE("a float becomes the nearest integer towards zero, in range, and NaN becomes 0") {
  const auto f = function("whole", [](const FloatArgs<Tensor>& in) {
    return WholeOut<Tensor>{.x32 = cast<i32>(in.x),
                            .x64 = cast<i64>(in.x),
                            .wide32 = cast<i32>(in.wide),
                            .wide64 = cast<i64>(in.wide),
                            .half32 = cast<i32>(in.half),
                            .half64 = cast<i64>(in.half)};
  });
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> samples = {0,           -0.0,         0.75,           -0.75,        2.9999999,
                                       -1234.5,     2147483520.0, 2147483647.0,   2147483648.0, -2147483648.0,
                                       -2147483649, 4294967299.0, 1e18,           -1e18,        9223372036854774784.0,
                                       0x1p63,      -0x1p63,      -0x1.000001p63, 1e30,         -1e30,
                                       infinity,    -infinity,    std::nan(""),   16777217.0,   -2147483647.5};
  // Rows that end in every place of a vector.
  for (const std::int64_t count : {1, 3, 25, 67}) {
    std::vector<double> wide;
    std::vector<float> x;
    std::vector<bf16> half;
    for (std::int64_t k = 0; k < count; ++k) {
      wide.push_back(samples[static_cast<std::size_t>(k) % samples.size()]);
      x.push_back(static_cast<float>(wide.back()));
      half.push_back(to_bf16(x.back()));
    }
    const auto step = compile(f, extents<Tokens>(count));
    const auto out = step(Stream(), {.x = Buffer<f32(Tokens)>(x.data(), {count}),
                                     .wide = Buffer<f64(Tokens)>(wide.data(), {count}),
                                     .half = Buffer<bf16(Tokens)>(half.data(), {count})});
    for (std::int64_t k = 0; k < count; ++k) {
      INFO("element " << k << " of " << count << ": " << wide[static_cast<std::size_t>(k)]);
      const double single = static_cast<double>(x[static_cast<std::size_t>(k)]);
      const double rounded = static_cast<double>(to_f32(half[static_cast<std::size_t>(k)]));
      CHECK(out.x32.data[k] == nearest<i32>(single));
      CHECK(out.x64.data[k] == nearest<i64>(single));
      CHECK(out.wide32.data[k] == nearest<i32>(wide[static_cast<std::size_t>(k)]));
      CHECK(out.wide64.data[k] == nearest<i64>(wide[static_cast<std::size_t>(k)]));
      CHECK(out.half32.data[k] == nearest<i32>(rounded));
      CHECK(out.half64.data[k] == nearest<i64>(rounded));
    }
  }
}

TEST_CASE("a clamped lookup by a float that is no number of the axis takes its ends") {
  const auto f = function("look", [](const IndexArgs<Tensor>& in) {
    const auto number = at<Vocab>(in.x, 0);
    const auto small = at<Tokens>(in.i, cast<i32>(number), clamped),
               wide = at<Tokens>(in.i, cast<i64>(number), clamped);
    return small * 100 + wide;
  });
  const auto step = compile(f, extents<Tokens, Vocab>(5, 1));
  i32 i[5] = {10, 11, 12, 13, 14};
  float x[5] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), NAN, 1e20F, 2.5F};
  const auto out = step(Stream(), {.i = Buffer<i32(Tokens)>(i, {5}), .x = Buffer<f32(Tokens, Vocab)>(x, {5, 1})});
  CHECK(std::vector<i32>(out.value.data, out.value.data + 5) == std::vector<i32>{1414, 1010, 1010, 1414, 1212});
}

TEST_CASE("the largest and smallest of integers, over rows, columns and both, fused or not") {
  const auto f = function("ends", [](const EndsArgs<Tensor>& in) {
    return EndsOut<Tensor>{.highest = max<Vocab>(in.i),
                           .lowest = min<Vocab>(in.i),
                           .columns_high = max<Tokens>(in.wide),
                           .columns_low = min<Tokens>(in.wide),
                           .all_high = max<Tokens, Vocab>(in.i),
                           .all_low = min<Tokens, Vocab>(in.wide),
                           .highest_at = argmax<Vocab>(in.i),
                           .lowest_at = argmin<Vocab>(in.wide)};
  });
  for (const bool unfused : {false, true}) {
    for (const std::int64_t rows : {1, 3, 700}) {
      for (const std::int64_t columns : {1, 19, 300}) {
        std::vector<i32> small(static_cast<std::size_t>(rows * columns));
        std::vector<i64> wide(small.size());
        for (std::size_t k = 0; k < small.size(); ++k) {
          const int sign = static_cast<std::int64_t>(k) / columns % 2 == 0 ? -1 : 1;  // rows of one sign
          small[k] = sign * static_cast<i32>(1000 + k % 777);
          wide[k] = (columns == 19 ? -1 : 1) * (i64{1} << 40) - static_cast<i64>(k % 777);
        }
        const auto step = compile(f, extents<Tokens, Vocab>(rows, columns), {.unfused = unfused});
        const auto out = step(Stream(), {.i = Buffer<i32(Tokens, Vocab)>(small.data(), {rows, columns}),
                                         .wide = Buffer<i64(Tokens, Vocab)>(wide.data(), {rows, columns})});
        INFO(rows << " x " << columns << ", unfused " << unfused);
        for (std::int64_t row = 0; row < rows; ++row) {
          const auto begin = small.begin() + row * columns;
          CHECK(out.highest.data[row] == *std::max_element(begin, begin + columns));
          CHECK(out.lowest.data[row] == *std::min_element(begin, begin + columns));
          const auto wides = wide.begin() + row * columns;
          CHECK(out.highest_at.data[row] == std::max_element(begin, begin + columns) - begin);
          CHECK(out.lowest_at.data[row] == std::min_element(wides, wides + columns) - wides);
        }
        for (std::int64_t column = 0; column < columns; ++column) {
          i64 high = lowest, low = highest;
          for (std::int64_t row = 0; row < rows; ++row) {
            high = std::max(high, wide[static_cast<std::size_t>(row * columns + column)]);
            low = std::min(low, wide[static_cast<std::size_t>(row * columns + column)]);
          }
          CHECK(out.columns_high.data[column] == high);
          CHECK(out.columns_low.data[column] == low);
        }
        CHECK(*out.all_high.data == *std::max_element(small.begin(), small.end()));
        CHECK(*out.all_low.data == *std::min_element(wide.begin(), wide.end()));
      }
    }
  }
}
