// Plans a region as loops over the chunks of an axis, by the law of levels.
#pragma once
#include "codegen/plan/body.hpp"
#include "codegen/plan/region.hpp"

namespace tigon::plan {

struct Strategy {
  dsl::AxisId axis = dsl::no_axis;
  std::int64_t chunk = 0;
};

// Steps for the whole work with the region in chunks; a refusal says why the axis cannot be chunked.
std::variant<std::vector<Step>, schedule::Refusal> chunked_steps(Plan& plan, const Work& work,
                                                                 const Destinations& destinations, const Region& region,
                                                                 const Strategy& strategy,
                                                                 const schedule::DeviceModel& device,
                                                                 const PlanOptions& options);

// Chunk lengths worth trying for an extent: powers of two from 16 on, at most 12.
std::vector<std::int64_t> chunk_lengths(std::int64_t extent);

}  // namespace tigon::plan
