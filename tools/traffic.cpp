// Runs ops on the emulated device between two readings of its counters, and compiles them for each architecture.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "codegen/plan/facts.hpp"
#include "codegen/schedule/gpu.hpp"
#include "emulated.hpp"
#include "runtime/cache/cache.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cpu_features.hpp"
#include "runtime/nvrtc/compiler.hpp"
#include "runtime/nvrtc/resources.hpp"
#include "runtime/nvrtc/text.hpp"
#include "runtime/prepared.hpp"
#include "tigon/error.hpp"
#include "traffic.hpp"
#include "values.hpp"

namespace tigon::tools {
namespace {

constexpr int most_workers = 8;  // NVRTC takes a few hundred MiB in each

void fold_steps(const std::vector<plan::StepFact>& steps, Traffic& one) {
  for (const plan::StepFact& step : steps) {
    if (step.kind == plan::StepFact::Kind::fill) {
      one.asked += step.bytes * step.runs;
      one.moved += step.bytes * step.runs;
    }
    one.has_products = one.has_products || step.kind == plan::StepFact::Kind::matmul;
    for (const plan::UseFact& read : step.reads) one.rows_read_again = one.rows_read_again || read.sweeps > 1;
    fold_steps(step.body, one);
  }
}

// The largest argument's or result's elements.
double elements_of(const Choice& choice) {
  double most = 1;
  const auto count = [&](const std::vector<dsl::AxisId>& axes) {
    double elements = 1;
    for (const dsl::AxisId axis : axes) elements *= static_cast<double>(choice.extents[axis]);
    most = std::max(most, elements);
  };
  for (const dsl::InputInfo& input : choice.graph->inputs) count(input.axes);
  for (const dsl::OutputInfo& output : choice.graph->outputs) count(output.axes);
  return most;
}

double counter(const char* name) { return static_cast<double>(emulated_counter(name)); }

KernelNeeds needs_of(const Choice& choice, const std::string& architecture) {
  const schedule::DeviceModel model = *schedule::gpu_model(architecture);
  const plan::Plan plan = runtime::plan_for_gpu(*choice.graph, choice.extents, model,
                                                runtime::plan_options(choice.options, model), choice.options.exact);
  const runtime::NvrtcCompiler& compiler = runtime::NvrtcCompiler::get();
  KernelNeeds needs;
  for (const plan::Kernel& kernel : plan.kernels) {
    const cuda::CudaText text = runtime::cuda_text(kernel);
    const auto compile = [&] {
      runtime::NvrtcBinary binary = compiler.compile(text.text, text.symbol, {.architecture = architecture});
      return runtime::CacheEntry{
          .source = text.text, .options = compiler.identity() + " " + architecture, .binary = std::move(binary.cubin)};
    };
    const runtime::CacheKey key = runtime::cache_key({text.text, "cubin", compiler.identity(), architecture});
    const auto entry = runtime::kernel_cache().get(key, compile);
    const runtime::KernelResources found = runtime::cubin_resources(entry->binary).at(text.symbol);
    ++needs.kernels;
    needs.registers = std::max(needs.registers, found.registers);
    needs.local_bytes += found.local_stores + found.local_loads;
    needs.spill_bytes += found.spill_stores + found.spill_loads;
  }
  return needs;
}

}  // namespace

std::vector<Bar> bars(const Traffic& traffic) {
  constexpr double most_bytes = 1.05, least_wide = 0.95, most_conflicts = 0.05, most_exponentials = 1.05;
  const bool in_registers = std::all_of(traffic.needs.begin(), traffic.needs.end(),
                                        [](const KernelNeeds& needs) { return needs.local_bytes == 0; });
  std::vector<Bar> result = {{"moved", traffic.moved <= most_bytes * traffic.minimum},
                             {"asked", traffic.asked <= most_bytes * traffic.minimum},
                             {"wide", traffic.wide_share >= least_wide},
                             {"conflicts", traffic.conflicts < most_conflicts},
                             {"spills", in_registers}};
  if (traffic.needed_exponentials >= 0)
    result.push_back({"exponentials", traffic.exponentials <= most_exponentials * traffic.needed_exponentials});
  return result;
}

Traffic count_traffic(const Choice& choice) {
  Traffic one;
  one.name = std::string(choice.entry->name) + (choice.op.gradient ? " gradient" : "");
  one.dtype = name(choice.op.dtype);
  one.extents = extents_text(*choice.graph, choice.extents);
  const dsl::Graph& graph = *choice.graph;
  const Stream stream(Device::cuda());
  const dsl::EvaluateInputs inputs = ops::draw_inputs(*choice.entry, choice.op, graph, choice.extents, 1);
  std::vector<Tensor> memory;
  std::vector<detail::RawBuffer> in;
  for (const dsl::TensorValue& tensor : inputs.tensors) {
    Tensor host = allocate(tensor.dtype, tensor.extents);
    fill(host, tensor.value);
    memory.push_back(to_device(stream, host));
    in.push_back(memory.back().raw);
  }
  const std::shared_ptr<detail::CompiledCore> core = detail::compile_core(compile_request(choice));
  const plan::PlanFacts facts = plan::facts_of(runtime::plan_of(*core));
  std::vector<detail::RawBuffer> results(graph.outputs.size());
  clear_emulated_counters();
  const std::shared_ptr<void> owner =
      core->launch_pooled(stream, in, runtime::raw_scalars(graph.scalars, inputs.scalars), results);
  stream.synchronize();
  if (const std::string faults = emulated_faults(); !faults.empty()) {
    throw Error({.kind = ErrorKind::internal, .function = graph.name, .log = faults},
                "the emulated device found faults in a kernel");
  }
  fold_steps(facts.steps, one);
  constexpr double sector = 32;  // bytes
  one.asked += counter("global_sectors") * sector;
  one.moved += counter("global_new_sectors") * sector;
  one.minimum = facts.minimum_bytes;
  const double bytes = counter("global_bytes");
  one.wide_share = bytes > 0 ? counter("global_bytes_wide") / bytes : 1;
  one.shared_accesses = emulated_counter("shared_requests");
  const double extra = counter("shared_wavefronts") - counter("shared_ideal_wavefronts");
  one.conflicts = one.shared_accesses > 0 ? extra / static_cast<double>(one.shared_accesses) : 0;
  one.exponentials = counter("exponentials") / elements_of(choice);
  return one;
}

void read_needs(const std::vector<Choice>& choices, std::vector<Traffic>& all) {
  constexpr std::size_t per_op = architectures.size();
  const std::size_t count = choices.size() * per_op;
  for (std::size_t i = 0; i < choices.size(); ++i)
    all[i].compiled_extents = extents_text(*choices[i].graph, choices[i].extents);
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> failures(count);
  const auto work = [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      try {
        all[i / per_op].needs[i % per_op] = needs_of(choices[i / per_op], architectures[i % per_op]);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < std::min(most_workers, runtime::machine().cores); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace tigon::tools
