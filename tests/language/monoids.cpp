// Monoids that a user writes: their programs, gradients and refusals.
#include <catch2/catch.hpp>

#include "dsl/differentiate.hpp"
#include "dsl/program.hpp"
#include "tests/language/support.hpp"

using namespace tigon;
using Args = XYArgs<Tensor>;

namespace {

auto weighted_mean() {
  return tigon::monoid<2, 2>("weighted_mean", {0.0, 0.0})
      .lift([](auto x, Scalar) { return std::array{x[0] * x[1], x[1]}; })
      .merge([](auto a, auto b) { return std::array{a[0] + b[0], a[1] + b[1]}; })
      .finish("mean", [](auto s) { return s[0] / s[1]; })
      .finish("weight", [](auto s) { return s[1]; });
}

// The last element that is above a threshold, with its index.
auto last_above(double threshold) {
  using Kind = StateSlot::Kind;
  return tigon::monoid<1, 2>("last_above", {StateSlot(0), StateSlot(-1, Kind::index)}, false)
      .lift([=](auto x, Scalar index) {
        return std::array{where(x[0] > threshold, x[0], 0.0), where(x[0] > threshold, index, -1.0)};
      })
      .merge([](auto a, auto b) { return std::array{where(b[1] < 0.0, a[0], b[0]), where(b[1] < 0.0, a[1], b[1])}; })
      .finish("value", [](auto s) { return s[0]; })
      .finish("index", [](auto s) { return s[1]; });
}

}  // namespace

TEST_CASE("a monoid of the user's own folds like a built-in one") {
  CHECK(traced([](Args in) { return reduce<Hidden>(weighted_mean(), in.x, in.y); }) ==
        "weighted_mean<hidden>(x, y).mean : f32[tokens]");
  CHECK(traced([](Args in) {
          const auto state = fold<Hidden>(weighted_mean(), in.x, in.y);
          return state.finish("mean") - state.finish("weight");
        }) == "sub(weighted_mean<hidden>(x, y).mean, weighted_mean<hidden>(x, y).weight) : f32[tokens]");
  CHECK(traced([](Args in) { return fold<Tokens>(last_above(1), in.h).finish<i64>("index"); }) ==
        "last_above<tokens>(f32(h)).index : i64[]");
}

TEST_CASE("its law is a program that runs") {
  const auto f = tigon::function("f", [](Args in) { return reduce<Hidden>(weighted_mean(), in.x, in.y); });
  const auto graph = f.trace();
  REQUIRE(graph->monoids.size() == 1);
  const tigon::dsl::Monoid& law = graph->monoids[0];
  const double elements[][3] = {{2, 1, 0}, {5, 3, 1}, {-1, 4, 2}};
  std::vector<double> state = law.identity;
  for (const auto& element : elements) {
    std::vector<double> both = state;
    for (const double slot : tigon::dsl::run_program(law.lift, element)) both.push_back(slot);
    state = tigon::dsl::run_program(law.merge, both);
  }
  CHECK(tigon::dsl::run_program(law.finishes[0].program, state)[0] == Approx((2.0 * 1 + 5 * 3 - 1 * 4) / 8));
  CHECK(tigon::dsl::run_program(law.finishes[1].program, state)[0] == 8);
}

TEST_CASE("its gradient is what it says") {
  const auto with_gradient = weighted_mean().adjoint([](auto x, auto finishes, auto cotangents) {
    const Scalar scaled = cotangents[0] / finishes[1];
    return std::array{scaled * x[1], scaled * (x[0] - finishes[0]) + cotangents[1]};
  });
  const auto f = tigon::function("f", [=](Args in) { return sum<Tokens>(reduce<Hidden>(with_gradient, in.x, in.y)); });
  const auto gradient = value_and_grad(f, wrt<"x">).trace();
  CHECK_THAT(output(*gradient, "grad.x"), Catch::Contains("weighted_mean<hidden>(x, y).weight"));

  const auto without =
      tigon::function("f", [](Args in) { return sum<Tokens>(reduce<Hidden>(weighted_mean(), in.x, in.y)); });
  CHECK_THAT(message_of([&] { (void)value_and_grad(without, wrt<"x">).trace(); }), Catch::Contains("weighted_mean"));
}

TEST_CASE("what a monoid refuses") {
  CHECK_THAT(
      message_of([] {
        (void)tigon::monoid<1, 1>("shifted", {0.0}).lift([](auto x, Scalar) { return x; }).merge([](auto a, auto b) {
          return std::array{a[0] + b[0] + 1.0};
        });
      }),
      Catch::Contains("merge(identity, s) is s"));
  CHECK_THAT(message_of([] { (void)tigon::monoid<1, 1>("sum", {0.0}); }),
             Catch::Contains("a built-in monoid has this name"));
  CHECK_THAT(
      message_of([] {
        (void)tigon::monoid<1, 1>("mixed", {0.0}).lift([](auto x, Scalar index) { return std::array{x[0] + index}; });
      }),
      Catch::Contains("mixes elements, indices and truth values"));
  const auto f = tigon::function(
      "f", [](Args in) { return reduce<Hidden>(last_above(1), in.x) - reduce<Hidden>(last_above(2), in.x); });
  CHECK_THAT(message_of([&] { (void)f.trace(); }), Catch::StartsWith("f: two different monoids have one name"));
  const auto lacking =
      tigon::function("f", [](Args in) { return reduce<Hidden>(tigon::monoid<1, 1>("lacking", {0.0}), in.x); });
  CHECK_THAT(message_of([&] { (void)lacking.trace(); }),
             Catch::StartsWith("f: the monoid lacks its lift (argument `lacking`)"));
  const auto lift = [](auto x, Scalar) { return x; };
  const auto merge = [](auto a, auto b) { return std::array{a[0] + b[0]}; };
  const auto lifted = tigon::function(
      "f", [&](Args in) { return reduce<Hidden>(tigon::monoid<1, 1>("lifted", {0.0}).lift(lift), in.x); });
  CHECK_THAT(message_of([&] { (void)lifted.trace(); }), Catch::Contains("lacks its merge"));
  const auto merged = tigon::function(
      "f", [&](Args in) { return reduce<Hidden>(tigon::monoid<1, 1>("merged", {0.0}).lift(lift).merge(merge), in.x); });
  CHECK_THAT(message_of([&] { (void)merged.trace(); }), Catch::Contains("lacks its finish"));
  CHECK(message_of([] {
          const auto same = [](auto s) { return s[0]; };
          (void)tigon::monoid<1, 1>("doubled", {0.0}).finish("a", same).finish("b", same).finish("a", same);
        }) == "doubled: two finishes of a monoid have one name (argument `a`). Give each finish a name of its own");
}
