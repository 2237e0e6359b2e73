// Turns a kernel graph's nodes into expressions of a nest by pulling: an index for each axis in, a value out.
#pragma once
#include <array>
#include <map>
#include <set>
#include <vector>

#include "codegen/loops/builder.hpp"
#include "codegen/schedule/kernel.hpp"

namespace tigon::schedule {

// The index expression of each axis at the place where a value is wanted.
using Environment = std::array<loops::ExprId, dsl::max_axes>;
Environment empty_environment();

class Emitter {
 public:
  Emitter(const KernelRequest& request, loops::NestBuilder& builder, Scheduled& result);

  // Loops are opened and closed like brackets; statements go to the innermost open one.
  struct LoopSpec {
    std::string name;
    loops::Bind bind = loops::Bind::serial;
    loops::ExprId begin = loops::no_expr, end = loops::no_expr;
    std::int64_t step = 1;
    std::string comment{};
  };
  loops::ExprId open(const LoopSpec& spec);  // returns the loop's index
  void close();
  loops::ExprId open_grid(loops::Part& part);  // continues the part's grid loop; forgets values of earlier parts
  loops::Loop take_outermost();                // closes the last open loop and hands it out instead of placing it
  void add(loops::Statement statement);
  // Statements that `body` adds at the innermost open loop run only where the condition holds.
  template <class Body>
  void guard(loops::ExprId condition, Body body) {
    const std::size_t first = scopes_.back().loop.body.size();
    body();
    wrap_from(first, condition);
  }
  // Declares a fold at the innermost open loop.
  loops::FoldId declare_fold(const std::string& name, int monoid, DType element) {
    return declare_fold_at(1, name, monoid, element);
  }
  // Declares a fold at the open loop that is `levels` out; 1 is the innermost.
  loops::FoldId declare_fold_at(int levels, const std::string& name, int monoid, DType element);

  loops::ExprId value(dsl::NodeId node, const Environment& environment);
  std::vector<loops::ExprId> state(dsl::NodeId node, const Environment& environment);
  // The state that one element of graph fold `node` contributes.
  std::vector<loops::ExprId> lifted(dsl::NodeId node, const Environment& environment);
  // An update of `fold` by the operands of graph fold `node` (lifting, or merging where it folds states).
  void update(loops::FoldId fold, dsl::NodeId node, const Environment& environment);
  // From now on `node` is this complete fold, wherever its free axes have these indices.
  void complete(dsl::NodeId node, const Environment& environment, loops::FoldId fold);

  loops::ExprId extent(dsl::AxisId axis);  // of this launch
  // Declares, at the innermost open loop (the rows loop), the fold that notes an out-of-range checked index.
  void begin_checks();
  // After the rows loop has closed: stores 1 into the error parameter if an index was out of range.
  void end_checks();
  [[nodiscard]] loops::NestBuilder& builder() { return builder_; }
  [[nodiscard]] const dsl::Graph& graph() const { return request_.graph; }
  [[nodiscard]] std::uint16_t nest_axis(dsl::AxisId axis) const { return nest_axes_[axis]; }

 private:
  struct Scope {
    loops::Loop loop;
  };
  using Key = std::pair<dsl::NodeId, std::vector<loops::ExprId>>;
  void wrap_from(std::size_t first, loops::ExprId condition);
  Key key(dsl::NodeId node, const Environment& environment) const;
  int depth(loops::ExprId expr);  // number of open loops that the value depends on
  loops::ExprId global_index(dsl::AxisId axis, const Environment& environment);
  [[nodiscard]] std::string value_name(dsl::NodeId node) const;
  loops::ExprId compute(dsl::NodeId node, const Environment& environment);
  loops::ExprId gather(dsl::NodeId node, const Environment& environment);
  std::vector<loops::ExprId> serial_fold(dsl::NodeId node, const Environment& environment);
  loops::FoldId serial_levels(dsl::NodeId node, Environment& environment, std::size_t level, const std::string& name);
  Environment through_view(dsl::NodeId node, const Environment& environment);
  bool stands_inside_rows(dsl::NodeId fold) const;
  void check_index(loops::ExprId in_range);

  const KernelRequest& request_;
  loops::NestBuilder& builder_;
  Scheduled& result_;
  std::vector<std::uint16_t> nest_axes_;
  std::vector<Scope> scopes_;
  std::map<Key, loops::ExprId> values_;
  std::map<Key, std::vector<loops::ExprId>> states_;
  std::set<dsl::NodeId> complete_;  // folds that a sweep of this part has finished
  std::map<loops::LoopId, int> loop_depth_;
  std::map<loops::FoldId, int> fold_depth_;
  std::map<loops::ExprId, int> depth_;
  bool has_checked_gather_ = false;
  // Where false, the element is replaced by a lookup's fill, and nothing behind it is checked; no_expr: always wanted.
  loops::ExprId wanted_ = loops::no_expr;
  loops::FoldId violation_ = 0;
};

}  // namespace tigon::schedule
