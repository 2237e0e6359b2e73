// The rules: scopes of indices and folds, dtypes, index counts, places of lanes loops, modes of stores, depth of folds.
#include "codegen/loops/verify.hpp"

#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "codegen/loops/builder.hpp"
#include "codegen/loops/print.hpp"
#include "codegen/loops/walk.hpp"
#include "dsl/scalar_table.hpp"
#include "tigon/error.hpp"

namespace tigon::loops {
namespace {

class Verifier {
 public:
  explicit Verifier(const Nest& nest) : nest_(nest) {}

  std::vector<std::string> run() {
    tables();
    if (!faults_.empty()) return faults_;  // the walk below would follow broken numbers
    if (nest_.parts.empty()) fault("the nest has no part");
    for (const Part& part : nest_.parts) {
      if (part.grid.bind != Bind::grid) fault(fmt::format("part {} has no grid loop", part.name));
      if (part.partitions_slot >= nest_.slots.size() || nest_.slots[part.partitions_slot].kind != SlotKind::partitions)
        fault(fmt::format("part {} has no slot with its partitions", part.name));
      if (!part.grid.folds.empty())
        fault(fmt::format("part {} declares a fold at its grid loop, which no one partition completes", part.name));
      threads(part);
      loop(part.grid);
    }
    return std::move(faults_);
  }

 private:
  const Nest& nest_;
  std::vector<std::string> faults_;
  std::vector<const Loop*> open_loops_;
  std::set<FoldId> open_folds_;
  std::set<FoldId> complete_;  // and readable here
  std::set<FoldId> declared_;
  std::set<LoopId> seen_loops_;
  const Loop* lanes_ = nullptr;
  const Part* part_ = nullptr;
  using Geometry = std::tuple<ExprId, int, int, int>;
  std::map<StageId, Geometry> lane_stages_;

  void fault(std::string sentence) { faults_.push_back(std::move(sentence)); }

  void tables() {
    for (std::size_t i = 0; i < nest_.parameters.size(); ++i) {
      const Parameter& p = nest_.parameters[i];
      if (p.axes.size() != p.strides.size())
        fault(fmt::format("parameter {} has {} axes and {} strides", p.name, p.axes.size(), p.strides.size()));
      for (std::size_t d = 0; d < p.strides.size(); ++d) {
        bool found = p.strides[d] != at_run_time;
        for (const Slot& s : nest_.slots)
          found = found || (s.kind == SlotKind::stride && s.parameter == i && s.dimension == d);
        if (!found) fault(fmt::format("parameter {} has no slot for the stride of dimension {}", p.name, d));
      }
    }
    for (const Stage& s : nest_.stages)
      for (const std::int64_t extent : s.extents)
        if (extent < 0) fault(fmt::format("stage {} has an extent that is not constant", s.name));
    for (const Fold& f : nest_.folds)
      if (f.monoid >= nest_.monoids.size()) fault(fmt::format("fold {} has no monoid", f.name));
    for (std::size_t i = 0; i < nest_.exprs.size(); ++i) expression(static_cast<ExprId>(i));
  }

  void expression(ExprId id) {
    const Expr& e = nest_.exprs[id];
    for (const ExprId arg : args_of(nest_, id))
      if (arg >= id) return fault(fmt::format("expression {} uses expression {}, which comes later", id, arg));
    switch (e.kind) {
      case ExprKind::load:
        if (e.payload >= nest_.parameters.size()) return fault(fmt::format("expression {} loads nothing", id));
        if (e.dtype != nest_.parameters[e.payload].dtype)
          fault(fmt::format("a load of {} yields {}", nest_.parameters[e.payload].name, name(e.dtype)));
        if (nest_.parameters[e.payload].access == Access::write && !written_somewhere(e.payload))
          fault(fmt::format("{} is declared as written only, and is read though nothing stores to it",
                            nest_.parameters[e.payload].name));
        return indices(args_of(nest_, id), nest_.parameters[e.payload].axes.size(), nest_.parameters[e.payload].name);
      case ExprKind::stage_load:
        if (e.payload >= nest_.stages.size()) return fault(fmt::format("expression {} loads no stage", id));
        if (e.dtype != nest_.stages[e.payload].dtype)
          fault(fmt::format("a load of stage {} yields {}", nest_.stages[e.payload].name, name(e.dtype)));
        return indices(args_of(nest_, id), nest_.stages[e.payload].extents.size(), nest_.stages[e.payload].name);
      case ExprKind::fold_state:
        if (e.payload >= nest_.folds.size()) return fault(fmt::format("expression {} reads no fold", id));
        if (e.slot_of_state >= nest_.monoids[nest_.folds[e.payload].monoid].state.size())
          fault(fmt::format("fold {} has no state slot {}", nest_.folds[e.payload].name, e.slot_of_state));
        return;
      case ExprKind::slot:
        if (e.payload >= nest_.slots.size()) fault(fmt::format("expression {} reads no slot", id));
        return;
      case ExprKind::scalar:
        if (e.payload >= nest_.scalars.size()) fault(fmt::format("expression {} reads no scalar", id));
        return;
      case ExprKind::operation: {
        std::vector<DType> dtypes;
        for (const ExprId arg : args_of(nest_, id)) dtypes.push_back(nest_.exprs[arg].dtype);
        try {
          const DType result = operation_dtype(e.op, dtypes);
          if (result != e.dtype)
            fault(fmt::format("{} yields {}, not {}", dsl::name(e.op), name(result), name(e.dtype)));
        } catch (const Error& error) {
          fault(error.what());
        }
        return;
      }
      default:
        return;
    }
  }

  bool written_somewhere(ParameterId id) const {
    bool found = false;
    for (const Part& part : nest_.parts)
      each_statement(part.grid.body, [&](const Statement& s) {
        if (const auto* store = std::get_if<Store>(&s.node)) found = found || store->parameter == id;
        if (const auto* store = std::get_if<StoreState>(&s.node))
          for (const ParameterId p : store->parameters) found = found || p == id;
      });
    return found;
  }

  void indices(std::span<const ExprId> index, std::size_t dimensions, const std::string& of) {
    if (index.size() != dimensions)
      fault(fmt::format("{} has {} dimensions and is indexed by {} numbers", of, dimensions, index.size()));
    for (const ExprId i : index)
      if (nest_.exprs[i].dtype != DType::i64)
        fault(fmt::format("{} is indexed by {}, not by i64", of, name(nest_.exprs[i].dtype)));
  }

  // What an expression reads must be in scope where a statement names it.
  void in_scope(ExprId id) {
    std::set<ExprId> seen;
    std::vector<ExprId> queue{id};
    while (!queue.empty()) {
      const ExprId at = queue.back();
      queue.pop_back();
      if (!seen.insert(at).second) continue;
      const Expr& e = nest_.exprs[at];
      if (e.kind == ExprKind::fold_state && complete_.count(e.payload) == 0)
        fault(fmt::format("fold {} is read where it is not complete", nest_.folds[e.payload].name));
      if (e.kind == ExprKind::stage_load) lane_stage(e.payload, args_of(nest_, at));
      if (e.kind == ExprKind::loop_index) {
        bool open = false;
        for (const Loop* loop : open_loops_) open = open || loop->id == e.payload;
        if (!open) fault(fmt::format("the index of loop {} is read outside it", e.payload));
      }
      for (const ExprId arg : args_of(nest_, at)) queue.push_back(arg);
    }
  }

  void threads(const Part& part) {
    const auto power = [](int n) { return n > 0 && (n & (n - 1)) == 0; };
    part_ = &part;
    lane_stages_.clear();
    if (part.threads == 0 && part.group == 0) return;
    if (!power(part.threads) || !power(part.group) || part.threads > 1024)
      fault(fmt::format("part {} has {} threads, {} for a row: both are powers of two, at most 1024", part.name,
                        part.threads, part.group));
    if (part.group > part.threads || (part.group > 32 && part.group != part.threads))
      fault(
          fmt::format("part {} has {} threads for a row: at most 32, or all {}", part.name, part.group, part.threads));
  }

  void lanes_geometry(const Loop& l) {
    if (l.width < 0 || (l.width & (l.width - 1)) != 0) fault(fmt::format("loop {} has width {}", l.name, l.width));
    if (l.vectors == 0) return;
    const Expr& begin = nest_.exprs[l.begin];
    const Expr& end = nest_.exprs[l.end];
    if (begin.kind != ExprKind::constant || end.kind != ExprKind::constant || begin.integer != 0)
      return fault(fmt::format("loop {} counts vectors, but its bounds are not constants from 0 on", l.name));
    const bool in_rows =
        std::any_of(open_loops_.begin(), open_loops_.end(), [](const Loop* open) { return open->bind == Bind::rows; });
    const std::int64_t team = in_rows ? part_->group : part_->threads;
    if (team * l.vectors * l.width < end.integer)
      fault(fmt::format("loop {} has {} x {} x {} places for {} elements", l.name, team, l.vectors, l.width,
                        end.integer));
  }

  // A stage in lanes is met by one thread per element: always under the loop's own index, in loops of one geometry.
  void lane_stage(StageId id, std::span<const ExprId> index) {
    const Stage& stage = nest_.stages[id];
    if (stage.keep != Keep::lane) return;
    if (lanes_ == nullptr || lanes_->vectors == 0)
      return fault(fmt::format("stage {} is kept in lanes and used outside a loop of counted vectors", stage.name));
    if (index.size() != 1 || nest_.exprs[index[0]].kind != ExprKind::loop_index ||
        nest_.exprs[index[0]].payload != lanes_->id)
      return fault(fmt::format("stage {} is kept in lanes and used at an element of another lane", stage.name));
    const bool in_rows =
        std::any_of(open_loops_.begin(), open_loops_.end(), [](const Loop* open) { return open->bind == Bind::rows; });
    const Geometry geometry{lanes_->end, lanes_->width, lanes_->vectors, in_rows ? part_->group : part_->threads};
    const auto [known, first] = lane_stages_.emplace(id, geometry);
    if (!first && known->second != geometry)
      fault(fmt::format("stage {} is kept in lanes and used in loops of different geometry", stage.name));
  }

  // The product of the constant trip counts of the open loops from the fold's own on; -1 where one is not constant.
  std::int64_t merged_count(FoldId fold) const {
    std::int64_t count = 1;
    bool inside = false;
    for (const Loop* loop : open_loops_) {
      for (const FoldId declared : loop->folds) inside = inside || declared == fold;
      if (!inside) continue;
      const Expr& begin = nest_.exprs[loop->begin];
      const Expr& end = nest_.exprs[loop->end];
      if (begin.kind != ExprKind::constant || end.kind != ExprKind::constant) return -1;
      count *= (end.integer - begin.integer + loop->step - 1) / loop->step;
    }
    return count;
  }

  void merged(FoldId fold, std::size_t values, std::size_t wanted, std::string_view what) {
    if (fold >= nest_.folds.size()) return fault("an update names no fold");
    const Fold& f = nest_.folds[fold];
    if (open_folds_.count(fold) == 0) return fault(fmt::format("fold {} is updated outside its loop", f.name));
    if (values != wanted) fault(fmt::format("fold {} takes {} {} and is given {}", f.name, wanted, what, values));
    const std::int64_t count = merged_count(fold);
    if (f.depth > 0 && count > 0 && f.depth > allowed_depth(count))
      fault(fmt::format("fold {} has depth {}, above the {} that the contract allows for {} elements", f.name, f.depth,
                        allowed_depth(count), count));
  }

  void block(const Block& statements) {
    const auto readable = complete_;
    for (const Statement& s : statements) statement(s);
    complete_ = readable;
  }

  void loop(const Loop& l) {
    if (!seen_loops_.insert(l.id).second) fault(fmt::format("loop number {} is used twice", l.id));
    if (l.step <= 0) fault(fmt::format("loop {} has step {}", l.name, l.step));
    if (l.bind == Bind::grid && !open_loops_.empty()) fault(fmt::format("grid loop {} stands inside a loop", l.name));
    if (l.bind == Bind::lanes) {
      if (lanes_ != nullptr) fault(fmt::format("lanes loop {} stands inside lanes loop {}", l.name, lanes_->name));
      if (l.step != 1) fault(fmt::format("lanes loop {} has step {}", l.name, l.step));
      if (l.begin != no_expr && l.end != no_expr) lanes_geometry(l);
      lanes_ = &l;
    }
    for (const ExprId bound : {l.begin, l.end}) {
      if (bound == no_expr) {
        if (l.bind != Bind::grid) fault(fmt::format("loop {} lacks a bound", l.name));
        continue;
      }
      if (nest_.exprs[bound].dtype != DType::i64) fault(fmt::format("a bound of loop {} is no i64", l.name));
      in_scope(bound);
    }
    for (const FoldId fold : l.folds) {
      if (fold >= nest_.folds.size()) return fault(fmt::format("loop {} declares an unknown fold", l.name));
      if (!declared_.insert(fold).second) fault(fmt::format("fold {} is declared twice", nest_.folds[fold].name));
      open_folds_.insert(fold);
    }
    open_loops_.push_back(&l);
    block(l.body);
    open_loops_.pop_back();
    if (lanes_ == &l) lanes_ = nullptr;
    for (const FoldId fold : l.folds) {
      open_folds_.erase(fold);
      complete_.insert(fold);
    }
  }

  void writable(ParameterId id, StoreMode mode) {
    const Parameter& p = nest_.parameters[id];
    if (p.access == Access::read) fault(fmt::format("{} is read-only and is stored to", p.name));
    if (mode == StoreMode::in_place && p.access != Access::read_write)
      fault(fmt::format("{} is stored in place but is not declared as updated", p.name));
  }

  void store(const Store& s) {
    if (s.parameter >= nest_.parameters.size()) return fault("a store names no parameter");
    const Parameter& p = nest_.parameters[s.parameter];
    indices(s.index, p.axes.size(), p.name);
    writable(s.parameter, s.mode);
    const DType given = nest_.exprs[s.value].dtype;
    const bool wider = s.mode == StoreMode::accumulate && given == arithmetic(p.dtype);
    if (given != p.dtype && !wider)
      fault(fmt::format("{} holds {} and is given {}", p.name, name(p.dtype), name(given)));
    if (s.streaming && s.mode == StoreMode::accumulate)
      fault(fmt::format("{} is accumulated into, so its store cannot bypass the cache", p.name));
  }

  void statement(const Statement& node) {
    if (const auto* inner = std::get_if<Loop>(&node.node)) return loop(*inner);
    bool known = true;
    each_own_expr(node, [&](ExprId id) {
      known = known && id < nest_.exprs.size();
      if (known) in_scope(id);
    });
    if (!known) return fault("a statement names no expression");
    if (const auto* s = std::get_if<Update>(&node.node))
      merged(s->fold, s->operands.size(),
             s->fold < nest_.folds.size()
                 ? static_cast<std::size_t>(nest_.monoids[nest_.folds[s->fold].monoid].operand_count)
                 : 0,
             "operands");
    if (const auto* s = std::get_if<Merge>(&node.node))
      merged(s->fold, s->state.size(),
             s->fold < nest_.folds.size() ? nest_.monoids[nest_.folds[s->fold].monoid].state.size() : 0, "slots");
    if (const auto* s = std::get_if<Store>(&node.node)) store(*s);
    if (const auto* s = std::get_if<StoreState>(&node.node)) {
      const std::size_t slots = s->monoid < nest_.monoids.size() ? nest_.monoids[s->monoid].state.size() : 0;
      if (s->parameters.size() != slots || s->state.size() != slots)
        fault(fmt::format("a state of {} slots is stored as {} into {} parameters", slots, s->state.size(),
                          s->parameters.size()));
      for (const ParameterId id : s->parameters) {
        indices(s->index, nest_.parameters.at(id).axes.size(), nest_.parameters.at(id).name);
        writable(id, s->mode);
      }
    }
    if (const auto* s = std::get_if<StageStore>(&node.node)) {
      const Stage& stage = nest_.stages.at(s->stage);
      indices(s->index, stage.extents.size(), stage.name);
      lane_stage(s->stage, s->index);
      if (nest_.exprs[s->value].dtype != stage.dtype)
        fault(fmt::format("stage {} holds {} and is given {}", stage.name, name(stage.dtype),
                          name(nest_.exprs[s->value].dtype)));
    }
    if (const auto* s = std::get_if<When>(&node.node)) {
      if (nest_.exprs[s->condition].dtype != DType::boolean) fault("a condition is no boolean");
      block(s->body);
    }
  }
};

}  // namespace

std::vector<std::string> faults(const Nest& nest) { return Verifier(nest).run(); }

void verify(const Nest& nest) {
  const std::vector<std::string> found = faults(nest);
  if (found.empty()) return;
  std::string sentences;
  for (const std::string& sentence : found) sentences += (sentences.empty() ? "" : "; ") + sentence;
  throw Error({.kind = ErrorKind::internal, .function = nest.name, .log = print(nest)},
              "the loop nest breaks the language's rules: " + sentences);
}

}  // namespace tigon::loops
