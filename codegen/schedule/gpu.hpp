// What a nest for a GPU has beyond one for a CPU: threads, vectors, values held in registers; and the devices known.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "codegen/loops/builder.hpp"
#include "codegen/schedule/kernel.hpp"

namespace tigon::schedule {

// Gives each part its threads and its number of blocks, each lanes loop its vectors, and keeps in registers what passes
// over a row read again and what a block adds up over its rows, as far as they are few enough.
void bind_threads(const KernelRequest& request, const DeviceModel& device, loops::NestBuilder& builder,
                  Scheduled& result);

// The model of a device ("h200") or of the first device of an architecture ("sm_90a"); nothing for other names.
// Figures are the makers' published ones: predictions from them are not measured.
std::optional<DeviceModel> gpu_model(std::string_view name);
std::span<const std::string_view> gpu_names();

}  // namespace tigon::schedule
