// The law of a reduction: lift an element to a state, merge two states, finish a state to a value.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "dsl/scalar_program.hpp"

namespace tigon::dsl {

class Builder;
using NodeId = std::uint32_t;

struct Finish {
  std::string name;
  ValueClass value_class = ValueClass::element;
  ScalarProgram program;  // inputs: the state's slots; one result
  bool operator==(const Finish&) const = default;
};

// What an adjoint rule is given: the fold, its operands, and the cotangent of each finish (absent where nobody reads
// it).
struct FoldCotangents {
  NodeId fold = 0;
  std::vector<NodeId> operands;
  std::vector<NodeId> finishes;    // the finish nodes, by finish number; `no_node` where the graph has none
  std::vector<NodeId> cotangents;  // by finish number; `no_node` where it has none
};
// Returns the cotangent of each operand, broadcast to the operand's axes, or `no_node`.
using FoldAdjoint = std::function<std::vector<NodeId>(Builder&, const FoldCotangents&)>;

struct Monoid {
  std::string name;
  int operand_count = 1;
  std::vector<ValueClass> state{};  // at most 4 slots
  std::vector<double> identity{};   // one per slot; merge(identity, s) == s bitwise
  ScalarProgram lift{};   // inputs: the operands, then the element's global index along the (first) folded axis
  ScalarProgram merge{};  // inputs: the earlier state's slots, then the later state's
  // Takes several elements into a state with less work than a merge for each; 0: by merges. Inputs: the state's slots,
  // then the slots of each element's lift in turn. Equal to the merges up to rounding and the order of equals.
  int absorb_count = 0;
  ScalarProgram absorb{};
  std::vector<Finish> finishes{};
  bool commutative = true;  // false: states are merged in index order
  FoldAdjoint adjoint{};    // empty: no gradient; asking for one is an error that names the monoid
};

// The built-in table. sum's identity is -0.0 (its finish adds +0.0); logsumexp's state is (max, rest), where rest
// leaves one maximal element out: it is NaN for a NaN among the elements, and means nothing else beside a maximum of
// +infinity; argmax and argmin keep (value, index), ties to the lowest index, NaN first.
enum class BuiltinMonoid : std::uint8_t { sum, product, max, min, logsumexp, argmax, argmin, moments, any, all };
inline constexpr int builtin_monoid_count = 10;
const Monoid& builtin_monoid(BuiltinMonoid monoid);

// Throws Error naming the monoid where, on samples in f64, its identity, associativity or declared commutativity fails.
void check_monoid(const Monoid& monoid);

// logsumexp's finishes, by number.
enum LogSumExpFinish : int { lse_max = 0, lse_log_rest = 1, lse_value = 2 };
enum ArgFinish : int { arg_value = 0, arg_index = 1 };
enum MomentsFinish : int { moments_mean = 0, moments_variance = 1, moments_count = 2 };

// exp(x - logsumexp(x)) from a logsumexp's state: 0 where x is -infinity, also in a row that holds nothing else.
NodeId softmax_of(Builder& builder, NodeId x, NodeId logsumexp_fold);

}  // namespace tigon::dsl
