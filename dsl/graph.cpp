// Questions one asks of a graph, and the completion of its extents.
#include "dsl/graph.hpp"

#include "tigon/error.hpp"

namespace tigon::dsl {

AxisSet Graph::folded_axes(NodeId id) const {
  AxisSet set;
  const Node& n = nodes[id];
  const std::vector<AxisId>* list = nullptr;
  if (n.kind == NodeKind::fold || n.kind == NodeKind::scan) list = &folds[n.payload].axes;
  if (n.kind == NodeKind::scatter) list = &scatters[n.payload].folded;
  if (list != nullptr)
    for (const AxisId axis : *list) set |= AxisSet::of(axis);
  return set;
}

const Monoid& Graph::monoid_of(NodeId state) const {
  const Node& n = nodes[state];
  if (n.kind == NodeKind::input && inputs[n.payload].monoid >= 0) return monoids[inputs[n.payload].monoid];
  if (n.kind == NodeKind::fold || n.kind == NodeKind::scan) return monoids[folds[n.payload].monoid];
  throw Error({.kind = ErrorKind::internal, .function = name}, "node " + name_of(state) + " is not a monoid's state");
}

std::string Graph::name_of(NodeId id) const {
  const auto found = std::lower_bound(names.begin(), names.end(), id,
                                      [](const NamedNode& named, NodeId wanted) { return named.node < wanted; });
  if (found != names.end() && found->node == id) return found->name;
  return "%" + std::to_string(id);
}

namespace {

class ExtentSolver {
 public:
  ExtentSolver(const Graph& graph, Extents extents) : graph_(graph), extents_(std::move(extents)) {
    extents_.resize(graph.axes.size(), -1);
    for (std::size_t i = 0; i < graph.axes.size(); ++i) {
      if (extents_[i] < -1)
        fail(i, std::to_string(extents_[i]), "a number that is not negative", "an extent is negative");
      if (graph.axes[i].fixed >= 0) set(i, graph.axes[i].fixed, "the axis has a fixed extent");
    }
  }

  Extents solve() {
    for (changed_ = true; changed_;) {
      changed_ = false;
      for (const EqualRelation& e : graph_.equals) {
        if (extents_[e.a] >= 0) set(e.b, extents_[e.a], "it equals axis `" + axis_name(e.a) + "`");
        if (extents_[e.b] >= 0) set(e.a, extents_[e.b], "it equals axis `" + axis_name(e.b) + "`");
      }
      for (const SplitRelation& s : graph_.splits) relate(s);
    }
    return std::move(extents_);
  }

 private:
  std::string axis_name(std::size_t axis) const { return graph_.axes[axis].name; }

  [[noreturn]] void fail(std::size_t axis, std::string found, std::string expected, const std::string& why) const {
    throw Error(
        {.function = graph_.name, .axis = axis_name(axis), .found = std::move(found), .expected = std::move(expected)},
        why);
  }

  void set(std::size_t axis, std::int64_t value, const std::string& why) {
    if (extents_[axis] == value) return;
    if (extents_[axis] >= 0)
      fail(axis, std::to_string(extents_[axis]), std::to_string(value), "extents disagree: " + why);
    extents_[axis] = value;
    changed_ = true;
  }

  void relate(const SplitRelation& s) {
    const std::int64_t whole = extents_[s.whole];
    const std::int64_t outer = extents_[s.outer];
    const std::int64_t inner = extents_[s.inner];
    const std::string why =
        "`" + axis_name(s.whole) + "` is split into `" + axis_name(s.outer) + "` times `" + axis_name(s.inner) + "`";
    if (outer >= 0 && inner >= 0) return set(s.whole, outer * inner, why);
    if (whole < 0) return;
    if (outer > 0) return divide(s, s.inner, whole, outer, why);
    if (inner > 0) return divide(s, s.outer, whole, inner, why);
  }

  void divide(const SplitRelation& s, AxisId unknown, std::int64_t whole, std::int64_t part, const std::string& why) {
    if (whole % part != 0) fail(s.whole, std::to_string(whole), "a multiple of " + std::to_string(part), why);
    set(unknown, whole / part, why);
  }

  const Graph& graph_;
  Extents extents_;
  bool changed_ = false;
};

}  // namespace

Extents resolve_extents(const Graph& graph, Extents given) {
  if (given.size() > graph.axes.size()) {
    throw Error({.kind = ErrorKind::internal, .function = graph.name}, "more extents than axes were given");
  }
  return ExtentSolver(graph, std::move(given)).solve();
}

}  // namespace tigon::dsl
