// Extents given to compile: unknown and repeated axes, ranges that kernels cannot leave open, launches outside a range.
#include "tests/runtime/error_text.hpp"
#include "tigon/linearize.hpp"
#include "tigon/tigon.hpp"

namespace {

using namespace tigon;
using test::message_of;
using test::says;

struct Tokens : axis<"tokens"> {};
struct Hidden : axis<"hidden"> {};
struct Heads : axis<"heads"> {};
struct Channels : axis<"channels"> {};
struct Pair : axis<"pair", 2> {};

template <template <class> class Slot>
struct WeightedArgs {
  TIGON_ARGS(WeightedArgs, (Slot<f32(Tokens, Hidden)>, x), (Slot<f32(Hidden)>, weight));
};
const auto weighted =
    function("weighted", [](const WeightedArgs<Tensor>& in) { return sum<Hidden>(exp(in.x - 1) * in.weight); });

template <template <class> class Slot>
struct PairedArgs {
  TIGON_ARGS(PairedArgs, (Slot<f32(Tokens, Pair)>, x));
};
const auto paired = function("paired", [](const PairedArgs<Tensor>& in) { return sum<Pair>(in.x * 2); });

template <template <class> class Slot>
struct SharedOut {
  TIGON_OUT(SharedOut, (Slot<inplace<"x", f32(Tokens, Hidden)>>, x));
};

struct Bench {
  Owned<f32(Tokens, Hidden)> x = allocate<f32(Tokens, Hidden)>({64, 16});
  Owned<f32(Hidden)> weight = allocate<f32(Hidden)>({16});
  Bench() {
    std::fill_n(x.data, 64 * 16, 1.0F);
    std::fill_n(weight.data, 16, 0.5F);
  }
  WeightedArgs<Buffer> args(std::int64_t tokens) const {
    return {.x = Buffer<f32(Tokens, Hidden)>(x.data, {tokens, 16}), .weight = weight};
  }
};

}  // namespace

TEST_CASE("an axis that the function does not have is refused") {
  CHECK(
      message_of([] { compile(weighted, extents<Tokens, Hidden, Heads>(4, 16, 2)); }) ==
      "weighted: the function does not have this axis (axis `heads`): expected one of tokens, hidden. Leave it out of "
      "extents<...>; axes are told apart by type, not by name");
  CHECK(says(message_of([] { compile(linearize(weighted, wrt<"weight">), extents<Tokens, Hidden, Heads>(4, 16, 2)); }),
             {"weighted: the function does not have this axis (axis `heads`)"}));
}

TEST_CASE("an axis that is given twice is refused") {
  Extents twice = extents<Tokens, Hidden>(4, 16);
  twice.push_back(extents<Tokens>(8)[0]);
  CHECK(message_of([&] { compile(weighted, twice); }) ==
        "weighted: the axis is given two extents (axis `tokens`): found 8, expected 4. Give it once");
}

TEST_CASE("a missing axis is named") {
  CHECK(message_of([] { compile(weighted, extents<Tokens>(4)); }) ==
        "weighted: the axis has no extent (axis `hidden`). Give it to compile in extents<...>(...)");
}

TEST_CASE("a launch outside the range of from_to is refused, inside it binds") {
  const Bench f;
  const auto step = compile(weighted, extents<Tokens, Hidden>(from_to(2, 8), 16));
  for (const std::int64_t tokens : {2, 5, 8}) {
    const auto out = step(Stream(), f.args(tokens));
    CHECK(out.value.extents[0] == tokens);
    CHECK(out.value.data[tokens - 1] == 8.0F);
  }
  for (const std::int64_t tokens : {0, 1, 9, 64}) {
    CHECK(message_of([&] { step(Stream(), f.args(tokens)); }) ==
          "weighted: the axis has an extent outside the range that the function was compiled for (argument `x`, axis "
          "`tokens`): found " +
              std::to_string(tokens) +
              ", expected 2 to 8. Compile with a range that holds it: "
              "from_to(low, high)");
    CHECK(says(message_of([&] { (void)step.workspace_bytes(f.args(tokens)); }), {"axis `tokens`", "expected 2 to 8"}));
  }
}

TEST_CASE("a range along an axis that kernels vectorise is refused at compile") {
  const std::string message = message_of([] { compile(weighted, extents<Tokens, Hidden>(4, from_to(8, 16))); });
  CHECK(
      message ==
      "weighted: the axis cannot be left to run time: kernels run along it and hold its extent (axis `hidden`): found "
      "from_to(8, 16), expected one extent. Give it one extent, and compile again for another");
}

TEST_CASE("a range for an axis whose type fixes it is refused") {
  CHECK(message_of([] { compile(paired, extents<Tokens, Pair>(4, from_to(1, 2))); }) ==
        "paired: a range is given for an axis whose type fixes the extent (axis `pair`): found from_to(1, 2), expected "
        "2. Leave the axis out");
  CHECK(
      says(message_of([] { compile(paired, extents<Tokens, Pair>(4, 3)); }), {"axis `pair`", "found 3", "expected 2"}));
  CHECK(message_of([] { compile(paired, extents<Tokens, Pair>(4, 2)); }) == "no error");
}

TEST_CASE("empty, negative and oversized ranges are refused") {
  for (const ExtentRange range : {from_to(8, 4), from_to(-1, 4), from_to(0, 1LL << 31), ExtentRange(-3)}) {
    CHECK(says(
        message_of([&] { compile(weighted, extents<Tokens, Hidden>(range, 16)); }),
        {"weighted: ", "axis `tokens`", "found " + std::to_string(range.low) + " to ", "0 <= low <= high < 2^31"}));
  }
}

TEST_CASE("a negative extent of a split, a slice or a padding is refused with its value") {
  const auto refusal = [](auto body) {
    return message_of([&] { (void)function("f", [&](const WeightedArgs<Tensor>& in) { return body(in); }).trace(); });
  };
  CHECK(refusal([](const auto& in) { return split<Hidden, Heads, Channels>(in.x, -7); }) ==
        "f: an axis is given a negative extent (axis `heads`): found -7, expected 0 or more. Leave it out where the "
        "extent "
        "follows from others");
  CHECK(says(refusal([](const auto& in) { return slice<Hidden, Channels>(in.x, 2, -5); }),
             {"axis `channels`", "found -5, expected 0 or more"}));
  CHECK(says(refusal([](const auto& in) { return pad<Hidden, Channels>(in.x, 2, 0, -20); }),
             {"axis `channels`", "found -20, expected 0 or more"}));
}

TEST_CASE("a result in place that is still read is named as its struct names it") {
  const auto reversed = function("reversed", [](const WeightedArgs<Tensor>& in) {
    return SharedOut<Tensor>{.x = in.x + at<Tokens>(in.x, extent<Tokens>() - 1 - iota<Tokens>())};
  });
  CHECK(says(message_of([&] { compile(reversed, extents<Tokens, Hidden>(4, 16)); }),
             {"reversed: `x` cannot overwrite its input", "(argument `x`)"}));
}

TEST_CASE("a range reaches through split axes") {
  const auto headed = function("headed", [](const WeightedArgs<Tensor>& in) {
    const auto heads = split<Hidden, Heads, Channels>(in.x, 4);
    return sum<Channels>(heads * heads);
  });
  CHECK(says(message_of([&] { compile(headed, extents<Tokens, Hidden>(4, from_to(8, 16))); }),
             {"headed: the axis cannot be left to run time", "axis `hidden`", "from_to(8, 16)"}));
  const auto tokens = function("tokens", [](const WeightedArgs<Tensor>& in) {
    const auto groups = split<Tokens, Heads, Channels>(in.x);
    return sum<Channels>(groups * in.weight);
  });
  const Bench f;
  const auto step = compile(tokens, extents<Tokens, Channels, Hidden>(from_to(4, 64), 4, 16));
  for (const std::int64_t count : {4, 8, 64}) {
    const auto out = step(Stream(), f.args(count));
    CHECK(out.value.extents[0] == count / 4);
    CHECK(out.value.data[0] == 2.0F);
  }
  CHECK(says(message_of([&] { step(Stream(), f.args(0)); }), {"axis `tokens`", "found 0, expected 4 to 64"}));
  CHECK(says(message_of([&] { step(Stream(), f.args(6)); }), {"axis `tokens`", "found 6", "a multiple of 4"}));
}
