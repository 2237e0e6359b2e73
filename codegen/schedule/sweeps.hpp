// Builds a part's loops from its analysis: partitions, rows, one sweep over the columns for each pass, stores.
#pragma once
#include "codegen/schedule/emit.hpp"
#include "codegen/schedule/shape.hpp"

namespace tigon::schedule {

// Appends the part to the emitter's nest and fills `result.partitions` and `result.outputs`.
void build_sweeps(const KernelRequest& request, const std::vector<int>& outputs, const Analysis& analysis,
                  const DeviceModel& device, Emitter& emitter, Scheduled& result, const std::string& name);

// Whether the output may be stored over the input that `request.in_place` names for it.
bool in_place_is_safe(const KernelRequest& request, const std::vector<int>& outputs, const Analysis& analysis,
                      int output);

// A part whose one output is a scatter: partitions share the target axis, each adds its own rows in index order.
void build_scatter(const KernelRequest& request, int output, const DeviceModel& device, Emitter& emitter,
                   Scheduled& result, const std::string& name);

}  // namespace tigon::schedule
