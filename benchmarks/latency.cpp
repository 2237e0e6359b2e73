// Times that do not grow with the arrays: compiling cold and warm, binding a new extent, launching.
#include <fmt/format.h>

#include <cstdio>

#include "benchmarks/functions.hpp"
#include "benchmarks/pairs.hpp"
#include "benchmarks/suites.hpp"
#include "runtime/cache/cache.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cpu/parallel.hpp"
#include "tigon/error.hpp"

namespace tigon::benchmarks {
namespace {

template <class F>
double milliseconds(const F& work) {
  const double start = now_ns();
  work();
  return (now_ns() - start) * 1e-6;
}

std::string kernels_text(std::size_t kernels) { return fmt::format("{} kernel{}", kernels, kernels == 1 ? "" : "s"); }

// Trace, plan, text, LLVM and load; then the same with every kernel found in memory; then the plan alone.
template <class F>
void compile_rows(Report& report, const Settings& settings, const std::string& what, const F& function,
                  const Extents& extents) {
  const std::string cold_name = "compile, cold, per kernel: " + what, warm_name = "compile, warm: " + what;
  if (!settings.wants(cold_name) && !settings.wants(warm_name)) return;
  std::vector<double> cold, warm, planning;
  std::size_t kernels = 0;
  (void)compile(function, extents);  // loads LLVM
  for (int repeat = 0; repeat < settings.pairs; ++repeat) {
    runtime::kernel_cache().clear();
    cold.push_back(milliseconds([&] { kernels = runtime::plan_of(compile(function, extents).core()).kernels.size(); }));
    warm.push_back(milliseconds([&] { (void)compile(function, extents); }));
    planning.push_back(milliseconds([&] { (void)runtime::make_plan(*function.trace(), extents, {}); }));
  }
  if (settings.wants(cold_name)) {
    report.add({.name = cold_name,
                .unit = "ms",
                .measured = median(cold) / static_cast<double>(kernels),
                .note = fmt::format("{:.1f} ms for {}, of it the plan {:.1f} ms", median(cold), kernels_text(kernels),
                                    median(planning))});
  }
  if (settings.wants(warm_name)) {
    report.add(
        {.name = warm_name,
         .unit = "ms",
         .measured = median(warm),
         .note = fmt::format("from memory; {}, of it the plan {:.1f} ms", kernels_text(kernels), median(planning))});
  }
}

// What `compile_once` prints in a process of its own.
struct FirstCompile {
  double milliseconds = 0;
  int kernels = 0, compiled = 0;
};

FirstCompile first_compile(const Settings& settings) {
  std::FILE* pipe = popen(fmt::format("'{}' --compile-once", settings.program).c_str(), "r");
  FirstCompile result;
  const bool read =
      pipe != nullptr && std::fscanf(pipe, "%lf %d %d", &result.milliseconds, &result.kernels, &result.compiled) == 3;
  if (pipe != nullptr) pclose(pipe);
  if (!read)
    throw Error({.kind = ErrorKind::internal}, "the program could not start itself to compile in a new process");
  return result;
}

void process_rows(Report& report, const Settings& settings) {
  const std::string name = "first compile of a process, cold", warm_name = "first compile of a process, warm";
  if (!settings.wants(name) && !settings.wants(warm_name)) return;
  std::vector<double> cold, warm;
  FirstCompile last;
  for (int repeat = 0; repeat < std::min(settings.pairs, 5); ++repeat) {
    runtime::kernel_cache().clear();  // the folder that both processes use
    last = first_compile(settings);
    if (last.compiled != last.kernels) throw Error({.kind = ErrorKind::internal}, "a cold process found kernels");
    cold.push_back(last.milliseconds);
    last = first_compile(settings);
    if (last.compiled != 0) throw Error({.kind = ErrorKind::internal}, "a warm process compiled kernels");
    warm.push_back(last.milliseconds);
  }
  const std::string note =
      fmt::format("linear_cross_entropy with gradients, {}", kernels_text(static_cast<std::size_t>(last.kernels)));
  report.add({.name = name, .unit = "ms", .measured = median(cold), .note = note + ", LLVM loaded on the way"});
  report.add(
      {.name = warm_name, .unit = "ms", .measured = median(warm), .note = note + ", all from the cache's folder"});
}

void launch_rows(Report& report, const Settings& settings) {
  const std::string name = "launch of a tiny kernel", pool_name = "fork and join of the pool, empty";
  const int calls = settings.quick ? 100 : 20000;
  const auto nothing = [](void*, i64, i64, int) {};
  if (settings.wants(name)) {
    const std::int64_t columns = 64;
    const auto step = compile(softmax_function(), extents<Rows, Columns>(1, columns));
    const auto x = allocate<f32(Rows, Columns)>({1, columns}), y = allocate<f32(Rows, Columns)>({1, columns});
    fill(x.data, columns, 1.0f);
    const Storage workspace = workspace_for(step, SoftmaxArgs<Buffer>{.x = x});
    const Stream stream;
    const Pairs times = time_pairs(
        settings.pairs,
        [&] {
          for (int call = 0; call < calls; ++call)
            step.into(stream, {.x = x}, {.value = y}, workspace.data(), workspace.bytes());
        },
        [&] {
          for (int call = 0; call < calls; ++call) runtime::parallel_partitions(1, 0, nothing, nullptr);
        });
    Row row{.name = name, .unit = "ns", .measured = times.measured_ns / calls};
    row.limit = times.limit_ns / calls;
    row.share = 1 / times.limit_over_measured;
    row.note = "softmax of 64 numbers through `into`; limit: an empty function through the same pool";
    report.add(std::move(row));
  }
  if (settings.wants(pool_name)) {
    const int threads = runtime::worker_limit(), rounds = std::max(1, calls / 20);
    std::vector<double> times;
    for (int repeat = 0; repeat <= settings.pairs; ++repeat) {
      const double start = now_ns();
      for (int call = 0; call < rounds; ++call) runtime::parallel_partitions(threads, threads, nothing, nullptr);
      if (repeat > 0) times.push_back((now_ns() - start) / rounds);  // the first one starts the pool
    }
    report.add(
        {.name = pool_name, .unit = "ns", .measured = median(times), .note = fmt::format("{} threads", threads)});
  }
}

// The first launch with an extent, less the next one with the same.
template <class Launch>
void bind_row(Report& report, const Settings& settings, const std::string& name, const std::string& note,
              const Launch& launch) {
  launch(1);
  std::vector<double> binds, launches;
  for (std::int64_t extent = 2; extent < 2 + settings.pairs; ++extent) {
    const double first = milliseconds([&] { launch(extent); });
    const double second = std::min(milliseconds([&] { launch(extent); }), milliseconds([&] { launch(extent); }));
    binds.push_back(1e3 * (first - second));
    launches.push_back(1e3 * second);
  }
  report.add({.name = name,
              .unit = "us",
              .measured = median(binds),
              .note = fmt::format("{}; beside a launch of {:.1f} us", note, median(launches))});
}

void bind_rows(Report& report, const Settings& settings) {
  const Stream stream;
  const std::string norm_name = "bind of a new extent: rms_norm";
  const std::string loss_name = "bind of a new extent: linear_cross_entropy";
  if (settings.wants(norm_name)) {
    const std::int64_t rows = 64, columns = 256;
    const auto step = compile(rms_norm_function(), extents<Rows, Columns>(from_to(1, rows), columns));
    const auto x = allocate<f32(Rows, Columns)>({rows, columns}), y = allocate<f32(Rows, Columns)>({rows, columns});
    const auto weight = allocate<f32(Columns)>({columns});
    fill(x.data, rows * columns, 1.0f);
    fill(weight.data, columns, 1.0f);
    const Storage workspace(std::max<std::size_t>(step.workspace_bytes(), 64));
    bind_row(report, settings, norm_name, "one kernel", [&](std::int64_t extent) {
      step.into(stream, {.x = Buffer<f32(Rows, Columns)>(x.data, {extent, columns}), .weight = weight},
                {.value = Buffer<f32(Rows, Columns)>(y.data, {extent, columns})}, workspace.data(), workspace.bytes());
    });
  }
  if (settings.wants(loss_name)) {
    const std::int64_t tokens = 64, hidden = 128, vocab = 2000;
    const auto step = compile(value_and_grad(linear_cross_entropy_function(), wrt<"x", "weight">),
                              extents<Tokens, Hidden, Vocab>(from_to(1, tokens), hidden, vocab));
    const auto x = allocate<f32(Tokens, Hidden)>({tokens, hidden}),
               dx = allocate<f32(Tokens, Hidden)>({tokens, hidden});
    const auto weight = allocate<f32(Vocab, Hidden)>({vocab, hidden});
    const auto dweight = allocate<f32(Vocab, Hidden)>({vocab, hidden});
    const auto target = allocate<i32(Tokens)>({tokens});
    const auto loss = allocate<f32()>({});
    fill(x.data, tokens * hidden, 1.0f);
    fill(weight.data, vocab * hidden, 0.1f);
    fill_classes(target.data, tokens, vocab);
    const Storage workspace(4 * step.workspace_bytes());
    bind_row(report, settings, loss_name, "three matmuls", [&](std::int64_t extent) {
      using TokenRows = Buffer<f32(Tokens, Hidden)>;
      step.into(stream,
                {.x = TokenRows(x.data, {extent, hidden}),
                 .weight = weight,
                 .target = Buffer<i32(Tokens)>(target.data, {extent})},
                {.value = loss, .grad = {.x = TokenRows(dx.data, {extent, hidden}), .weight = dweight}},
                workspace.data(), workspace.bytes());
    });
  }
}

}  // namespace

void measure_latency(Report& report, const Settings& settings) {
  compile_rows(report, settings, "rms_norm", rms_norm_function(), extents<Rows, Columns>(1024, 4096));
  compile_rows(report, settings, "rms_norm vjp", vjp(rms_norm_function(), wrt<"x", "weight">),
               extents<Rows, Columns>(1024, 4096));
  compile_rows(report, settings, "softmax vjp", vjp(softmax_function(), wrt<"x">), extents<Rows, Columns>(1024, 4096));
  compile_rows(report, settings, "cross_entropy gradient", value_and_grad(cross_entropy_function(), wrt<"logits">),
               extents<Rows, Columns>(1024, 4096));
  compile_rows(report, settings, "linear loss gradients",
               value_and_grad(linear_cross_entropy_function(), wrt<"x", "weight">),
               extents<Tokens, Hidden, Vocab>(512, 1024, 32000));
  process_rows(report, settings);
  launch_rows(report, settings);
  bind_rows(report, settings);
}

void compile_once() {
  const auto function = value_and_grad(linear_cross_entropy_function(), wrt<"x", "weight">);
  const double start = now_ns();
  const auto step = compile(function, extents<Tokens, Hidden, Vocab>(512, 1024, 32000));
  std::printf("%.4f %d %d\n", (now_ns() - start) * 1e-6, static_cast<int>(runtime::plan_of(step.core()).kernels.size()),
              static_cast<int>(step.counters().compilations));
}

}  // namespace tigon::benchmarks
