// Kernels bound by memory: the bytes of each input and output once, over time, as a share of a plain copy's rate.
#include <fmt/format.h>

#include "benchmarks/functions.hpp"
#include "benchmarks/pairs.hpp"
#include "benchmarks/plain_copy.hpp"
#include "benchmarks/suites.hpp"
#include "runtime/compiled.hpp"

namespace tigon::benchmarks {
namespace {

constexpr double goal = 0.70;

// Each argument and each result once.
double boundary_bytes(const plan::Plan& plan) {
  double bytes = 0;
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.home == plan::Home::workspace) continue;
    bytes += static_cast<double>(plan::element_count(buffer, plan.planned)) * size_of(buffer.dtype);
  }
  return bytes;
}

template <template <template <class> class> class Args, class R>
void measure(Report& report, const Settings& settings, const std::string& name, const Compiled<Args, R>& step,
             const Args<Buffer>& arguments, const detail::ResultSlots<R, Buffer>& results) {
  const plan::Plan& plan = runtime::plan_of(step.core());
  const double bytes = boundary_bytes(plan);
  const Storage workspace = workspace_for(step, arguments);
  PlainCopy copy(bytes);
  const Stream stream;
  const Pairs times = time_pairs(
      settings.pairs, [&] { step.into(stream, arguments, results, workspace.data(), workspace.bytes()); },
      [&] { copy.run(); });
  Row row{.name = name, .unit = "GB/s", .measured = bytes / times.measured_ns};
  row.limit = copy.moved_bytes() / times.limit_ns;
  row.share = times.limit_over_measured * bytes / copy.moved_bytes();
  row.goal_kind = Goal::at_least;
  row.goal = goal;
  row.note =
      fmt::format("{:.0f} MiB, {} kernel{}", bytes / 0x1p20, plan.kernels.size(), plan.kernels.size() == 1 ? "" : "s");
  if (times.pairs < settings.pairs) row.note += fmt::format(", {} pairs", times.pairs);
  report.add(std::move(row));
}

// Rows so that `arrays` arrays of them take at least the wanted size.
std::int64_t row_count(const Settings& settings, std::int64_t columns, int arrays) {
  const std::int64_t wanted = std::int64_t{1} << (settings.quick ? 20 : 30);
  const std::int64_t row_bytes = columns * 4 * arrays;
  return (wanted + row_bytes - 1) / row_bytes;
}

Owned<f32(Rows, Columns)> filled(std::int64_t rows, std::int64_t columns, float scale, std::uint32_t seed) {
  auto x = allocate<f32(Rows, Columns)>({rows, columns});
  fill(x.data, rows * columns, scale, seed);
  return x;
}

std::string row_name(const std::string& what, std::int64_t columns) {
  return fmt::format("{} f32 rows of {}", what, columns);
}

void rms_norm_rows(Report& report, const Settings& settings, std::int64_t columns) {
  auto weight = allocate<f32(Columns)>({columns});
  fill(weight.data, columns, 1.0f, 3);
  if (const std::string name = row_name("rms_norm", columns); settings.wants(name)) {
    const std::int64_t rows = row_count(settings, columns, 2);
    const auto step = compile(rms_norm_function(), extents<Rows, Columns>(rows, columns));
    const auto x = filled(rows, columns, 2.0f, 1), y = allocate<f32(Rows, Columns)>({rows, columns});
    measure(report, settings, name, step, {.x = x, .weight = weight}, {.value = y});
  }
  if (const std::string name = row_name("rms_norm forward + gradient", columns); settings.wants(name)) {
    const std::int64_t rows = row_count(settings, columns, 3);
    const auto step = compile(vjp(rms_norm_function(), wrt<"x", "weight">), extents<Rows, Columns>(rows, columns));
    const auto x = filled(rows, columns, 2.0f, 1), dy = filled(rows, columns, 1.0f, 2);
    const auto dx = allocate<f32(Rows, Columns)>({rows, columns});
    const auto dweight = allocate<f32(Columns)>({columns});
    measure(report, settings, name, step, {.arguments = {.x = x, .weight = weight}, .upstream = {.value = dy}},
            {.grad = {.x = dx, .weight = dweight}});
  }
}

void softmax_rows(Report& report, const Settings& settings, std::int64_t columns) {
  if (const std::string name = row_name("softmax", columns); settings.wants(name)) {
    const std::int64_t rows = row_count(settings, columns, 2);
    const auto step = compile(softmax_function(), extents<Rows, Columns>(rows, columns));
    const auto x = filled(rows, columns, 4.0f, 1), y = allocate<f32(Rows, Columns)>({rows, columns});
    measure(report, settings, name, step, {.x = x}, {.value = y});
  }
  if (const std::string name = row_name("softmax forward + gradient", columns); settings.wants(name)) {
    const std::int64_t rows = row_count(settings, columns, 3);
    const auto step = compile(vjp(softmax_function(), wrt<"x">), extents<Rows, Columns>(rows, columns));
    const auto x = filled(rows, columns, 4.0f, 1), dy = filled(rows, columns, 1.0f, 2);
    const auto dx = allocate<f32(Rows, Columns)>({rows, columns});
    measure(report, settings, name, step, {.arguments = {.x = x}, .upstream = {.value = dy}}, {.grad = {.x = dx}});
  }
}

void cross_entropy_rows(Report& report, const Settings& settings, std::int64_t columns) {
  const auto loss = allocate<f32()>({});
  if (const std::string name = row_name("cross_entropy", columns); settings.wants(name)) {
    const std::int64_t rows = row_count(settings, columns, 1);
    const auto step = compile(cross_entropy_function(), extents<Rows, Columns>(rows, columns));
    const auto logits = filled(rows, columns, 4.0f, 1);
    const auto target = allocate<i32(Rows)>({rows});
    fill_classes(target.data, rows, columns);
    measure(report, settings, name, step, {.logits = logits, .target = target}, {.value = loss});
  }
  if (const std::string name = row_name("cross_entropy forward + gradient", columns); settings.wants(name)) {
    const std::int64_t rows = row_count(settings, columns, 2);
    const auto step =
        compile(value_and_grad(cross_entropy_function(), wrt<"logits">), extents<Rows, Columns>(rows, columns));
    const auto logits = filled(rows, columns, 4.0f, 1), gradient = allocate<f32(Rows, Columns)>({rows, columns});
    const auto target = allocate<i32(Rows)>({rows});
    fill_classes(target.data, rows, columns);
    measure(report, settings, name, step, {.logits = logits, .target = target},
            {.value = loss, .grad = {.logits = gradient}});
  }
}

}  // namespace

void measure_memory_bound(Report& report, const Settings& settings) {
  for (const std::int64_t columns : {4096, 32768}) {
    rms_norm_rows(report, settings, columns);
    softmax_rows(report, settings, columns);
    cross_entropy_rows(report, settings, columns);
  }
}

}  // namespace tigon::benchmarks
