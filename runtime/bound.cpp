// Prepares every step for fixed extents: parameter blocks with their constant cells filled in, patches for the rest.
#include "runtime/bound.hpp"

#include <cstdlib>
#include <cstring>

#include "runtime/cpu/parallel.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
using dsl::AxisId;
using dsl::AxisSet;

namespace {

// base(buffer) + sum of chunk origin * byte stride
struct PointerPatch {
  std::uint32_t cell = 0;
  plan::BufferId buffer = plan::no_buffer;
  std::uint32_t first_offset = 0, offset_count = 0;  // into Parts::offsets
};
struct ChunkOffset {
  AxisId axis = dsl::no_axis;
  std::int64_t byte_stride = 0;
};
struct OriginPatch {
  std::uint32_t cell = 0;
  AxisId axis = dsl::no_axis;
};
struct ScalarPatch {
  std::uint32_t cell = 0;
  std::uint32_t scalar = 0;
  DType dtype = DType::f32;
};

struct PreparedLaunch {
  KernelEntry entry = nullptr;
  std::int64_t scratch_bytes = 0;
  std::vector<std::uint64_t> cells;
  std::vector<PointerPatch> pointers;
  std::vector<OriginPatch> origins;
  std::vector<ScalarPatch> scalars;
  int error_cell = -1;
  std::vector<std::int64_t> parts;  // partitions of each part; a kernel numbers them one part after another
  double work_ns = 0;
  bool streaming = false;
};
struct PreparedProduct {
  std::shared_ptr<const PreparedMatmul> matmul;
  PointerPatch a, b, c;
};
struct PreparedFill {
  struct Dimension {
    std::int64_t extent = 0, byte_stride = 0;
  };
  PointerPatch target;
  std::vector<Dimension> dimensions;  // outermost first, joined where memory is contiguous
  DType dtype = DType::f32;
  double value = 0;
};
struct PreparedStep;
struct PreparedLoop {
  AxisId axis = dsl::no_axis;
  std::int64_t chunk = 1, full_chunks = 0, rest = 0;
  std::vector<PreparedStep> full, last;
};
struct PreparedStep {
  std::variant<PreparedLaunch, PreparedProduct, PreparedFill, PreparedLoop> node;
};

std::uint64_t scalar_bits(DType dtype, double value) {
  std::uint64_t bits = 0;
  const auto put = [&bits](auto typed) { std::memcpy(&bits, &typed, sizeof typed); };
  switch (dtype) {
    case DType::boolean:
      put(static_cast<std::uint8_t>(value != 0));
      break;
    case DType::i32:
      put(static_cast<std::int32_t>(value));
      break;
    case DType::i64:
      put(static_cast<std::int64_t>(value));
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

}  // namespace

struct Bound::Parts {
  std::shared_ptr<const Program> program;
  dsl::Extents extents;
  std::vector<Strides> strides;  // by buffer
  plan::WorkspaceLayout layout;
  std::vector<ChunkOffset> offsets;
  std::vector<PreparedStep> steps;
  std::int64_t scratch_bytes = 0;  // for one worker or one matmul
  std::int64_t frame_cells = 0;    // of the largest parameter block
  std::int64_t bytes = 0;
  std::int64_t launches = 0, matmuls = 0;
  int workers = 1;
  // Zeros that stand in for arguments and outputs without elements, by buffer, where kernels look along an empty axis:
  // those buffers may be null.
  std::unique_ptr<void, decltype(&std::free)> zeros{nullptr, &std::free};
  std::vector<bool> stands_in;

  struct Context {  // while preparing: extents as the steps see them, and the chunked axes around them
    dsl::Extents local;
    AxisSet chunked;
  };

  void prepare_strides(const std::vector<Strides>& inputs, const std::vector<Strides>& outputs) {
    const plan::Plan& plan = program->plan;
    const dsl::Extents chunked = plan::longest_chunks(plan, extents);
    for (const plan::Buffer& buffer : plan.buffers) {
      dsl::Extents at = extents;
      for (const AxisId axis : buffer.chunked) at[axis] = chunked[axis];
      strides.push_back(plan::dense_strides(buffer, at));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].empty()) strides[plan.input_buffers[i]] = inputs[i];
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].empty()) strides[plan.output_buffers[i]] = outputs[i];
    }
  }

  void prepare_zeros() {
    const plan::Plan& plan = program->plan;
    const AxisSet looked_up = plan::looked_up_axes(plan);
    stands_in.assign(plan.buffers.size(), false);
    std::int64_t most = 0;
    for (std::size_t id = 0; id < plan.buffers.size(); ++id) {
      const plan::Buffer& buffer = plan.buffers[id];
      if (buffer.home == plan::Home::workspace) continue;
      std::int64_t reach = 1;  // elements up to the last place that can be read
      for (std::size_t d = 0; d < buffer.axes.size(); ++d) {
        const std::int64_t extent = extents[buffer.axes[d]];
        if (extent == 0 && looked_up.contains(buffer.axes[d])) stands_in[id] = true;
        reach += std::max<std::int64_t>(extent - 1, 0) * std::abs(strides[id][d]);
      }
      if (stands_in[id]) most = std::max(most, reach * size_of(buffer.dtype));
    }
    if (most == 0) return;
    zeros.reset(std::calloc(static_cast<std::size_t>(most), 1));
    if (zeros == nullptr) throw std::bad_alloc();
  }

  // Extents inside a loop, at this length of its chunk.
  void enter(Context& context, AxisId axis, std::int64_t length) const {
    context.chunked |= AxisSet::of(axis);
    context.local[axis] = length;
    for (const plan::PartitionAxis& partition : program->plan.partition_axes) {
      if (partition.chunked.contains(axis)) context.local[partition.axis] = partition.count.count(context.local);
    }
  }

  PointerPatch patch(std::uint32_t cell, plan::BufferId buffer, const Context& context) {
    const plan::Buffer& b = program->plan.buffers[buffer];
    PointerPatch result{.cell = cell, .buffer = buffer, .first_offset = static_cast<std::uint32_t>(offsets.size())};
    for (std::size_t i = 0; i < b.axes.size(); ++i) {
      if (!context.chunked.contains(b.axes[i]) || b.chunked.contains(b.axes[i])) continue;
      offsets.push_back({b.axes[i], strides[buffer][i] * size_of(b.dtype)});
    }
    result.offset_count = static_cast<std::uint32_t>(offsets.size()) - result.first_offset;
    return result;
  }

  std::vector<PreparedStep> prepare(const std::vector<plan::Step>& list, const Context& context) {
    std::vector<PreparedStep> result;
    for (const plan::Step& step : list) {
      if (const auto* launch = std::get_if<plan::Launch>(&step.node)) {
        result.push_back({prepare_launch(*launch, context)});
      } else if (const auto* matmul = std::get_if<plan::Matmul>(&step.node)) {
        result.push_back({prepare_product(*matmul, context)});
      } else if (const auto* fill = std::get_if<plan::Fill>(&step.node)) {
        result.push_back({prepare_fill(*fill, context)});
      } else {
        result.push_back({prepare_loop(std::get<plan::Loop>(step.node), context)});
      }
    }
    return result;
  }

  PreparedLaunch prepare_launch(const plan::Launch& launch, const Context& context) {
    const plan::Kernel& kernel = program->plan.kernels[launch.kernel];
    const schedule::Scheduled& scheduled = kernel.scheduled;
    const loops::Nest& nest = scheduled.nest;
    const loops::ParameterLayout cells = loops::parameter_layout(nest);
    PreparedLaunch result;
    result.entry = program->kernels[launch.kernel].entry;
    result.scratch_bytes = (program->kernels[launch.kernel].scratch_bytes + 63) / 64 * 64;
    scratch_bytes = std::max(scratch_bytes, result.scratch_bytes * workers);
    result.cells.assign(cells.cells(), 0);
    frame_cells = std::max<std::int64_t>(frame_cells, cells.cells());
    for (loops::ParameterId id = 0; id < nest.parameters.size(); ++id) {
      if (launch.buffers[id] == plan::no_buffer) {
        result.error_cell = static_cast<int>(cells.pointer_cell(id));
      } else {
        result.pointers.push_back(patch(cells.pointer_cell(id), launch.buffers[id], context));
      }
    }
    std::vector<std::int64_t> partitions;
    for (const schedule::PartitionCount& count : scheduled.partitions) partitions.push_back(count.count(context.local));
    for (std::uint32_t s = 0; s < nest.slots.size(); ++s) {
      const loops::Slot& slot = nest.slots[s];
      std::int64_t value = 0;
      switch (slot.kind) {
        case loops::SlotKind::extent:
          value = context.local[scheduled.nest_axes[slot.axis]];
          break;
        case loops::SlotKind::global_extent:
          value = extents[scheduled.nest_axes[slot.axis]];
          break;
        case loops::SlotKind::origin:
          result.origins.push_back({cells.slot_cell(s), scheduled.nest_axes[slot.axis]});
          break;
        case loops::SlotKind::stride:
          value = strides[launch.buffers[slot.parameter]][slot.dimension];
          break;
        case loops::SlotKind::partitions:
          value = partitions[slot.part];
          break;
      }
      result.cells[cells.slot_cell(s)] = static_cast<std::uint64_t>(value);
    }
    for (std::uint32_t s = 0; s < nest.scalars.size(); ++s) {
      result.scalars.push_back({cells.scalar_cell(s), launch.scalars[s], nest.scalars[s].dtype});
    }
    result.parts = partitions;
    result.streaming = kernel.scheduled.streams;
    result.work_ns = launch.predicted_ns * scale(launch, context);
    ++launches;
    return result;
  }

  // Work grows with the rows: predicted at the planned extents, wanted at these.
  double scale(const plan::Launch& launch, const Context& context) const {
    double planned = 1, now = 1;
    for (const schedule::PartitionCount& count : program->plan.kernels[launch.kernel].scheduled.partitions) {
      for (const AxisId axis : count.rows) {
        planned *= static_cast<double>(std::max<std::int64_t>(1, program->plan.planned[axis]));
        now *= static_cast<double>(context.local[axis]);
      }
      break;
    }
    return now / planned;
  }

  std::int64_t stride_of(const plan::AxisAccess& access, plan::BufferId buffer, const Context& context) const {
    if (access.axis == dsl::no_axis) return 0;
    const plan::Buffer& b = program->plan.buffers[buffer];
    std::int64_t stride = 0;
    for (std::size_t i = 0; i < b.axes.size(); ++i) {
      if (b.axes[i] == access.axis) stride = strides[buffer][i];
    }
    for (const AxisId axis : access.times) stride *= context.local[axis];
    return stride;
  }

  // Where the current chunk of an operand starts: each chunked axis moves it by the operand's stride along that axis,
  // unless the buffer holds no more than the chunk.
  PointerPatch operand(const plan::Matmul& matmul, plan::AxisAccess plan::MatmulAxis::* access, plan::BufferId buffer,
                       const Context& context) {
    const plan::Buffer& b = program->plan.buffers[buffer];
    PointerPatch result{.cell = 0, .buffer = buffer, .first_offset = static_cast<std::uint32_t>(offsets.size())};
    for (const plan::MatmulAxis& axis : matmul.axes) {
      const plan::AxisAccess& through = axis.*access;
      if (!context.chunked.contains(axis.axis) || through.axis == dsl::no_axis || b.chunked.contains(through.axis))
        continue;
      offsets.push_back({axis.axis, stride_of(through, buffer, context) * size_of(b.dtype)});
    }
    result.offset_count = static_cast<std::uint32_t>(offsets.size()) - result.first_offset;
    return result;
  }

  PreparedProduct prepare_product(const plan::Matmul& matmul, const Context& context) {
    MatmulSpec spec;
    const auto& buffers = program->plan.buffers;
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
    result.matmul = prepare_matmul(spec);
    scratch_bytes = std::max(scratch_bytes, static_cast<std::int64_t>(result.matmul->scratch_bytes()));
    result.a = operand(matmul, &plan::MatmulAxis::a, matmul.a, context);
    result.b = operand(matmul, &plan::MatmulAxis::b, matmul.b, context);
    result.c = operand(matmul, &plan::MatmulAxis::c, matmul.c, context);
    ++matmuls;
    return result;
  }

  PreparedFill prepare_fill(const plan::Fill& fill, const Context& context) {
    const plan::Buffer& buffer = program->plan.buffers[fill.buffer];
    PreparedFill result{patch(0, fill.buffer, context), {}, buffer.dtype, fill.value};
    const std::int64_t size = size_of(buffer.dtype);
    for (std::size_t i = 0; i < buffer.axes.size(); ++i) {
      const AxisId axis = buffer.axes[i];
      const std::int64_t extent = context.chunked.contains(axis) ? context.local[axis] : extents[axis];
      const std::int64_t stride = strides[fill.buffer][i] * size;
      auto& dimensions = result.dimensions;
      if (!dimensions.empty() && dimensions.back().byte_stride == extent * stride)
        dimensions.back() = {dimensions.back().extent * extent, stride};
      else
        dimensions.push_back({extent, stride});
    }
    return result;
  }

  PreparedLoop prepare_loop(const plan::Loop& loop, const Context& context) {
    PreparedLoop result;
    result.axis = loop.axis;
    const std::int64_t extent = context.local[loop.axis];
    result.chunk = std::min(loop.chunk, std::max<std::int64_t>(extent, 1));
    result.full_chunks = extent / result.chunk;
    result.rest = extent % result.chunk;
    Context inside = context;
    const std::int64_t launches_before = launches, matmuls_before = matmuls;
    enter(inside, loop.axis, result.chunk);
    if (result.full_chunks > 0) result.full = prepare(loop.body, inside);
    launches = launches_before + (launches - launches_before) * result.full_chunks;
    matmuls = matmuls_before + (matmuls - matmuls_before) * result.full_chunks;
    enter(inside, loop.axis, result.rest);
    if (result.rest > 0) result.last = prepare(loop.body, inside);
    return result;
  }

  // The state of one run: everything lives in the caller's workspace or on the stack.
  struct Run {
    const LaunchArguments* arguments;
    int max_threads;
    std::byte* values;
    std::byte* scratch;
    std::uint64_t* frame;
    std::array<std::int64_t, dsl::max_axes> origins{};
    std::int32_t error = 0;
  };

  std::byte* address(const PointerPatch& patch, const Run& run) const {
    const plan::Buffer& buffer = program->plan.buffers[patch.buffer];
    if (stands_in[patch.buffer]) return static_cast<std::byte*>(zeros.get());
    std::byte* base = nullptr;
    switch (buffer.home) {
      case plan::Home::argument:
        base = static_cast<std::byte*>(run.arguments->inputs[buffer.index]);
        break;
      case plan::Home::output:
        base = static_cast<std::byte*>(run.arguments->outputs[buffer.index]);
        break;
      case plan::Home::workspace:
        base = run.values + layout.offsets[patch.buffer];
        break;
    }
    for (std::uint32_t i = 0; i < patch.offset_count; ++i) {
      const ChunkOffset& offset = offsets[patch.first_offset + i];
      base += run.origins[offset.axis] * offset.byte_stride;
    }
    return base;
  }

  void run_steps(const std::vector<PreparedStep>& list, Run& run) const {
    for (const PreparedStep& step : list) {
      if (const auto* launch = std::get_if<PreparedLaunch>(&step.node)) {
        run_launch(*launch, run);
      } else if (const auto* product = std::get_if<PreparedProduct>(&step.node)) {
        product->matmul->execute(address(product->a, run), address(product->b, run), address(product->c, run),
                                 run.scratch, run.max_threads);
      } else if (const auto* fill = std::get_if<PreparedFill>(&step.node)) {
        run_fill(*fill, run);
      } else {
        run_loop(std::get<PreparedLoop>(step.node), run);
      }
    }
  }

  struct ShareContext {
    const PreparedLaunch* launch;
    const std::uint64_t* cells;
    std::byte* scratch;
    std::int64_t shares;
  };

  // One share takes its piece of every part, so that parts of unequal work do not leave a worker idle.
  static void run_share(const ShareContext& context, std::int64_t share, int worker) {
    std::byte* scratch = context.scratch + worker * context.launch->scratch_bytes;
    std::int64_t start = 0;
    for (const std::int64_t partitions : context.launch->parts) {
      const std::int64_t first = share * partitions / context.shares;
      const std::int64_t last = (share + 1) * partitions / context.shares;
      if (first < last) context.launch->entry(context.cells, start + first, start + last, scratch);
      start += partitions;
    }
  }

  void run_launch(const PreparedLaunch& launch, Run& run) const {
    std::copy(launch.cells.begin(), launch.cells.end(), run.frame);
    for (const PointerPatch& patch : launch.pointers) {
      run.frame[patch.cell] = reinterpret_cast<std::uint64_t>(address(patch, run));
    }
    for (const OriginPatch& patch : launch.origins) {
      run.frame[patch.cell] = static_cast<std::uint64_t>(run.origins[patch.axis]);
    }
    for (const ScalarPatch& patch : launch.scalars) {
      run.frame[patch.cell] = scalar_bits(patch.dtype, run.arguments->scalars[patch.scalar]);
    }
    if (launch.error_cell >= 0) run.frame[launch.error_cell] = reinterpret_cast<std::uint64_t>(&run.error);
    const int threads = std::max(1, std::min(workers_for(launch.work_ns, run.max_threads), workers));
    const ShareContext context{&launch, run.frame, run.scratch, threads};
    parallel_partitions(
        threads, threads,
        [](void* opaque, i64 first, i64 last, int worker) {
          const auto& share = *static_cast<const ShareContext*>(opaque);
          for (i64 i = first; i < last; ++i) run_share(share, i, worker);
        },
        const_cast<ShareContext*>(&context), launch.streaming ? ShareEnd::store_fence : ShareEnd::nothing);
  }

  void run_fill(const PreparedFill& fill, const Run& run) const {
    const std::uint64_t bits = scalar_bits(fill.dtype, fill.value);
    fill_from(fill, 0, address(fill.target, run), bits, static_cast<std::size_t>(size_of(fill.dtype)));
  }
  static void fill_from(const PreparedFill& fill, std::size_t dimension, std::byte* target, const std::uint64_t& bits,
                        std::size_t size) {
    if (dimension == fill.dimensions.size()) {
      std::memcpy(target, &bits, size);
      return;
    }
    const auto [extent, stride] = fill.dimensions[dimension];
    if (dimension + 1 == fill.dimensions.size() && stride == static_cast<std::int64_t>(size)) {
      const std::size_t bytes = static_cast<std::size_t>(extent) * size;
      if (bits == 0) {
        std::memset(target, 0, bytes);
      } else {
        for (std::size_t at = 0; at < bytes; at += size) std::memcpy(target + at, &bits, size);
      }
      return;
    }
    for (std::int64_t i = 0; i < extent; ++i) fill_from(fill, dimension + 1, target + i * stride, bits, size);
  }

  void run_loop(const PreparedLoop& loop, Run& run) const {
    const std::int64_t origin = run.origins[loop.axis];
    for (std::int64_t i = 0; i < loop.full_chunks; ++i) {
      run.origins[loop.axis] = origin + i * loop.chunk;
      run_steps(loop.full, run);
    }
    if (loop.rest > 0) {
      run.origins[loop.axis] = origin + loop.full_chunks * loop.chunk;
      run_steps(loop.last, run);
    }
    run.origins[loop.axis] = origin;
  }
};

Bound::Bound(std::shared_ptr<const Program> program, dsl::Extents extents, const std::vector<Strides>& input_strides,
             const std::vector<Strides>& output_strides)
    : parts_(std::make_unique<Parts>()) {
  Parts& parts = *parts_;
  parts.program = std::move(program);
  parts.extents = std::move(extents);
  parts.workers = std::max(1, std::max(worker_limit(), machine().cores));
  parts.layout = plan::layout_workspace(parts.program->plan, parts.extents);
  parts.prepare_strides(input_strides, output_strides);
  parts.prepare_zeros();
  parts.steps = parts.prepare(parts.program->plan.steps, {parts.extents, AxisSet()});
  parts.scratch_bytes = (parts.scratch_bytes + 63) / 64 * 64;
  parts.bytes = parts.layout.bytes + parts.scratch_bytes + (parts.frame_cells * 8 + 63) / 64 * 64;
}

Bound::~Bound() = default;
std::int64_t Bound::workspace_bytes() const { return parts_->bytes; }
std::int64_t Bound::workspace_value_bytes() const { return parts_->layout.bytes; }
const dsl::Extents& Bound::extents() const { return parts_->extents; }
std::int64_t Bound::launches() const { return parts_->launches; }
std::int64_t Bound::matmuls() const { return parts_->matmuls; }

bool Bound::try_run(const LaunchArguments& arguments, const BoundOptions& options) const {
  const Parts& parts = *parts_;
  auto* base = static_cast<std::byte*>(arguments.workspace);
  Parts::Run run{.arguments = &arguments,
                 .max_threads = options.max_threads > 0 ? options.max_threads : worker_limit(),
                 .values = base,
                 .scratch = base + parts.layout.bytes,
                 .frame = reinterpret_cast<std::uint64_t*>(base + parts.layout.bytes + parts.scratch_bytes)};
  parts.run_steps(parts.steps, run);
  count_launches(static_cast<std::uint64_t>(parts.launches));
  return run.error == 0;
}

void Bound::run(const LaunchArguments& arguments, const BoundOptions& options) const {
  if (try_run(arguments, options)) return;
  throw Error(
      {.kind = ErrorKind::usage,
       .function = parts_->program->plan.name,
       .cure = "Check the index arguments against their axes' extents, or give the lookup a policy: fill or clamp"},
      "an index of a checked lookup is out of range");
}

}  // namespace tigon::runtime
