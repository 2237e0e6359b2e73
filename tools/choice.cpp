// Parses what was asked and builds the op's graph.
#include "choice.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "codegen/plan/print.hpp"
#include "codegen/schedule/gpu.hpp"
#include "dsl/print.hpp"
#include "runtime/cpu_features.hpp"
#include "runtime/nearest.hpp"
#include "runtime/program.hpp"
#include "tigon/error.hpp"

namespace tigon::tools {
namespace {

// More elements than any machine holds; products of extents stay far from overflow below it.
constexpr double most_elements = 1e15;

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::vector<std::string> axis_names(const ops::OpEntry& entry) {
  std::vector<std::string> names;
  for (const ops::AxisDefault& axis : entry.axes) names.emplace_back(axis.name);
  return names;
}

std::string trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return std::string(text);
}

std::int64_t parse_extent(const std::string& axis, const std::string& text) {
  std::int64_t extent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
  if (error == std::errc::result_out_of_range) {
    throw Error({.axis = axis, .found = text, .expected = "a whole number below 2^63"}, "the extent is too large");
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error({.axis = axis,
                 .found = text.empty() ? "nothing" : "`" + text + "`",
                 .expected = "a whole number, as in " + axis + "=4096"},
                "the extent is not a number");
  }
  if (extent < 0) {
    throw Error({.axis = axis, .found = text, .expected = "a whole number, 0 or more"}, "the extent is negative");
  }
  return extent;
}

void check_axes(const ops::OpEntry& entry, const ops::NamedExtents& asked) {
  const std::vector<std::string> names = axis_names(entry);
  for (const auto& [name, extent] : asked) {
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) {
      throw Error({.function = std::string(entry.name),
                   .axis = name,
                   .expected = "one of " + listed(names),
                   .cure = runtime::suggestion(name, names)},
                  "the op has no axis of this name");
    }
    const ops::AxisDefault& axis = entry.axes[static_cast<std::size_t>(known - names.begin())];
    if (extent < axis.least) {
      throw Error({.function = std::string(entry.name),
                   .axis = name,
                   .found = std::to_string(extent),
                   .expected = fmt::format("{} or more", axis.least),
                   .cure = "Indices point into this axis"},
                  "the axis cannot be this short");
    }
  }
}

void check_options(const ops::OpEntry& entry, const ops::OpChoice& choice) {
  std::vector<std::string> names;
  for (const ops::OptionSpec& option : entry.options) names.emplace_back(option.name);
  for (const auto& [key, value] : choice.options) {
    const auto known = std::find(names.begin(), names.end(), key);
    if (known == names.end()) {
      throw Error({.function = std::string(entry.name),
                   .argument = key,
                   .expected = names.empty() ? "no options at all" : "one of " + listed(names),
                   .cure = runtime::suggestion(key, names)},
                  "the op has no option of this name");
    }
    const ops::OptionSpec& option = entry.options[static_cast<std::size_t>(known - names.begin())];
    std::vector<std::string> values(option.values.begin(), option.values.end());
    if (!option.number.empty() || std::find(values.begin(), values.end(), value) != values.end()) continue;
    throw Error({.function = std::string(entry.name),
                 .argument = key,
                 .found = "`" + value + "`",
                 .expected = "one of " + listed(values),
                 .cure = runtime::suggestion(value, values)},
                "the option does not take this value");
  }
}

// Products of extents must be countable: by value, and by what a fold goes through.
void check_sizes(const dsl::Graph& graph, const dsl::Extents& extents) {
  const auto check = [&](const std::string& what, dsl::AxisSet axes) {
    double elements = 1;
    std::string shape;
    for (const dsl::AxisId axis : axes) {
      elements *= static_cast<double>(extents[axis]);
      shape += fmt::format("{}{} = {}", shape.empty() ? "" : ", ", graph.axes[axis].name, extents[axis]);
    }
    if (elements <= most_elements) return;
    throw Error({.function = graph.name,
                 .found = fmt::format("{:.3g} elements ({})", elements, shape),
                 .expected = fmt::format("at most {:.0e}", most_elements),
                 .cure = "Ask for smaller extents with --axes"},
                what + " is too large");
  };
  for (const dsl::InputInfo& input : graph.inputs) check("argument `" + input.name + "`", graph.node(input.node).axes);
  for (dsl::NodeId id = 0; id < graph.nodes.size(); ++id) {
    const dsl::NodeKind kind = graph.node(id).kind;
    dsl::AxisSet axes = graph.node(id).axes;
    if (kind == dsl::NodeKind::fold || kind == dsl::NodeKind::scatter) axes |= graph.folded_axes(id);
    check("value " + graph.name_of(id), axes);
  }
}

// The extent that an axis takes where none is asked for; with a positive `largest`, one that the reference can afford.
std::int64_t default_extent(const ops::AxisDefault& axis, std::int64_t largest) {
  if (largest > 0 && axis.test_limit >= 0) largest = std::min(largest, axis.test_limit);
  if (largest <= 0 || axis.extent <= largest) return axis.extent;
  const std::int64_t rounded = largest / axis.multiple * axis.multiple;
  return std::max({rounded, axis.multiple, axis.least});
}

}  // namespace

const ops::OpEntry& op_named(const std::string& name) {
  std::vector<std::string> names;
  for (const ops::OpEntry* entry : ops::catalogue()) {
    if (entry->name == name) return *entry;
    names.emplace_back(entry->name);
  }
  throw Error(
      {.found = "`" + name + "`", .expected = "one of " + listed(names), .cure = runtime::suggestion(name, names)},
      "the catalogue has no op of this name");
}

DType dtype_named(const std::string& text) {
  std::vector<std::string> names;
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (name(dtype) == text) return dtype;
    names.emplace_back(name(dtype));
  }
  throw Error(
      {.found = "`" + text + "`", .expected = "one of " + listed(names), .cure = runtime::suggestion(text, names)},
      "there is no dtype of this name");
}

Device device_named(const std::string& text) {
  if (text == "cpu") return Device::cpu();
  if (text == "cuda") return Device::cuda();
  if (text.starts_with("cuda:")) {
    int ordinal = -1;
    const auto [end, error] = std::from_chars(text.data() + 5, text.data() + text.size(), ordinal);
    if (error == std::errc() && end == text.data() + text.size() && ordinal >= 0) return Device::cuda(ordinal);
  }
  throw Error({.argument = "--device",
               .found = "`" + text + "`",
               .expected = "cpu, cuda, or cuda: and a number",
               .cure = runtime::suggestion(text, std::vector<std::string>{"cpu", "cuda"})},
              "there is no such device");
}

ops::NamedExtents parse_axes(const std::vector<std::string>& texts) {
  ops::NamedExtents result;
  for (const std::string& text : texts) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const std::string item = trimmed(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (item.empty()) continue;
      const std::size_t equals = item.find('=');
      const std::string axis = trimmed(std::string_view(item).substr(0, equals));
      if (equals == std::string::npos || axis.empty()) {
        throw Error({.found = "`" + item + "`", .expected = "NAME=EXTENT, as in tokens=8192,vocab=128256"},
                    "--axes does not understand this");
      }
      const std::int64_t extent = parse_extent(axis, trimmed(std::string_view(item).substr(equals + 1)));
      if (const auto [at, fresh] = result.emplace(axis, extent); !fresh && at->second != extent) {
        throw Error({.axis = axis, .found = std::to_string(extent), .expected = std::to_string(at->second)},
                    "the axis is given two extents");
      }
    }
  }
  return result;
}

std::size_t parse_bytes(const std::string& text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit units[] = {{"", 1},         {"B", 1},       {"kB", 1e3},     {"MB", 1e6},
                            {"GB", 1e9},     {"TB", 1e12},   {"KiB", 1024.0}, {"MiB", 1024.0 * 1024},
                            {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  const std::string expected = "bytes, as in 4096, 64MiB, 1GiB or 1.5GB";
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit = trimmed(std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)));
  const auto known = std::find_if(std::begin(units), std::end(units), [&](const Unit& u) { return u.name == unit; });
  if (error != std::errc() || known == std::end(units) || !std::isfinite(number)) {
    throw Error({.argument = "--budget", .found = "`" + text + "`", .expected = expected},
                "this is no amount of memory");
  }
  const double bytes = number * known->bytes;
  if (bytes < 1 || bytes > 0x1p60) {
    throw Error({.argument = "--budget", .found = text, .expected = "1 byte to 2^60 bytes"},
                "no workspace can have this size");
  }
  return static_cast<std::size_t>(bytes);
}

void set_target(const std::string& target) {
  if (target == "cpu") return;
  const std::vector<std::string> cpus = runtime::target_names();
  if (std::find(cpus.begin(), cpus.end(), target) != cpus.end()) {
    ::setenv("TIGON_CPU", target.c_str(), 1);
    return;
  }
  const auto gpus = schedule::gpu_names();
  if (std::find(gpus.begin(), gpus.end(), target) != gpus.end()) return;  // kernels are planned and printed only
  std::vector<std::string> names = {"cpu"};
  names.insert(names.end(), cpus.begin(), cpus.end());
  names.insert(names.end(), gpus.begin(), gpus.end());
  throw Error({.argument = "--target",
               .found = "`" + target + "`",
               .expected = "one of " + listed(names),
               .cure = runtime::suggestion(target, names)},
              "this build has no such target");
}

void require_runnable(const std::string& target) {
  if (schedule::gpu_model(target)) {
    throw Error(
        {.kind = ErrorKind::device,
         .argument = "--target",
         .found = target,
         .cure = "Read its kernels with `tigon emit`; `tigon check --device cuda` runs on the GPU that is there"},
        "a target is planned for and printed, not run");
  }
  if (target != "cpu") return runtime::require_runnable(target, "--target");
  if (const auto name = runtime::target_override()) runtime::require_runnable(*name, "TIGON_CPU");
}

Choice choose(const Asked& asked, std::int64_t largest_default) {
  Choice choice;
  choice.entry = &op_named(asked.op);
  const ops::OpEntry& entry = *choice.entry;
  choice.op.dtype = asked.dtype.empty() ? entry.dtypes.front() : dtype_named(asked.dtype);
  choice.op.gradient = asked.gradient;
  for (const std::string& option : asked.options) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error({.function = std::string(entry.name),
                   .argument = "--option",
                   .found = "`" + option + "`",
                   .expected = "NAME=VALUE, as in smoothing=0.1"},
                  "--option does not understand this");
    }
    choice.op.options.emplace_back(trimmed(option.substr(0, equals)), trimmed(option.substr(equals + 1)));
  }
  ops::NamedExtents extents = parse_axes(asked.axes);
  check_axes(entry, extents);
  check_options(entry, choice.op);
  for (const ops::AxisDefault& axis : entry.axes) {
    extents.try_emplace(std::string(axis.name), default_extent(axis, largest_default));
  }
  set_target(asked.target);
  choice.graph = std::make_shared<const dsl::Graph>(entry.trace(choice.op));
  choice.extents = ops::extents_of(entry, *choice.graph, extents);
  for (std::size_t axis = 0; axis < choice.extents.size(); ++axis) {
    if (choice.extents[axis] >= 0) continue;
    throw Error(
        {.function = std::string(entry.name), .axis = choice.graph->axes[axis].name, .cure = "Give it with --axes"},
        "the axis has no extent");
  }
  check_sizes(*choice.graph, choice.extents);
  choice.options.device = Device::cpu();
  choice.options.exact = asked.exact;
  choice.options.unfused = asked.unfused;
  if (!asked.budget.empty()) choice.options.memory_budget = parse_bytes(asked.budget);
  return choice;
}

std::string defaults_text(const Asked& asked, const Choice& choice) {
  const ops::NamedExtents given = parse_axes(asked.axes);
  std::string text;
  for (std::size_t axis = 0; axis < choice.extents.size(); ++axis) {
    const std::string& axis_name = choice.graph->axes[axis].name;
    const bool own = std::any_of(choice.entry->axes.begin(), choice.entry->axes.end(),
                                 [&](const ops::AxisDefault& a) { return a.name == axis_name; });
    if (!own || given.contains(axis_name)) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", axis_name, choice.extents[axis]);
  }
  return text.empty() ? "" : "not given with --axes, so taken: " + text;
}

std::vector<detail::GivenExtent> given_extents(const Choice& choice) {
  std::vector<detail::GivenExtent> given;
  for (std::size_t i = 0; i < choice.graph->axes.size(); ++i) {
    const dsl::AxisInfo& axis = choice.graph->axes[i];
    given.push_back({{axis.tag, axis.name, axis.fixed}, choice.extents[i], choice.extents[i]});
  }
  return given;
}

detail::CompileRequest compile_request(const Choice& choice) {
  detail::CompileRequest request;
  request.graph = choice.graph;
  for (const dsl::InputInfo& input : choice.graph->inputs) request.inputs.push_back(input.name);
  for (const dsl::ScalarInfo& scalar : choice.graph->scalars) request.scalars.push_back(scalar.name);
  for (const dsl::OutputInfo& output : choice.graph->outputs) request.outputs.push_back(output.name);
  request.extents = given_extents(choice);
  request.options = choice.options;
  return request;
}

std::string extents_text(const dsl::Graph& graph, const dsl::Extents& extents) {
  std::string text;
  for (std::size_t axis = 0; axis < graph.axes.size(); ++axis) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", graph.axes[axis].name, extents[axis]);
  }
  return text;
}

std::string type_text(const dsl::Graph& graph, DType dtype, const std::vector<dsl::AxisId>& axes) {
  return dsl::print_type(graph, dtype, axes);
}

double argument_bytes(const dsl::Graph& graph, const dsl::Extents& extents) {
  double bytes = 0;
  const auto add = [&](DType dtype, const std::vector<dsl::AxisId>& axes) {
    double size = size_of(dtype);
    for (const dsl::AxisId axis : axes) size *= static_cast<double>(extents[axis]);
    bytes += size;
  };
  for (const dsl::InputInfo& input : graph.inputs) add(input.dtype, input.axes);
  for (const dsl::OutputInfo& output : graph.outputs) add(output.dtype, output.axes);
  return bytes;
}

void require_memory(const Choice& choice, double bytes) {
  const double pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
  const double has = pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (bytes <= 0.8 * has) return;
  throw Error({.function = choice.graph->name,
               .found = plan::memory_text(bytes) + " for " + extents_text(*choice.graph, choice.extents),
               .expected = fmt::format("at most four fifths of this machine's {}", plan::memory_text(has)),
               .cure = "Ask for smaller extents with --axes"},
              "this needs too much memory");
}

}  // namespace tigon::tools
