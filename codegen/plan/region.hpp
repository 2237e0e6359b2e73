// A region: large values that belong together and what must be computed beside them, so that a chunk loop can hold them
// all.
#pragma once
#include "codegen/plan/cluster.hpp"

namespace tigon::plan {

struct Region {
  std::vector<dsl::NodeId> values;   // the large values, ascending
  std::vector<dsl::NodeId> targets;  // nodes that the loops must deliver: folds (as states), small values, outputs
  std::vector<dsl::NodeId> before;   // nodes that must be in memory before the loops
};

// The first region, in the graph's order, that can be chunked along `axis`: around a value with that axis that the
// work's targets need, that is not in memory yet, and that takes at least `bytes` by the work's extents.
std::optional<Region> find_region(const Work& work, dsl::AxisId axis, double bytes, const PlanOptions& options);

}  // namespace tigon::plan
