// Prints graphs for people: values get a line each, a map or cast that is used once is printed inside its user.
#include "dsl/print.hpp"

#include "dsl/scalar_table.hpp"

namespace tigon::dsl {
namespace {

std::string number_text(double value) {
  const std::string text = fmt::format("{}", value);
  return text;
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph), inlined_(graph.nodes.size()), live_(graph.nodes.size()) {
    std::vector<int> uses(graph.nodes.size());
    for (const OutputInfo& output : graph.outputs) live_[output.node] = true;
    for (NodeId id = static_cast<NodeId>(graph.nodes.size()); id-- > 0;) {
      if (!live_[id]) continue;
      for (const NodeId operand : graph.operands(id)) {
        live_[operand] = true;
        ++uses[operand];
      }
    }
    for (const OutputInfo& output : graph.outputs) uses[output.node] += 2;  // a returned value has its own line
    for (const NamedNode& named : graph.names) uses[named.node] += 2;
    for (NodeId id = 0; id < graph.nodes.size(); ++id) inlined_[id] = inline_kind(id, uses[id]);
  }

  std::string all() const {
    std::string text = graph_.name + "(";
    std::string separator;
    for (const InputInfo& input : graph_.inputs) {
      text += separator + input.name + ": " + print_type(graph_, input.dtype, input.axes);
      if (input.monoid >= 0) text += " state of " + graph_.monoids[input.monoid].name;
      separator = ", ";
    }
    for (const ScalarInfo& scalar : graph_.scalars) {
      text += separator + scalar.name + ": " + print_type(graph_, scalar.dtype, {});
      separator = ", ";
    }
    text += ")\n";
    for (NodeId id = 0; id < graph_.nodes.size(); ++id)
      if (live_[id] && !inlined_[id]) text += line(id);
    for (const OutputInfo& output : graph_.outputs) {
      text += "  return " + output.name + " = " + reference(output.node) + ": " +
              print_type(graph_, output.dtype, output.axes);
      if (output.mode == OutputMode::accumulate) text += " accumulate";
      if (output.mode == OutputMode::alias) text += " in " + graph_.inputs[output.alias_input].name;
      text += "\n";
    }
    return text;
  }

  std::string expression(NodeId id) const {
    const Node& n = graph_.node(id);
    const std::string operands = operand_list(id);
    switch (n.kind) {
      case NodeKind::input:
        return "input " + graph_.inputs[n.payload].name;
      case NodeKind::scalar:
        return "scalar " + graph_.scalars[n.payload].name;
      case NodeKind::constant:
        return constant(id);
      case NodeKind::iota:
        return "iota(" + graph_.axes[n.payload].name + ")";
      case NodeKind::extent:
        return "extent(" + graph_.axes[n.payload].name + ")";
      case NodeKind::map:
        return std::string(name(graph_.op(id))) + "(" + operands + ")";
      case NodeKind::cast:
        return "cast " + std::string(tigon::name(n.dtype)) + " (" + operands + ")";
      case NodeKind::view:
        return "view " + view(graph_.views[n.payload]) + " (" + operands + ")";
      case NodeKind::scan:
      case NodeKind::fold: {
        const FoldInfo& fold = graph_.fold(id);
        return std::string(n.kind == NodeKind::fold ? "fold " : "scan ") + graph_.monoids[fold.monoid].name +
               (fold.of_states ? " states" : "") + (fold.axes.empty() ? "" : " over " + axis_list(fold.axes)) + " (" +
               operands + ")";
      }
      case NodeKind::finish: {
        const Monoid& monoid = graph_.monoid_of(graph_.operands(id)[0]);
        return "finish " + monoid.finishes[n.payload].name + " (" + operands + ")";
      }
      case NodeKind::gather: {
        const GatherInfo& gather = graph_.gathers[n.payload];
        std::string policy;
        if (gather.policy == IndexPolicy::fill) policy = ", fill " + number_text(gather.fill);
        if (gather.policy == IndexPolicy::clamp) policy = ", clamp";
        return "at " + graph_.axes[gather.axis].name + " (" + operands + policy + ")";
      }
      case NodeKind::scatter: {
        const ScatterInfo& scatter = graph_.scatters[n.payload];
        return "scatter to " + graph_.axes[scatter.axis].name +
               (scatter.folded.empty() ? "" : " over " + axis_list(scatter.folded)) + " (" + operands + ")";
      }
      case NodeKind::attach:
        return "attach (" + operands + ")";
      case NodeKind::random:
        return "random (" + operands + ")";
      case NodeKind::loop:
        return "loop (" + operands + ")";
    }
    return "?";
  }

 private:
  // Leaves that need no line of their own, finishes, and maps and casts used once.
  bool inline_kind(NodeId id, int uses) const {
    switch (graph_.node(id).kind) {
      case NodeKind::constant:
      case NodeKind::iota:
      case NodeKind::extent:
        return uses < 2 || graph_.node(id).kind != NodeKind::iota ? !returned(id) : false;
      case NodeKind::map:
      case NodeKind::cast:
        return uses == 1;
      default:
        return false;
    }
  }
  bool returned(NodeId id) const {
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const OutputInfo& o) { return o.node == id; });
  }

  std::string reference(NodeId id) const { return inlined_[id] ? expression(id) : "%" + std::to_string(id); }

  std::string operand_list(NodeId id) const {
    std::string text;
    for (const NodeId operand : graph_.operands(id)) text += (text.empty() ? "" : ", ") + reference(operand);
    return text;
  }

  std::string axis_list(const std::vector<AxisId>& axes) const {
    std::string text;
    for (const AxisId axis : axes) text += (text.empty() ? "" : ", ") + graph_.axes[axis].name;
    return text;
  }

  std::string constant(NodeId id) const {
    const Node& n = graph_.node(id);
    const Constant& value = graph_.constants[n.payload];
    if (n.dtype == DType::boolean) return value.number != 0 ? "true" : "false";
    return is_floating(n.dtype) ? number_text(value.number) : std::to_string(value.integer);
  }

  std::string view(const ViewInfo& view) const {
    std::string text = "[";
    const auto next = [&]() -> std::string& { return text += text.size() > 1 ? ", " : ""; };
    const auto axis = [&](AxisId id) { return graph_.axes[id].name; };
    for (const ViewTerm& term : view.terms) {
      next() += axis(term.operand_axis) + " = ";
      switch (term.kind) {
        case ViewKind::rename:
          text += axis(term.a);
          break;
        case ViewKind::split:
          text += axis(term.a) + " * extent(" + axis(term.b) + ") + " + axis(term.b);
          break;
        case ViewKind::merge_outer:
          text += axis(term.a) + " / extent(" + axis(term.inner) + ")";
          break;
        case ViewKind::merge_inner:
          text += axis(term.a) + " % extent(" + axis(term.inner) + ")";
          break;
      }
    }
    for (const AxisId id : view.added) next() += "any " + axis(id);
    return text + "]";
  }

  std::string line(NodeId id) const {
    const Node& n = graph_.node(id);
    std::string text = fmt::format("  %{} = {}{}", id, n.kind == NodeKind::map ? "map " : "", expression(id));
    text = fmt::format("{:<60} {}", text, print_type(graph_, id));
    const std::string label = graph_.name_of(id);
    const bool named = label[0] != '%';
    const SourceLocation* location =
        n.location < graph_.locations.size() && n.location != 0 ? &graph_.locations[n.location] : nullptr;
    if (named || location != nullptr) text = fmt::format("{:<84}", text);
    if (named) text += " " + label;
    if (location != nullptr) text += fmt::format("  {}:{}", base_name(location->file), location->line);
    return text + "\n";
  }

  static std::string_view base_name(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
  }

  const Graph& graph_;
  std::vector<bool> inlined_;
  std::vector<bool> live_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).all(); }

std::string print_value(const Graph& graph, NodeId node) { return Printer(graph).expression(node); }

std::string print_type(const Graph& graph, DType dtype, const std::vector<AxisId>& axes) {
  std::string text(tigon::name(dtype));
  text += '[';
  for (std::size_t i = 0; i < axes.size(); ++i) text += (i > 0 ? ", " : "") + graph.axes[axes[i]].name;
  return text + "]";
}

std::string print_type(const Graph& graph, NodeId node) {
  std::vector<AxisId> axes;
  for (const AxisId axis : graph.node(node).axes) axes.push_back(axis);
  const std::string type = print_type(graph, graph.node(node).dtype, axes);
  return graph.is_state(node) ? type + " state" : type;
}

}  // namespace tigon::dsl
