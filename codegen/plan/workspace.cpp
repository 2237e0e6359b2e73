// Sizes, lives and offsets of a plan's buffers, and the extents of a bind.
#include "codegen/plan/body.hpp"
#include "tigon/error.hpp"

namespace tigon::plan {
using dsl::AxisId;

namespace {

void touch(Plan& plan, BufferId buffer, std::int32_t at) {
  if (buffer == no_buffer) return;
  Buffer& b = plan.buffers[buffer];
  if (b.first_step < 0) b.first_step = at;
  b.last_step = std::max(b.last_step, at);
}

// Buffers used inside a loop that began life before it, or carry values between iterations, live through the whole
// loop.
void visit(Plan& plan, const std::vector<Step>& steps, std::int32_t& clock) {
  for (const Step& step : steps) {
    const std::int32_t at = clock++;
    if (const auto* launch = std::get_if<Launch>(&step.node)) {
      for (const BufferId buffer : launch->buffers) touch(plan, buffer, at);
      plan.predicted_ns += launch->predicted_ns;
    } else if (const auto* matmul = std::get_if<Matmul>(&step.node)) {
      for (const BufferId buffer : {matmul->a, matmul->b, matmul->c}) touch(plan, buffer, at);
      plan.predicted_ns += matmul->predicted_ns;
    } else if (const auto* fill = std::get_if<Fill>(&step.node)) {
      touch(plan, fill->buffer, at);
    } else {
      const auto& loop = std::get<Loop>(step.node);
      const double before = plan.predicted_ns;
      std::vector<Buffer> outside = plan.buffers;
      visit(plan, loop.body, clock);
      const std::int32_t end = clock++;
      const double chunks = std::ceil(static_cast<double>(plan.planned[loop.axis]) / static_cast<double>(loop.chunk));
      plan.predicted_ns = before + (plan.predicted_ns - before) * chunks;
      for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
        const bool used = plan.buffers[i].last_step > at;
        if (!used) continue;
        if (!plan.buffers[i].chunked.contains(loop.axis) || outside[i].first_step >= 0) {
          if (plan.buffers[i].first_step > at) plan.buffers[i].first_step = at;
          plan.buffers[i].last_step = std::max(plan.buffers[i].last_step, end);
        }
      }
    }
  }
}

}  // namespace

void finish_plan(Plan& plan) {
  std::int32_t clock = 0;
  visit(plan, plan.steps, clock);
}

dsl::Extents bind_extents(const Plan& plan, const dsl::Extents& given) {
  dsl::Graph relations;
  relations.name = plan.name;
  const std::size_t own = plan.axes.size() - plan.partition_axes.size();
  relations.axes.assign(plan.axes.begin(), plan.axes.begin() + static_cast<std::ptrdiff_t>(own));
  relations.splits = plan.splits;
  relations.equals = plan.equals;
  dsl::Extents start = given;
  start.resize(own, -1);
  dsl::Extents extents = resolve_extents(relations, std::move(start));
  for (const AxisId axis : plan.fixed) {
    if (axis < own && extents[axis] != plan.planned[axis]) {
      throw Error({.kind = ErrorKind::usage,
                   .function = plan.name,
                   .axis = plan.axes[axis].name,
                   .found = std::to_string(extents[axis]),
                   .expected = std::to_string(plan.planned[axis]),
                   .cure = "Compile the function for this extent"},
                  "the kernels were compiled for another extent");
    }
  }
  extents.resize(plan.axes.size(), 1);
  for (const PartitionAxis& partition : plan.partition_axes) extents[partition.axis] = partition.count.count(extents);
  return extents;
}

std::int64_t element_count(const Buffer& buffer, const dsl::Extents& extents) {
  std::int64_t count = 1;
  for (const AxisId axis : buffer.axes) count *= extents[axis];
  return count;
}

std::vector<std::int64_t> dense_strides(const Buffer& buffer, const dsl::Extents& extents) {
  std::vector<std::int64_t> strides(buffer.axes.size());
  std::int64_t stride = 1;
  for (std::size_t i = buffer.axes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<std::int64_t>(extents[buffer.axes[i]], 1);
  }
  return strides;
}

dsl::AxisSet looked_up_axes(const Plan& plan) {
  dsl::AxisSet axes;
  for (const Kernel& kernel : plan.kernels) {
    for (const dsl::GatherInfo& info : kernel.graph.gathers) axes |= dsl::AxisSet::of(info.axis);
  }
  return axes;
}

dsl::Extents longest_chunks(const Plan& plan, const dsl::Extents& extents) {
  dsl::Extents chunks(plan.axes.size(), -1);
  const auto visit_loops = [&](const auto& self, const std::vector<Step>& steps) -> void {
    for (const Step& step : steps) {
      if (const auto* loop = std::get_if<Loop>(&step.node)) {
        chunks[loop->axis] = std::max(chunks[loop->axis], std::min(loop->chunk, extents[loop->axis]));
        self(self, loop->body);
      }
    }
  };
  visit_loops(visit_loops, plan.steps);
  for (std::size_t axis = 0; axis < chunks.size(); ++axis) {
    if (chunks[axis] < 0) chunks[axis] = extents[axis];
  }
  return chunks;
}

WorkspaceLayout layout_workspace(const Plan& plan, const dsl::Extents& extents) {
  constexpr std::int64_t alignment = 64;
  const dsl::Extents chunk = longest_chunks(plan, extents);
  struct Item {
    BufferId buffer;
    std::int64_t bytes;
  };
  const dsl::AxisSet looked_up = looked_up_axes(plan);
  std::vector<Item> items;
  for (BufferId id = 0; id < plan.buffers.size(); ++id) {
    const Buffer& buffer = plan.buffers[id];
    if (buffer.home != Home::workspace || buffer.first_step < 0) continue;
    dsl::Extents at = extents;
    for (const AxisId axis : buffer.chunked) at[axis] = chunk[axis];
    for (const AxisId axis : buffer.axes) {
      if (looked_up.contains(axis)) at[axis] = std::max<std::int64_t>(at[axis], 1);
    }
    const std::int64_t bytes = element_count(buffer, at) * size_of(buffer.dtype);
    items.push_back({id, (bytes + alignment - 1) / alignment * alignment});
  }
  // Largest first, each at the lowest offset that is free during its life.
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.bytes > b.bytes; });
  WorkspaceLayout result;
  result.offsets.assign(plan.buffers.size(), 0);
  std::vector<Item> placed;
  for (const Item& item : items) {
    const Buffer& buffer = plan.buffers[item.buffer];
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (const Item& other : placed) {
      const Buffer& b = plan.buffers[other.buffer];
      if (b.first_step <= buffer.last_step && buffer.first_step <= b.last_step) {
        taken.emplace_back(result.offsets[other.buffer], result.offsets[other.buffer] + other.bytes);
      }
    }
    std::sort(taken.begin(), taken.end());
    std::int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin >= offset + item.bytes) break;
      offset = std::max(offset, end);
    }
    result.offsets[item.buffer] = offset;
    result.bytes = std::max(result.bytes, offset + item.bytes);
    placed.push_back(item);
  }
  return result;
}

}  // namespace tigon::plan
