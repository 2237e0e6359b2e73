// Finds chains of chains (a loop over blocks, a loop over the block's elements) and lays them over lanes.
#include "codegen/schedule/gpu_folds.hpp"

#include "codegen/loops/walk.hpp"

namespace tigon::schedule {

using loops::Bind;
using loops::Block;
using loops::ExprId;
using loops::Loop;
using loops::Statement;

ExprId rebuild(loops::NestBuilder& builder, ExprId id, std::map<ExprId, ExprId>& known) {
  if (const auto found = known.find(id); found != known.end()) return found->second;
  const loops::Expr e = builder.nest.exprs[id];
  std::vector<ExprId> args;
  bool changed = false;
  for (std::size_t i = 0; i < e.arg_count; ++i) {
    const ExprId arg = builder.nest.expr_args[e.first_arg + i];
    args.push_back(rebuild(builder, arg, known));
    changed = changed || args.back() != arg;
  }
  const ExprId result = changed ? builder.copy(e, args) : id;
  if (const auto named = builder.nest.names.find(id); named != builder.nest.names.end())
    builder.nest.names.emplace(result, named->second);
  known[id] = result;
  return result;
}

namespace {

// The inner loop, where `outer` is { fold total; { fold part; body }; total <- part } and the body only updates part.
const Loop* inner_chain(const loops::Nest& nest, const Loop& outer) {
  if (outer.bind != Bind::serial || outer.step < 2 || outer.folds.size() != 1 || outer.body.size() != 2) return nullptr;
  const auto* inner = std::get_if<Loop>(&outer.body[0].node);
  const auto* merge = std::get_if<loops::Merge>(&outer.body[1].node);
  if (inner == nullptr || merge == nullptr || merge->fold != outer.folds[0]) return nullptr;
  if (inner->bind != Bind::serial || inner->step != 1 || inner->folds.size() != 1) return nullptr;
  for (const ExprId id : merge->state) {
    const loops::Expr& e = nest.exprs[id];
    if (e.kind != loops::ExprKind::fold_state || e.payload != inner->folds[0]) return nullptr;
  }
  if (!nest.monoids[nest.folds[outer.folds[0]].monoid].commutative) return nullptr;
  for (const Statement& s : inner->body) {
    const auto* update = std::get_if<loops::Update>(&s.node);
    const auto* state = std::get_if<loops::Merge>(&s.node);
    const bool own =
        (update != nullptr && update->fold == inner->folds[0]) || (state != nullptr && state->fold == inner->folds[0]);
    if (!own) return nullptr;
  }
  return inner;
}

void spread(loops::NestBuilder& builder, Block& block) {
  for (Statement& s : block) {
    auto* loop = std::get_if<Loop>(&s.node);
    if (loop != nullptr && loop->bind == Bind::lanes) continue;
    if (loop != nullptr) {
      if (const Loop* inner = inner_chain(builder.nest, *loop)) {
        Loop lanes = builder.loop(inner->name, Bind::lanes, loop->begin, loop->end);
        lanes.folds = loop->folds;
        std::map<ExprId, ExprId> known{{builder.loop_index(inner->id), builder.loop_index(lanes.id)}};
        for (Statement one : inner->body) {
          loops::each_own_expr(one, [&](ExprId& id) { id = rebuild(builder, id, known); });
          if (auto* update = std::get_if<loops::Update>(&one.node)) update->fold = loop->folds[0];
          if (auto* merge = std::get_if<loops::Merge>(&one.node)) merge->fold = loop->folds[0];
          lanes.body.push_back(std::move(one));
        }
        s.node = std::move(lanes);
        continue;
      }
    }
    if (Block* body = loops::body_of(s)) spread(builder, *body);
  }
}

}  // namespace

void spread_folds(loops::NestBuilder& builder) {
  for (loops::Part& part : builder.nest.parts) spread(builder, part.grid.body);
}

}  // namespace tigon::schedule
