// `tigon ops`: the catalogue, and one op in full.
#include <fmt/format.h>

#include "choice.hpp"
#include "paint.hpp"

namespace tigon::tools {
namespace {

std::string arguments_text(const ops::OpEntry& entry) {
  const dsl::Graph graph = entry.trace({.dtype = entry.dtypes.front()});
  std::string text;
  for (const dsl::InputInfo& input : graph.inputs) {
    text += fmt::format("    {:14} {}\n", input.name, type_text(graph, input.dtype, input.axes));
  }
  for (const dsl::ScalarInfo& scalar : graph.scalars) {
    text += fmt::format("    {:14} {}, a number of the host\n", scalar.name, name(scalar.dtype));
  }
  text += paint(Colour::bold, "  results") + "\n";
  for (const dsl::OutputInfo& output : graph.outputs) {
    text += fmt::format("    {:14} {}", output.name, type_text(graph, output.dtype, output.axes));
    if (output.mode == dsl::OutputMode::alias) {
      text += ", in place of " + graph.inputs[static_cast<std::size_t>(output.alias_input)].name;
    }
    text += "\n";
  }
  return text;
}

template <class Items, class Text>
std::string listed(const Items& items, Text text_of) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + std::string(text_of(item));
  return text;
}

}  // namespace

int list_ops() {
  std::size_t width = 0;
  for (const ops::OpEntry* entry : ops::catalogue()) width = std::max(width, entry->name.size());
  for (const ops::OpEntry* entry : ops::catalogue()) {
    out(fmt::format("{}{}  {}\n", paint(Colour::bold, entry->name), std::string(width - entry->name.size(), ' '),
                    entry->doc));
  }
  out("\n`tigon ops NAME` shows an op's formula, axes, dtypes and options.\n");
  return exit_ok;
}

int describe_op(const std::string& op) {
  const ops::OpEntry& entry = op_named(op);
  out(fmt::format("{}: {}\n\n", paint(Colour::bold, entry.name), entry.doc));
  out(fmt::format("    {}\n\n", entry.formula));
  out(paint(Colour::bold, "  axes") + "\n");
  for (const ops::AxisDefault& axis : entry.axes) {
    out(fmt::format("    {:14} {} by default", axis.name, axis.extent));
    if (axis.multiple > 1) out(fmt::format(", a multiple of {}", axis.multiple));
    if (axis.least > 0) out(fmt::format(", at least {}", axis.least));
    out("\n");
  }
  out(paint(Colour::bold, "  dtypes") + "\n    " + listed(entry.dtypes, [](DType dtype) { return name(dtype); }) +
      "\n");
  out(paint(Colour::bold, "  arguments") + fmt::format(" (for {})\n", name(entry.dtypes.front())) +
      arguments_text(entry));
  if (!entry.options.empty())
    out(paint(Colour::bold, "  options") + " (--option NAME=VALUE; the first is the default)\n");
  for (const ops::OptionSpec& option : entry.options) {
    std::string values = listed(option.values, [](std::string_view value) { return value; });
    if (!option.number.empty()) values += ", or " + option.number.text();
    out(fmt::format("    {:14} {}", option.name, values));
    if (!option.doc.empty()) out(fmt::format("{:{}} {}", "", values.size() < 34 ? 34 - values.size() : 1, option.doc));
    out("\n");
  }
  if (entry.has_gradient()) {
    out(paint(Colour::bold, "  gradient") + "\n    of " +
        listed(entry.differentiated, [](std::string_view output) { return output; }) + " with respect to " +
        listed(entry.wrt, [](std::string_view input) { return input; }) + " (--gradient)\n");
  } else {
    out(paint(Colour::bold, "  gradient") + "\n    none\n");
  }
  out(fmt::format("\n  tigon explain {} --dtype {}\n", entry.name, name(entry.dtypes.front())));
  return exit_ok;
}

}  // namespace tigon::tools
