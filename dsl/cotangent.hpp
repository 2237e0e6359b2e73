// A cotangent under way: a value, and beside it the masks and the scale that are applied only when somebody must see
// them.
#pragma once
#include "dsl/build.hpp"

namespace tigon::dsl {

// A product of numbers without axes that are known to be finite: where a value is zero, so is the scaled value.
struct Scale {
  double number = 1;
  std::vector<NodeId> factors{};  // a multiset, sorted by id
};

// Means: 0 where a mask does not hold, else value * scale. The value may lack axes of its primal: it is constant there.
struct Cotangent {
  NodeId value = no_node;
  Scale scale{};
  std::vector<NodeId> masks{};  // a set, sorted by id, conjunctions taken apart
};

class CotangentAlgebra {
 public:
  explicit CotangentAlgebra(Builder& builder) : builder_(builder) {}

  void mask(Cotangent& cotangent, NodeId condition) const;
  // Multiplies by (divides by) a node if it belongs in the scale; false: the caller multiplies the value.
  bool multiply_scale(Cotangent& cotangent, NodeId factor) const;
  bool divide_scale(Cotangent& cotangent, NodeId divisor) const;
  // Moves a sign from the value to the scale; with `peel`, masks too (only on values that an adjoint rule made).
  void normalise(Cotangent& cotangent, bool peel = false) const;
  [[nodiscard]] Cotangent add(const Cotangent& a, const Cotangent& b) const;
  // The sum over axes; masks without them stay outside, the others go onto the factors of a contraction or the product.
  // In a contraction with `incoming`, the cotangent that came in, that factor takes all masks it can: every contraction
  // with it then reads one masked value.
  [[nodiscard]] Cotangent reduce(Cotangent cotangent, AxisSet axes, NodeId incoming = no_node) const;
  // Applies the masks that carry one of the axes (all: the scale too).
  [[nodiscard]] Cotangent with_masks_applied(Cotangent cotangent, AxisSet axes) const;
  [[nodiscard]] NodeId materialise(const Cotangent& cotangent) const;
  [[nodiscard]] NodeId scaled(NodeId value, const Scale& scale) const;

  // Takes what all cotangents share out of them, and returns it (its value is unset); what remains is applied to each
  // value.
  Cotangent factor_common(std::span<Cotangent> cotangents) const;

 private:
  Builder& builder_;
};

}  // namespace tigon::dsl
