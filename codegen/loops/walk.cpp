// Traversals of nests.
#include "codegen/loops/walk.hpp"

namespace tigon::loops {

Block* body_of(Statement& statement) {
  if (auto* loop = std::get_if<Loop>(&statement.node)) return &loop->body;
  if (auto* when = std::get_if<When>(&statement.node)) return &when->body;
  return nullptr;
}

const Block* body_of(const Statement& statement) {
  if (const auto* loop = std::get_if<Loop>(&statement.node)) return &loop->body;
  if (const auto* when = std::get_if<When>(&statement.node)) return &when->body;
  return nullptr;
}

void each_own_expr(Statement& statement, const std::function<void(ExprId&)>& visit) {
  const auto one = [&](ExprId& id) {
    if (id != no_expr) visit(id);
  };
  const auto all = [&](std::vector<ExprId>& ids) {
    for (ExprId& id : ids) one(id);
  };
  struct Visitor {
    decltype(one)& single;
    decltype(all)& list;
    void operator()(Loop& s) const { single(s.begin), single(s.end); }
    void operator()(Let& s) const { single(s.value); }
    void operator()(Update& s) const { list(s.operands), single(s.index); }
    void operator()(Merge& s) const { list(s.state); }
    void operator()(Store& s) const { list(s.index), single(s.value); }
    void operator()(StoreState& s) const { list(s.index), list(s.state); }
    void operator()(StageStore& s) const { list(s.index), single(s.value); }
    void operator()(When& s) const { single(s.condition); }
  };
  std::visit(Visitor{one, all}, statement.node);
}

void each_own_expr(const Statement& statement, const std::function<void(ExprId)>& visit) {
  // The visitor above changes nothing by itself, and neither does this callback.
  each_own_expr(const_cast<Statement&>(statement), std::function<void(ExprId&)>([&](ExprId& id) { visit(id); }));
}

void each_statement(const Block& block, const std::function<void(const Statement&)>& visit) {
  for (const Statement& s : block) {
    visit(s);
    if (const Block* body = body_of(s)) each_statement(*body, visit);
  }
}

void each_statement_expr(const Nest& nest, const std::function<void(ExprId)>& visit) {
  for (const Part& part : nest.parts) {
    if (part.grid.begin != no_expr) visit(part.grid.begin);
    if (part.grid.end != no_expr) visit(part.grid.end);
    each_statement(part.grid.body, [&](const Statement& s) { each_own_expr(s, visit); });
  }
}

std::vector<ExprId> reached(const Nest& nest, const Block& block) {
  std::vector<bool> seen(nest.exprs.size(), false);
  each_statement(block, [&](const Statement& s) { each_own_expr(s, [&](ExprId id) { seen[id] = true; }); });
  for (std::size_t i = seen.size(); i-- > 0;)
    if (seen[i])
      for (const ExprId arg : args_of(nest, static_cast<ExprId>(i))) seen[arg] = true;
  std::vector<ExprId> result;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i]) result.push_back(static_cast<ExprId>(i));
  return result;
}

}  // namespace tigon::loops
