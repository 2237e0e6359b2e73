// `tigon bench`: an op's time beside that of a plain copy, measured in turns so that both meet the same machine.
#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "codegen/plan/facts.hpp"
#include "codegen/plan/print.hpp"
#include "paint.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/prepared.hpp"
#include "tigon/error.hpp"
#include "values.hpp"

namespace tigon::tools {
namespace {

double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

// A copy past the caches: what memory gives a program that moves each byte once.
class PlainCopy {
 public:
  explicit PlainCopy(std::size_t bytes) : bytes_(bytes), from_(bytes), to_(bytes) {
    std::memset(from_.data(), 1, bytes);
    std::memset(to_.data(), 2, bytes);
  }
  void run() { runtime::parallel_partitions(pieces, 0, copy_pieces, this, runtime::ShareEnd::store_fence); }
  [[nodiscard]] double moved() const { return 2.0 * static_cast<double>(bytes_); }

 private:
  static constexpr std::int64_t pieces = 64;

  static void copy_pieces(void* context, std::int64_t first, std::int64_t last, int) {
    const auto& self = *static_cast<const PlainCopy*>(context);
    const std::size_t step = self.bytes_ / pieces;
    const auto begin = static_cast<std::size_t>(first) * step, end = static_cast<std::size_t>(last) * step;
    const auto* from = static_cast<const std::byte*>(self.from_.data());
    auto* to = static_cast<std::byte*>(self.to_.data());
#if defined(__x86_64__)
    for (std::size_t i = begin; i < end; i += 64) {
      for (std::size_t part = 0; part < 64; part += 16) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + part),
                         _mm_load_si128(reinterpret_cast<const __m128i*>(from + i + part)));
      }
    }
#else
    std::memcpy(to + begin, from + begin, end - begin);
#endif
  }

  std::size_t bytes_;
  Storage from_, to_;
};

void limit_threads(int threads) {
  if (threads <= 0) return;
  auto* set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set == nullptr) {
    throw Error({.kind = ErrorKind::device, .argument = "--threads", .cure = "Set OMP_NUM_THREADS in the environment"},
                "the OpenMP library's thread limit cannot be set from here");
  }
  set(threads);
}

// Arguments drawn as the op's hints say. Long ones repeat a stretch of prime length, so that no two rows are alike.
std::vector<double> drawn_values(const Choice& choice, std::size_t input, std::int64_t count) {
  constexpr std::int64_t longest = 1'048'573;
  dsl::Graph one;
  one.name = choice.graph->name;
  one.axes = choice.graph->axes;
  one.axes.push_back({.name = " drawn"});
  one.inputs = {choice.graph->inputs[input]};
  one.inputs[0].axes = {static_cast<dsl::AxisId>(one.axes.size() - 1)};
  dsl::Extents extents = choice.extents;
  extents.push_back(std::min(count, longest));
  return ops::draw_inputs(*choice.entry, choice.op, one, extents, 1 + input).tensors[0].value;
}

std::vector<detail::RawScalar> drawn_scalars(const Choice& choice) {
  dsl::Graph none;
  none.name = choice.graph->name;
  none.axes = choice.graph->axes;
  none.scalars = choice.graph->scalars;
  return runtime::raw_scalars(none.scalars,
                              ops::draw_inputs(*choice.entry, choice.op, none, choice.extents, 1).scalars);
}

double matmul_flops(const std::vector<plan::StepFact>& steps) {
  double flops = 0;
  for (const plan::StepFact& step : steps) {
    if (step.kind == plan::StepFact::Kind::matmul) flops += step.flops * step.runs;
    flops += matmul_flops(step.body);
  }
  return flops;
}

}  // namespace

int bench(const Asked& asked, int runs, int threads) {
  if (runs < 1 || runs > 100'000) {
    throw Error({.argument = "--runs", .found = std::to_string(runs), .expected = "1 to 100000"},
                "the number of runs makes no sense");
  }
  if (threads < 0 || threads > 4096) {
    throw Error({.argument = "--threads", .found = std::to_string(threads), .expected = "1 to 4096"},
                "the number of threads makes no sense");
  }
  require_runnable(asked.target);
  const Choice choice = choose(asked);
  const dsl::Graph& graph = *choice.graph;
  limit_threads(threads);
  const std::shared_ptr<detail::CompiledCore> core = detail::compile_core(compile_request(choice));
  const plan::PlanFacts facts = plan::facts_of(runtime::plan_of(*core));

  constexpr double least_copy = 0x1p25, most_copy = 0x1p29;  // bytes: beyond caches, below what is worth waiting for
  const double half = std::clamp(0.5 * facts.minimum_bytes, least_copy, most_copy);
  require_memory(choice,
                 argument_bytes(graph, choice.extents) + static_cast<double>(core->workspace_bytes()) + 2 * half);

  std::vector<Tensor> memory;
  std::vector<detail::RawBuffer> in, results;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    memory.push_back(allocate(graph.inputs[i].dtype, extents_of(graph.inputs[i].axes, choice.extents)));
    fill(memory.back(), drawn_values(choice, i, element_count(memory.back().raw)));
    in.push_back(memory.back().raw);
  }
  for (const dsl::OutputInfo& output : graph.outputs) {
    if (output.mode == dsl::OutputMode::alias) {
      results.push_back(in[static_cast<std::size_t>(output.alias_input)]);
      continue;
    }
    const std::vector<dsl::AxisId>& axes = output.declared.empty() ? output.axes : output.declared;
    memory.push_back(allocate(output.dtype, extents_of(axes, choice.extents)));
    std::memset(memory.back().memory.data(), 0, memory.back().memory.bytes());
    results.push_back(memory.back().raw);
  }
  const std::vector<detail::RawScalar> scalars = drawn_scalars(choice);
  const Storage workspace(std::max<std::size_t>(core->workspace_bytes(in), 64));
  PlainCopy copy(static_cast<std::size_t>(half) / 4096 * 4096);
  const Stream stream;
  const auto run = [&] { core->launch(stream, in, scalars, results, workspace.data(), workspace.bytes()); };

  run();
  copy.run();
  std::vector<double> times, copies;
  for (int i = 0; i < runs; ++i) {
    const double start = now();
    copy.run();
    const double between = now();
    run();
    const double end = now();
    copies.push_back(between - start);
    times.push_back(end - between);
  }
  const double time = median(times);
  // The share comes from neighbours in time, so that a machine with other work slows both sides of it.
  std::vector<double> shares;
  for (std::size_t i = 0; i < times.size(); ++i) {
    shares.push_back((facts.minimum_bytes / times[i]) / (copy.moved() / copies[i]));
  }
  const double bandwidth = facts.minimum_bytes / time, copied = copy.moved() / median(copies);  // bytes per ns = GB/s
  const auto [fastest, slowest] = std::minmax_element(times.begin(), times.end());
  out(fmt::format("{} {} on {}, {} thread{} · {}\n", graph.name, name(choice.op.dtype), facts.device,
                  runtime::worker_limit(), runtime::worker_limit() == 1 ? "" : "s",
                  extents_text(graph, choice.extents)));
  out(fmt::format("  time       {}, the median of {} run{} ({} to {}); predicted {}\n",
                  paint(Colour::bold, plan::time_text(time)), runs, runs == 1 ? "" : "s", plan::time_text(*fastest),
                  plan::time_text(*slowest), plan::time_text(facts.predicted_ns)));
  out(fmt::format("  minimum    {} of arguments and results in that time: {:.1f} GB/s, {} of a plain copy\n",
                  plan::traffic_text(facts.minimum_bytes), bandwidth,
                  paint(Colour::bold, fmt::format("{:.0f} %", 100 * median(shares)))));
  out(fmt::format("  copy       {:.1f} GB/s ({} read and written past the caches, between the runs)\n", copied,
                  plan::memory_text(copy.moved() / 2)));
  if (const double flops = matmul_flops(facts.steps); flops > 0) {
    out(fmt::format("  matmuls    {}: {:.0f} GFLOP/s if they took all of the time\n", plan::count_text(flops, "FLOP"),
                    flops / time));
  }
  out(fmt::format("  workspace  {}\n", plan::memory_text(static_cast<double>(facts.workspace_bytes))));
  return exit_ok;
}

}  // namespace tigon::tools
