// An index out of range is reported with its function, argument, value, place, axis and extent, whatever it was
// computed from.
#include "tests/runtime/error_text.hpp"
#include "tigon/ops/all.hpp"
#include "tigon/tigon.hpp"

namespace {

using namespace tigon;
using test::message_of;
using test::says;

struct Batch : axis<"batch"> {};
struct Tokens : axis<"tokens"> {};
struct Rows : axis<"rows"> {};
struct Hidden : axis<"hidden"> {};

template <template <class> class Slot>
struct LookupArgs {
  TIGON_ARGS(LookupArgs, (Slot<f32(Rows, Hidden)>, table), (Slot<i32(Batch, Tokens)>, ids), (Slot<i64(Tokens)>, offset),
             (Slot<scalar<i32>>, row));
};

struct Bench {
  Owned<f32(Rows, Hidden)> table = allocate<f32(Rows, Hidden)>({10, 16});
  Owned<i32(Batch, Tokens)> ids = allocate<i32(Batch, Tokens)>({3, 5});
  Owned<i64(Tokens)> offset = allocate<i64(Tokens)>({5});
  LookupArgs<Buffer> args{.table = table, .ids = ids, .offset = offset, .row = 0};
  Bench() {
    std::fill_n(table.data, 160, 1.0F);
    std::fill_n(ids.data, 15, 2);
    std::fill_n(offset.data, 5, 1);
  }
  template <class F>
  std::string launch(const F& f) const {
    const auto step = compile(f, extents<Batch, Tokens, Rows, Hidden>(3, 5, 10, 16));
    return message_of([&] { step(Stream(), args); });
  }
};

const auto embed =
    function("embed", [](const LookupArgs<Tensor>& in) { return ops::embedding<Rows>(in.table, in.ids); });

}  // namespace

TEST_CASE("an index argument that is out of range is named with its place") {
  for (const std::int32_t wrong : {10, -1, 2147483647}) {
    Bench f;
    f.ids.data[1 * 5 + 3] = wrong;
    const std::string message = f.launch(embed);
    INFO(message);
    CHECK(says(message, {"embed: an index of a checked lookup is out of range (", "(argument `ids`, axis `rows`)",
                         "found " + std::to_string(wrong) + " at batch = 1, tokens = 3, expected 0 to 9",
                         "fill(value) or clamped"}));
  }
  CHECK(Bench().launch(embed) == "no error");
}

TEST_CASE("the launch after a refused one works") {
  Bench f;
  const auto step = compile(embed, extents<Batch, Tokens, Rows, Hidden>(3, 5, 10, 16));
  f.ids.data[0] = 77;
  CHECK(says(message_of([&] { step(Stream(), f.args); }), {"found 77 at batch = 0, tokens = 0"}));
  f.ids.data[0] = 7;
  CHECK(message_of([&] { step(Stream(), f.args); }) == "no error");
}

TEST_CASE("an index that is computed names what it was computed from") {
  const auto moved =
      function("moved", [](const LookupArgs<Tensor>& in) { return at<Rows>(in.table, in.ids + in.offset); });
  Bench f;
  f.ids.data[14] = 9;
  const std::string message = f.launch(moved);
  INFO(message);
  CHECK(says(message, {"moved: ", "index_errors_test.cpp:", "argument `ids`, axis `rows`",
                       "found 10 at batch = 2, tokens = 4, computed from `ids`, `offset`", "expected 0 to 9"}));
}

TEST_CASE("a lookup in another lookup's result is told apart from it") {
  const auto chained = function(
      "chained", [](const LookupArgs<Tensor>& in) { return at<Rows>(in.table, at<Tokens>(in.offset, in.ids)); });
  Bench f;
  f.ids.data[6] = 5;  // the inner lookup, along tokens
  CHECK(
      says(f.launch(chained), {"argument `ids`, axis `tokens`", "found 5 at batch = 1, tokens = 1, expected 0 to 4"}));
  Bench g;
  g.offset.data[2] = 12;  // the outer one, along rows
  CHECK(says(g.launch(chained), {"axis `rows`", "found 12 at batch = 0, tokens = 0", "`offset`", "expected 0 to 9"}));
}

TEST_CASE("a host number as an index is named") {
  const auto one = function("one", [](const LookupArgs<Tensor>& in) { return at<Rows>(in.table, in.row); });
  Bench f;
  f.args.row = -3;
  CHECK(says(f.launch(one), {"one: ", "argument `row`, axis `rows`", "found -3, expected 0 to 9"}));
}

TEST_CASE("a target that is neither a class nor ignored is named by cross entropy and its gradient") {
  const auto nll = function("nll", [](const LookupArgs<Tensor>& in) {
    return ops::cross_entropy<Rows>(broadcast<Tokens>(sum<Hidden>(in.table)), in.offset);
  });
  Bench f;
  f.offset.data[0] = -100;  // ignored
  CHECK(f.launch(nll) == "no error");
  f.offset.data[4] = -99;
  CHECK(says(f.launch(nll), {"nll: ", "argument `offset`, axis `rows`", "found -99 at tokens = 4, expected 0 to 9"}));
  CHECK(says(f.launch(value_and_grad(nll, wrt<"table">)),
             {"argument `offset`, axis `rows`", "found -99 at tokens = 4, expected 0 to 9"}));
}

TEST_CASE("an index out of a reduction names the lookup, its axis and its arguments") {
  const auto counted =
      function("counted", [](const LookupArgs<Tensor>& in) { return at<Rows>(in.table, sum<Tokens>(in.ids)); });
  Bench f;  // each sum is 10
  const std::string message = f.launch(counted);
  INFO(message);
  CHECK(says(message, {"counted: an index of a checked lookup is out of range", "axis `rows` of extent 10 by `ids`",
                       "index_errors_test.cpp:"}));
}

template <template <class> class Slot>
struct RowInPlace {
  TIGON_OUT(RowInPlace, (Slot<inplace<"table", f32(Rows, Hidden)>>, table));
};

TEST_CASE("a launch that is refused for an index has not touched what it would have written over") {
  const auto shifted = function("shifted", [](const LookupArgs<Tensor>& in) {
    return RowInPlace<Tensor>{.table = in.table + cast<f32>(at<Tokens>(in.offset, in.row))};
  });
  Bench f;
  const auto step = compile(shifted, extents<Batch, Tokens, Rows, Hidden>(3, 5, 10, 16));
  for (int i = 0; i < 160; ++i) f.table.data[i] = static_cast<float>(i);
  f.args.row = 5;
  CHECK(says(message_of([&] { step(Stream(), f.args); }), {"`row`", "found 5", "expected 0 to 4"}));
  for (int i = 0; i < 160; ++i) REQUIRE(f.table.data[i] == static_cast<float>(i));
  f.args.row = 3;
  CHECK(message_of([&] { step(Stream(), f.args); }) == "no error");
  CHECK(f.table.data[7] == 8.0F);
}

TEST_CASE("an index that reads itself many times over is evaluated once") {
  Bench f;
  f.ids.data[0] = 1 << 20;
  const auto twice = function("twice", [](const LookupArgs<Tensor>& in) {
    auto index = in.ids;
    for (int i = 0; i < 60; ++i) index = index ^ (index >> 1);
    return at<Rows>(in.table, index);
  });
  std::int32_t expected = 1 << 20;
  for (int i = 0; i < 60; ++i) expected ^= expected >> 1;
  CHECK(says(f.launch(twice), {"argument `ids`", "found " + std::to_string(expected) + " at batch = 0, tokens = 0"}));
}

TEST_CASE("a reported index is the kernel's own, wrapped to 64 bits") {
  Bench f;
  std::fill_n(f.offset.data, 5, 3);
  const auto wraps = function("wraps", [](const LookupArgs<Tensor>& in) {
    return at<Rows>(in.table, in.offset * 4611686018427387904L * 2 + 1000);  // 3 * 2^63 + 1000
  });
  CHECK(says(f.launch(wraps), {"found -9223372036854774808 at tokens = 0"}));
  const auto exact = function("exact", [](const LookupArgs<Tensor>& in) {
    return at<Rows>(in.table, in.offset + 9007199254740990L);  // 2^53 + 1 has no f64
  });
  CHECK(says(f.launch(exact), {"found 9007199254740993 at tokens = 0"}));
  const auto back = function("back", [](const LookupArgs<Tensor>& in) {
    return at<Rows>(in.table, in.offset * 4611686018427387904L * 4 + 1);  // 3 * 2^64 + 1
  });
  CHECK(f.launch(back) == "no error");
}
