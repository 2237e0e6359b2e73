// The adjoints of gather and scatter, by rule: one-hot mask, inverse gather, or scatter.
#pragma once
#include "dsl/cotangent.hpp"

namespace tigon::dsl {

// A one-hot mask `iota(axis) == index` that a gather's adjoint made, and that gather.
struct OneHot {
  NodeId mask = no_node;
  NodeId gather = no_node;
};

struct GatherAdjoint {
  Cotangent table;
  OneHot one_hot;  // set where the rule was the one-hot mask
};
GatherAdjoint gather_adjoint(Builder& builder, NodeId gather, Cotangent cotangent);

// The cotangent of a scatter's values.
Cotangent scatter_adjoint(Builder& builder, NodeId scatter, Cotangent cotangent);

// index == coefficient * iota(axis) + rest, where rest does not vary along the axis.
struct Affine {
  std::int64_t coefficient = 0;
  NodeId rest = no_node;
};
std::optional<Affine> affine_in(Builder& builder, NodeId index, AxisId axis);

}  // namespace tigon::dsl
