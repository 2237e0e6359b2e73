// Registers a traced function's arguments and results and hands its graph out.
#include "dsl/trace.hpp"
#include "tigon/detail/function.hpp"
#include "tigon/error.hpp"

namespace tigon::detail {

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
    const std::vector<dsl::InputInfo>& inputs = build.graph().inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].name == shares) info.alias_input = static_cast<int>(i);
    }
    if (info.alias_input < 0) {
      throw Error({.function = trace.name(), .argument = path, .found = std::string(shares)},
                  "an inplace result names an input that the function does not have");
    }
    const dsl::InputInfo& input = inputs[info.alias_input];
    if (input.dtype != info.dtype || input.axes != info.axes) {
      throw Error({.function = trace.name(), .argument = path, .found = std::string(shares)},
                  "an inplace result needs the dtype and the order of axes of the input it shares");
    }
  }
  build.output(std::move(info));
}

GraphPointer FunctionTrace::finish() {
  return std::make_shared<const dsl::Graph>(std::move(state_->trace.builder()).finish());
}

}  // namespace tigon::detail
