// Compiled, loaded, bound and launched as on any GPU, through the emulated driver; buffers are named for its reports.
#include "emulated_run.hpp"

#include <cstring>

#include "dsl/passes.hpp"
#include "dsl/reference/compare.hpp"
#include "runtime/cuda/program.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support.hpp"
#include "tigon/buffer.hpp"
#include "tigon/error.hpp"

namespace tigon::testing {
namespace {

struct Bytes : axis<"bytes"> {};

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

// Memory of the device for one argument or result, off its alignment by `shift` elements.
struct DeviceBuffer {
  Storage storage;
  std::byte* start = nullptr;
  std::size_t bytes = 0;
  DeviceBuffer(std::size_t count, DType dtype, int shift, const std::string& name)
      : storage(count * static_cast<std::size_t>(size_of(dtype)) + static_cast<std::size_t>(shift * size_of(dtype)),
                Device::cuda()),
        start(static_cast<std::byte*>(storage.data()) + shift * size_of(dtype)),
        bytes(count * static_cast<std::size_t>(size_of(dtype))) {
    emulator::name_allocation(reinterpret_cast<std::uint64_t>(storage.data()), name);
  }
};

Buffer<bool(Bytes)> on_device(const DeviceBuffer& buffer) {
  return {reinterpret_cast<bool*>(buffer.start), {static_cast<std::int64_t>(buffer.bytes)}, Device::cuda()};
}
Buffer<bool(Bytes)> on_host(std::vector<std::uint8_t>& bytes) {
  return {reinterpret_cast<bool*>(bytes.data()), {static_cast<std::int64_t>(bytes.size())}};
}

std::vector<std::uint8_t> to_bytes(DType dtype, const std::vector<double>& values) {
  std::vector<std::uint8_t> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  for (std::size_t n = 0; n < values.size(); ++n)
    write_number(dtype, values[n], bytes.data() + n * static_cast<std::size_t>(size_of(dtype)));
  return bytes;
}

}  // namespace

EmulatedRun run_emulated(const dsl::Graph& graph, const dsl::EvaluateInputs& inputs, const RunClass& how) {
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

  use_emulated_driver();
  plan::PlanOptions options;
  options.matmul.bf16 = true;
  if (how.memory_budget > 0) options.memory_budget = how.memory_budget;
  options.unfused = how.unfused;
  const runtime::CudaDevice& device = runtime::CudaDriver::get().device(0);
  const auto program =
      runtime::build_cuda_program(plan::plan(prepared, given.extents, runtime::cuda_model(device), options), device);
  const plan::Plan& plan = program->plan();
  const auto bound = program->bind(plan::bind_extents(plan, given.extents), {}, {});
  const Stream stream(Device::cuda());

  emulator::clear_reports();
  emulator::set_schedule(how.schedule);
  std::vector<std::unique_ptr<DeviceBuffer>> inputs_there, outputs_there;
  std::vector<std::vector<std::uint8_t>> sent;
  std::vector<void*> in, out;
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    sent.push_back(to_bytes(plan.inputs[i].dtype, given.tensors[i].value));
    inputs_there.push_back(std::make_unique<DeviceBuffer>(given.tensors[i].value.size(), plan.inputs[i].dtype,
                                                          how.shift, plan.inputs[i].name));
    copy(stream, on_device(*inputs_there.back()), on_host(sent.back()));
    in.push_back(inputs_there.back()->start);
  }
  const std::vector<dsl::TensorValue> expected = dsl::evaluate(prepared, given);
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    if (plan.outputs[i].mode == dsl::OutputMode::alias) {
      out.push_back(in[static_cast<std::size_t>(plan.outputs[i].alias_input)]);
      outputs_there.push_back(nullptr);
      continue;
    }
    outputs_there.push_back(std::make_unique<DeviceBuffer>(expected[i].value.size(), plan.outputs[i].dtype, how.shift,
                                                           plan.outputs[i].name));
    out.push_back(outputs_there.back()->start);
  }
  const Storage workspace(static_cast<std::size_t>(bound->workspace_bytes()), Device::cuda());

  EmulatedRun result;
  try {
    const std::vector<detail::RawScalar> scalars = runtime::raw_scalars(prepared.scalars, given.scalars);
    bound->try_run(stream, {.inputs = in, .outputs = out, .scalars = scalars, .workspace = workspace.data()});
    stream.synchronize();
  } catch (const Error& error) {
    result.faults = emulator::reports_text() + error.what();
    emulator::clear_reports();
    return result;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const DType dtype = plan.outputs[i].dtype;
    const DeviceBuffer& there =
        outputs_there[i] ? *outputs_there[i] : *inputs_there[static_cast<std::size_t>(plan.outputs[i].alias_input)];
    std::vector<std::uint8_t> bytes(there.bytes);
    copy(stream, on_host(bytes), on_device(there));
    stream.synchronize();
    std::vector<double> got(expected[i].value.size());
    for (std::size_t n = 0; n < got.size(); ++n)
      got[n] = read_number(dtype, bytes.data() + n * static_cast<std::size_t>(size_of(dtype)));
    result.bytes.push_back(std::move(bytes));
    const dsl::Comparison comparison = dsl::compare(expected[i], got);
    result.wrong += comparison.wrong;
    result.worst_ratio = std::max(result.worst_ratio, comparison.worst_ratio);
    if (!comparison.passed && result.sentence.empty())
      result.sentence = plan.outputs[i].name + ": " + comparison.sentence;
  }
  result.faults = emulator::reports_text();
  emulator::clear_reports();
  return result;
}

}  // namespace tigon::testing
