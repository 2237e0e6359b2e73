// Samples a monoid's laws in f64.
#include <cmath>

#include "dsl/monoid.hpp"
#include "dsl/program.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl {
namespace {

using State = std::vector<double>;

bool same_bits(const State& a, const State& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::bit_cast<std::uint64_t>(a[i]) != std::bit_cast<std::uint64_t>(b[i])) return false;
  }
  return true;
}

bool close(const State& a, const State& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (!(std::fabs(a[i] - b[i]) <= 1e-9 * (1 + std::fabs(a[i]) + std::fabs(b[i])))) return false;
  }
  return true;
}

std::string text(const State& state) {
  std::string result;
  for (const double slot : state) result += (result.empty() ? "(" : ", ") + fmt::format("{}", slot);
  return result + ")";
}

}  // namespace

void check_monoid(const Monoid& monoid) {
  const auto fail = [&](const std::string& law, const State& found, const State& expected) {
    throw Error({.function = monoid.name,
                 .found = text(found),
                 .expected = text(expected),
                 .cure = "Correct the monoid's identity, merge or `commutative`"},
                "the monoid breaks a law that splitting a reduction relies on: " + law);
  };
  const auto merge = [&](const State& a, const State& b) {
    State both = a;
    both.insert(both.end(), b.begin(), b.end());
    return run_program(monoid.merge, both);
  };
  constexpr double numbers[] = {0.75, -1.5, 0.0, 3.0, -0.25, 2.0, 3.0, -std::numeric_limits<double>::infinity()};
  constexpr std::size_t finite = std::size(numbers) - 1;  // infinities obey the identity's law only, in general
  std::vector<State> states;
  for (std::size_t i = 0; i < std::size(numbers); ++i) {
    State inputs;
    for (int operand = 0; operand < monoid.operand_count; ++operand) {
      inputs.push_back(i < finite ? numbers[(i + 3 * static_cast<std::size_t>(operand)) % finite] : numbers[i]);
    }
    inputs.push_back(static_cast<double>(i));
    State lifted = run_program(monoid.lift, inputs);
    for (std::size_t slot = 0; slot < lifted.size(); ++slot)
      if (monoid.state.at(slot) == ValueClass::truth) lifted[slot] = lifted[slot] != 0 ? 1 : 0;
    states.push_back(std::move(lifted));
  }
  states.push_back(monoid.identity);
  for (const State& s : states) {
    if (!same_bits(merge(monoid.identity, s), s))
      fail("merge(identity, s) is s, bit for bit", merge(monoid.identity, s), s);
    if (!close(merge(s, monoid.identity), s)) fail("merge(s, identity) is s", merge(s, monoid.identity), s);
  }
  if (monoid.absorb_count > 0) {
    constexpr std::size_t lifts = std::size(numbers);
    for (std::size_t first = 0; first < states.size(); ++first) {
      State inputs = states[first], merged = states[first];
      for (int i = 0; i < monoid.absorb_count; ++i) {
        const State& element = states[(first * 5 + static_cast<std::size_t>(i) * 3) % lifts];
        inputs.insert(inputs.end(), element.begin(), element.end());
        merged = merge(merged, element);
      }
      const State absorbed = run_program(monoid.absorb, inputs);
      if (!close(absorbed, merged)) fail("absorb is the merges of its elements", absorbed, merged);
    }
  }
  states.resize(finite);
  states.push_back(merge(states[0], states[1]));
  states.push_back(monoid.identity);
  for (const State& a : states) {
    for (const State& b : states) {
      if (monoid.commutative && !close(merge(a, b), merge(b, a)))
        fail("merge(a, b) is merge(b, a)", merge(b, a), merge(a, b));
      for (const State& c : states) {
        const State left = merge(merge(a, b), c);
        const State right = merge(a, merge(b, c));
        if (!close(left, right)) fail("merge(merge(a, b), c) is merge(a, merge(b, c))", right, left);
      }
    }
  }
}

}  // namespace tigon::dsl
