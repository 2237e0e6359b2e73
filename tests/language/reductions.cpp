// Reductions, views, gathers and scatters as graphs.
#include <catch2/catch.hpp>

#include "tests/language/support.hpp"

using namespace tigon;
using Args = XYArgs<Tensor>;

TEST_CASE("reductions keep the other axes") {
  CHECK(traced([](Args in) { return sum<Hidden>(in.x); }) == "sum<hidden>(x) : f32[tokens]");
  CHECK(traced([](Args in) { return sum<Tokens, Hidden>(in.x); }) == "sum<tokens,hidden>(x) : f32[]");
  CHECK(traced([](Args in) { return sum<Tokens>(in.b); }) == "sum<tokens>(i32(b)) : i32[]");
  CHECK(traced([](Args in) { return sum<Tokens>(in.h); }) == "sum<tokens>(f32(h)) : f32[]");
  CHECK(traced([](Args in) { return product<Hidden>(in.x); }) == "product<hidden>(x) : f32[tokens]");
  CHECK(traced([](Args in) { return max<Hidden>(in.x); }) == "max<hidden>(x) : f32[tokens]");
  CHECK(traced([](Args in) { return min<Tokens>(in.i); }) == "min<tokens>(i) : i32[]");
  CHECK(traced([](Args in) { return argmax<Hidden>(in.x); }) == "argmax<hidden>(x).index : i64[tokens]");
  CHECK(traced([](Args in) { return argmin<Tokens>(in.h); }) == "argmin<tokens>(f32(h)).index : i64[]");
  CHECK(traced([](Args in) { return any<Tokens>(in.b); }) == "any<tokens>(b) : bool[]");
  CHECK(traced([](Args in) { return all<Tokens>(in.i); }) == "all<tokens>(not_equal(i, 0i32)) : bool[]");
  CHECK(traced([](Args in) { return logsumexp<Hidden>(in.x); }) == "logsumexp<hidden>(x).lse : f32[tokens]");
}

TEST_CASE("means divide by extents") {
  CHECK(traced([](Args in) { return mean<Hidden>(in.x); }) == "div(sum<hidden>(x), f32(extent(hidden))) : f32[tokens]");
  CHECK(traced([](Args in) { return mean<Tokens, Hidden>(in.x); }) ==
        "div(sum<tokens,hidden>(x), f32(mul(extent(tokens), extent(hidden)))) : f32[]");
  CHECK(traced([](Args in) { return mean<Tokens>(in.i); }) == "div(sum<tokens>(f32(i)), f32(extent(tokens))) : f32[]");
  CHECK(traced([](Args in) { return masked_mean<Tokens>(in.h, in.b); }) ==
        "div(sum<tokens>(where(b, f32(h), 0)), f32(max(sum<tokens>(i32(b)), 1i32))) : f32[]");
}

TEST_CASE("one state has several finishes") {
  CHECK(traced([](Args in) {
          const auto m = moments<Hidden>(in.x);
          return m.mean + m.variance;
        }) == "add(moments<hidden>(x).mean, moments<hidden>(x).variance) : f32[tokens]");
  CHECK(traced([](Args in) {
          const auto parts = log_softmax_parts<Hidden>(in.x);
          return parts.max * parts.log_rest;
        }) == "mul(logsumexp<hidden>(x).max, logsumexp<hidden>(x).log_rest) : f32[tokens]");
  CHECK(traced([](Args in) { return log_softmax<Hidden>(in.x); }) ==
        "sub(sub(x, logsumexp<hidden>(x).max), logsumexp<hidden>(x).log_rest) : f32[tokens,hidden]");
  CHECK(traced([](Args in) { return softmax<Hidden>(in.x); }) ==
        "attach(exp(sub(sub(x, where(not_equal(logsumexp<hidden>(x).max, -inf), logsumexp<hidden>(x).max, 0)), "
        "logsumexp<hidden>(x).log_rest)), mul(sub(sub(x, logsumexp<hidden>(x).max), logsumexp<hidden>(x).log_rest), "
        "attach(exp(sub(sub(x, where(not_equal(logsumexp<hidden>(x).max, -inf), logsumexp<hidden>(x).max, 0)), "
        "logsumexp<hidden>(x).log_rest))))) : f32[tokens,hidden]");
}

TEST_CASE("dot is the sum of the product") {
  const auto contraction = [](Args in) { return dot<Hidden>(in.x, in.y); };
  const auto spelled_out = [](Args in) { return sum<Hidden>(in.x * in.y); };
  CHECK(traced(contraction) == "sum<hidden>(mul(x, y)) : f32[tokens]");
  CHECK(traced(contraction) == traced(spelled_out));
}

TEST_CASE("rename, split, merge and broadcast are views") {
  struct Keys : tigon::axis<"keys"> {};
  CHECK(traced([](Args in) { return dot<Hidden>(in.x, rename<Tokens, Keys>(in.x)); }) ==
        "sum<hidden>(mul(x, view<tokens=keys>(x))) : f32[tokens,keys]");
  CHECK(traced([](Args in) { return split<Hidden, Two, Half>(in.x); }) ==
        "view<hidden=two*half>(x) : f32[tokens,two,half]");
  struct All : tigon::axis<"all"> {};
  CHECK(traced([](Args in) { return merge<Tokens, Hidden, All>(in.x); }) ==
        "view<tokens=all/hidden, hidden=all%hidden>(x) : f32[all]");
  CHECK(traced([](Args in) { return broadcast<Tokens>(in.y); }) == "view<+tokens>(y) : f32[hidden,tokens]");
  CHECK(traced([](Args in) { return broadcast<Tokens>(in.x); }) == "x : f32[tokens,hidden]");
}

TEST_CASE("at gathers by any integer expression") {
  CHECK(traced([](Args in) { return at<Hidden>(in.x, in.i); }) == "at<hidden>(x, i) : f32[tokens]");
  CHECK(traced([](Args in) { return at<Hidden>(in.x, 0, clamped); }) == "at<hidden clamp>(x, 0i64) : f32[tokens]");
  CHECK(traced([](Args in) { return at<Tokens>(in.h, in.i, fill(-1)); }) == "at<tokens fill -1>(h, i) : bf16[tokens]");
  CHECK(traced([](Args in) { return shift<Hidden>(in.x, 1); }) ==
        "at<hidden fill 0>(x, sub(iota(hidden), 1i64)) : f32[tokens,hidden]");
  CHECK(traced([](Args in) { return flip<Hidden>(in.y); }) ==
        "at<hidden fill 0>(y, sub(sub(extent(hidden), 1i64), iota(hidden))) : f32[hidden]");
}

TEST_CASE("slices, pads, stacks and concatenations stand on gathers") {
  CHECK(traced([](Args in) { return slice<Hidden, Half>(in.y, 4, 8); }) ==
        "at<hidden>(y, add(iota(half), 4i64)) : f32[half]");
  struct Padded : tigon::axis<"padded"> {};
  CHECK(traced([](Args in) { return pad<Hidden, Padded>(in.y, 2, 1.5); }) ==
        "at<hidden fill 1.5>(y, sub(iota(padded), 2i64)) : f32[padded]");
  CHECK(traced([](Args in) { return stack<Two>(in.y, in.y * 2); }) ==
        "where(equal(iota(two), 0i64), y, view<+two>(mul(y, 2))) : f32[hidden,two]");
  struct First : tigon::axis<"first", 2> {};
  struct Second : tigon::axis<"second", 3> {};
  CHECK(traced([](Args in) {
          return concat<Hidden, First, Second>(slice<Hidden, First>(in.y, 0), slice<Hidden, Second>(in.y, 2));
        }) ==
        "where(less(iota(hidden), 2i64), at<first fill 0>(at<hidden>(y, iota(first)), iota(hidden)), "
        "at<second fill 0>(at<hidden>(y, add(iota(second), 2i64)), sub(iota(hidden), 2i64))) : f32[hidden]");
}

TEST_CASE("scatter_add sums the index's axes away") {
  CHECK(traced([](Args in) { return scatter_add<Vocab>(in.x, in.i); }) ==
        "scatter<vocab over tokens>(x, i) : f32[hidden,vocab]");
  CHECK(traced([](Args in) { return scatter_add<Vocab, Tokens, Hidden>(in.x, in.i); }) ==
        "scatter<vocab over tokens,hidden>(x, i) : f32[vocab]");
}

TEST_CASE("a split may fix an extent for its use only") {
  struct Groups : tigon::axis<"groups"> {};
  struct Per : tigon::axis<"per"> {};
  const auto normalise = [](auto x, std::int64_t groups) {
    const auto g = split<Hidden, Groups, Per>(x, groups);
    return merge<Groups, Per, Hidden>(g - mean<Per>(g));
  };
  const auto f = tigon::function("two_norms", [&](Args in) { return normalise(normalise(in.y, 4), 8); });
  const auto graph = f.trace();
  std::vector<std::int64_t> group_extents;
  for (const tigon::dsl::AxisInfo& axis : graph->axes) {
    if (axis.name.starts_with("groups")) group_extents.push_back(axis.fixed);
  }
  CHECK(group_extents == std::vector<std::int64_t>{4, 8});
  // Both splits hold of one extent of hidden.
  tigon::dsl::Extents extents(graph->axes.size(), -1);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (graph->axes[i].name == "hidden") extents[i] = 64;
  }
  const tigon::dsl::Extents solved = tigon::dsl::resolve_extents(*graph, extents);
  std::vector<std::int64_t> per;
  for (std::size_t i = 0; i < solved.size(); ++i) {
    if (graph->axes[i].name.starts_with("per")) per.push_back(solved[i]);
  }
  CHECK(per == std::vector<std::int64_t>{16, 8});
}

TEST_CASE("one axis type with two extents cannot meet itself") {
  struct Groups : tigon::axis<"groups"> {};
  struct Per : tigon::axis<"per"> {};
  const auto f = tigon::function("clash", [](Args in) {
    const auto a = sum<Per>(split<Hidden, Groups, Per>(in.y, 4));
    const auto b = sum<Per>(split<Hidden, Groups, Per>(in.y, 8));
    return a + b;
  });
  const std::string message = message_of([&] { (void)f.trace(); });
  CHECK_THAT(message, Catch::StartsWith("clash: one axis type meets itself with two extents (axis `groups`): found 8, "
                                        "expected 4"));
}

namespace {
template <class D>
struct Part : tigon::axis<"part"> {};
template <class D, class S>
auto halves_of(const Tensor<S>& x) {
  return split<D, Two, Part<D>>(x);
}
}  // namespace

TEST_CASE("an op's own axis for each of the user's axes") {
  CHECK(traced([](Args in) {
          const auto x = sum<Two>(halves_of<Hidden>(in.x));
          const auto h = sum<Two>(halves_of<Tokens>(in.h));
          return x - h;
        }) ==
        "sub(sum<two>(view<hidden=two*part>(x)), sum<two>(f32(view<tokens=two*part'2>(h)))) : f32[tokens,part,part'2]");
}
