// A plan as JSON for other programs: the same facts as its printed text, in a fixed order of keys.
#pragma once
#include <string>

#include "codegen/plan/plan.hpp"

namespace tigon::plan {

// Bytes, times in nanoseconds and counts are numbers as the planner has them, for the planned extents. The keys:
//   format            1; raised when a key changes its meaning
//   name, device
//   axes              [{name, extent, fixed, partitions}]; fixed: the extent stands in kernels' texts
//   workspace_bytes, predicted_ns, bytes, minimum_bytes
//   steps             [{kind: launch | matmul | fill | loop, ...}]
//     all but loop    number, runs, name, fused, rounds, reads, writes, bytes, minimum_bytes, total_bytes, flops,
//                     exponentials, predicted_ns; all of one run but total_bytes, which is of all runs
//       reads, writes [{name, type, bytes, sweeps, gathered}]
//     launch          kernel, family, why, provenance, partitions
//     matmul          batch, m, n, k, accumulate
//     fill            value
//     loop            axis, chunk, chunk_count, predicted_ns, body (steps)
//   buffers           [{name, type, home: argument | output | workspace, bytes, offset, first_step, last_step}]
//   front             [{workspace_bytes, predicted_ns, strategy, chosen}]
//   notes             [{kind: fused | refused | rounding | stored | chunked, text}]
std::string explain_json(const Plan& plan);

}  // namespace tigon::plan
