// Recognises contractions that a matmul library can do: a sum of a product of two stored operands, seen through views.
#pragma once
#include <optional>

#include "codegen/plan/plan.hpp"

namespace tigon::plan {

struct ContractionAxis {
  enum class Class : std::uint8_t { batch, m, n, k } axis_class = Class::k;
  dsl::AxisId axis = dsl::no_axis;
  AxisAccess a, b;  // in the operands' base nodes
};
struct Contraction {
  dsl::NodeId result = dsl::no_node;  // the finish node whose value the matmul writes
  dsl::NodeId a = dsl::no_node;       // base operands, which must be stored
  dsl::NodeId b = dsl::no_node;
  std::vector<ContractionAxis> axes;
};

// The contraction that `finish` computes if it is one and large enough, by the planned extents.
std::optional<Contraction> contraction_of(const dsl::Graph& graph, dsl::NodeId finish, const dsl::Extents& extents,
                                          const PlanOptions& options);

// What lies below exact widenings and strided views: whoever reads the node can read this instead, and a matmul does.
dsl::NodeId source_of(const dsl::Graph& graph, dsl::NodeId node);

// The layout that a value comes in by itself: inputs as declared, products by their operands (m axes, then n axes).

std::vector<std::vector<dsl::AxisId>> natural_layouts(const dsl::Graph& graph);

}  // namespace tigon::plan
