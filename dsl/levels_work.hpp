// The work of the passes over one axis, given which sink is in which pass.
#pragma once
#include <vector>

#include "dsl/levels.hpp"
#include "dsl/levels_cone.hpp"

namespace tigon::dsl {

// What a chunk evaluates: the nodes that carry the axis, and the folds over it, in order of NodeId. Known by position.
class AxisWork {
 public:
  enum class Role : char { inner, fold, target, table, store };  // all but `inner` are sinks
  struct Entry {
    NodeId node = no_node;
    Role role = Role::inner;
    int pass = -1;        // of a sink
    double work = 0;      // of evaluating it once
    double transfer = 0;  // of writing it to memory or reading it once, in the same unit
    double elements = 0;  // of its value
    bool can_be_stored = false;
    AxisSet inner_folds{};  // axes chunked inside that it reduces
  };
  // Whether a pass evaluates an entry, or reads what an earlier pass left in memory.
  enum class Use : char { none, evaluated, read };

  AxisWork(const AxisCone& cone, std::span<const NodeId> targets, const AxisOptions& options);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] Entry& operator[](std::size_t i) { return entries_[i]; }
  [[nodiscard]] const Entry& operator[](std::size_t i) const { return entries_[i]; }
  [[nodiscard]] int level(std::size_t i) const { return cone_.level(entries_[i].node); }
  [[nodiscard]] int position(NodeId node) const { return position_[node]; }
  [[nodiscard]] double largest() const { return largest_; }
  // Operands that carry the axis and are evaluated by the pass that evaluates the entry.
  [[nodiscard]] std::span<const int> operands(std::size_t i) const {
    return std::span(edges_).subspan(first_edge_[i], first_edge_[i + 1] - first_edge_[i]);
  }
  // The folds over the axis and tables that must be finished before any pass can evaluate the entry.
  [[nodiscard]] std::vector<int> dependencies(std::size_t i);

  // The work of one pass; fills `use`. What an inner axis' passes evaluate again counts as often.
  double demand(int pass, std::vector<Use>& use) const;
  // For each entry evaluated in the pass by way of `use`: the work that only it, directly or not, has need of.
  void exclusive_work(int pass, const std::vector<Use>& use, std::vector<double>& work) const;
  // The work that evaluating the entry would add to a pass.
  double added_work(std::size_t i, int pass, const std::vector<Use>& use) const;

 private:
  double count(AxisSet axes) const;
  AxisSet find_inner_folds(NodeId id) const;
  double repeated_work(int pass, const std::vector<Use>& use) const;
  void add(NodeId id, Role role);
  void measure();
  [[nodiscard]] bool left_by_earlier_pass(std::size_t i, int pass) const {
    const Entry& e = entries_[i];
    return e.role != Role::inner && e.role != Role::fold && e.pass < pass;
  }

  const AxisCone& cone_;
  const AxisOptions& options_;
  std::vector<Entry> entries_;
  std::vector<int> position_;
  std::vector<std::size_t> first_edge_;
  std::vector<int> edges_;
  std::vector<int> stamp_;  // by node, for searches
  int search_ = 0;
  double largest_ = 0;
};

}  // namespace tigon::dsl
