// Scatter: partitions share the target axis; each walks all indices in order and adds those that are its own, so that
// the sum's order never depends on threads and no atomics are needed.
#include "codegen/schedule/sweeps.hpp"

namespace tigon::schedule {
using dsl::AxisId;
using dsl::AxisSet;
using dsl::NodeId;
using loops::ExprId;

void build_scatter(const KernelRequest& request, int output, const DeviceModel& device, Emitter& emitter,
                   Scheduled& result, const std::string& name) {
  const dsl::Graph& graph = request.graph;
  const dsl::OutputInfo& info = graph.outputs[static_cast<std::size_t>(output)];
  const NodeId node = info.node;
  const dsl::ScatterInfo& scatter = graph.scatters[graph.node(node).payload];
  const NodeId values = graph.operands(node)[0];
  const NodeId indices = graph.operands(node)[1];
  loops::NestBuilder& builder = emitter.builder();
  const loops::ParameterId parameter = result.output_parameters[static_cast<std::size_t>(output)][0];

  const auto part = static_cast<std::uint16_t>(result.partitions.size());
  result.partitions.push_back({.rows = {scatter.axis}, .unit = 1, .limit = device.partition_limit});
  builder.part(name);
  const ExprId partition = emitter.open_grid(builder.nest.parts.back());
  const ExprId partitions = builder.partitions(part);
  const ExprId targets = emitter.extent(scatter.axis);
  const ExprId first = builder.floor_div(builder.mul(partition, targets), partitions);
  const ExprId last = builder.floor_div(builder.mul(builder.add(partition, builder.integer(1)), targets), partitions);

  // Serial: the summed axes and those that the index varies over. Lanes: what is left of the result.
  const AxisSet serial = graph.node(indices).axes | set_of(scatter.folded);
  std::vector<AxisId> free;
  for (const AxisId axis : info.axes) {
    if (axis != scatter.axis && !serial.contains(axis)) free.push_back(axis);
  }
  Environment environment = empty_environment();
  const auto over_free = [&](const auto& body) {
    for (std::size_t i = 0; i < free.size(); ++i) {
      environment[free[i]] = emitter.open({.name = graph.axes[free[i]].name,
                                           .bind = i + 1 == free.size() ? loops::Bind::lanes : loops::Bind::serial,
                                           .begin = builder.integer(0),
                                           .end = emitter.extent(free[i])});
    }
    body();
  };
  const auto index_of = [&](ExprId target) {
    std::vector<ExprId> index;
    for (const AxisId axis : info.axes) index.push_back(axis == scatter.axis ? target : environment[axis]);
    return index;
  };
  const auto close_free = [&] {
    for (std::size_t i = 0; i < free.size(); ++i) emitter.close();
  };
  const bool accumulate = info.mode == dsl::OutputMode::accumulate;

  if (!accumulate) {
    std::size_t opened = 1;
    const ExprId target =
        emitter.open({.name = graph.axes[scatter.axis].name, .bind = loops::Bind::serial, .begin = first, .end = last});
    for (const AxisId axis : info.axes) {
      if (axis == scatter.axis || std::find(free.begin(), free.end(), axis) != free.end()) continue;
      environment[axis] =
          emitter.open({.name = graph.axes[axis].name, .begin = builder.integer(0), .end = emitter.extent(axis)});
      ++opened;
    }
    over_free([&] { emitter.add(loops::store(parameter, index_of(target), builder.number(info.dtype, 0))); });
    close_free();
    for (std::size_t i = 0; i < opened; ++i) emitter.close();
  }

  emitter.open({.name = "once", .bind = loops::Bind::serial, .begin = builder.integer(0), .end = builder.integer(1)});
  emitter.begin_checks();
  std::size_t opened = 1;
  for (const AxisId axis : serial) {
    environment[axis] =
        emitter.open({.name = graph.axes[axis].name, .begin = builder.integer(0), .end = emitter.extent(axis)});
    ++opened;
  }
  ExprId target = builder.cast(DType::i64, emitter.value(indices, environment));
  if (request.chunked.contains(scatter.axis)) {
    target = builder.sub(target, builder.origin(emitter.nest_axis(scatter.axis)));
  }
  const ExprId own = builder.op(ScalarOp::logical_and, {builder.op(ScalarOp::less_equal, {first, target}),
                                                        builder.op(ScalarOp::less, {target, last})});
  const auto add_value = [&] {
    emitter.add(loops::store(parameter, index_of(target), builder.cast(info.dtype, emitter.value(values, environment)),
                             loops::StoreMode::accumulate));
  };
  emitter.guard(own, [&] {
    over_free(add_value);
    close_free();
  });
  for (std::size_t i = 0; i < opened; ++i) {
    emitter.close();
  }
  emitter.end_checks();
  builder.nest.parts.back().grid = emitter.take_outermost();
}

}  // namespace tigon::schedule
