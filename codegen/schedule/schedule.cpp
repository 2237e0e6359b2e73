// Chooses a shape for each part of a kernel, lays out its parameters and builds its nest.
#include "codegen/schedule/gpu.hpp"
#include "codegen/schedule/sweeps.hpp"

namespace tigon::schedule {
using dsl::AxisId;
using dsl::NodeId;
using dsl::NodeKind;

std::int64_t PartitionCount::count(const dsl::Extents& extents) const {
  std::int64_t size = 1;
  for (const AxisId axis : rows) size *= extents[axis];
  return std::max<std::int64_t>(1, std::min(limit, (size + unit - 1) / unit));
}

namespace {

bool is_scatter(const KernelRequest& request, const std::vector<int>& outputs) {
  const dsl::OutputInfo& first = request.graph.outputs[static_cast<std::size_t>(outputs[0])];
  return request.graph.node(first.node).kind == NodeKind::scatter;
}

std::variant<Analysis, Refusal> choose_part(const KernelRequest& request, const std::vector<int>& outputs,
                                            const DeviceModel& device, std::size_t most_places = any_places) {
  if (!is_scatter(request, outputs)) return choose(request, outputs, device, most_places);
  if (outputs.size() > 1) return Refusal{"a scatter is a part of its own"};
  for (const NodeId node : cone(request.graph, outputs)) {
    const bool own = node == request.graph.outputs[static_cast<std::size_t>(outputs[0])].node;
    if (request.graph.node(node).kind == NodeKind::scatter && !own) return Refusal{"a scatter is a kernel of its own"};
  }
  Analysis analysis;
  const double count = [&] {
    double product = 1;
    const NodeId node = request.graph.outputs[static_cast<std::size_t>(outputs[0])].node;
    for (const AxisId axis : output_space(request.graph, node)) product *= static_cast<double>(request.extents[axis]);
    return product;
  }();
  analysis.cost_ns = count * device.contiguous_byte_ns;
  return analysis;
}

std::vector<std::int64_t> strides_of(std::size_t dimensions) {
  std::vector<std::int64_t> strides(dimensions, loops::at_run_time);
  if (!strides.empty()) strides.back() = 1;
  return strides;
}

class Layout {
 public:
  Layout(const KernelRequest& request, Emitter& emitter, Scheduled& result)
      : request_(request), emitter_(emitter), builder_(emitter.builder()), result_(result) {}

  void inputs() {
    for (const dsl::InputInfo& input : request_.graph.inputs) {
      const dsl::Monoid* monoid =
          input.monoid >= 0 ? &request_.graph.monoids[static_cast<std::size_t>(input.monoid)] : nullptr;
      result_.input_parameters.push_back(
          make(input.name, input.dtype, monoid, axes_of(input.axes), loops::Access::read));
    }
  }
  void output(std::size_t number, int partition_axis) {
    const dsl::OutputInfo& output = request_.graph.outputs[number];
    if (request_.in_place[number] >= 0) {
      const auto& parameters = result_.input_parameters[static_cast<std::size_t>(request_.in_place[number])];
      for (const loops::ParameterId parameter : parameters) {
        builder_.nest.parameters[parameter].access = loops::Access::read_write;
      }
      result_.output_parameters[number] = parameters;
      return;
    }
    std::vector<std::uint16_t> axes;
    if (partition_axis >= 0) axes.push_back(static_cast<std::uint16_t>(partition_axis));
    for (const std::uint16_t axis : axes_of(output.axes)) axes.push_back(axis);
    const dsl::Monoid* monoid = request_.graph.is_state(output.node) ? &request_.graph.monoid_of(output.node) : nullptr;
    const bool scatter = request_.graph.node(output.node).kind == NodeKind::scatter;
    const bool accumulates = output.mode == dsl::OutputMode::accumulate || scatter || partition_axis >= 0;
    result_.output_parameters[number] =
        make(output.name, output.dtype, monoid, axes, accumulates ? loops::Access::read_write : loops::Access::write);
  }

 private:
  std::vector<std::uint16_t> axes_of(const std::vector<AxisId>& axes) const {
    std::vector<std::uint16_t> result;
    for (const AxisId axis : axes) result.push_back(emitter_.nest_axis(axis));
    return result;
  }
  std::vector<loops::ParameterId> make(const std::string& name, DType dtype, const dsl::Monoid* monoid,
                                       const std::vector<std::uint16_t>& axes, loops::Access access) {
    std::vector<loops::ParameterId> result;
    const std::size_t slots = monoid == nullptr ? 1 : monoid->state.size();
    for (std::size_t slot = 0; slot < slots; ++slot) {
      loops::Parameter parameter;
      parameter.name = slots == 1 ? name : fmt::format("{}_{}", name, slot);
      parameter.dtype = monoid == nullptr ? dtype : dtype_of_class(monoid->state[slot], dtype);
      parameter.axes = axes;
      parameter.strides = strides_of(axes.size());
      parameter.access = access;
      result.push_back(builder_.parameter(parameter));
      for (std::size_t d = 0; d + 1 < axes.size(); ++d) builder_.stride(result.back(), static_cast<std::uint16_t>(d));
    }
    return result;
  }

  const KernelRequest& request_;
  Emitter& emitter_;
  loops::NestBuilder& builder_;
  Scheduled& result_;
};

std::string part_name(const KernelRequest& request, const std::vector<int>& outputs) {
  std::string name;
  for (const int output : outputs) {
    if (!name.empty()) name += " ";
    name += request.graph.outputs[static_cast<std::size_t>(output)].name;
  }
  return name;
}

std::string family_of(const KernelRequest& request, const std::vector<int>& outputs, const Analysis& analysis) {
  if (is_scatter(request, outputs)) return "scatter";
  bool sweep = false, grid = false, serial = false;
  for (const FoldRole role : analysis.role) {
    sweep |= role == FoldRole::sweep;
    grid |= role == FoldRole::grid;
    serial |= role == FoldRole::serial;
  }
  if (sweep && grid) return "row + column";
  if (sweep) return "row";
  if (grid) return "grid";
  return serial ? "column" : "pointwise";
}

}  // namespace

Offer schedule(const KernelRequest& request, const DeviceModel& device, const std::string& name) {
  std::vector<Analysis> analyses;
  for (const std::vector<int>& outputs : request.parts) {
    std::variant<Analysis, Refusal> choice = choose_part(request, outputs, device);
    if (auto* refusal = std::get_if<Refusal>(&choice)) return *refusal;
    analyses.push_back(std::get<Analysis>(std::move(choice)));
  }
  Scheduled result;
  loops::NestBuilder builder;
  builder.nest.name = name;
  result.outputs.resize(request.graph.outputs.size());
  result.output_parameters.resize(request.graph.outputs.size());
  Emitter emitter(request, builder, result);
  Layout layout(request, emitter, result);
  layout.inputs();
  for (std::size_t part = 0; part < request.parts.size(); ++part) {
    int partition_axis = -1;
    for (const int output : request.parts[part]) {
      const NodeId node = request.graph.outputs[static_cast<std::size_t>(output)].node;
      const bool grid = !analyses[part].role.empty() && analyses[part].role[node] == FoldRole::grid;
      if (grid && partition_axis < 0) {
        partition_axis = builder.axis("partition");
        result.nest_axes.push_back(dsl::no_axis);
      }
      layout.output(static_cast<std::size_t>(output), grid ? partition_axis : -1);
    }
  }
  for (std::size_t part = 0; part < request.parts.size(); ++part) {
    const std::vector<int>& outputs = request.parts[part];
    if (is_scatter(request, outputs)) {
      build_scatter(request, outputs[0], device, emitter, result, part_name(request, outputs));
    } else {
      build_sweeps(request, outputs, analyses[part], device, emitter, result, part_name(request, outputs));
    }
    result.cost_ns += analyses[part].cost_ns;
    const std::string family = family_of(request, outputs, analyses[part]);
    if (result.family.find(family) == std::string::npos) result.family += (result.family.empty() ? "" : ", ") + family;
  }
  result.streams = std::find(request.streaming.begin(), request.streaming.end(), true) != request.streaming.end();
  if (device.multiprocessors > 0) bind_threads(request, device, builder, result);
  result.nest = std::move(builder.nest);
  return result;
}

std::vector<int> unsafe_in_place(const KernelRequest& request, const DeviceModel& device) {
  std::vector<int> result;
  for (const std::vector<int>& outputs : request.parts) {
    const std::variant<Analysis, Refusal> choice = choose_part(request, outputs, device);
    for (const int output : outputs) {
      if (request.in_place[static_cast<std::size_t>(output)] < 0) continue;
      const auto* analysis = std::get_if<Analysis>(&choice);
      const bool known = analysis != nullptr && !analysis->role.empty();
      if (!known || !in_place_is_safe(request, outputs, *analysis, output)) result.push_back(output);
    }
  }
  return result;
}

std::variant<double, Refusal> predict(const KernelRequest& request, const DeviceModel& device,
                                      std::size_t most_places) {
  double cost = 0;
  for (const std::vector<int>& outputs : request.parts) {
    std::variant<Analysis, Refusal> choice = choose_part(request, outputs, device, most_places);
    if (auto* refusal = std::get_if<Refusal>(&choice)) return *refusal;
    cost += std::get<Analysis>(choice).cost_ns;
  }
  return cost;
}

}  // namespace tigon::schedule
