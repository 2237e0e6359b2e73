// Every axis of the region around the largest workspace value, at every chunk length; dominated plans drop out.
#include "codegen/plan/search.hpp"

#include "tigon/error.hpp"

namespace tigon::plan {
using dsl::AxisId;

namespace {

// Values of the workspace, largest first: what the search is about.
std::vector<std::pair<double, dsl::NodeId>> largest_values(const Plan& plan) {
  std::vector<std::pair<double, dsl::NodeId>> values;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.home != Home::workspace || buffer.node == dsl::no_node || buffer.first_step < 0) continue;
    values.emplace_back(static_cast<double>(element_count(buffer, plan.planned) * size_of(buffer.dtype)), buffer.node);
  }
  std::sort(values.begin(), values.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  return values;
}

double workspace_of(const Plan& plan) {
  return static_cast<double>(layout_workspace(plan, bind_extents(plan, plan.planned)).bytes);
}

std::string readable(double bytes) {
  if (bytes >= 1073741824.0) return fmt::format("{:.2f} GiB", bytes / 1073741824.0);
  if (bytes >= 1048576.0) return fmt::format("{:.1f} MiB", bytes / 1048576.0);
  return fmt::format("{:.0f} bytes", bytes);
}

}  // namespace

Plan search(const Work& work, const schedule::DeviceModel&, const PlanOptions& options,
            const std::function<std::variant<Plan, schedule::Refusal>(const Region*, const Strategy&)>& build) {
  std::vector<Candidate> candidates;
  Plan whole = std::get<Plan>(build(nullptr, {}));
  const double whole_bytes = workspace_of(whole);
  if (options.unfused || options.memory_budget <= 0 || whole_bytes <= options.memory_budget) {
    whole.front = {{whole_bytes, whole.predicted_ns, "one chunk", true}};
    return whole;
  }
  std::vector<Note> refusals;
  // Regions around the largest values, at most three that have none in common.
  constexpr std::size_t most_regions = 3;
  std::vector<Region> regions;
  for (const auto& [bytes, node] : largest_values(whole)) {
    const bool known = std::any_of(regions.begin(), regions.end(), [&](const Region& region) {
      return std::binary_search(region.values.begin(), region.values.end(), node);
    });
    if (known || regions.size() == most_regions || 16 * bytes < whole_bytes) continue;
    const double large = std::min(0.5 * bytes, std::max(options.memory_budget / 16, 1024.0));
    if (std::optional<Region> region = find_region(work, node, large, options)) regions.push_back(std::move(*region));
  }
  for (const Region& region : regions) {
    for (const AxisId axis : region.axes) {
      for (const std::int64_t length : chunk_lengths(work.extents[axis])) {
        std::variant<Plan, schedule::Refusal> made = build(&region, {axis, length});
        if (const auto* refusal = std::get_if<schedule::Refusal>(&made)) {
          refusals.push_back(
              {Note::Kind::refused, fmt::format("chunks of {}: {}", whole.axes[axis].name, refusal->reason)});
          break;
        }
        Plan& plan = std::get<Plan>(made);
        const double workspace = workspace_of(plan);
        candidates.push_back(
            {std::move(plan), workspace, fmt::format("chunks of {} {}", length, whole.axes[axis].name)});
      }
    }
  }
  candidates.push_back({std::move(whole), whole_bytes, "one chunk"});
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.workspace_bytes != b.workspace_bytes ? a.workspace_bytes < b.workspace_bytes
                                                  : a.plan.predicted_ns < b.plan.predicted_ns;
  });
  const Candidate* fastest = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.workspace_bytes > options.memory_budget) continue;
    if (fastest == nullptr || candidate.plan.predicted_ns < fastest->plan.predicted_ns) fastest = &candidate;
  }
  if (fastest == nullptr) {
    throw Error({.kind = ErrorKind::usage,
                 .function = candidates.front().plan.name,
                 .argument = "memory_budget",
                 .found = readable(options.memory_budget),
                 .expected = "at least " + readable(candidates.front().workspace_bytes),
                 .cure = "Raise the budget"},
                "no plan fits into the memory budget");
  }
  // Within 1 % of the fastest, the smallest.
  const Candidate* chosen = fastest;
  for (const Candidate& candidate : candidates) {
    if (candidate.workspace_bytes <= chosen->workspace_bytes &&
        candidate.plan.predicted_ns <= 1.01 * fastest->plan.predicted_ns) {
      chosen = &candidate;
      break;
    }
  }
  std::vector<FrontEntry> front;
  double best = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates) {
    if (candidate.plan.predicted_ns >= best && &candidate != chosen) continue;
    best = std::min(best, candidate.plan.predicted_ns);
    front.push_back({candidate.workspace_bytes, candidate.plan.predicted_ns, candidate.strategy, &candidate == chosen});
  }
  Plan result = chosen->plan;
  result.front = std::move(front);
  for (Note& note : refusals) result.notes.push_back(std::move(note));
  return result;
}

}  // namespace tigon::plan
