// Compiles the model's functions, trains, measures on held-out text, generates, and reports.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numbers>

#include "byte_model.hpp"
#include "compiler.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "runtime/compiled.hpp"
#include "weights.hpp"

namespace language_model {
namespace {

using tigon::allocate;
using tigon::Owned;
using tigon::Shape;
using tigon::Stream;

// Bytes that are no text would confuse a terminal.
std::string printable(std::string text) {
  for (char& byte : text) {
    if ((byte >= 0 && byte < ' ' && byte != '\n' && byte != '\t') || byte == 127) byte = '?';
  }
  return text;
}

// The memory of training. Updates write over the weights and the running means.
struct State {
  explicit State(const ModelSize& size)
      : weights(allocate_weights(size)),
        first(allocate_weights(size)),
        second(allocate_weights(size)),
        gradients(allocate_weights(size)) {}
  Weights<Owned> weights, first, second, gradients;
};

// The system gives more memory than there is and ends the program when it is touched; so it is asked for here.
void require_memory(double bytes, const std::string& what) {
  constexpr double gibibyte = 1 << 30;
  const double has = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (bytes <= 0.8 * has) return;
  throw UsageError(
      fmt::format("{} need {:.1f} GiB, and this machine has {:.1f}; ask for less with --hidden, --layers, "
                  "--batch, --context or --budget",
                  what, bytes / gibibyte, has / gibibyte));
}

// Embedding and head, and for each layer four square matrices and three of the perceptron.
const ModelSize& checked(const ModelSize& size) {
  const auto hidden = static_cast<double>(size.hidden), inner = static_cast<double>(size.inner);
  const double layer = 4 * hidden * hidden + 3 * hidden * inner + 2 * hidden;
  const double parameters = 2 * 256 * hidden + static_cast<double>(size.layers) * layer;
  require_memory(4 * sizeof(f32) * parameters, "weights, gradients and running means");
  return size;
}

template <class Compiled>
tigon::Storage workspace_for(const Compiled& compiled) {
  require_memory(static_cast<double>(compiled.workspace_bytes()), "intermediate values");
  return tigon::Storage(std::max<std::size_t>(compiled.workspace_bytes(), 64));
}

class Training {
 public:
  explicit Training(const Options& options)
      : options_(options),
        size_{.layers = options.layers, .hidden = options.hidden, .inner = options.hidden * 11 / 4},
        text_(read_text(options.text)),
        windows_(text_, options.batch, options.context),
        random_(options.seed),
        state_(checked(size_)),
        bytes_(allocate<i32(Batch, Time)>({options.batch, options.context})),
        target_(allocate<i32(Batch, Time)>({options.batch, options.context})) {
    draw_weights(state_.weights, random_);
  }

  ExitCode run() {
    fmt::print("text: {}: {} bytes to learn, {} held out\n", text_.source, text_.training_bytes(),
               text_.held_out_bytes());
    fmt::print("model: {} parameters; {} layers, hidden {}, {} heads, inner {}, context {}, batch {}\n",
               count_parameters(state_.weights), size_.layers, size_.hidden, size_.heads, size_.inner, options_.context,
               options_.batch);
    if (size_.hidden % 8 != 0) throw UsageError(fmt::format("--hidden is {}; give a multiple of 8", size_.hidden));
    if (windows_.training_places() == 0) throw UsageError("the context is longer than the text's stretches");
    if (!options_.forms.empty()) prepare_forms(options_.forms);
    if (!options_.losses.empty()) {
      losses_.reset(std::fopen(options_.losses.c_str(), "w"));
      if (losses_ == nullptr) throw UsageError("cannot write " + options_.losses + ": " + std::strerror(errno));
    }

    fmt::print("compiling\n");
    Compiler compiler(options_);
    const auto layers = static_cast<std::size_t>(size_.layers);
    LossArgs<Shape> loss_shape;
    loss_shape.weights.layers.resize(layers);
    UpdateArgs<Shape> update_shape;
    for (Weights<Shape>* weights :
         {&update_shape.weights, &update_shape.gradients, &update_shape.first, &update_shape.second}) {
      weights->layers.resize(layers);
    }
    NextArgs<Shape> next_shape;
    next_shape.weights.layers.resize(layers);
    const auto gradient_function = value_and_grad(training_loss(), tigon::wrt<"weights">);
    const tigon::Extents whole = model_extents(options_.batch);
    const auto turn =
        compiler(rotation(), {}, tigon::extents<Time, Half>(options_.context, size_.channels() / 2), options_.unfused);
    const auto measure = compiler(total_loss(), loss_shape, whole, options_.unfused);
    const auto gradient = compiler(gradient_function, loss_shape, whole, options_.unfused);
    const auto update_step = compiler(
        update(), update_shape,
        tigon::extents<Hidden, Heads, Channels, Inner>(size_.hidden, size_.heads, size_.channels(), size_.inner),
        options_.unfused);
    const auto next = compiler(next_byte(), next_shape, model_extents(1), options_.unfused);

    angles_ = turn(Stream(), {.base = 10000.0F});
    const double before = held_out_bits(measure);
    const ExitCode code = train(gradient, update_step);
    if (code != done) return code;
    const double after = held_out_bits(measure);
    const double counted = byte_model_bits(text_);
    fmt::print(
        "held-out bits per byte: {:.3f} at the start, {:.3f} at the end; order-2 byte model {:.3f} ({:.2f} of it)\n",
        before, after, counted, after / counted);
    compiler.report();
    report_workspace(*gradient_function.trace(loss_shape), gradient);
    if (options_.compare_unfused) {
      compare(gradient, compiler(gradient_function, loss_shape, whole, true));
    }
    if (!options_.forms.empty()) {
      fmt::print("graphs, plans, loop nests and LLVM text of every function: {}/\n", options_.forms);
    }
    generate(next);
    if (options_.goal > 0 && after > options_.goal * counted) {
      fmt::print("the goal was at most {:.2f} of the byte model's bits\n", options_.goal);
      return goal_missed;
    }
    return done;
  }

 private:
  [[nodiscard]] tigon::Extents model_extents(std::int64_t batch) const {
    return tigon::extents<Batch, Time, Hidden, Heads, Channels, Half, Inner>(
        batch, options_.context, size_.hidden, size_.heads, size_.channels(), size_.channels() / 2, size_.inner);
  }
  [[nodiscard]] LossArgs<Buffer> loss_args() const {
    return {
        .weights = view(state_.weights), .cos = angles_.cos, .sin = angles_.sin, .bytes = bytes_, .target = target_};
  }

  template <class Measure>
  double held_out_bits(const Measure& measure) {
    const LossArgs<Buffer> args = loss_args();
    double nats = 0;
    for (std::int64_t first = 0; first < windows_.held_out_count(); first += options_.batch) {
      windows_.held_out(first, bytes_.data, target_.data);
      nats += *measure(Stream(), args).value.data;
    }
    return nats / static_cast<double>(windows_.held_out_targets()) / std::numbers::ln2;
  }

  // Rises over the first twentieth of training, then falls to a tenth along a cosine.
  [[nodiscard]] double learning_rate(double done) const {
    constexpr double rise = 0.05, least = 0.1;
    if (done < rise) return options_.learning_rate * (done + 0.002) / (rise + 0.002);
    const double along = (done - rise) / (1 - rise);
    return options_.learning_rate * (least + (1 - least) * 0.5 * (1 + std::cos(std::numbers::pi * along)));
  }

  template <class Gradient>
  auto gradient_results(f32& loss) const {
    typename Gradient::template Results<Buffer> results;
    results.value = Buffer<f32()>(&loss, {});
    results.grad.weights.layers.resize(static_cast<std::size_t>(size_.layers));
    for_each_weight([](auto& mine, const auto& view) { mine = view; }, results.grad.weights, gradients_);
    return results;
  }

  template <class Gradient, class Update>
  ExitCode train(const Gradient& gradient, const Update& update_step) {
    gradients_ = view(state_.gradients);
    f32 loss = 0, norm = 0;
    const auto results = gradient_results<Gradient>(loss);
    const LossArgs<Buffer> gradient_args = loss_args();
    UpdateArgs<Buffer> update_args{.weights = view(state_.weights),
                                   .gradients = gradients_,
                                   .first = view(state_.first),
                                   .second = view(state_.second)};
    UpdateOut<Buffer> updated{.gradient_norm = Buffer<f32()>(&norm, {})};  // the rest lies where its input does
    const auto with_layers = [&](auto&... weights) { (weights.layers.resize(state_.weights.layers.size()), ...); };
    with_layers(updated.weights, updated.first, updated.second);
    const tigon::Storage gradient_memory = workspace_for(gradient), update_memory = workspace_for(update_step);

    fmt::print("training\n");
    const auto tokens_per_step = static_cast<double>(options_.batch * options_.context);
    Progress progress;
    const Clock clock;
    double smooth_loss = 0, gradient_seconds = 0, update_seconds = 0, share = 0;
    std::int64_t step = 0;
    while (share < 1) {
      windows_.draw(random_, bytes_.data, target_.data);
      const double rate = learning_rate(share);
      Clock part;
      gradient.into(Stream(), gradient_args, results, gradient_memory.data(), gradient_memory.bytes());
      gradient_seconds += part.seconds();
      update_args.learning_rate = static_cast<f32>(rate);
      update_args.step = static_cast<f32>(++step);
      part = Clock();
      update_step.into(Stream(), update_args, updated, update_memory.data(), update_memory.bytes());
      update_seconds += part.seconds();
      if (!std::isfinite(loss) || !std::isfinite(norm)) {
        progress.finish();
        fmt::print("the loss is {} and the gradient's norm {} at step {}\n", loss, norm, step);
        return diverged;
      }
      if (losses_ != nullptr) fmt::print(losses_.get(), "{:.9g}\n", loss);
      smooth_loss = step == 1 ? loss : 0.95 * smooth_loss + 0.05 * loss;
      const double seconds = clock.seconds();
      share = static_cast<double>(step) / static_cast<double>(options_.steps);
      if (options_.seconds > 0) share = std::max(share, seconds / options_.seconds);
      progress.show(std::min(share, 1.0), step, smooth_loss, static_cast<double>(step) * tokens_per_step / seconds,
                    seconds * (1 - std::min(share, 1.0)) / share);
    }
    progress.finish();
    const double seconds = clock.seconds(), steps = static_cast<double>(step);
    fmt::print(
        "{} steps, {:.0f} tokens in {:.1f} s: {:.0f} tokens/s; a step: gradient {:.1f} ms, update {:.2f} ms, rest "
        "{:.2f} ms\n",
        step, steps * tokens_per_step, seconds, steps * tokens_per_step / seconds, gradient_seconds / steps * 1e3,
        update_seconds / steps * 1e3, (seconds - gradient_seconds - update_seconds) / steps * 1e3);
    return done;
  }

  template <class Gradient>
  void report_workspace(const tigon::dsl::Graph& graph, const Gradient& gradient) const {
    const tigon::plan::Plan& own = tigon::runtime::plan_of(gradient.core());
    const tigon::plan::Plan other =
        tigon::runtime::make_plan(graph, gradient.core().request().extents, {.unfused = !options_.unfused});
    const auto mebibytes = [](const tigon::plan::Plan& plan) {
      return static_cast<double>(tigon::plan::layout_workspace(plan, plan.planned).bytes) / (1 << 20);
    };
    fmt::print("values in the gradient's workspace: {:.1f} MiB; unfused {:.1f} MiB\n",
               mebibytes(options_.unfused ? other : own), mebibytes(options_.unfused ? own : other));
  }

  template <class Gradient>
  void compare(const Gradient& fused, const Gradient& unfused) {
    const LossArgs<Buffer> args = loss_args();
    Random random(options_.seed);
    windows_.draw(random, bytes_.data, target_.data);
    constexpr int repetitions = 10;
    f32 loss = 0;
    const auto results = gradient_results<Gradient>(loss);
    const auto timed = [&](const Gradient& gradient) {
      const tigon::Storage memory = workspace_for(gradient);
      const auto once = [&] { gradient.into(Stream(), args, results, memory.data(), memory.bytes()); };
      once();
      const Clock clock;
      for (int i = 0; i < repetitions; ++i) once();
      return clock.seconds() / repetitions * 1e3;
    };
    const double fused_ms = timed(fused);
    const f32 fused_loss = loss;
    const double unfused_ms = timed(unfused);
    fmt::print("the gradient: {:.1f} ms (loss {:.6f}), unfused {:.1f} ms (loss {:.6f})\n", fused_ms, fused_loss,
               unfused_ms, loss);
  }

  // Samples byte after byte; the window holds the last bytes, one row of the whole context at a time.
  template <class Next>
  void generate(const Next& next) {
    if (options_.generate == 0 || options_.prompt.empty()) return;
    const auto window = allocate<i32(Batch, Time)>({1, options_.context});
    NextArgs<Buffer> args{.weights = view(state_.weights), .cos = angles_.cos, .sin = angles_.sin, .bytes = window};
    args.temperature = static_cast<f32>(options_.temperature);
    std::string text = options_.prompt;
    const Clock clock;
    for (std::int64_t i = 0; i < options_.generate; ++i) {
      const auto context = static_cast<std::size_t>(options_.context);
      const std::size_t begin = text.size() < context ? 0 : text.size() - context;
      for (std::size_t t = 0; t < context; ++t) {
        window.data[t] = begin + t < text.size() ? static_cast<unsigned char>(text[begin + t]) : 0;
      }
      args.last = static_cast<i32>(text.size() - begin) - 1;
      const auto probabilities = next(Stream(), args).value;
      double place = random_.uniform();
      int byte = 0;
      while (byte < 255 && (place -= probabilities.data[byte]) >= 0) ++byte;
      text += static_cast<char>(byte);
    }
    fmt::print("{} bytes generated, {:.1f} ms each:\n{}\n", options_.generate,
               clock.seconds() / static_cast<double>(options_.generate) * 1e3, printable(text));
  }

  const Options& options_;
  ModelSize size_;
  Text text_;
  Windows windows_;
  Random random_;
  State state_;
  Owned<i32(Batch, Time)> bytes_, target_;
  Rotation<Owned> angles_;
  Weights<Buffer> gradients_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> losses_{nullptr, std::fclose};
};

}  // namespace

ExitCode run(const Options& options) { return Training(options).run(); }

}  // namespace language_model
