// Registers a traced function's arguments and results and hands its graph out.
#include "dsl/print.hpp"
#include "dsl/trace.hpp"
#include "tigon/detail/function.hpp"
#include "tigon/error.hpp"

namespace tigon::detail {
namespace {

int input_named(const dsl::Graph& graph, std::string_view name) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (graph.inputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// The input that an inplace output at `path` shares: `shares` itself, else `shares` followed by the longest end of the
// path, cut before a field or an index, that makes an input's name. -1: none.
int shared_input(const dsl::Graph& graph, std::string_view path, std::string_view shares) {
  int found = input_named(graph, shares);
  for (std::size_t at = 0; found < 0 && at <= path.size(); ++at) {
    const std::string_view end = path.substr(at);
    if (at == 0) found = input_named(graph, std::string(shares) + "." + std::string(end));
    if (end.starts_with('.') || end.starts_with('['))
      found = input_named(graph, std::string(shares) + std::string(end));
  }
  return found;
}

std::string input_names(const dsl::Graph& graph) {
  std::string names;
  for (const dsl::InputInfo& input : graph.inputs) names += (names.empty() ? "" : ", ") + input.name;
  return names;
}

}  // namespace

struct FunctionTrace::State {
  explicit State(const std::string& name) : trace(name), scope(trace) {}
  Trace trace;
  TraceScope scope;
};

FunctionTrace::FunctionTrace(const std::string& name, const Location& location)
    : state_(std::make_unique<State>(name)) {
  set_location(location);
}
FunctionTrace::~FunctionTrace() = default;

Value FunctionTrace::input(const std::string& path, const TypeRef& type, bool is_scalar) {
  Trace& trace = state_->trace;
  if (is_scalar) return trace.give(trace.builder().scalar(path, type.dtype));
  std::vector<dsl::AxisId> axes;
  for (const AxisRef& axis : type.axes) axes.push_back(trace.axis(axis));
  return trace.give(trace.builder().input(path, type.dtype, std::move(axes)));
}

void FunctionTrace::output(const std::string& path, Value value, const TypeRef& type, OutputKind kind,
                           std::string_view shares) {
  Trace& trace = state_->trace;
  dsl::Builder& build = trace.builder();
  if (value.trace == 0) {
    throw Error(
        {.function = trace.name(), .argument = path, .cure = "Give every result a tensor, or declare it maybe<...>"},
        "a result was not set");
  }
  dsl::OutputInfo info;
  info.name = path;
  info.dtype = type.dtype;
  dsl::NodeId node = build.cast(type.dtype, trace.use(value));
  info.axes = trace.axes_of(node, type.axes);
  dsl::AxisSet axes;
  for (const dsl::AxisId axis : info.axes) axes |= dsl::AxisSet::of(axis);
  info.node = build.broadcast(node, axes);
  if (kind == OutputKind::accumulate) info.mode = dsl::OutputMode::accumulate;
  if (kind == OutputKind::inplace) {
    info.mode = dsl::OutputMode::alias;
    info.alias_input = shared_input(build.graph(), path, shares);
    if (info.alias_input < 0) {
      throw Error({.function = trace.name(),
                   .argument = path,
                   .found = std::string(shares),
                   .expected = "one of " + input_names(build.graph()) + ", or what several of these begin with"},
                  "an inplace result names an input that the function does not have");
    }
    const dsl::InputInfo& input = build.graph().inputs[static_cast<std::size_t>(info.alias_input)];
    if (input.dtype != info.dtype || input.axes != info.axes) {
      throw Error({.function = trace.name(),
                   .argument = path,
                   .found = dsl::print_type(build.graph(), info.dtype, info.axes),
                   .expected = input.name + ": " + dsl::print_type(build.graph(), input.dtype, input.axes)},
                  "an inplace result needs the dtype and the order of axes of the input it shares");
    }
    for (const dsl::OutputInfo& other : build.graph().outputs) {
      if (other.mode != dsl::OutputMode::alias || other.alias_input != info.alias_input) continue;
      throw Error({.function = trace.name(),
                   .argument = path,
                   .found = input.name,
                   .cure = "Let one of them write to memory of its own"},
                  fmt::format("two inplace results, this and `{}`, share one input", other.name));
    }
  }
  build.output(std::move(info));
}

GraphPointer FunctionTrace::finish() {
  return std::make_shared<const dsl::Graph>(std::move(state_->trace.builder()).finish());
}

}  // namespace tigon::detail
