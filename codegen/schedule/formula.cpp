// Formulas in the user's names, written as one would on paper.
#include "codegen/schedule/formula.hpp"

#include <set>

#include "dsl/print.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::schedule {

using dsl::Graph;
using dsl::Node;
using dsl::NodeId;
using dsl::NodeKind;

namespace {

constexpr int tightest = 9;

struct Sign {
  std::string_view text;
  int precedence;
};
Sign sign_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::add:
      return {"+", 5};
    case ScalarOp::sub:
      return {"-", 5};
    case ScalarOp::mul:
      return {"*", 6};
    case ScalarOp::div:
      return {"/", 6};
    case ScalarOp::equal:
      return {"==", 3};
    case ScalarOp::not_equal:
      return {"!=", 3};
    case ScalarOp::less:
      return {"<", 4};
    case ScalarOp::less_equal:
      return {"<=", 4};
    case ScalarOp::logical_and:
      return {"and", 2};
    case ScalarOp::logical_or:
      return {"or", 1};
    default:
      return {"", tightest};
  }
}

class FormulaWriter {
 public:
  explicit FormulaWriter(const Graph& graph) : graph_(graph), names_(graph.nodes.size()) {}

  std::string run() {
    std::vector<int> uses(graph_.nodes.size(), 0);
    std::vector<bool> live(graph_.nodes.size(), false);
    std::set<std::string> taken;
    for (const dsl::InputInfo& input : graph_.inputs) taken.insert(input.name);
    for (const dsl::OutputInfo& output : graph_.outputs) live[output.node] = true;
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
      if (!live[id]) continue;
      for (const NodeId operand : graph_.operands(id)) {
        live[operand] = true;
        ++uses[operand];
      }
    }
    for (const dsl::OutputInfo& output : graph_.outputs)
      if (names_[output.node].empty()) names_[output.node] = output.name;
    // Values used twice have a line of their own, if they are more than a name.
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!live[id] || !names_[id].empty() || uses[id] < 2) continue;
      const NodeKind kind = graph_.node(id).kind;
      const bool calculates = kind == NodeKind::map || kind == NodeKind::fold || kind == NodeKind::gather;
      if (!calculates) continue;
      std::string name = graph_.name_of(id);
      if (name.empty() || name[0] == '%')
        name = kind == NodeKind::fold  ? graph_.monoid_of(id).name
               : kind == NodeKind::map ? std::string(dsl::name(graph_.op(id)))
                                       : "picked";
      std::string unique = name;
      for (int number = 2; !taken.insert(unique).second; ++number) unique = fmt::format("{}_{}", name, number);
      names_[id] = unique;
    }
    std::string text;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!live[id] || names_[id].empty()) continue;
      std::string type;
      for (const dsl::OutputInfo& output : graph_.outputs)
        if (output.node == id) type = "   " + dsl::print_type(graph_, output.dtype, output.axes);
      const std::string right = expression(id, 0);
      if (right == names_[id]) continue;
      text += fmt::format("{}{} = {}{}", text.empty() ? "" : "\n", names_[id], right, type);
    }
    return text;
  }

 private:
  const Graph& graph_;
  std::vector<std::string> names_;  // of values with a line of their own

  std::string value(NodeId id, int precedence) const {
    return names_[id].empty() ? expression(id, precedence) : names_[id];
  }
  std::string list(NodeId id) const {
    std::string text;
    for (const NodeId operand : graph_.operands(id)) text += (text.empty() ? "" : ", ") + value(operand, 0);
    return text;
  }
  std::string axes(const std::vector<dsl::AxisId>& ids) const {
    std::string text;
    for (const dsl::AxisId axis : ids) text += (text.empty() ? "" : ", ") + graph_.axes[axis].name;
    return text;
  }

  std::string expression(NodeId id, int precedence) const {
    const Node& n = graph_.node(id);
    const auto operands = graph_.operands(id);
    switch (n.kind) {
      case NodeKind::input:
        return graph_.inputs[n.payload].name;
      case NodeKind::scalar:
        return graph_.scalars[n.payload].name;
      case NodeKind::constant: {
        const dsl::Constant& constant = graph_.constants[n.payload];
        return is_floating(n.dtype) || n.dtype == DType::boolean ? fmt::format("{}", constant.number)
                                                                 : fmt::format("{}", constant.integer);
      }
      case NodeKind::iota:
        return fmt::format("index<{}>", graph_.axes[n.payload].name);
      case NodeKind::extent:
        return fmt::format("extent<{}>", graph_.axes[n.payload].name);
      case NodeKind::map: {
        const Sign sign = sign_of(graph_.op(id));
        if (sign.text.empty()) return fmt::format("{}({})", dsl::name(graph_.op(id)), list(id));
        const std::string text = fmt::format("{} {} {}", value(operands[0], sign.precedence), sign.text,
                                             value(operands[1], sign.precedence + 1));
        return sign.precedence < precedence ? "(" + text + ")" : text;
      }
      case NodeKind::cast:
        return fmt::format("{}({})", name(n.dtype), value(operands[0], 0));
      case NodeKind::view:
        return value(operands[0], precedence);
      case NodeKind::fold:
        return fmt::format("{}<{}>({})", graph_.monoid_of(id).name, axes(graph_.fold(id).axes), list(id));
      case NodeKind::finish: {
        const dsl::Monoid& monoid = graph_.monoid_of(operands[0]);
        if (monoid.finishes.size() == 1) return value(operands[0], precedence);
        return fmt::format("{}({})", monoid.finishes[n.payload].name, value(operands[0], 0));
      }
      case NodeKind::gather:
        return fmt::format("{}[{} = {}]", value(operands[0], tightest),
                           graph_.axes[graph_.gathers[n.payload].axis].name, value(operands[1], 0));
      case NodeKind::scatter:
        return fmt::format("scatter<{} = {}>({})", graph_.axes[graph_.scatters[n.payload].axis].name,
                           value(operands[1], 0), value(operands[0], 0));
      default:
        return graph_.name_of(id);
    }
  }
};

}  // namespace

std::string formula_of(const Graph& graph) { return FormulaWriter(graph).run(); }

}  // namespace tigon::schedule
