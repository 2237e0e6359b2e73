// Strategies are added one at a time, for the largest values that are left, until a plan fits; dominated plans drop
// out.
#include "codegen/plan/search.hpp"

#include <set>

#include "tigon/error.hpp"

namespace tigon::plan {
using dsl::AxisId;
using dsl::AxisSet;

namespace {

struct Candidate {
  Plan plan;
  double workspace_bytes = 0;
  std::vector<Strategy> strategies;
};

// A kind of workspace value: the axes it runs over, and the bytes of the largest one.
struct ValueKind {
  AxisSet axes;
  double bytes = 0;
};

std::vector<ValueKind> largest_kinds(const Plan& plan, const dsl::Graph& graph) {
  std::vector<ValueKind> kinds;
  const dsl::Extents chunks = longest_chunks(plan, plan.planned);
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.home != Home::workspace || buffer.node == dsl::no_node || buffer.first_step < 0) continue;
    const AxisSet axes = graph.node(buffer.node).axes;
    dsl::Extents extents = plan.planned;
    for (const AxisId axis : buffer.chunked) extents[axis] = chunks[axis];
    const double bytes = static_cast<double>(element_count(buffer, extents) * size_of(buffer.dtype));
    const auto known =
        std::find_if(kinds.begin(), kinds.end(), [&](const ValueKind& kind) { return kind.axes == axes; });
    if (known == kinds.end())
      kinds.push_back({axes, bytes});
    else
      known->bytes = std::max(known->bytes, bytes);
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const ValueKind& a, const ValueKind& b) { return a.bytes > b.bytes; });
  return kinds;
}

double workspace_of(const Plan& plan) {
  return static_cast<double>(layout_workspace(plan, bind_extents(plan, plan.planned)).bytes);
}

std::string readable(double bytes) {
  if (bytes >= 1073741824.0) return fmt::format("{:.2f} GiB", bytes / 1073741824.0);
  if (bytes >= 1048576.0) return fmt::format("{:.1f} MiB", bytes / 1048576.0);
  return fmt::format("{:.0f} bytes", bytes);
}

std::string describe(const std::vector<Strategy>& strategies, const Plan& plan) {
  std::string text;
  for (const Strategy& strategy : strategies) {
    text += fmt::format("{}chunks of {} {}", text.empty() ? "" : ", ", strategy.chunk, plan.axes[strategy.axis].name);
  }
  return text.empty() ? "one chunk" : text;
}

class Search {
 public:
  Search(const Work& work, const PlanOptions& options, const BuildPlan& build)
      : work_(work), options_(options), build_(build) {}

  Plan run() {
    if (!options_.strategies.empty()) return given();
    if (!try_strategies({})) throw Error({.kind = ErrorKind::internal}, "the unchunked plan was refused");
    if (options_.unfused || options_.memory_budget <= 0 || fits(candidates_.front())) {
      Candidate& whole = candidates_.front();
      whole.plan.front = {{whole.workspace_bytes, whole.plan.predicted_ns, "one chunk", true}};
      return std::move(whole.plan);
    }
    // Deeper only while nothing fits: a strategy is added to the two smallest plans so far.
    constexpr int most_strategies = 3;
    std::vector<std::size_t> bases{0};
    for (int depth = 0; depth < most_strategies && !any_fits(); ++depth) {
      const double least_before = smallest().workspace_bytes;
      for (const std::size_t base : bases) extend(base);
      if (smallest().workspace_bytes > 0.98 * least_before) break;
      bases = two_smallest();
    }
    return choose();
  }

 private:
  Plan given() {
    if (!try_strategies(options_.strategies)) {
      throw Error({.kind = ErrorKind::usage,
                   .function = work_.graph->name,
                   .argument = "strategies",
                   .cure = "Chunk along another axis"},
                  *refusals_.begin());
    }
    Candidate& made = candidates_.front();
    made.plan.front = {{made.workspace_bytes, made.plan.predicted_ns, describe(made.strategies, made.plan), true}};
    return std::move(made.plan);
  }

  bool fits(const Candidate& candidate) const { return candidate.workspace_bytes <= options_.memory_budget; }
  bool any_fits() const {
    return std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& c) { return fits(c); });
  }
  const Candidate& smallest() const { return candidates_[two_smallest().front()]; }
  std::vector<std::size_t> two_smallest() const {
    std::vector<std::size_t> order(candidates_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return candidates_[a].workspace_bytes < candidates_[b].workspace_bytes;
    });
    order.resize(std::min<std::size_t>(order.size(), 2));
    return order;
  }

  bool try_strategies(std::vector<Strategy> strategies) {
    std::variant<Plan, schedule::Refusal> made = build_(strategies);
    if (const auto* refusal = std::get_if<schedule::Refusal>(&made)) {
      refusals_.insert(
          fmt::format("chunks of {}: {}", work_.graph->axes[strategies.back().axis].name, refusal->reason));
      return false;
    }
    Plan& plan = std::get<Plan>(made);
    const double bytes = workspace_of(plan);
    candidates_.push_back({std::move(plan), bytes, std::move(strategies)});
    return true;
  }

  // Chunks for the largest kinds of value that this plan keeps, along each of their axes: all values that are nearly as
  // large as the largest, and all that count beside the budget.
  void extend(std::size_t base) {
    constexpr std::size_t most_kinds = 3;
    const std::vector<Strategy> strategies = candidates_[base].strategies;
    std::vector<ValueKind> kinds = largest_kinds(candidates_[base].plan, *work_.graph);
    const double all = candidates_[base].workspace_bytes;
    kinds.resize(std::min(kinds.size(), most_kinds));
    std::set<std::pair<AxisId, double>> tried;
    for (const ValueKind& kind : kinds) {
      if (16 * kind.bytes < all) continue;
      const double nearly = 0.5 * kind.bytes;
      const double counting = std::min(nearly, std::max(std::min(options_.memory_budget / 64, all / 256), 1024.0));
      for (const AxisId axis : kind.axes) {
        for (const double bytes : {nearly, counting}) {
          if (tried.insert({axis, bytes}).second) lengths(strategies, {axis, bytes, 0}, all);
        }
      }
    }
  }

  // The shortest chunks show whether the strategy saves anything: two of them, since one of a single element leaves no
  // matrix product to the library. Then every other length from the longest one down.
  void lengths(const std::vector<Strategy>& before, Strategy strategy, double bytes_before) {
    const std::vector<std::int64_t> lengths = chunk_lengths(work_.extents[strategy.axis]);
    double least = bytes_before;
    for (std::size_t i = 0; i < std::min<std::size_t>(lengths.size(), 2); ++i) {
      if (!try_chunk(before, strategy, lengths[i])) return;
      least = std::min(least, candidates_.back().workspace_bytes);
    }
    if (least > 0.95 * bytes_before) return;
    for (std::size_t i = 0; i + 1 < lengths.size(); i += 2) {
      if (!try_chunk(before, strategy, lengths[lengths.size() - 1 - i])) return;
      if (candidates_.back().workspace_bytes <= least) return;
    }
  }

  bool try_chunk(std::vector<Strategy> strategies, Strategy strategy, std::int64_t chunk) {
    strategy.chunk = chunk;
    strategies.push_back(strategy);
    return try_strategies(std::move(strategies));
  }

  // The lengths beside the chosen one that were left out.
  void refine() {
    const Candidate* best = fastest();
    if (best == nullptr || best->strategies.empty()) return;
    std::vector<Strategy> before = best->strategies;
    const Strategy last = before.back();
    before.pop_back();
    for (const std::int64_t chunk : {2 * last.chunk, last.chunk / 2}) {
      if (chunk >= 1 && chunk < work_.extents[last.axis]) try_chunk(before, last, chunk);
    }
  }

  const Candidate* fastest() const {
    const Candidate* best = nullptr;
    for (const Candidate& candidate : candidates_) {
      if (!fits(candidate)) continue;
      if (best == nullptr || candidate.plan.predicted_ns < best->plan.predicted_ns) best = &candidate;
    }
    return best;
  }

  Plan choose() {
    refine();
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.workspace_bytes != b.workspace_bytes ? a.workspace_bytes < b.workspace_bytes
                                                    : a.plan.predicted_ns < b.plan.predicted_ns;
    });
    const Candidate* fastest = this->fastest();
    if (fastest == nullptr) {
      throw Error({.kind = ErrorKind::usage,
                   .function = candidates_.front().plan.name,
                   .argument = "memory_budget",
                   .found = readable(options_.memory_budget),
                   .expected = "at least " + readable(candidates_.front().workspace_bytes),
                   .cure = "Raise the budget"},
                  "no plan fits into the memory budget");
    }
    // Within 1 % of the fastest, the smallest.
    const Candidate* chosen = fastest;
    for (const Candidate& candidate : candidates_) {
      if (candidate.workspace_bytes <= chosen->workspace_bytes &&
          candidate.plan.predicted_ns <= 1.01 * fastest->plan.predicted_ns) {
        chosen = &candidate;
        break;
      }
    }
    std::vector<FrontEntry> front;
    double best = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : candidates_) {
      if (candidate.plan.predicted_ns >= best && &candidate != chosen) continue;
      best = std::min(best, candidate.plan.predicted_ns);
      front.push_back({candidate.workspace_bytes, candidate.plan.predicted_ns,
                       describe(candidate.strategies, candidate.plan), &candidate == chosen});
    }
    Plan result = chosen->plan;
    result.front = std::move(front);
    for (const std::string& text : refusals_) result.notes.push_back({Note::Kind::refused, text});
    return result;
  }

  const Work& work_;
  const PlanOptions& options_;
  const BuildPlan& build_;
  std::vector<Candidate> candidates_;
  std::set<std::string> refusals_;
};

}  // namespace

Plan search(const Work& work, const PlanOptions& options, const BuildPlan& build) {
  return Search(work, options, build).run();
}

}  // namespace tigon::plan
