// Prepares every step: extents inside chunk loops, slots, strides, where the chunks of each buffer start.
#include "runtime/prepared.hpp"

#include <cstring>

#include "dsl/scalar_table.hpp"

namespace tigon::runtime {
using dsl::AxisId;
using dsl::AxisSet;

namespace {

// Extents as the steps see them, and the chunked axes around them.
struct Context {
  dsl::Extents local;
  AxisSet chunked;
};

class Preparer {
 public:
  explicit Preparer(PreparedPlan& result) : result_(result), plan_(*result.plan) {}

  void strides(const std::vector<Strides>& inputs, const std::vector<Strides>& outputs) {
    const dsl::Extents chunked = plan::longest_chunks(plan_, result_.extents);
    for (const plan::Buffer& buffer : plan_.buffers) {
      dsl::Extents at = result_.extents;
      for (const AxisId axis : buffer.chunked) at[axis] = chunked[axis];
      result_.strides.push_back(plan::dense_strides(buffer, at));
    }
    dense_ = result_.strides;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].empty()) result_.strides[plan_.input_buffers[i]] = inputs[i];
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].empty()) result_.strides[plan_.output_buffers[i]] = outputs[i];
    }
  }

  void zeros() {
    const AxisSet looked_up = plan::looked_up_axes(plan_);
    result_.stands_in.assign(plan_.buffers.size(), false);
    for (std::size_t id = 0; id < plan_.buffers.size(); ++id) {
      const plan::Buffer& buffer = plan_.buffers[id];
      if (buffer.home == plan::Home::workspace) continue;
      std::int64_t reach = 1;  // elements up to the last place that can be read
      for (std::size_t d = 0; d < buffer.axes.size(); ++d) {
        const std::int64_t extent = result_.extents[buffer.axes[d]];
        if (extent == 0 && looked_up.contains(buffer.axes[d])) result_.stands_in[id] = true;
        reach += std::max<std::int64_t>(extent - 1, 0) * std::abs(result_.strides[id][d]);
      }
      if (result_.stands_in[id]) result_.zero_bytes = std::max(result_.zero_bytes, reach * size_of(buffer.dtype));
    }
  }

  std::vector<PreparedStep> steps(const std::vector<plan::Step>& list, const Context& context) {
    std::vector<PreparedStep> result;
    for (const plan::Step& step : list) {
      if (const auto* one = std::get_if<plan::Launch>(&step.node)) {
        result.push_back({launch(*one, context)});
      } else if (const auto* matmul = std::get_if<plan::Matmul>(&step.node)) {
        result.push_back({product(*matmul, context)});
      } else if (const auto* one_fill = std::get_if<plan::Fill>(&step.node)) {
        result.push_back({fill(*one_fill, context)});
      } else {
        result.push_back({loop(std::get<plan::Loop>(step.node), context)});
      }
    }
    return result;
  }

 private:
  PreparedPlan& result_;
  const plan::Plan& plan_;
  std::vector<Strides> dense_;  // by buffer, as they would be without gaps

  // Extents inside a loop, at this length of its chunk.
  void enter(Context& context, AxisId axis, std::int64_t length) const {
    context.chunked |= AxisSet::of(axis);
    context.local[axis] = length;
    for (const plan::PartitionAxis& partition : plan_.partition_axes) {
      if (partition.chunked.contains(axis)) context.local[partition.axis] = partition.count.count(context.local);
    }
  }

  PointerPatch patch(std::uint32_t cell, plan::BufferId buffer, const Context& context) {
    const plan::Buffer& b = plan_.buffers[buffer];
    PointerPatch result{
        .cell = cell, .buffer = buffer, .first_offset = static_cast<std::uint32_t>(result_.offsets.size())};
    for (std::size_t i = 0; i < b.axes.size(); ++i) {
      if (!context.chunked.contains(b.axes[i]) || b.chunked.contains(b.axes[i])) continue;
      result_.offsets.push_back({b.axes[i], result_.strides[buffer][i] * size_of(b.dtype)});
    }
    result.offset_count = static_cast<std::uint32_t>(result_.offsets.size()) - result.first_offset;
    return result;
  }

  // Strides along axes of one element move nothing.
  bool is_dense(plan::BufferId buffer) const {
    const plan::Buffer& b = plan_.buffers[buffer];
    for (std::size_t d = 0; d < b.axes.size(); ++d) {
      if (result_.extents[b.axes[d]] > 1 && result_.strides[buffer][d] != dense_[buffer][d]) return false;
    }
    return true;
  }

  PreparedLaunch launch(const plan::Launch& launch, const Context& context) {
    const plan::Kernel& kernel = plan_.kernels[launch.kernel];
    const schedule::Scheduled& scheduled = kernel.scheduled;
    const loops::Nest& nest = scheduled.nest;
    const loops::ParameterLayout cells = loops::parameter_layout(nest);
    PreparedLaunch result;
    result.kernel = launch.kernel;
    result.cells.assign(cells.cells(), 0);
    result_.most_cells = std::max<std::int64_t>(result_.most_cells, cells.cells());
    for (loops::ParameterId id = 0; id < nest.parameters.size(); ++id) {
      if (launch.buffers[id] == plan::no_buffer) {
        result.error_cell = static_cast<int>(cells.pointer_cell(id));
      } else {
        result.pointers.push_back(patch(cells.pointer_cell(id), launch.buffers[id], context));
        result.dense = result.dense && is_dense(launch.buffers[id]);
      }
    }
    for (const schedule::PartitionCount& count : scheduled.partitions)
      result.parts.push_back(count.count(context.local));
    for (std::uint32_t s = 0; s < nest.slots.size(); ++s) {
      const loops::Slot& slot = nest.slots[s];
      std::int64_t value = 0;
      switch (slot.kind) {
        case loops::SlotKind::extent:
          value = context.local[scheduled.nest_axes[slot.axis]];
          break;
        case loops::SlotKind::global_extent:
          value = result_.extents[scheduled.nest_axes[slot.axis]];
          break;
        case loops::SlotKind::origin:
          result.origins.push_back({cells.slot_cell(s), scheduled.nest_axes[slot.axis]});
          break;
        case loops::SlotKind::stride:
          value = result_.strides[launch.buffers[slot.parameter]][slot.dimension];
          break;
        case loops::SlotKind::partitions:
          value = result.parts[slot.part];
          break;
      }
      result.cells[cells.slot_cell(s)] = static_cast<std::uint64_t>(value);
    }
    for (std::uint32_t s = 0; s < nest.scalars.size(); ++s) {
      result.scalars.push_back({cells.scalar_cell(s), launch.scalars[s]});
    }
    result.work_ns = launch.predicted_ns * scale(launch, context);
    ++result_.launches;
    return result;
  }

  // Work grows with the rows: predicted at the planned extents, wanted at these.
  double scale(const plan::Launch& launch, const Context& context) const {
    double planned = 1, now = 1;
    for (const schedule::PartitionCount& count : plan_.kernels[launch.kernel].scheduled.partitions) {
      for (const AxisId axis : count.rows) {
        planned *= static_cast<double>(std::max<std::int64_t>(1, plan_.planned[axis]));
        now *= static_cast<double>(context.local[axis]);
      }
      break;
    }
    return now / planned;
  }

  std::int64_t stride_of(const plan::AxisAccess& access, plan::BufferId buffer, const Context& context) const {
    if (access.axis == dsl::no_axis) return 0;
    const plan::Buffer& b = plan_.buffers[buffer];
    std::int64_t stride = 0;
    for (std::size_t i = 0; i < b.axes.size(); ++i) {
      if (b.axes[i] == access.axis) stride = result_.strides[buffer][i];
    }
    for (const AxisId axis : access.times) stride *= context.local[axis];
    return stride;
  }

  // Where the current chunk of an operand starts: each chunked axis moves it by the operand's stride along that axis,
  // unless the buffer holds no more than the chunk.
  PointerPatch operand(const plan::Matmul& matmul, plan::AxisAccess plan::MatmulAxis::* access, plan::BufferId buffer,
                       const Context& context) {
    const plan::Buffer& b = plan_.buffers[buffer];
    PointerPatch result{
        .cell = 0, .buffer = buffer, .first_offset = static_cast<std::uint32_t>(result_.offsets.size())};
    for (const plan::MatmulAxis& axis : matmul.axes) {
      const plan::AxisAccess& through = axis.*access;
      if (!context.chunked.contains(axis.axis) || through.axis == dsl::no_axis || b.chunked.contains(through.axis))
        continue;
      result_.offsets.push_back({axis.axis, stride_of(through, buffer, context) * size_of(b.dtype)});
    }
    result.offset_count = static_cast<std::uint32_t>(result_.offsets.size()) - result.first_offset;
    return result;
  }

  PreparedProduct product(const plan::Matmul& matmul, const Context& context) {
    MatmulSpec spec;
    const auto& buffers = plan_.buffers;
    spec.a = buffers[matmul.a].dtype;
    spec.b = buffers[matmul.b].dtype;
    spec.c = buffers[matmul.c].dtype;
    spec.accumulate = matmul.accumulate;
    for (const plan::MatmulAxis& axis : matmul.axes) {
      const bool a = axis.a.axis != dsl::no_axis, b = axis.b.axis != dsl::no_axis, c = axis.c.axis != dsl::no_axis;
      const MatmulClass role = a && b && c ? MatmulClass::batch
                               : a && b    ? MatmulClass::k
                               : a         ? MatmulClass::m
                                           : MatmulClass::n;
      spec.axes.push_back({role, context.local[axis.axis], stride_of(axis.a, matmul.a, context),
                           stride_of(axis.b, matmul.b, context), stride_of(axis.c, matmul.c, context)});
    }
    PreparedProduct result;
    result.matmul = static_cast<std::uint32_t>(result_.matmuls.size());
    result_.matmuls.push_back(std::move(spec));
    result.a = operand(matmul, &plan::MatmulAxis::a, matmul.a, context);
    result.b = operand(matmul, &plan::MatmulAxis::b, matmul.b, context);
    result.c = operand(matmul, &plan::MatmulAxis::c, matmul.c, context);
    ++result_.products;
    return result;
  }

  PreparedFill fill(const plan::Fill& fill, const Context& context) {
    const plan::Buffer& buffer = plan_.buffers[fill.buffer];
    PreparedFill result{patch(0, fill.buffer, context), {}, buffer.dtype, fill.value};
    const std::int64_t size = size_of(buffer.dtype);
    for (std::size_t i = 0; i < buffer.axes.size(); ++i) {
      const AxisId axis = buffer.axes[i];
      const std::int64_t extent = context.chunked.contains(axis) ? context.local[axis] : result_.extents[axis];
      const std::int64_t stride = result_.strides[fill.buffer][i] * size;
      auto& dimensions = result.dimensions;
      if (!dimensions.empty() && dimensions.back().byte_stride == extent * stride)
        dimensions.back() = {dimensions.back().extent * extent, stride};
      else
        dimensions.push_back({extent, stride});
    }
    return result;
  }

  PreparedLoop loop(const plan::Loop& loop, const Context& context) {
    PreparedLoop result;
    result.axis = loop.axis;
    const std::int64_t extent = context.local[loop.axis];
    result.chunk = std::min(loop.chunk, std::max<std::int64_t>(extent, 1));
    result.full_chunks = extent / result.chunk;
    result.rest = extent % result.chunk;
    Context inside = context;
    const std::int64_t launches = result_.launches, products = result_.products;
    enter(inside, loop.axis, result.chunk);
    if (result.full_chunks > 0) result.full = steps(loop.body, inside);
    result_.launches = launches + (result_.launches - launches) * result.full_chunks;
    result_.products = products + (result_.products - products) * result.full_chunks;
    enter(inside, loop.axis, result.rest);
    if (result.rest > 0) result.last = steps(loop.body, inside);
    return result;
  }
};

}  // namespace

PreparedPlan prepare_plan(const plan::Plan& plan, dsl::Extents extents, const std::vector<Strides>& input_strides,
                          const std::vector<Strides>& output_strides) {
  PreparedPlan result;
  result.plan = &plan;
  result.extents = std::move(extents);
  result.layout = plan::layout_workspace(plan, result.extents);
  Preparer preparer(result);
  preparer.strides(input_strides, output_strides);
  preparer.zeros();
  result.steps = preparer.steps(plan.steps, {result.extents, AxisSet()});
  return result;
}

std::uint64_t scalar_bits(DType dtype, double value) {
  std::uint64_t bits = 0;
  const auto put = [&bits](auto typed) { std::memcpy(&bits, &typed, sizeof typed); };
  switch (dtype) {
    case DType::boolean:
      put(static_cast<std::uint8_t>(value != 0));
      break;
    case DType::i32:
      put(static_cast<std::int32_t>(dsl::nearest_integer(dtype, value)));
      break;
    case DType::i64:
      put(dsl::nearest_integer(dtype, value));
      break;
    case DType::f16:
      put(to_f16(static_cast<float>(value)));
      break;
    case DType::bf16:
      put(to_bf16(static_cast<float>(value)));
      break;
    case DType::f32:
      put(static_cast<float>(value));
      break;
    case DType::f64:
      put(value);
      break;
  }
  return bits;
}

std::byte* patched_address(const PreparedPlan& prepared, const PointerPatch& patch, const LaunchArguments& arguments,
                           std::byte* values, std::byte* zeros, const ChunkOrigins& origins) {
  const plan::Buffer& buffer = prepared.plan->buffers[patch.buffer];
  if (prepared.stands_in[patch.buffer]) return zeros;
  std::byte* base = nullptr;
  switch (buffer.home) {
    case plan::Home::argument:
      base = static_cast<std::byte*>(arguments.inputs[buffer.index]);
      break;
    case plan::Home::output:
      base = static_cast<std::byte*>(arguments.outputs[buffer.index]);
      break;
    case plan::Home::workspace:
      base = values + prepared.layout.offsets[patch.buffer];
      break;
  }
  for (std::uint32_t i = 0; i < patch.offset_count; ++i) {
    const ChunkOffset& offset = prepared.offsets[patch.first_offset + i];
    base += origins[offset.axis] * offset.byte_stride;
  }
  return base;
}

std::vector<detail::RawScalar> raw_scalars(const std::vector<dsl::ScalarInfo>& scalars,
                                           std::span<const double> values) {
  std::vector<detail::RawScalar> raw;
  for (std::size_t i = 0; i < values.size(); ++i) raw.push_back({scalar_bits(scalars.at(i).dtype, values[i])});
  return raw;
}

void patch_scalars(const PreparedLaunch& launch, std::span<const detail::RawScalar> scalars,
                   const ChunkOrigins& origins, std::uint64_t* cells) {
  for (const OriginPatch& patch : launch.origins) cells[patch.cell] = static_cast<std::uint64_t>(origins[patch.axis]);
  for (const ScalarPatch& patch : launch.scalars) cells[patch.cell] = scalars[patch.scalar].bits;
}

}  // namespace tigon::runtime
