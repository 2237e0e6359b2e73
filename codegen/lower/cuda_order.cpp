// Barriers between accesses to one buffer by different threads of a team, placed where the whole team passes.
#include <fmt/format.h>

#include "codegen/loops/walk.hpp"
#include "codegen/lower/cuda_lowering.hpp"

namespace tigon::lower {

using loops::Expr;
using loops::ExprKind;

bool CudaLowering::conflict(const Touch& a, const Touch& b) {
  return a.memory == b.memory && (a.write || b.write) && (a.owner.empty() || a.owner != b.owner);
}

void CudaLowering::barrier() {
  Instruction i;
  i.code = Code::barrier;
  i.integer = team();
  emit_.effect(i, {});
  pending_.clear();
}

void CudaLowering::order(const std::vector<Touch>& touches) {
  bool meets = false;
  for (const Touch& now : touches)
    for (const Touch& before : pending_) meets = meets || conflict(now, before);
  if (meets && team() > 1) barrier();
  pending_.insert(pending_.end(), touches.begin(), touches.end());
  for (std::vector<Touch>* recorder : recorders_) recorder->insert(recorder->end(), touches.begin(), touches.end());
}

// A statement outside lanes: all threads read, the first one writes.
std::vector<CudaLowering::Touch> CudaLowering::touches_of(const loops::Statement& statement) {
  std::vector<Touch> result;
  const auto written = [&](loops::ParameterId id) { return nest_.parameters[id].access != loops::Access::read; };
  loops::each_own_expr(statement, [&](ExprId id) {
    for (const std::uint32_t memory : memory_of_[id])
      if (memory < first_stage_key && written(memory)) result.push_back({memory, false, {}});
  });
  if (const auto* store = std::get_if<loops::Store>(&statement.node))
    result.push_back({store->parameter, true, "leader"});
  if (const auto* store = std::get_if<loops::StoreState>(&statement.node))
    for (const loops::ParameterId id : store->parameters) result.push_back({id, true, "leader"});
  return result;
}

// A lanes loop: an element under the loop's own index belongs to one thread, the same in every loop that deals out
// its lanes in the same way.
std::vector<CudaLowering::Touch> CudaLowering::touches_of_lanes(const loops::Loop& loop, const LanePlan& plan) {
  std::vector<Touch> result;
  const std::string dealt = plan.has_head()
                                ? fmt::format("{} head {}", loop.id, plan.leader)
                                : fmt::format("{} {} {} {} {}", team(), plan.width, loop.vectors, loop.begin, loop.end);
  const auto owner = [&](std::span<const ExprId> index) {
    int moving = 0;
    std::string place;
    for (std::size_t d = 0; d < index.size(); ++d) {
      bool varying = false;
      for (const ExprId id : loops::reached(nest_, {loops::Statement{loops::Let{"", index[d]}}}))
        varying = varying || (nest_.exprs[id].kind == ExprKind::loop_index && nest_.exprs[id].payload == loop.id);
      if (!varying) continue;
      ++moving;
      const Expr& e = nest_.exprs[index[d]];
      if (e.kind == ExprKind::loop_index) place = fmt::format("{} dimension {}", dealt, d);
    }
    return moving == 1 ? place : std::string();
  };
  const auto written = [&](loops::ParameterId id) { return nest_.parameters[id].access != loops::Access::read; };
  for (const ExprId id : loops::reached(nest_, loop.body)) {
    const Expr& e = nest_.exprs[id];
    if (e.kind == ExprKind::load && written(e.payload))
      result.push_back({e.payload, false, owner(loops::args_of(nest_, id))});
  }
  loops::each_statement(loop.body, [&](const loops::Statement& s) {
    if (const auto* store = std::get_if<loops::Store>(&s.node))
      result.push_back({store->parameter, true, owner(store->index)});
    if (const auto* store = std::get_if<loops::StoreState>(&s.node)) {
      std::string who = owner(store->index);
      if (who.empty() && store->mode == loops::StoreMode::accumulate) who = "leader";
      for (const loops::ParameterId id : store->parameters) result.push_back({id, true, who});
    }
  });
  return result;
}

}  // namespace tigon::lower
