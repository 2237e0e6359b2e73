// Times the catalogue's ops on a GPU at the shapes of large language models, beside the device's own copy and matmul.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "codegen/plan/facts.hpp"
#include "ops/inputs.hpp"
#include "ops/registry.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cuda/matmul.hpp"
#include "runtime/nvrtc/compiler.hpp"
#include "runtime/prepared.hpp"
#include "tigon/error.hpp"
#include "timer.hpp"

namespace tigon::benchmarks {
namespace {

struct Case {
  std::string_view op;
  ops::NamedExtents extents;
  bool gradient = false;
  std::size_t budget = 0;  // bytes; 0: none
};

// 8192 tokens of a model with hidden 4096, MLP 14336, 32 heads of 128 and 128256 words.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"rms_norm", {{"tokens", 8192}, {"hidden", 4096}}, false, 0},
      {"rms_norm", {{"tokens", 32768}, {"hidden", 4096}}, false, 0},
      {"rms_norm", {{"tokens", 8192}, {"hidden", 4096}}, true, 0},
      {"add_rms_norm", {{"tokens", 8192}, {"hidden", 4096}}, false, 0},
      {"add_rms_norm", {{"tokens", 8192}, {"hidden", 4096}}, true, 0},
      {"layer_norm", {{"tokens", 8192}, {"hidden", 4096}}, false, 0},
      {"layer_norm", {{"tokens", 8192}, {"hidden", 4096}}, true, 0},
      {"rope", {{"tokens", 8192}, {"heads", 40}, {"channels", 128}}, false, 0},
      {"swiglu", {{"tokens", 8192}, {"hidden", 14336}}, false, 0},
      {"swiglu", {{"tokens", 8192}, {"hidden", 14336}}, true, 0},
      {"geglu", {{"tokens", 8192}, {"hidden", 14336}}, false, 0},
      {"softmax", {{"tokens", 8192}, {"vocab", 128256}}, false, 0},
      {"cross_entropy", {{"tokens", 8192}, {"vocab", 128256}}, false, 0},
      {"cross_entropy", {{"tokens", 8192}, {"vocab", 128256}}, true, 0},
      {"linear_cross_entropy", {{"tokens", 8192}, {"vocab", 128256}, {"hidden", 4096}}, true, std::size_t{512} << 20},
      {"embedding", {{"tokens", 8192}, {"vocab", 128256}, {"hidden", 4096}}, false, 0},
      {"adamw", {{"elements", 16777216}}, false, 0},
  };
  return all;
}

struct Tensor {
  Storage memory;
  detail::RawBuffer raw;
};

Tensor allocate_on(Device device, DType dtype, const std::vector<dsl::AxisId>& axes, const dsl::Extents& extents) {
  detail::RawBuffer raw;
  raw.dtype = dtype;
  raw.rank = static_cast<std::uint8_t>(axes.size());
  raw.device = device;
  std::int64_t count = 1;
  for (std::size_t d = axes.size(); d-- > 0;) {
    raw.extents[d] = extents[axes[d]];
    raw.strides[d] = count;
    count *= raw.extents[d];
  }
  Tensor tensor{Storage(static_cast<std::size_t>(std::max<std::int64_t>(count * size_of(dtype), 64)), device), raw};
  tensor.raw.pointer = tensor.memory.data();
  return tensor;
}

// A stretch of prime length is drawn and repeated, so that no two rows are alike.
void fill(const Stream& stream, const Tensor& tensor, const ops::OpEntry& entry, const ops::OpChoice& choice,
          const dsl::Graph& graph, const dsl::Extents& extents, std::size_t input) {
  constexpr std::int64_t longest = 1'048'573;
  const auto size = static_cast<std::size_t>(size_of(tensor.raw.dtype));
  std::int64_t count = 1;
  for (std::size_t d = 0; d < tensor.raw.rank; ++d) count *= tensor.raw.extents[d];
  dsl::Graph one;
  one.name = graph.name;
  one.axes = graph.axes;
  one.axes.push_back({.name = " drawn"});
  one.inputs = {graph.inputs[input]};
  one.inputs[0].axes = {static_cast<dsl::AxisId>(one.axes.size() - 1)};
  dsl::Extents with = extents;
  with.push_back(std::min(count, longest));
  const std::vector<double> drawn = ops::draw_inputs(entry, choice, one, with, 1 + input).tensors[0].value;
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const std::uint64_t bits = runtime::scalar_bits(tensor.raw.dtype, drawn[i]);
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  for (std::size_t done = drawn.size(); done < static_cast<std::size_t>(count);) {
    const std::size_t more = std::min(done / drawn.size() * drawn.size(), static_cast<std::size_t>(count) - done);
    std::memcpy(bytes.data() + done * size, bytes.data(), more * size);
    done += more;
  }
  detail::RawBuffer host = tensor.raw;
  host.device = Device::cpu();
  host.pointer = bytes.data();
  detail::copy_buffer(stream, tensor.raw, host);
  stream.synchronize();
}

// Bytes a microsecond that a copy reads and writes.
double copy_rate(const Stream& stream, const GpuTimer& timer, std::size_t bytes, int runs) {
  const Storage from(bytes, stream.device()), to(bytes, stream.device());
  const runtime::CudaDriver& driver = runtime::CudaDriver::get();
  const double time = timer.median_of(runs, [&] {
    driver.check(driver.api().on_device_async(reinterpret_cast<runtime::cuda_c::Pointer>(to.data()),
                                              reinterpret_cast<runtime::cuda_c::Pointer>(from.data()), bytes,
                                              static_cast<runtime::cuda_c::Stream>(stream.native())),
                 "cuMemcpyDtoDAsync");
  });
  return 2.0 * static_cast<double>(bytes) / time;
}

// Operations a microsecond of a large bf16 product.
double matmul_rate(const Stream& stream, const GpuTimer& timer, std::int64_t side, int runs) {
  const runtime::CudaDevice& device = runtime::CudaDriver::get().device(stream.device().ordinal());
  runtime::MatmulSpec spec;
  spec.a = spec.b = spec.c = DType::bf16;
  spec.axes = {{runtime::MatmulClass::m, side, side, 0, side},
               {runtime::MatmulClass::n, side, 0, side, 1},
               {runtime::MatmulClass::k, side, 1, 1, 0}};
  const runtime::CudaMatmul matmul(spec, device);
  const auto bytes = static_cast<std::size_t>(side * side * 2);
  const Storage a(bytes, stream.device()), b(bytes, stream.device()), c(bytes, stream.device());
  const Storage workspace(std::max<std::size_t>(matmul.workspace_bytes(), 64), stream.device());
  const auto native = static_cast<runtime::cuda_c::Stream>(stream.native());
  const runtime::CudaDriver& driver = runtime::CudaDriver::get();
  const auto pointer = [](const Storage& memory) { return reinterpret_cast<runtime::cuda_c::Pointer>(memory.data()); };
  for (const Storage* operand : {&a, &b})
    driver.check(driver.api().fill_16_async(pointer(*operand), 0x3f80, bytes / 2, native), "cuMemsetD16Async");
  const double time =
      timer.median_of(runs, [&] { matmul.execute(pointer(a), pointer(b), pointer(c), workspace.data(), native); });
  return 2.0 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side) / time;
}

nlohmann::ordered_json measure(const Case& one, const Stream& stream, const GpuTimer& timer, double copied,
                               std::int64_t shrink, int runs) {
  const ops::OpEntry& entry = ops::find_op(one.op);
  const ops::OpChoice choice{.dtype = DType::bf16, .options = {}, .gradient = one.gradient};
  const auto graph = std::make_shared<const dsl::Graph>(entry.trace(choice));
  ops::NamedExtents named = one.extents;
  for (auto& [name, extent] : named) extent = std::max<std::int64_t>(extent / shrink, name == "channels" ? 128 : 8);
  const dsl::Extents extents = ops::extents_of(entry, *graph, named);
  detail::CompileRequest request{
      graph, {}, {},
      {},    {}, {.device = stream.device(), .memory_budget = one.budget / static_cast<std::size_t>(shrink)}};
  for (const dsl::InputInfo& input : graph->inputs) request.inputs.push_back(input.name);
  for (const dsl::ScalarInfo& scalar : graph->scalars) request.scalars.push_back(scalar.name);
  for (const dsl::OutputInfo& output : graph->outputs) request.outputs.push_back(output.name);
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const dsl::AxisInfo& info = graph->axes[axis];
    request.extents.push_back({{info.tag, info.name, info.fixed}, extents[axis], extents[axis]});
  }
  const std::shared_ptr<detail::CompiledCore> core = detail::compile_core(std::move(request));
  std::vector<Tensor> memory;
  std::vector<detail::RawBuffer> in, results;
  for (std::size_t i = 0; i < graph->inputs.size(); ++i) {
    memory.push_back(allocate_on(stream.device(), graph->inputs[i].dtype, graph->inputs[i].axes, extents));
    fill(stream, memory.back(), entry, choice, *graph, extents, i);
    in.push_back(memory.back().raw);
  }
  for (const dsl::OutputInfo& output : graph->outputs) {
    if (output.mode == dsl::OutputMode::alias) {
      results.push_back(in[static_cast<std::size_t>(output.alias_input)]);
      continue;
    }
    memory.push_back(
        allocate_on(stream.device(), output.dtype, output.declared.empty() ? output.axes : output.declared, extents));
    results.push_back(memory.back().raw);
  }
  dsl::Graph none;
  none.name = graph->name;
  none.axes = graph->axes;
  none.scalars = graph->scalars;
  const std::vector<detail::RawScalar> scalars =
      runtime::raw_scalars(none.scalars, ops::draw_inputs(entry, choice, none, extents, 1).scalars);
  const Storage workspace(std::max<std::size_t>(core->workspace_bytes(in), 64), stream.device());
  const double time =
      timer.median_of(runs, [&] { core->launch(stream, in, scalars, results, workspace.data(), workspace.bytes()); });
  stream.synchronize();
  const plan::PlanFacts facts = plan::facts_of(runtime::plan_of(*core));
  nlohmann::ordered_json row;
  row["op"] = one.op;
  row["gradient"] = one.gradient;
  for (const auto& [name, extent] : named) row["extents"][name] = extent;
  row["microseconds"] = time;
  row["minimum_bytes"] = facts.minimum_bytes;
  row["share_of_copy"] = facts.minimum_bytes / time / copied;
  row["workspace_bytes"] = workspace.bytes();
  row["predicted_microseconds"] = facts.predicted_ns / 1000;
  return row;
}

}  // namespace
}  // namespace tigon::benchmarks

int main(int argc, char** argv) {
  using namespace tigon;
  using namespace tigon::benchmarks;
  CLI::App app{"Times ops on a GPU: medians behind an emptied cache, as a share of the device's own copy."};
  std::string json_path, only;
  std::int64_t shrink = 1;
  int runs = 15;
  app.add_option("--json", json_path, "write every number to this file");
  app.add_option("--only", only, "ops whose name contains this");
  app.add_option("--shrink", shrink, "divide every extent by this: shows that everything runs, measures nothing")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--runs", runs, "runs of each")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  try {
    const Stream stream(Device::cuda());
    const runtime::CudaDevice& device = runtime::CudaDriver::get().device(0);
    const GpuTimer timer(stream);
    const double copied = copy_rate(stream, timer, (std::size_t{1} << 30) / static_cast<std::size_t>(shrink), runs);
    nlohmann::ordered_json all;
    all["device"] = device.name;
    all["driver"] = runtime::CudaDriver::get().version();
    all["nvrtc"] = runtime::NvrtcCompiler::get().version();
    all["copy_gigabytes_per_second"] = copied / 1000;
    fmt::print("{}, copy {:.0f} GB/s", device.name, copied / 1000);
    if (runtime::has_cublas()) {
      const double rate = matmul_rate(stream, timer, std::max<std::int64_t>(8192 / shrink, 16), runs);
      all["matmul_teraflops"] = rate / 1e6;
      fmt::print(", bf16 matmul {:.0f} TFLOP/s", rate / 1e6);
    }
    fmt::print("\n{:24} {:>44} {:>12} {:>10} {:>12}\n", "op", "extents", "time", "of copy", "workspace");
    for (const Case& one : cases()) {
      if (one.op.find(only) == std::string_view::npos) continue;
      nlohmann::ordered_json row;
      try {
        row = measure(one, stream, timer, copied, shrink, runs);
      } catch (const Error& error) {
        fmt::print("{:24} failed: {}\n", one.op, error.what());
        all["rows"].push_back({{"op", one.op}, {"gradient", one.gradient}, {"error", error.what()}});
        continue;
      }
      std::string extents;
      for (const auto& [name, extent] : row["extents"].items())
        extents += fmt::format("{}{} {}", extents.empty() ? "" : ", ", name, extent.get<std::int64_t>());
      fmt::print("{:24} {:>44} {:>9.1f} us {:>8.0f} % {:>8.1f} MiB\n",
                 std::string(one.op) + (one.gradient ? " + gradient" : ""), extents, row["microseconds"].get<double>(),
                 100 * row["share_of_copy"].get<double>(), row["workspace_bytes"].get<double>() / (1 << 20));
      std::fflush(stdout);
      all["rows"].push_back(std::move(row));
    }
    if (!json_path.empty()) {
      std::ofstream file(json_path);
      file << all.dump(2) << "\n";
      if (!file.flush()) throw Error({.kind = ErrorKind::io, .found = json_path}, "the file could not be written");
    }
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
