// The monoids: their laws, corner cases of merge, and the check on users' monoids.
#include <cmath>

#include "differentiate_support.hpp"
#include "dsl/program.hpp"

namespace tigon::dsl::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
using State = std::vector<double>;

State lift(BuiltinMonoid law, double x, double index = 0) {
  return run_program(builtin_monoid(law).lift, State{x, index});
}
State merge(BuiltinMonoid law, const State& a, const State& b) {
  State both = a;
  both.insert(both.end(), b.begin(), b.end());
  return run_program(builtin_monoid(law).merge, both);
}
State all(BuiltinMonoid law, const State& numbers) {
  State state = builtin_monoid(law).identity;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    state = merge(law, state, lift(law, numbers[i], static_cast<double>(i)));
  return state;
}
double finish(BuiltinMonoid law, const State& state, std::size_t which = 0) {
  return run_program(builtin_monoid(law).finishes[which].program, state)[0];
}

}  // namespace

TEST_CASE("every built-in monoid keeps its laws") {
  for (int i = 0; i < builtin_monoid_count; ++i) {
    const Monoid& law = builtin_monoid(static_cast<BuiltinMonoid>(i));
    INFO(law.name);
    CHECK_NOTHROW(check_monoid(law));
    CHECK(law.identity.size() == law.state.size());
    CHECK(law.merge.results.size() == law.state.size());
    CHECK(law.lift.results.size() == law.state.size());
  }
}

TEST_CASE("sum: identity -0, an empty sum is +0, a sum of -0 is +0 once finished") {
  const State& identity = builtin_monoid(BuiltinMonoid::sum).identity;
  CHECK(std::signbit(identity[0]));
  CHECK_FALSE(std::signbit(finish(BuiltinMonoid::sum, identity)));
  CHECK(std::signbit(merge(BuiltinMonoid::sum, identity, {-0.0})[0]));
}

TEST_CASE("logsumexp: rest leaves one maximal element out") {
  const BuiltinMonoid law = BuiltinMonoid::logsumexp;
  CHECK(all(law, {1, 3, 3, 2}) == State{3, 1 + std::exp(-2.0) + std::exp(-1.0)});
  CHECK(all(law, {5}) == State{5, 0});
  CHECK(all(law, {-infinity, -infinity}) == State{-infinity, 0});
  CHECK(finish(law, all(law, {-infinity, -infinity}), lse_value) == -infinity);
  CHECK(all(law, {infinity, infinity, 1}) == State{infinity, 1});
  CHECK(finish(law, all(law, {infinity, infinity}), lse_value) == infinity);
  CHECK(all(law, {-infinity, 2, -infinity}) == State{2, 0});
  CHECK(std::isnan(all(law, {1, not_a_number, 5})[0]));
  CHECK(std::isnan(all(law, {not_a_number, 1})[0]));
  const State far = all(law, {30, 0});
  CHECK(far[1] == Approx(std::exp(-30.0)).epsilon(1e-14));  // kept, where exp(x - lse) - 1 would lose it
}

TEST_CASE("logsumexp absorbs elements as its merges would, in every place and with every corner case") {
  const BuiltinMonoid law = BuiltinMonoid::logsumexp;
  const Monoid& monoid = builtin_monoid(law);
  REQUIRE(monoid.absorb_count == 4);
  const double values[] = {-infinity, -700, -1, 0, 0.5, 3, 3.25, 100, infinity, not_a_number};
  const State starts[] = {monoid.identity, {-infinity, 0}, {3, 0}, {3, 2.5}, {100, 0}, {infinity, 0}};
  const auto same = [](double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-13 * (std::fabs(a) + std::fabs(b));
  };
  int wrong = 0;
  for (const State& start : starts) {
    for (int code = 0; code < 10000; ++code) {
      State inputs = start, merged = start;
      for (int i = 0, rest = code; i < 4; ++i, rest /= 10) {
        const State element = lift(law, values[rest % 10]);
        inputs.insert(inputs.end(), element.begin(), element.end());
        merged = merge(law, merged, element);
      }
      const State absorbed = run_program(monoid.absorb, inputs);
      for (const int which : {lse_max, lse_value})
        wrong += same(finish(law, absorbed, which), finish(law, merged, which)) ? 0 : 1;
      const bool number = !std::isnan(finish(law, merged, lse_value));
      if (number) wrong += same(finish(law, absorbed, lse_log_rest), finish(law, merged, lse_log_rest)) ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
  // The winner is left out, not subtracted: what a far second adds is kept.
  const State far = run_program(monoid.absorb, State{-infinity, 0, 0, 0, 30, 0, -infinity, 0, -infinity, 0});
  CHECK(far == State{30, std::exp(-30.0)});
}

TEST_CASE("argmax: NaN first, then value, then the lowest index, whatever the order of merging") {
  const BuiltinMonoid law = BuiltinMonoid::argmax;
  CHECK(all(law, {1, 4, 4, 2}) == State{4, 1});
  CHECK(all(law, {1, not_a_number, 9, not_a_number})[1] == 1);
  CHECK(merge(law, {4, 2}, {4, 1}) == State{4, 1});
  CHECK(all(law, {-infinity, -infinity}) == State{-infinity, 0});
  CHECK(all(BuiltinMonoid::argmin, {3, 1, 1}) == State{1, 1});
}

TEST_CASE("moments merge by Chan's formula; no element gives NaN") {
  const BuiltinMonoid law = BuiltinMonoid::moments;
  const State a = all(law, {1, 2, 4}), b = all(law, {1e6, 1e6 + 3});
  const State both = merge(law, a, b);
  const double mean = (7 + 2e6 + 3) / 5;
  CHECK(finish(law, both, moments_mean) == Approx(mean));
  double spread = 0;
  for (const double x : {1.0, 2.0, 4.0, 1e6, 1e6 + 3}) spread += (x - mean) * (x - mean);
  CHECK(finish(law, both, moments_variance) == Approx(spread / 5));
  CHECK(std::isnan(finish(law, builtin_monoid(law).identity, moments_mean)));
  CHECK(std::isnan(finish(law, builtin_monoid(law).identity, moments_variance)));
}

TEST_CASE("a monoid that breaks its law is refused by name") {
  Monoid wrong = builtin_monoid(BuiltinMonoid::sum);
  wrong.name = "off_by_one";
  wrong.identity = {1.0};
  CHECK_THROWS_WITH(check_monoid(wrong), Catch::Contains("off_by_one") && Catch::Contains("bit for bit"));

  Make g;
  g.monoid(BuiltinMonoid::sum);
  Monoid other = builtin_monoid(BuiltinMonoid::max);
  other.name = "sum";
  CHECK_THROWS_WITH(g.monoid(other), Catch::Contains("two different monoids"));

  Monoid difference = builtin_monoid(BuiltinMonoid::sum);
  difference.name = "difference";
  ProgramBuilder p;
  difference.merge = [&] {
    const auto a = p.input(0), b = p.input(1);
    return std::move(p).finish({p.apply(sub, {b, p.apply(neg, {p.apply(mul, {a, p.constant(0.5)})})})});
  }();
  CHECK_THROWS_WITH(check_monoid(difference), Catch::Contains("difference"));

  // x -> a x + b, composed: associative, not commutative.
  Monoid affine{.name = "affine", .operand_count = 2, .state = {2, ValueClass::element}, .identity = {1, -0.0}};
  {
    ProgramBuilder q;
    const auto a = q.input(0), b = q.input(1);
    affine.lift = std::move(q).finish({a, b});
  }
  {
    ProgramBuilder q;
    const auto a1 = q.input(0), b1 = q.input(1), a2 = q.input(2), b2 = q.input(3);
    const auto first_is_identity =
        q.apply(logical_and, {q.apply(equal, {a1, q.constant(1)}), q.apply(equal, {b1, q.constant(0)})});
    const auto offset = q.apply(add, {q.apply(mul, {a2, b1}), b2});
    affine.merge = std::move(q).finish({q.apply(mul, {a1, a2}), q.apply(where, {first_is_identity, b2, offset})});
  }
  affine.commutative = false;
  CHECK_NOTHROW(check_monoid(affine));
  affine.commutative = true;
  CHECK_THROWS_WITH(check_monoid(affine), Catch::Contains("merge(b, a)"));
}

}  // namespace tigon::dsl::testing
