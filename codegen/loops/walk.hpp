// Visits a nest's statements and the expressions that they name.
#pragma once
#include <functional>
#include <span>

#include "codegen/loops/nest.hpp"

namespace tigon::loops {

inline std::span<const ExprId> args_of(const Nest& nest, ExprId id) {
  const Expr& e = nest.exprs[id];
  return std::span(nest.expr_args).subspan(e.first_arg, e.arg_count);
}

// The statements inside a loop or a `when`; null for the others.
Block* body_of(Statement& statement);
const Block* body_of(const Statement& statement);

// The expressions that a statement itself names, absent ones left out.
void each_own_expr(Statement& statement, const std::function<void(ExprId&)>& visit);
void each_own_expr(const Statement& statement, const std::function<void(ExprId)>& visit);

// Every statement of a block, outer before inner.
void each_statement(const Block& block, const std::function<void(const Statement&)>& visit);
// Every expression that a statement of the nest names.
void each_statement_expr(const Nest& nest, const std::function<void(ExprId)>& visit);
// Every distinct expression that a block's statements reach, arguments first.
std::vector<ExprId> reached(const Nest& nest, const Block& block);

}  // namespace tigon::loops
