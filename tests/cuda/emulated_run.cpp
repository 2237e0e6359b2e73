// A plan's steps on emulated memory: kernels from their PTX, matmuls and fills by the host.
#include "emulated_run.hpp"

#include <cstring>

#include "codegen/schedule/gpu.hpp"
#include "dsl/passes.hpp"
#include "dsl/reference/compare.hpp"
#include "runtime/emulator/module.hpp"
#include "runtime/nvrtc/text.hpp"
#include "support.hpp"

namespace tigon::testing {
namespace {

double read_number(DType dtype, const std::uint8_t* at) {
  const auto get = [at](auto typed) {
    std::memcpy(&typed, at, sizeof typed);
    return typed;
  };
  switch (dtype) {
    case DType::boolean:
      return get(std::uint8_t{}) != 0 ? 1 : 0;
    case DType::i32:
      return get(std::int32_t{});
    case DType::i64:
      return static_cast<double>(get(std::int64_t{}));
    case DType::f16:
      return static_cast<double>(to_f32(get(f16{})));
    case DType::bf16:
      return static_cast<double>(to_f32(get(bf16{})));
    case DType::f32:
      return static_cast<double>(get(float{}));
    case DType::f64:
      return get(double{});
  }
  return 0;
}

void write_number(DType dtype, double value, std::uint8_t* at) {
  const auto put = [at](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  switch (dtype) {
    case DType::boolean:
      return put(static_cast<std::uint8_t>(value != 0));
    case DType::i32:
      return put(static_cast<std::int32_t>(value));
    case DType::i64:
      return put(static_cast<std::int64_t>(value));
    case DType::f16:
      return put(to_f16(static_cast<float>(value)));
    case DType::bf16:
      return put(to_bf16(static_cast<float>(value)));
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::f64:
      return put(value);
  }
}

// Each text is compiled once in this process.
const std::string& ptx_of(const cuda::CudaText& text) {
  static std::map<std::string, std::string> known;
  std::string& ptx = known[text.text];
  if (ptx.empty())
    ptx = runtime::NvrtcCompiler::get()
              .compile(text.text, text.symbol, {.architecture = "sm_90a", .line_info = true})
              .ptx;
  return ptx;
}

class Executor {
 public:
  Executor(const plan::Plan& plan, const dsl::Extents& extents, const RunClass& how)
      : plan_(plan), extents_(extents), how_(how) {
    machine_.schedule = how.schedule;
    chunk_ = extents;
    find_chunks(plan.steps);
    for (const plan::Buffer& buffer : plan.buffers) {
      dsl::Extents at = extents;
      for (const dsl::AxisId axis : buffer.chunked) at[axis] = chunk_[axis];
      strides_.push_back(plan::dense_strides(buffer, at));
      const auto bytes = static_cast<std::uint64_t>(plan::element_count(buffer, at) * size_of(buffer.dtype));
      const auto shift = static_cast<std::uint64_t>(how.shift * size_of(buffer.dtype));
      buffers_.push_back(&machine_.memory.allocate(bytes + shift, buffer.name));
      bytes_.push_back(bytes);
      shift_.push_back(shift);
    }
    error_ = &machine_.memory.allocate(4, "error");
  }

  std::uint8_t* data(plan::BufferId id) { return buffers_[id]->data + shift_[id]; }
  std::uint64_t bytes(plan::BufferId id) const { return bytes_[id]; }
  void initialized(plan::BufferId id) {
    std::fill(buffers_[id]->state.begin(), buffers_[id]->state.end(), emulator::state_initialized);
  }
  void run(const std::vector<double>& scalars) {
    scalars_ = scalars;
    steps(plan_.steps, {extents_, {}});
  }
  std::string reports() const {
    std::string text;
    for (const emulator::Report& report : machine_.reports.all()) text += report.text() + "\n";
    return text;
  }
  std::vector<std::string> symbols;

 private:
  struct Context {
    dsl::Extents local;
    dsl::AxisSet chunked;
  };
  const plan::Plan& plan_;
  dsl::Extents extents_, chunk_;
  RunClass how_;
  emulator::Machine machine_;
  std::vector<emulator::Buffer*> buffers_;
  emulator::Buffer* error_ = nullptr;
  std::vector<std::uint64_t> bytes_, shift_;
  std::vector<std::vector<std::int64_t>> strides_;
  std::vector<double> scalars_;
  std::map<dsl::AxisId, std::int64_t> origins_;
  struct Loaded {
    std::unique_ptr<emulator::LoadedModule> module;
    cuda::CudaText text;
  };
  std::map<std::uint32_t, Loaded> kernels_;

  void find_chunks(const std::vector<plan::Step>& list) {
    for (const plan::Step& step : list) {
      const auto* loop = std::get_if<plan::Loop>(&step.node);
      if (loop == nullptr) continue;
      chunk_[loop->axis] = std::min(chunk_[loop->axis], loop->chunk);
      find_chunks(loop->body);
    }
  }

  std::int64_t offset(plan::BufferId id, const Context& context) const {
    const plan::Buffer& buffer = plan_.buffers[id];
    std::int64_t elements = 0;
    for (std::size_t d = 0; d < buffer.axes.size(); ++d)
      if (context.chunked.contains(buffer.axes[d]) && !buffer.chunked.contains(buffer.axes[d]))
        elements += origins_.at(buffer.axes[d]) * strides_[id][d];
    return elements * size_of(buffer.dtype);
  }

  void steps(const std::vector<plan::Step>& list, const Context& context) {
    for (const plan::Step& step : list) {
      if (const auto* one = std::get_if<plan::Launch>(&step.node)) launch(*one, context);
      if (const auto* one = std::get_if<plan::Matmul>(&step.node)) matmul(*one, context);
      if (const auto* one = std::get_if<plan::Fill>(&step.node)) fill(*one);
      if (const auto* one = std::get_if<plan::Loop>(&step.node)) {
        Context inside = context;
        inside.chunked |= dsl::AxisSet::of(one->axis);
        const std::int64_t extent = context.local[one->axis];
        for (std::int64_t at = 0; at < extent; at += one->chunk) {
          origins_[one->axis] = at;
          inside.local[one->axis] = std::min(one->chunk, extent - at);
          steps(one->body, inside);
        }
      }
    }
  }

  void launch(const plan::Launch& launch, const Context& context) {
    const plan::Kernel& kernel = plan_.kernels[launch.kernel];
    Loaded& loaded = kernels_[launch.kernel];
    if (!loaded.module) {
      loaded.text = runtime::cuda_text(kernel, how_.buffers);
      loaded.module = std::make_unique<emulator::LoadedModule>(ptx_of(loaded.text), machine_);
      symbols.push_back(loaded.text.symbol);
    }
    const schedule::Scheduled& scheduled = kernel.scheduled;
    const loops::Nest& nest = scheduled.nest;
    const loops::ParameterLayout layout = loops::parameter_layout(nest);
    std::vector<std::uint64_t> cells(layout.cells());
    for (loops::ParameterId id = 0; id < nest.parameters.size(); ++id) {
      const plan::BufferId buffer = launch.buffers[id];
      cells[layout.pointer_cell(id)] =
          buffer == plan::no_buffer
              ? error_->address
              : buffers_[buffer]->address + shift_[buffer] + static_cast<std::uint64_t>(offset(buffer, context));
    }
    std::vector<std::int64_t> partitions;
    std::int64_t blocks = 0;
    for (const schedule::PartitionCount& count : scheduled.partitions) {
      partitions.push_back(count.count(context.local));
      blocks += partitions.back();
    }
    for (std::uint32_t s = 0; s < nest.slots.size(); ++s) {
      const loops::Slot& slot = nest.slots[s];
      std::int64_t value = 0;
      if (slot.kind == loops::SlotKind::extent) value = context.local[scheduled.nest_axes[slot.axis]];
      if (slot.kind == loops::SlotKind::global_extent) value = extents_[scheduled.nest_axes[slot.axis]];
      if (slot.kind == loops::SlotKind::origin) value = origins_[scheduled.nest_axes[slot.axis]];
      if (slot.kind == loops::SlotKind::stride) value = strides_[launch.buffers[slot.parameter]][slot.dimension];
      if (slot.kind == loops::SlotKind::partitions) value = partitions[slot.part];
      cells[layout.slot_cell(s)] = static_cast<std::uint64_t>(value);
    }
    for (std::uint32_t s = 0; s < nest.scalars.size(); ++s)
      write_number(nest.scalars[s].dtype, scalars_.at(launch.scalars[s]),
                   reinterpret_cast<std::uint8_t*>(&cells[layout.scalar_cell(s)]));
    std::vector<const void*> arguments;
    for (const std::uint64_t& cell : cells) arguments.push_back(&cell);
    arguments.push_back(nullptr);
    const emulator::Program* program = loaded.module->kernel(loaded.text.symbol);
    REQUIRE(program != nullptr);
    emulator::LaunchShape shape;
    shape.grid.x = static_cast<std::uint32_t>(blocks);
    shape.block.x = static_cast<std::uint32_t>(loaded.text.threads);
    emulator::Fault fault{};
    emulator::run_kernel(machine_, *program, shape, emulator::gather_parameters(*program, arguments.data()), fault);
  }

  std::int64_t stride_of(const plan::AxisAccess& access, plan::BufferId id, const Context& context) const {
    std::int64_t stride = 0;
    for (std::size_t d = 0; access.axis != dsl::no_axis && d < plan_.buffers[id].axes.size(); ++d)
      if (plan_.buffers[id].axes[d] == access.axis) stride = strides_[id][d];
    for (const dsl::AxisId axis : access.times) stride *= context.local[axis];
    return stride;
  }

  void matmul(const plan::Matmul& matmul, const Context& context) {
    struct Axis {
      std::int64_t extent, a, b, c;
      bool summed;
    };
    std::vector<Axis> free, summed;
    for (const plan::MatmulAxis& axis : matmul.axes) {
      const Axis one{context.local[axis.axis], stride_of(axis.a, matmul.a, context),
                     stride_of(axis.b, matmul.b, context), stride_of(axis.c, matmul.c, context),
                     axis.c.axis == dsl::no_axis};
      (one.summed ? summed : free).push_back(one);
    }
    const DType a = plan_.buffers[matmul.a].dtype;
    const DType b = plan_.buffers[matmul.b].dtype;
    const DType c = plan_.buffers[matmul.c].dtype;
    const std::uint8_t* from_a = data(matmul.a) + offset(matmul.a, context);
    const std::uint8_t* from_b = data(matmul.b) + offset(matmul.b, context);
    std::uint8_t* to = data(matmul.c) + offset(matmul.c, context);
    const auto sum = [&](const auto& self, std::size_t level, std::int64_t at_a, std::int64_t at_b) -> double {
      if (level == summed.size())
        return read_number(a, from_a + at_a * size_of(a)) * read_number(b, from_b + at_b * size_of(b));
      double total = 0;
      for (std::int64_t i = 0; i < summed[level].extent; ++i)
        total += self(self, level + 1, at_a + i * summed[level].a, at_b + i * summed[level].b);
      return total;
    };
    const auto each = [&](const auto& self, std::size_t level, std::int64_t at_a, std::int64_t at_b,
                          std::int64_t at_c) -> void {
      if (level == free.size()) {
        std::uint8_t* place = to + at_c * size_of(c);
        const double old = matmul.accumulate ? read_number(c, place) : 0;
        return write_number(c, old + sum(sum, 0, at_a, at_b), place);
      }
      for (std::int64_t i = 0; i < free[level].extent; ++i)
        self(self, level + 1, at_a + i * free[level].a, at_b + i * free[level].b, at_c + i * free[level].c);
    };
    each(each, 0, 0, 0, 0);
    initialized(matmul.c);
  }

  void fill(const plan::Fill& fill) {
    const DType dtype = plan_.buffers[fill.buffer].dtype;
    for (std::uint64_t at = 0; at < bytes_[fill.buffer]; at += static_cast<std::uint64_t>(size_of(dtype)))
      write_number(dtype, fill.value, data(fill.buffer) + at);
    initialized(fill.buffer);
  }
};

}  // namespace

EmulatedRun run_emulated(const dsl::Graph& graph, const dsl::EvaluateInputs& inputs, std::string_view gpu,
                         const RunClass& how) {
  const dsl::Graph prepared = dsl::prepare(graph, inputs.extents, {});
  dsl::EvaluateInputs given;
  given.extents.assign(prepared.axes.size(), -1);
  for (std::size_t a = 0; a < prepared.axes.size(); ++a)
    for (std::size_t b = 0; b < graph.axes.size(); ++b)
      if (prepared.axes[a].name == graph.axes[b].name) given.extents[a] = inputs.extents[b];
  given.extents = dsl::resolve_extents(prepared, std::move(given.extents));
  for (const dsl::InputInfo& input : prepared.inputs)
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      if (graph.inputs[i].name != input.name) continue;
      dsl::TensorValue tensor = inputs.tensors[i];
      tensor.axes = input.axes;
      tensor.extents.clear();
      for (const dsl::AxisId axis : input.axes) tensor.extents.push_back(given.extents[axis]);
      given.tensors.push_back(std::move(tensor));
    }
  for (const dsl::ScalarInfo& scalar : prepared.scalars)
    for (std::size_t i = 0; i < graph.scalars.size(); ++i)
      if (graph.scalars[i].name == scalar.name) given.scalars.push_back(inputs.scalars[i]);

  plan::PlanOptions options;
  options.matmul.bf16 = true;
  if (how.memory_budget > 0) options.memory_budget = how.memory_budget;
  options.unfused = how.unfused;
  const plan::Plan plan = plan::plan(prepared, given.extents, schedule::gpu_model(gpu).value(), options);
  Executor executor(plan, plan::bind_extents(plan, given.extents), how);
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const plan::BufferId buffer = plan.input_buffers[i];
    const DType dtype = plan.inputs[i].dtype;
    for (std::size_t n = 0; n < given.tensors[i].value.size(); ++n)
      write_number(dtype, given.tensors[i].value[n],
                   executor.data(buffer) + n * static_cast<std::size_t>(size_of(dtype)));
    executor.initialized(buffer);
  }
  executor.run(given.scalars);

  EmulatedRun result;
  result.faults = executor.reports();
  result.symbols = executor.symbols;
  const std::vector<dsl::TensorValue> expected = dsl::evaluate(prepared, given);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const plan::BufferId buffer = plan.output_buffers[i];
    const DType dtype = plan.buffers[buffer].dtype;
    std::vector<double> got(expected[i].value.size());
    for (std::size_t n = 0; n < got.size(); ++n)
      got[n] = read_number(dtype, executor.data(buffer) + n * static_cast<std::size_t>(size_of(dtype)));
    result.bytes.emplace_back(executor.data(buffer), executor.data(buffer) + executor.bytes(buffer));
    const dsl::Comparison comparison = dsl::compare(expected[i], got);
    result.wrong += comparison.wrong;
    result.worst_ratio = std::max(result.worst_ratio, comparison.worst_ratio);
    if (!comparison.passed && result.sentence.empty())
      result.sentence = plan.outputs[i].name + ": " + comparison.sentence;
  }
  return result;
}

}  // namespace tigon::testing
