// Fused linear cross entropy, value and gradients, at two workspace budgets, against its three matmuls alone.
#include <fmt/format.h>

#include <cmath>

#include "benchmarks/functions.hpp"
#include "benchmarks/pairs.hpp"
#include "benchmarks/suites.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cpu/matmul.hpp"
#include "tigon/error.hpp"

namespace tigon::benchmarks {
namespace {

struct Sizes {
  std::int64_t tokens, hidden, vocab;
};

double mebibytes(double bytes) { return bytes / 0x1p20; }

auto loss_and_gradients() { return value_and_grad(linear_cross_entropy_function(), wrt<"x", "weight">); }

plan::Plan planned(const Sizes& shape, const CompileOptions& options) {
  return runtime::make_plan(*loss_and_gradients().trace(),
                            extents<Tokens, Hidden, Vocab>(shape.tokens, shape.hidden, shape.vocab), options);
}

// The workspace of the plan that stores every value.
double unfused_workspace(const Sizes& shape) {
  const plan::Plan plan = planned(shape, {.unfused = true});
  return static_cast<double>(plan::layout_workspace(plan, plan.planned).bytes);
}

// The front of the smallest budget, by these steps, that has a plan: the whole one.
std::string front_text(const Sizes& shape, double whole) {
  for (const double share : {0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5}) {
    plan::Plan plan;
    try {
      plan = planned(shape, {.memory_budget = static_cast<std::size_t>(share * whole)});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
      continue;
    }
    std::string text = fmt::format("\nfront of linear_cross_entropy, planned for {:.1f} MiB ({:.1f} % of {:.1f} MiB):",
                                   mebibytes(share * whole), 100 * share, mebibytes(whole));
    for (const plan::FrontEntry& entry : plan.front) {
      text += fmt::format("\n  {:>9.2f} MiB {:>5.1f} %  {:>9.2f} ms predicted  {}{}", mebibytes(entry.workspace_bytes),
                          100 * entry.workspace_bytes / whole, entry.predicted_ns * 1e-6, entry.strategy,
                          entry.chosen ? "  <- chosen" : "");
    }
    return text + "\n";
  }
  return "\nno budget below half of the unfused workspace has a plan\n";
}

// logits = x weight^T, dx = dlogits weight, dweight = dlogits^T x, on memory of their own.
class ThreeMatmuls {
 public:
  explicit ThreeMatmuls(const Sizes& shape)
      : x_(floats(shape.tokens * shape.hidden)),
        weight_(floats(shape.vocab * shape.hidden)),
        logits_(floats(shape.tokens * shape.vocab)),
        dx_(floats(shape.tokens * shape.hidden)),
        dweight_(floats(shape.vocab * shape.hidden)) {
    using enum runtime::MatmulClass;
    const auto [t, h, v] = shape;
    add(x_, weight_, logits_, {{m, t, h, 0, v}, {n, v, 0, h, 1}, {k, h, 1, 1, 0}});
    add(logits_, weight_, dx_, {{m, t, v, 0, h}, {n, h, 0, 1, 1}, {k, v, 1, h, 0}});
    add(logits_, x_, dweight_, {{m, v, 1, 0, h}, {n, h, 0, 1, 1}, {k, t, v, h, 0}});
  }
  void run() const {
    for (const Product& product : products_) {
      product.matmul->execute(product.a, product.b, product.c, product.scratch.data());
    }
  }

 private:
  struct Product {
    std::shared_ptr<const runtime::PreparedMatmul> matmul;
    const void *a, *b;
    void* c;
    Storage scratch;
  };

  static Storage floats(std::int64_t count) {
    Storage storage(static_cast<std::size_t>(count) * sizeof(float));
    fill(static_cast<float*>(storage.data()), count, 0.03f);
    return storage;
  }
  void add(const Storage& a, const Storage& b, const Storage& c, std::vector<runtime::MatmulAxis> axes) {
    auto matmul = runtime::prepare_matmul({.axes = std::move(axes)});
    const std::size_t scratch = std::max<std::size_t>(matmul->scratch_bytes(), 64);
    products_.push_back({std::move(matmul), a.data(), b.data(), c.data(), Storage(scratch)});
  }

  Storage x_, weight_, logits_, dx_, dweight_;
  std::vector<Product> products_;
};

struct Budget {
  double share;  // of the unfused plan's workspace
  double goal;   // times the matmuls
};

}  // namespace

void measure_linear_loss(Report& report, const Settings& settings) {
  const auto name_of = [](const Budget& budget) {
    return fmt::format("linear_cross_entropy at {:.0f} % of unfused", 100 * budget.share);
  };
  const std::vector<Budget> budgets = {{0.15, 1.35}, {0.30, 1.20}};
  if (std::none_of(budgets.begin(), budgets.end(),
                   [&](const Budget& budget) { return settings.wants(name_of(budget)); })) {
    return;
  }
  const Sizes shape = settings.quick ? Sizes{256, 64, 2000} : Sizes{512, 1024, 32000};
  const double whole = unfused_workspace(shape);
  report.add_text(front_text(shape, whole));

  const auto x = allocate<f32(Tokens, Hidden)>({shape.tokens, shape.hidden});
  const auto weight = allocate<f32(Vocab, Hidden)>({shape.vocab, shape.hidden});
  const auto target = allocate<i32(Tokens)>({shape.tokens});
  fill(x.data, shape.tokens * shape.hidden, 1.0f, 1);
  fill(weight.data, shape.vocab * shape.hidden, 0.1f, 2);
  fill_classes(target.data, shape.tokens, shape.vocab);
  const auto loss = allocate<f32()>({});
  const auto dx = allocate<f32(Tokens, Hidden)>({shape.tokens, shape.hidden});
  const auto dweight = allocate<f32(Vocab, Hidden)>({shape.vocab, shape.hidden});
  const ThreeMatmuls matmuls(shape);
  const Stream stream;
  std::vector<float> losses;
  for (const Budget& budget : budgets) {
    if (!settings.wants(name_of(budget))) continue;
    const auto bytes = static_cast<std::size_t>(budget.share * whole);
    const auto step =
        compile(loss_and_gradients(), extents<Tokens, Hidden, Vocab>(shape.tokens, shape.hidden, shape.vocab),
                {.memory_budget = bytes});
    const LinearArgs<Buffer> arguments{.x = x, .weight = weight, .target = target};
    const Storage workspace = workspace_for(step, arguments);
    const Pairs times = time_pairs(
        settings.pairs,
        [&] {
          step.into(stream, arguments, {.value = loss, .grad = {.x = dx, .weight = dweight}}, workspace.data(),
                    workspace.bytes());
        },
        [&] { matmuls.run(); });
    losses.push_back(loss.data[0]);
    Row row{.name = name_of(budget), .unit = "ms", .measured = times.measured_ns * 1e-6};
    row.limit = times.limit_ns * 1e-6;
    row.share = 1 / times.limit_over_measured;
    row.goal_kind = Goal::at_most;
    row.goal = budget.goal;
    for (const plan::FrontEntry& entry : runtime::plan_of(step.core()).front) {
      if (!entry.chosen) continue;
      row.note = fmt::format("{}; values {:.1f} MiB, all workspace {:.1f} MiB, budget {:.1f} MiB", entry.strategy,
                             mebibytes(entry.workspace_bytes), mebibytes(static_cast<double>(workspace.bytes())),
                             mebibytes(static_cast<double>(bytes)));
    }
    report.add(std::move(row));
  }
  for (const float value : losses) {
    if (!(std::fabs(value - losses[0]) <= 1e-4f * std::fabs(losses[0]))) {
      throw Error({.kind = ErrorKind::internal, .found = fmt::format("{} and {}", losses[0], value)},
                  "linear_cross_entropy gives different losses at different budgets");
    }
  }
}

}  // namespace tigon::benchmarks
