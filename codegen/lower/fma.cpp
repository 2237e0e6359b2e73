// Rewrites a nest expression by expression through the builder, so that folding and sharing hold in the result.
#include "codegen/lower/fma.hpp"

#include "codegen/loops/builder.hpp"
#include "codegen/loops/walk.hpp"

namespace tigon::lower {
namespace {

using loops::Expr;
using loops::ExprId;
using loops::ExprKind;
using loops::Nest;
using loops::no_expr;

std::vector<std::uint32_t> count_uses(const Nest& nest) {
  std::vector<std::uint32_t> uses(nest.exprs.size(), 0);
  loops::each_statement_expr(nest, [&](ExprId id) { ++uses[id]; });
  for (std::size_t i = nest.exprs.size(); i-- > 0;)
    if (uses[i] != 0)
      for (const ExprId arg : loops::args_of(nest, static_cast<ExprId>(i))) ++uses[arg];
  return uses;
}

bool is_product(const Nest& nest, ExprId id) {
  const Expr& e = nest.exprs[id];
  return e.kind == ExprKind::operation && e.op == ScalarOp::mul && (e.dtype == DType::f32 || e.dtype == DType::f64);
}

// Copies living expressions into a builder whose tables are the old nest's.
struct Rewriter {
  const Nest& from;
  std::vector<std::uint32_t> uses;
  loops::NestBuilder to;
  std::vector<ExprId> moved;

  explicit Rewriter(const Nest& nest) : from(nest), uses(count_uses(nest)), moved(nest.exprs.size(), no_expr) {
    to.nest = nest;
    to.nest.exprs.clear();
    to.nest.expr_args.clear();
    to.nest.names.clear();
    // Slots keep their numbers: the parameter block's layout is the caller's contract.
    for (std::size_t i = 0; i < nest.exprs.size(); ++i)
      if (uses[i] != 0) moved[i] = move(static_cast<ExprId>(i));
    for (const auto& [id, name] : nest.names)
      if (moved[id] != no_expr) to.nest.names.emplace(moved[id], name);
  }

  ExprId move(ExprId id) {
    const Expr& e = from.exprs[id];
    std::vector<ExprId> args;
    for (const ExprId arg : loops::args_of(from, id)) args.push_back(moved[arg]);
    if (e.kind != ExprKind::operation) return to.copy(e, args);
    if (e.dtype == DType::f32 || e.dtype == DType::f64) {
      if (e.op == ScalarOp::add || e.op == ScalarOp::sub) {
        for (std::size_t i = 0; i < 2; ++i) {
          const ExprId product = from.expr_args[e.first_arg + i];
          if (!is_product(from, product) || uses[product] != 1) continue;
          ExprId a = moved[from.expr_args[from.exprs[product].first_arg]];
          const ExprId b = moved[from.expr_args[from.exprs[product].first_arg + 1]];
          ExprId c = args[1 - i];
          if (e.op == ScalarOp::sub && i == 0) c = to.op(ScalarOp::neg, {c});
          if (e.op == ScalarOp::sub && i == 1) a = to.op(ScalarOp::neg, {a});
          return to.op(ScalarOp::fma, {a, b, c});
        }
      }
    }
    return to.op(e.op, args);
  }

  void rewrite(loops::Block& block) {
    for (loops::Statement& s : block) {
      if (auto* update = std::get_if<loops::Update>(&s.node)) {
        const loops::Fold& fold = from.folds[update->fold];
        std::vector<ExprId> inputs;
        for (const ExprId operand : update->operands) inputs.push_back(moved[operand]);
        inputs.push_back(update->index == no_expr ? no_expr : moved[update->index]);
        const ScalarProgram lift = from.monoids[fold.monoid].lift;
        s.node = loops::Merge{update->fold, to.inline_program(lift, inputs, fold.element), true};
        continue;
      }
      loops::each_own_expr(s, [&](ExprId& id) { id = moved[id]; });
      if (loops::Block* body = loops::body_of(s)) rewrite(*body);
    }
  }
};

}  // namespace

Prepared prepare(const Nest& nest) {
  Rewriter rewriter(nest);
  for (loops::Part& part : rewriter.to.nest.parts) {
    if (part.grid.begin != no_expr) part.grid.begin = rewriter.moved[part.grid.begin];
    if (part.grid.end != no_expr) part.grid.end = rewriter.moved[part.grid.end];
    rewriter.rewrite(part.grid.body);
  }
  Prepared result;
  result.nest = std::move(rewriter.to.nest);
  result.uses = count_uses(result.nest);
  return result;
}

ExprId fused_product(const Prepared& prepared, ExprId operand) {
  return is_product(prepared.nest, operand) && prepared.uses[operand] == 1 ? operand : no_expr;
}

}  // namespace tigon::lower
