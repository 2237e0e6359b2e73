// Writes graphs as text that names no node number, so that tests say what a construct means.
#include "tests/language/support.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "dsl/print.hpp"
#include "dsl/scalar_table.hpp"

namespace dsl = tigon::dsl;

namespace {

std::string axis_names(const dsl::Graph& graph, const std::vector<dsl::AxisId>& axes) {
  std::string text;
  for (const dsl::AxisId axis : axes) text += (text.empty() ? "" : ",") + graph.axes[axis].name;
  return text;
}

std::string call(const dsl::Graph& graph, const std::string& head, dsl::NodeId node) {
  std::string text = head + "(";
  for (std::size_t i = 0; i < graph.operands(node).size(); ++i) {
    text += (i == 0 ? "" : ", ") + expression(graph, graph.operands(node)[i]);
  }
  return text + ")";
}

std::string view_text(const dsl::Graph& graph, const dsl::ViewInfo& view) {
  std::string text;
  for (const dsl::ViewTerm& term : view.terms) {
    const auto name = [&](dsl::AxisId axis) { return graph.axes[axis].name; };
    text += (text.empty() ? "" : ", ") + name(term.operand_axis) + "=";
    if (term.kind == dsl::ViewKind::rename) text += name(term.a);
    if (term.kind == dsl::ViewKind::split) text += name(term.a) + "*" + name(term.b);
    if (term.kind == dsl::ViewKind::merge_outer) text += name(term.a) + "/" + name(term.inner);
    if (term.kind == dsl::ViewKind::merge_inner) text += name(term.a) + "%" + name(term.inner);
  }
  for (const dsl::AxisId axis : view.added) text += (text.empty() ? "+" : ", +") + graph.axes[axis].name;
  return "view<" + text + ">";
}

}  // namespace

std::string expression(const dsl::Graph& graph, dsl::NodeId id) {
  const dsl::Node& node = graph.node(id);
  switch (node.kind) {
    case dsl::NodeKind::input:
      return graph.inputs[node.payload].name;
    case dsl::NodeKind::scalar:
      return graph.scalars[node.payload].name;
    case dsl::NodeKind::constant: {
      const dsl::Constant& constant = graph.constants[node.payload];
      const bool number = tigon::is_floating(node.dtype) || node.dtype == tigon::DType::boolean;
      return number ? fmt::format("{}", constant.number)
                    : fmt::format("{}{}", constant.integer, tigon::name(node.dtype));
    }
    case dsl::NodeKind::iota:
      return "iota(" + graph.axes[node.payload].name + ")";
    case dsl::NodeKind::extent:
      return "extent(" + graph.axes[node.payload].name + ")";
    case dsl::NodeKind::map:
      return call(graph, std::string(dsl::name(graph.op(id))), id);
    case dsl::NodeKind::cast:
      return call(graph, std::string(tigon::name(node.dtype)), id);
    case dsl::NodeKind::view:
      return call(graph, view_text(graph, graph.views[node.payload]), id);
    case dsl::NodeKind::fold: {
      const dsl::FoldInfo& fold = graph.fold(id);
      return call(graph, graph.monoids[fold.monoid].name + "<" + axis_names(graph, fold.axes) + ">", id);
    }
    case dsl::NodeKind::finish: {
      const dsl::NodeId state = graph.operands(id)[0];
      const dsl::Monoid& monoid = graph.monoid_of(state);
      const std::string value = expression(graph, state);
      return monoid.finishes.size() == 1 ? value : value + "." + monoid.finishes[node.payload].name;
    }
    case dsl::NodeKind::gather: {
      const dsl::GatherInfo& gather = graph.gathers[node.payload];
      std::string rule;
      if (gather.policy == dsl::IndexPolicy::fill) rule = fmt::format(" fill {}", gather.fill);
      if (gather.policy == dsl::IndexPolicy::clamp) rule = " clamp";
      return call(graph, "at<" + graph.axes[gather.axis].name + rule + ">", id);
    }
    case dsl::NodeKind::scatter: {
      const dsl::ScatterInfo& scatter = graph.scatters[node.payload];
      return call(graph,
                  "scatter<" + graph.axes[scatter.axis].name + " over " + axis_names(graph, scatter.folded) + ">", id);
    }
    case dsl::NodeKind::attach:
      return call(graph, "attach", id);
    default:
      return "?";
  }
}

std::string output(const dsl::Graph& graph, const std::string& name) {
  for (const dsl::OutputInfo& info : graph.outputs) {
    if (info.name != name) continue;
    return expression(graph, info.node) + " : " + std::string(tigon::name(info.dtype)) + "[" +
           axis_names(graph, info.axes) + "]";
  }
  return "no output " + name;
}

std::string printed(const dsl::Graph& graph) {
  dsl::Graph placeless = graph;
  for (dsl::Node& node : placeless.nodes) node.location = 0;
  std::istringstream lines(dsl::print(placeless));
  std::string text, line;
  while (std::getline(lines, line)) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const tigon::Error& error) {
    return error.what();
  }
  FAIL("no tigon::Error was thrown");
  return {};
}
