// A region: large values that belong together and what must be computed beside them, so that a chunk loop can hold them
// all.
#pragma once
#include "codegen/plan/cluster.hpp"

namespace tigon::plan {

struct Region {
  std::vector<dsl::NodeId> values;   // the large values, ascending
  std::vector<dsl::NodeId> targets;  // nodes that the loops must deliver: folds (as states), small values, outputs
  std::vector<dsl::NodeId> before;   // nodes that must be in memory before the loops
  std::vector<dsl::AxisId> axes;     // of the large values: candidates for chunking
};

// The region around `seed`, or nothing if every large value connected to it is an input. Large: at least `bytes`.
std::optional<Region> find_region(const Work& work, dsl::NodeId seed, double bytes, const PlanOptions& options);

}  // namespace tigon::plan
