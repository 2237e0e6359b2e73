// Nests as text.
#include "codegen/loops/print.hpp"

#include <map>

#include <fmt/format.h>

#include "codegen/loops/walk.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::loops {
namespace {

std::string_view infix(ScalarOp op) {
  switch (op) {
    case ScalarOp::add:
      return "+";
    case ScalarOp::sub:
      return "-";
    case ScalarOp::mul:
      return "*";
    case ScalarOp::div:
      return "/";
    case ScalarOp::floor_div:
      return "//";
    case ScalarOp::rem:
      return "%";
    case ScalarOp::less:
      return "<";
    case ScalarOp::less_equal:
      return "<=";
    case ScalarOp::equal:
      return "==";
    case ScalarOp::not_equal:
      return "!=";
    case ScalarOp::logical_and:
      return "and";
    case ScalarOp::logical_or:
      return "or";
    default:
      return "";
  }
}

std::string_view bind_name(Bind bind) {
  constexpr std::string_view names[] = {"chunk", "grid", "cluster", "rows", "lanes", "serial", "unroll", "tile"};
  return names[static_cast<int>(bind)];
}

std::string_view keep_name(Keep keep) {
  constexpr std::string_view names[] = {"lane", "block", "cluster", "scratch"};
  return names[static_cast<int>(keep)];
}

class NestPrinter {
 public:
  explicit NestPrinter(const Nest& nest) : nest_(nest) {
    for (const Part& part : nest.parts) {
      loop_names_[part.grid.id] = part.grid.name;
      each_statement(part.grid.body, [&](const Statement& s) {
        if (const auto* loop = std::get_if<Loop>(&s.node)) loop_names_[loop->id] = loop->name;
      });
    }
  }

  std::string run() {
    text_ = "kernel " + nest_.name + "\n";
    for (std::size_t start = 0; start < nest_.formula.size();) {
      const std::size_t end = std::min(nest_.formula.find('\n', start), nest_.formula.size());
      line(1, nest_.formula.substr(start, end - start));
      start = end + 1;
    }
    for (const Parameter& p : nest_.parameters) {
      constexpr std::string_view access[] = {"reads", "writes", "updates"};
      std::string axes;
      for (const std::uint16_t axis : p.axes) axes += (axes.empty() ? "" : ", ") + nest_.axes[axis].name;
      line(1, fmt::format("{} {}: {}[{}]{}", access[static_cast<int>(p.access)], p.name, name(p.dtype), axes,
                          p.comment.empty() ? "" : "  " + p.comment));
    }
    for (const ScalarParameter& s : nest_.scalars) line(1, fmt::format("scalar {}: {}", s.name, name(s.dtype)));
    for (const Stage& s : nest_.stages) {
      std::string extents;
      for (const std::int64_t extent : s.extents) extents += fmt::format("{}{}", extents.empty() ? "" : ", ", extent);
      line(1, fmt::format("stage {}: {}[{}] keep {}{}", s.name, name(s.dtype), extents, keep_name(s.keep),
                          s.depth > 1 ? fmt::format(" depth {}", s.depth) : ""));
    }
    for (const Part& part : nest_.parts) {
      threads_ = team_ = part.threads;
      group_ = part.group;
      const std::string threads =
          part.threads == 0 ? "" : fmt::format("  {} threads, {} for a row", part.threads, part.group);
      line(1, "part " + part.name + threads);
      print_loop(part.grid, 2);
    }
    return std::move(text_);
  }

  std::string expr(ExprId id, bool nested = false) {
    const auto named = names_.find(id);
    if (named != names_.end()) return named->second;
    const Expr& e = nest_.exprs[id];
    switch (e.kind) {
      case ExprKind::constant:
        if (e.dtype == DType::boolean) return e.number != 0 ? "true" : "false";
        return is_floating(e.dtype) ? fmt::format("{}", e.number) : fmt::format("{}", e.integer);
      case ExprKind::slot:
        return slot(nest_.slots[e.payload]);
      case ExprKind::scalar:
        return nest_.scalars[e.payload].name;
      case ExprKind::loop_index: {
        const auto found = loop_names_.find(e.payload);
        return found == loop_names_.end() ? fmt::format("loop{}", e.payload) : found->second;
      }
      case ExprKind::load:
        return fmt::format("load {}[{}]", nest_.parameters[e.payload].name, list(args_of(nest_, id)));
      case ExprKind::stage_load:
        return fmt::format("{}[{}]", nest_.stages[e.payload].name, list(args_of(nest_, id)));
      case ExprKind::fold_state: {
        const Fold& f = nest_.folds[e.payload];
        const bool one = nest_.monoids[f.monoid].state.size() == 1;
        return one ? f.name : fmt::format("{}.{}", f.name, e.slot_of_state);
      }
      case ExprKind::cast:
        return fmt::format("{}({})", name(e.dtype), expr(args_of(nest_, id)[0]));
      case ExprKind::operation: {
        const auto args = args_of(nest_, id);
        const std::string_view sign = infix(e.op);
        if (sign.empty()) return fmt::format("{}({})", dsl::name(e.op), list(args));
        const std::string plain = fmt::format("{} {} {}", expr(args[0], true), sign, expr(args[1], true));
        return nested ? "(" + plain + ")" : plain;
      }
    }
    return "?";
  }

 private:
  const Nest& nest_;
  std::string text_;
  int threads_ = 0, group_ = 0, team_ = 0;  // of the part being printed; the threads that share lanes at this place
  std::map<LoopId, std::string> loop_names_;
  std::map<ExprId, std::string> names_;

  void line(int depth, const std::string& content) {
    text_ += std::string(static_cast<std::size_t>(2 * depth), ' ') + content + "\n";
  }
  std::string list(std::span<const ExprId> ids) {
    std::string result;
    for (const ExprId id : ids) result += (result.empty() ? "" : ", ") + expr(id);
    return result;
  }
  std::string slot(const Slot& s) {
    switch (s.kind) {
      case SlotKind::extent:
        return "extent " + nest_.axes[s.axis].name;
      case SlotKind::origin:
        return "origin " + nest_.axes[s.axis].name;
      case SlotKind::global_extent:
        return "whole extent " + nest_.axes[s.axis].name;
      case SlotKind::stride:
        return fmt::format("stride {}.{}", nest_.parameters[s.parameter].name, s.dimension);
      case SlotKind::partitions:
        return "partitions";
    }
    return "?";
  }
  static std::string_view mode(StoreMode mode) {
    return mode == StoreMode::write ? "=" : mode == StoreMode::accumulate ? "+=" : "= (in place)";
  }

  void print_loop(const Loop& loop, int depth) {
    const std::string range = loop.bind == Bind::grid || loop.begin == no_expr || loop.end == no_expr
                                  ? ""
                                  : fmt::format(" in [{}, {})", expr(loop.begin), expr(loop.end));
    // The threads that share the lanes, the vectors of each (* where their number is not in the text), elements in
    // each.
    const std::string lanes =
        loop.width == 0
            ? ""
            : fmt::format("({}, {}, {})", team_, loop.vectors == 0 ? "*" : std::to_string(loop.vectors), loop.width);
    if (loop.bind == Bind::rows) team_ = group_;
    line(depth, fmt::format("loop {} by {}{}{}{}{}", loop.name, bind_name(loop.bind), lanes, range,
                            loop.step == 1 ? "" : fmt::format(" step {}", loop.step),
                            loop.comment.empty() ? "" : "  # " + loop.comment));
    for (const FoldId id : loop.folds) {
      const Fold& f = nest_.folds[id];
      line(depth + 1, fmt::format("fold {}: {} in {}", f.name, nest_.monoids[f.monoid].name, name(f.element)));
    }
    print_block(loop.body, depth + 1);
    if (loop.bind == Bind::rows) team_ = threads_;
  }

  void print_block(const Block& block, int depth) {
    const auto outer = names_;
    for (const Statement& s : block) print_statement(s, depth);
    names_ = outer;
  }

  void print_statement(const Statement& statement, int depth) {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) return print_loop(*loop, depth);
    if (const auto* s = std::get_if<Let>(&statement.node)) {
      line(depth, fmt::format("let {} = {}", s->name, expr(s->value)));
      names_[s->value] = s->name;
    }
    if (const auto* s = std::get_if<Update>(&statement.node))
      line(depth, fmt::format("{} <- {}{}", nest_.folds[s->fold].name, list(s->operands),
                              s->index == no_expr ? "" : " at " + expr(s->index)));
    if (const auto* s = std::get_if<Merge>(&statement.node))
      line(depth, fmt::format("{} <- state ({})", nest_.folds[s->fold].name, list(s->state)));
    if (const auto* s = std::get_if<Store>(&statement.node))
      line(depth, fmt::format("store {}[{}] {} {}{}", nest_.parameters[s->parameter].name, list(s->index),
                              mode(s->mode), expr(s->value), s->streaming ? "  streaming" : ""));
    if (const auto* s = std::get_if<StoreState>(&statement.node)) {
      std::string targets;
      for (const ParameterId id : s->parameters) targets += (targets.empty() ? "" : ", ") + nest_.parameters[id].name;
      line(depth, fmt::format("store state {} ({})[{}] {} ({})", nest_.monoids[s->monoid].name, targets, list(s->index),
                              s->mode == StoreMode::accumulate ? "merge" : "=", list(s->state)));
    }
    if (const auto* s = std::get_if<StageStore>(&statement.node))
      line(depth, fmt::format("{}[{}] = {}", nest_.stages[s->stage].name, list(s->index), expr(s->value)));
    if (const auto* s = std::get_if<When>(&statement.node)) {
      line(depth, "when " + expr(s->condition));
      print_block(s->body, depth + 1);
    }
  }
};

}  // namespace

std::string print(const Nest& nest) { return NestPrinter(nest).run(); }
std::string print_expr(const Nest& nest, ExprId id) { return NestPrinter(nest).expr(id); }

}  // namespace tigon::loops
