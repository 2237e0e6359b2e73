// Places sinks on passes and chooses stores so that the passes demand the least work.
#include <algorithm>

#include "dsl/levels.hpp"
#include "dsl/levels_cone.hpp"
#include "dsl/levels_work.hpp"

namespace tigon::dsl {
namespace {

using Role = AxisWork::Role;
using Use = AxisWork::Use;

constexpr double small_share = 1.0 / 8;  // of the largest value: a value up to this always may be stored
constexpr int most_rounds = 16;          // of placement and of stores; both settle in two or three
constexpr std::size_t most_trials = 4;   // stores that pay only once other sinks have moved

class Placement {
 public:
  Placement(const AxisCone& cone, std::span<const NodeId> targets, const AxisOptions& options)
      : cone_(cone), targets_(targets), options_(options), work_(cone, targets, options) {
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (work_[i].role == Role::inner) continue;
      last_ = std::max(last_, work_.level(i));
      add_sink(i);
    }
    cost_.resize(static_cast<std::size_t>(last_) + 1);
    use_.resize(cost_.size());
  }

  AxisPlan plan() {
    if (last_ >= 0) {
      place_latest();
      settle();
      rejected_.assign(work_.size(), 0);
      if (!options_.rest.empty()) store_inner_folds();
      choose_stores();
      drop_idle_stores();
    }
    return result();
  }

 private:
  struct Links {
    std::vector<int> before;  // sinks that must be in an earlier pass
    std::vector<int> after;   // sinks that must be in a later pass
  };
  struct Candidate {
    std::size_t entry = 0;
    int pass = 0;
    double saving = 0;
    double bound = 0;  // of the saving, once others have moved
  };

  void add_sink(std::size_t i) {
    links_.resize(work_.size());
    links_[i].before = work_.dependencies(i);
    for (const int before : links_[i].before)
      links_[static_cast<std::size_t>(before)].after.push_back(static_cast<int>(i));
    sinks_.insert(std::lower_bound(sinks_.begin(), sinks_.end(), i), i);
  }
  void remove_sink(std::size_t i) {
    for (const int before : links_[i].before)
      std::erase(links_[static_cast<std::size_t>(before)].after, static_cast<int>(i));
    links_[i] = {};
    std::erase(sinks_, i);
    work_[i].role = Role::inner;
    work_[i].pass = -1;
  }

  int earliest(std::size_t i) const {
    int pass = 0;
    for (const int before : links_[i].before) pass = std::max(pass, work_[static_cast<std::size_t>(before)].pass + 1);
    return pass;
  }
  int latest(std::size_t i) const {
    int pass = last_;
    for (const int after : links_[i].after) pass = std::min(pass, work_[static_cast<std::size_t>(after)].pass - 1);
    return pass;
  }

  // Stores keep their pass: later than that they would not be read.
  void place_latest() {
    for (std::size_t s = sinks_.size(); s-- > 0;)
      if (work_[sinks_[s]].role != Role::store) work_[sinks_[s]].pass = latest(sinks_[s]);
    refresh_from(0);
  }

  void refresh(int pass) {
    const auto k = static_cast<std::size_t>(pass);
    cost_[k] = work_.demand(pass, use_[k]);
  }
  void refresh_from(int pass) {
    for (int k = pass; k <= last_; ++k) refresh(k);
  }
  bool evaluated(std::size_t i, int pass) const { return use_[static_cast<std::size_t>(pass)][i] == Use::evaluated; }
  double total() const {
    double sum = 0;
    for (const double cost : cost_) sum += cost;
    return sum;
  }

  double move(std::size_t i, int pass) {
    const int from = work_[i].pass;
    work_[i].pass = pass;
    const bool fold = work_[i].role == Role::fold;
    for (int k = std::min(from, pass); k <= std::max(from, pass); ++k)
      if (!fold || k == from || k == pass) refresh(k);
    return total();
  }

  void settle() {
    bool moved = true;
    for (int round = 0; round < most_rounds && moved; ++round) {
      moved = false;
      for (std::size_t s = sinks_.size(); s-- > 0;) {
        const std::size_t i = sinks_[s];
        const int start = work_[i].pass;
        const int last = latest(i);
        const int first = earliest(i);
        if (first >= last) continue;
        int best = start;
        double least = total();
        for (int pass = first; pass <= last; ++pass) {
          if (pass == start) continue;
          const double cost = move(i, pass);
          if (cost < least || (cost == least && pass < best)) {
            least = cost;
            best = pass;
          }
        }
        if (work_[i].pass != best) move(i, best);
        moved = moved || best != start;
      }
    }
  }

  // ---- stores ------------------------------------------------------------------------------------------------------
  // By node: the first pass that finds the folds and tables finished that the node needs.
  std::vector<int> ready() const {
    const Graph& graph = cone_.graph();
    std::vector<int> pass(graph.nodes.size());
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      if (!cone_.contains(id) || cone_.resident(id)) continue;
      const auto operands = graph.operands(id);
      for (std::size_t k = 0; k < operands.size(); ++k) {
        const NodeId operand = operands[k];
        if (cone_.resident(operand)) continue;
        const bool waits = cone_.folds(operand) || cone_.distant(id, k);
        const int from = waits ? work_[static_cast<std::size_t>(work_.position(operand))].pass + 1 : pass[operand];
        pass[id] = std::max(pass[id], from);
      }
    }
    return pass;
  }

  std::vector<Candidate> candidates() const {
    std::vector<std::vector<double>> exclusive(cost_.size());
    for (int pass = 0; pass <= last_; ++pass)
      work_.exclusive_work(pass, use_[static_cast<std::size_t>(pass)], exclusive[static_cast<std::size_t>(pass)]);
    const std::vector<int> first_pass = ready();
    std::vector<Candidate> found;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const AxisWork::Entry& entry = work_[i];
      if (!entry.can_be_stored || entry.role != Role::inner || rejected_[i] != 0) continue;
      if (!options_.store_large && entry.elements > small_share * work_.largest()) continue;
      int final_use = last_;
      while (final_use > 0 && !evaluated(i, final_use)) --final_use;
      Candidate best;
      double gain = 0;
      // From late to early: what is saved grows, what must be evaluated for it may too.
      for (int pass = final_use - 1; pass >= first_pass[entry.node]; --pass) {
        if (evaluated(i, pass + 1)) gain += exclusive[static_cast<std::size_t>(pass) + 1][i] - entry.transfer;
        if (gain <= entry.transfer) continue;
        const double bound = gain - entry.transfer;
        if (best.bound > 0 && bound < best.saving) continue;
        const double saving = bound - work_.added_work(i, pass, use_[static_cast<std::size_t>(pass)]);
        if (best.bound == 0 || saving >= best.saving) best = {i, pass, saving, bound};
      }
      if (best.bound > 0) found.push_back(best);
    }
    return found;
  }

  bool crosses(const Candidate& candidate) const {
    for (int pass = candidate.pass + 1; pass <= last_; ++pass)
      if (evaluated(candidate.entry, pass)) return true;
    return false;
  }

  // Keeps the store if that lowers the work at once.
  bool add_if_cheaper(const Candidate& candidate) {
    const double before = total();
    AxisWork::Entry& entry = work_[candidate.entry];
    entry.role = Role::store;
    entry.pass = candidate.pass;
    refresh_from(candidate.pass);
    if (total() < before) {
      add_sink(candidate.entry);
      return true;
    }
    entry.role = Role::inner;
    entry.pass = -1;
    refresh_from(candidate.pass);
    return false;
  }

  std::vector<int> passes() const {
    std::vector<int> list;
    for (const std::size_t sink : sinks_) list.push_back(work_[sink].pass);
    return list;
  }
  void restore(const std::vector<int>& list) {
    for (std::size_t s = 0; s < sinks_.size(); ++s) work_[sinks_[s]].pass = list[s];
    refresh_from(0);
  }

  // Looks for better places of all sinks, starting from the latest ones again.
  void place_again() {
    const double before = total();
    const std::vector<int> places = passes();
    place_latest();
    settle();
    if (total() > before) restore(places);
  }

  // Keeps the store if that lowers the work once the other sinks have found their places.
  bool try_store(const Candidate& candidate) {
    const double before = total();
    const std::vector<int> places = passes();
    work_[candidate.entry].role = Role::store;
    work_[candidate.entry].pass = candidate.pass;
    add_sink(candidate.entry);
    place_latest();
    settle();
    if (total() < before) return true;
    remove_sink(candidate.entry);
    restore(places);
    rejected_[candidate.entry] = 1;
    return false;
  }

  // Small values that reduce an inner axis and are wanted by several passes: none of them saves an inner pass alone, so
  // all are stored at once, and those that save nothing are given up again.
  void store_inner_folds() {
    const Graph& graph = cone_.graph();
    std::vector<std::size_t> added;
    const double before = total();
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const AxisWork::Entry& entry = work_[i];
      if (!entry.can_be_stored || entry.elements > small_share * work_.largest()) continue;
      const bool finish = graph.node(entry.node).kind == NodeKind::finish;
      const int state = finish ? work_.position(graph.operands(entry.node)[0]) : -1;
      const bool of_plain_fold = state >= 0 && !work_[static_cast<std::size_t>(state)].inner_folds.empty() &&
                                 !work_[static_cast<std::size_t>(state)].can_be_stored;
      if (entry.inner_folds.empty() && !of_plain_fold) continue;
      int first = 0;
      while (first <= last_ && !evaluated(i, first)) ++first;
      int final_use = last_;
      while (final_use > first && !evaluated(i, final_use)) --final_use;
      if (first >= final_use) continue;
      work_[i].role = Role::store;
      work_[i].pass = first;
      added.push_back(i);
    }
    for (const std::size_t i : added) add_sink(i);
    refresh_from(0);
    const bool gained = total() < before;
    for (const std::size_t i : added) {
      const double with = total();
      const int pass = work_[i].pass;
      remove_sink(i);
      refresh_from(pass);
      if (!gained || total() <= with) continue;
      work_[i].role = Role::store;
      work_[i].pass = pass;
      add_sink(i);
      refresh_from(pass);
    }
    settle();
  }

  void choose_stores() {
    for (int round = 0; round < most_rounds; ++round) {
      std::vector<Candidate> found = candidates();
      if (found.empty()) return;
      // By saving at once, then by what others may add; the larger id, nearer to its readers, on ties.
      std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
        if (a.saving != b.saving) return a.saving > b.saving;
        return a.entry > b.entry;
      });
      bool kept = false;
      for (const Candidate& candidate : found)
        if (candidate.saving > 0 && crosses(candidate) && add_if_cheaper(candidate)) kept = true;
      if (kept) {
        place_again();
        continue;
      }
      std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
        if (a.bound != b.bound) return a.bound > b.bound;
        return a.entry > b.entry;
      });
      for (std::size_t c = 0; c < found.size() && c < most_trials && !kept; ++c) kept = try_store(found[c]);
      if (!kept) return;
    }
  }

  void drop_idle_stores() {
    std::vector<char> read(work_.size());
    for (const std::vector<Use>& use : use_)
      for (std::size_t i = 0; i < work_.size(); ++i)
        if (use[i] == Use::read) read[i] = 1;
    const std::vector<std::size_t> sinks = sinks_;
    for (const std::size_t sink : sinks)
      if (work_[sink].role == Role::store && read[sink] == 0) remove_sink(sink);
    refresh_from(0);
  }

  // ---- the plan ----------------------------------------------------------------------------------------------------
  AxisPlan result() {
    AxisPlan plan;
    const Graph& graph = cone_.graph();
    std::vector<char> sunk(graph.nodes.size());
    for (int k = 0; k <= last_; ++k) {
      AxisPass pass;
      for (const std::size_t sink : sinks_)
        if (work_[sink].pass == k) pass.sinks.push_back(work_[sink].node);
      for (std::size_t i = 0; i < work_.size(); ++i) {
        if (!evaluated(i, k)) continue;
        const NodeId id = work_[i].node;
        plan.work += work_[i].work;
        pass.heavy = pass.heavy || is_contraction_fold(graph, id);
        if (cone_.carries(id) && !cone_.resident(id)) pass.demanded.push_back(id);
      }
      pass.hoisted = hoisted(k);
      for (const NodeId sink : pass.sinks) sunk[sink] = 1;
      plan.passes.push_back(std::move(pass));
    }
    for (const std::size_t sink : sinks_)
      if (work_[sink].role == Role::table || work_[sink].role == Role::store) plan.stored.push_back(work_[sink].node);
    for (const NodeId target : targets_)
      if (sunk[target] == 0) plan.after.push_back(target);
    std::sort(plan.after.begin(), plan.after.end());
    plan.after.erase(std::unique(plan.after.begin(), plan.after.end()), plan.after.end());
    return plan;
  }

  // What the pass reads that lacks the axis and is not computed along with what it evaluates.
  std::vector<NodeId> hoisted(int pass) const {
    const Graph& graph = cone_.graph();
    std::vector<char> seen(graph.nodes.size());
    std::vector<NodeId> pending;
    std::vector<NodeId> found;
    const auto read = [&](NodeId id) {
      if (cone_.carries(id) || cone_.resident(id) || cone_.folds(id) || seen[id] != 0) return;
      seen[id] = 1;
      const NodeKind kind = graph.node(id).kind;
      const bool inlined = (kind == NodeKind::map || kind == NodeKind::cast || kind == NodeKind::view) &&
                           !(graph.node(id).axes & options_.rest).empty();
      (inlined ? pending : found).push_back(id);
    };
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (!evaluated(i, pass) || cone_.resident(work_[i].node)) continue;
      for (const NodeId operand : graph.operands(work_[i].node)) read(operand);
    }
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      for (const NodeId operand : graph.operands(id)) read(operand);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  const AxisCone& cone_;
  std::span<const NodeId> targets_;
  const AxisOptions& options_;
  AxisWork work_;
  int last_ = -1;  // the number of the last pass
  std::vector<std::size_t> sinks_;
  std::vector<Links> links_;
  std::vector<double> cost_;           // by pass
  std::vector<std::vector<Use>> use_;  // by pass
  std::vector<char> rejected_;
};

}  // namespace

std::variant<AxisPlan, AxisRefusal> plan_axis(const Graph& graph, std::span<const NodeId> targets, AxisId axis,
                                              const std::vector<bool>& known, const AxisOptions& options) {
  const AxisCone cone(graph, targets, axis, known);
  if (std::optional<std::string> reason = cone.illegal()) return AxisRefusal{std::move(*reason)};
  return Placement(cone, targets, options).plan();
}

}  // namespace tigon::dsl
