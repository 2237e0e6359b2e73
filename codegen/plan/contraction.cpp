// Looks through views for the strided accesses of a product, and sorts its axes into batch, m, n and k.
#include "codegen/plan/contraction.hpp"

namespace tigon::plan {
using dsl::AxisId;
using dsl::AxisSet;
using dsl::Graph;
using dsl::Node;
using dsl::NodeId;
using dsl::NodeKind;

namespace {

// A node seen as strided reads of a base node: for each axis of the node, how it runs through the base.
struct StridedView {
  NodeId base = dsl::no_node;
  std::array<AxisAccess, dsl::max_axes> access;
};

bool is_strided(const dsl::ViewInfo& view) {
  return std::all_of(view.terms.begin(), view.terms.end(), [](const dsl::ViewTerm& term) {
    return term.kind == dsl::ViewKind::rename || term.kind == dsl::ViewKind::split;
  });
}

StridedView look_through(const Graph& graph, NodeId node, const PlanOptions& options) {
  StridedView result;
  for (const AxisId axis : graph.node(node).axes) result.access[axis] = {axis, {}};
  while (true) {
    const Node& n = graph.node(node);
    if (n.kind == NodeKind::cast && n.dtype == DType::f32 && options.matmul.bf16 &&
        graph.node(graph.operands(node)[0]).dtype == DType::bf16) {
      node = graph.operands(node)[0];  // widening is exact: the library reads the 16-bit values itself
      continue;
    }
    if (n.kind != NodeKind::view || !is_strided(graph.views[n.payload])) break;
    const dsl::ViewInfo& view = graph.views[n.payload];
    std::array<AxisAccess, dsl::max_axes> step;
    for (const AxisId axis : graph.node(graph.operands(node)[0]).axes) step[axis] = {axis, {}};
    for (const dsl::ViewTerm& term : view.terms) step[term.operand_axis] = {};
    for (const AxisId axis : n.axes) {
      if (!graph.node(graph.operands(node)[0]).axes.contains(axis)) step[axis] = {};
    }
    for (const dsl::ViewTerm& term : view.terms) {
      step[term.a] = {term.operand_axis, {}};
      if (term.kind == dsl::ViewKind::split) {
        step[term.a].times = {term.b};
        step[term.b] = {term.operand_axis, {}};
      }
    }
    for (AxisAccess& access : result.access) {
      if (access.axis == dsl::no_axis) continue;
      AxisAccess through = step[access.axis];
      if (through.axis != dsl::no_axis) {
        through.times.insert(through.times.end(), access.times.begin(), access.times.end());
      }
      access = through;
    }
    node = graph.operands(node)[0];
  }
  result.base = node;
  return result;
}

}  // namespace

std::optional<Contraction> contraction_of(const Graph& graph, NodeId finish, const dsl::Extents& extents,
                                          const PlanOptions& options) {
  const Node& n = graph.node(finish);
  if (n.kind != NodeKind::finish) return std::nullopt;
  const NodeId fold = graph.operands(finish)[0];
  if (graph.node(fold).kind != NodeKind::fold || graph.fold(fold).of_states) return std::nullopt;
  if (graph.monoid_of(fold).name != dsl::builtin_monoid(dsl::BuiltinMonoid::sum).name) return std::nullopt;
  const NodeId product = graph.operands(fold)[0];
  if (graph.node(product).kind != NodeKind::map || graph.op(product) != ScalarOp::mul) return std::nullopt;
  if (graph.node(product).dtype != DType::f32) return std::nullopt;
  StridedView a = look_through(graph, graph.operands(product)[0], options);
  StridedView b = look_through(graph, graph.operands(product)[1], options);
  const DType da = graph.node(a.base).dtype;
  const DType db = graph.node(b.base).dtype;
  if (!(da == DType::f32 && db == DType::f32) && !(da == DType::bf16 && db == DType::bf16)) return std::nullopt;

  Contraction result{.result = finish, .a = a.base, .b = b.base, .axes = {}};
  const AxisSet folded = graph.folded_axes(fold);
  double sizes[4] = {1, 1, 1, 1};
  for (const AxisId axis : graph.node(product).axes) {
    const bool in_a = a.access[axis].axis != dsl::no_axis;
    const bool in_b = b.access[axis].axis != dsl::no_axis;
    using Class = ContractionAxis::Class;
    ContractionAxis entry{.axis = axis, .a = a.access[axis], .b = b.access[axis]};
    if (folded.contains(axis)) {
      if (!in_a || !in_b) return std::nullopt;
      entry.axis_class = Class::k;
    } else if (in_a && in_b) {
      entry.axis_class = Class::batch;
    } else if (in_a) {
      entry.axis_class = Class::m;
    } else if (in_b) {
      entry.axis_class = Class::n;
    } else {
      return std::nullopt;
    }
    sizes[static_cast<int>(entry.axis_class)] *= static_cast<double>(extents[axis]);
    result.axes.push_back(entry);
  }
  const auto size = [&](ContractionAxis::Class c) { return sizes[static_cast<int>(c)]; };
  using Class = ContractionAxis::Class;
  if (size(Class::m) < 2 || size(Class::n) < 2 || size(Class::k) < 2) return std::nullopt;
  if (sizes[0] * sizes[1] * sizes[2] * sizes[3] < static_cast<double>(options.matmul_minimum)) return std::nullopt;
  return result;
}

NodeId source_of(const Graph& graph, NodeId node) {
  while (true) {
    const Node& n = graph.node(node);
    const bool widens =
        n.kind == NodeKind::cast && n.dtype == DType::f32 && size_of(graph.node(graph.operands(node)[0]).dtype) == 2;
    const bool strided = n.kind == NodeKind::view && is_strided(graph.views[n.payload]);
    if (!widens && !strided) return node;
    node = graph.operands(node)[0];
  }
}

std::vector<std::vector<AxisId>> natural_layouts(const Graph& graph) {
  std::vector<std::vector<AxisId>> layouts(graph.nodes.size());
  std::vector<std::uint8_t> from_memory(graph.nodes.size(), 0);
  std::vector<std::int64_t> carried(graph.axes.size(), 0);
  for (const Node& n : graph.nodes) {
    for (const AxisId axis : n.axes) ++carried[axis];
  }
  const auto most_carried = [&](AxisSet axes) {
    std::int64_t most = 0;
    for (const AxisId axis : axes) most = std::max(most, carried[axis]);
    return most;
  };
  const auto contains = [](const std::vector<AxisId>& list, AxisId axis) {
    return std::find(list.begin(), list.end(), axis) != list.end();
  };
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const Node& n = graph.node(id);
    const auto operands = graph.operands(id);
    std::vector<AxisId> order;  // more than enough axes, filtered below
    from_memory[id] = n.kind == NodeKind::input || n.kind == NodeKind::gather || n.kind == NodeKind::view;
    switch (n.kind) {
      case NodeKind::input:
        order = graph.inputs[n.payload].axes;
        break;
      case NodeKind::view: {
        for (const AxisId axis : layouts[operands[0]]) {
          bool changed = false;
          for (const dsl::ViewTerm& term : graph.views[n.payload].terms) {
            if (term.operand_axis != axis) continue;
            changed = true;
            if (!contains(order, term.a)) order.push_back(term.a);
            if (term.kind == dsl::ViewKind::split) order.push_back(term.b);
          }
          if (!changed) order.push_back(axis);
        }
        break;
      }
      case NodeKind::gather:
        for (const AxisId axis : layouts[operands[0]]) {
          if (axis == graph.gathers[n.payload].axis) {
            for (const AxisId index : layouts[operands[1]]) {
              if (!contains(order, index)) order.push_back(index);
            }
          } else if (!contains(order, axis)) {
            order.push_back(axis);
          }
        }
        break;
      case NodeKind::scatter:
        order.push_back(graph.scatters[n.payload].axis);
        for (const AxisId axis : layouts[operands[0]]) {
          if (!contains(order, axis)) order.push_back(axis);
        }
        break;
      default: {
        // The longest operand leads, one that comes from memory before one made of indices; the others' extra axes
        // follow. Of two operands with axes of their own (a product: m axes, then n axes) the one leads whose axes most
        // values carry: rows of data before columns of weights.
        std::vector<NodeId> by_length(operands.begin(), operands.end());
        const auto leads = [&](NodeId a, NodeId b) {
          const AxisSet only_a = graph.node(a).axes - graph.node(b).axes;
          const AxisSet only_b = graph.node(b).axes - graph.node(a).axes;
          if (!only_a.empty() && !only_b.empty() && most_carried(only_a) != most_carried(only_b)) {
            return most_carried(only_a) > most_carried(only_b);
          }
          if (layouts[a].size() != layouts[b].size()) return layouts[a].size() > layouts[b].size();
          return from_memory[a] > from_memory[b];
        };
        for (std::size_t i = 1; i < by_length.size(); ++i) {  // at most three: an insertion sort needs no strict order
          for (std::size_t at = i; at > 0 && leads(by_length[at], by_length[at - 1]); --at) {
            std::swap(by_length[at], by_length[at - 1]);
          }
        }
        for (const NodeId operand : by_length) from_memory[id] = std::max(from_memory[id], from_memory[operand]);
        for (const NodeId operand : by_length) {
          for (const AxisId axis : layouts[operand]) {
            if (!contains(order, axis)) order.push_back(axis);
          }
        }
      }
    }
    for (const AxisId axis : order) {
      if (n.axes.contains(axis) && !contains(layouts[id], axis)) layouts[id].push_back(axis);
    }
    for (const AxisId axis : n.axes) {
      if (!contains(layouts[id], axis)) layouts[id].insert(layouts[id].begin(), axis);
    }
  }
  return layouts;
}

}  // namespace tigon::plan
