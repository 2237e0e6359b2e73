// `tigon emit --what resources`: columns for people, and the same numbers as JSON.
#include "resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "paint.hpp"

namespace tigon::tools {
namespace {

int total(const runtime::InstructionsByWidth& instructions) {
  return std::accumulate(instructions.begin(), instructions.end(), 0);
}

nlohmann::ordered_json by_width(const runtime::InstructionsByWidth& instructions) {
  nlohmann::ordered_json result = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < instructions.size(); ++i) result[std::to_string(1 << i)] = instructions[i];
  return result;
}

}  // namespace

std::string resources_text(const KernelTable& kernels, const std::string& architecture) {
  std::size_t width = std::string_view("kernel").size();
  for (const auto& [name, _] : kernels) width = std::max(width, name.size());
  const std::string row = "{:{}} {:>7} {:>9} {:>6} {:>11} {:>11} {:>7} {:>8} {:>12} {:>11} {:>11}\n";
  std::string text = paint(Colour::bold, architecture) + "\n";
  text += fmt::format(fmt::runtime(row), "kernel", width, "threads", "registers", "stack", "spills", "local", "shared",
                      "barriers", "instructions", "wide loads", "wide stores");
  for (const auto& [name, kernel] : kernels) {
    text += fmt::format(fmt::runtime(row), name, width, kernel.threads, kernel.registers, kernel.stack_bytes,
                        fmt::format("{} / {}", kernel.spill_stores, kernel.spill_loads),
                        fmt::format("{} / {}", kernel.local_stores, kernel.local_loads), kernel.shared_bytes,
                        kernel.barriers, kernel.instructions,
                        fmt::format("{} of {}", kernel.global_loads[4], total(kernel.global_loads)),
                        fmt::format("{} of {}", kernel.global_stores[4], total(kernel.global_stores)));
  }
  return text;
}

std::string resources_json(const KernelTable& kernels, const std::string& architecture) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [name, kernel] : kernels) {
    list.push_back({{"kernel", name},
                    {"threads", kernel.threads},
                    {"registers", kernel.registers},
                    {"stack_bytes", kernel.stack_bytes},
                    {"spill_store_bytes", kernel.spill_stores},
                    {"spill_load_bytes", kernel.spill_loads},
                    {"local_store_bytes", kernel.local_stores},
                    {"local_load_bytes", kernel.local_loads},
                    {"shared_bytes", kernel.shared_bytes},
                    {"barriers", kernel.barriers},
                    {"instructions", kernel.instructions},
                    {"global_loads_by_bytes", by_width(kernel.global_loads)},
                    {"global_stores_by_bytes", by_width(kernel.global_stores)}});
  }
  const nlohmann::ordered_json all = {{"architecture", architecture}, {"kernels", list}};
  return all.dump(2) + "\n";
}

}  // namespace tigon::tools
