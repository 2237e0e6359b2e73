// Plans a region as loops over the chunks of an axis, by the law of levels.
#pragma once
#include "codegen/plan/body.hpp"
#include "codegen/plan/region.hpp"

namespace tigon::plan {

struct Built {
  std::vector<Step> steps;
  StoredValues stored;  // everything in memory after them
};

// Steps that compute the work's targets into their destinations. The first strategy that finds a region wins it; all of
// them are then tried on what is left to do before, inside and after its loops, so that regions follow each other and
// nest. A refusal says why an axis cannot be chunked.
std::variant<Built, schedule::Refusal> build_steps(Plan& plan, const Work& work, const Destinations& destinations,
                                                   const std::vector<Strategy>& strategies,
                                                   const schedule::DeviceModel& device, const PlanOptions& options);

// Chunk lengths worth trying for an extent: the powers of two below it, the largest 12.
std::vector<std::int64_t> chunk_lengths(std::int64_t extent);

}  // namespace tigon::plan
