// Compiles the model's functions, trains, measures on held-out text, generates, and reports.
#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numbers>

#include "byte_model.hpp"
#include "compiler.hpp"
#include "device.hpp"
#include "exchange.hpp"
#include "gpu_forms.hpp"
#include "losses.hpp"
#include "memory.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cuda/driver.hpp"
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

class Training {
 public:
  explicit Training(const Options& options)
      : options_(options),
        size_{.layers = options.layers, .hidden = options.hidden, .inner = options.hidden * 11 / 4},
        text_(read_text(options.text)),
        windows_(text_, options.batch, options.context),
        random_(options.seed),
        device_(choose_device(options.device, why_not_a_gpu_)),
        stream_(device_),
        state_(size_, random_, stream_),
        exchange_(options.batch, options.context, stream_) {}

  ExitCode run() {
    fmt::print("text: {}: {} bytes to learn, {} held out\n", text_.source, text_.training_bytes(),
               text_.held_out_bytes());
    fmt::print("model: {} parameters; {} layers, hidden {}, {} heads, inner {}, context {}, batch {}\n",
               count_parameters(state_.weights), size_.layers, size_.hidden, size_.heads, size_.inner, options_.context,
               options_.batch);
    fmt::print("device: {}{}\n", describe(device_),
               why_not_a_gpu_.empty() ? "" : fmt::format(" (no GPU: {})", why_not_a_gpu_));
    if (size_.hidden % 8 != 0) throw UsageError(fmt::format("--hidden is {}; give a multiple of 8", size_.hidden));
    if (windows_.training_places() == 0) throw UsageError("the context is longer than the text's stretches");
    if (!options_.forms.empty()) prepare_forms(options_.forms);
    if (!options_.losses.empty()) {
      std::error_code unknown;
      if (!options_.text.empty() && std::filesystem::equivalent(options_.losses, options_.text, unknown))
        throw UsageError("--losses would overwrite the text, " + options_.text + "; give another file");
      losses_.reset(std::fopen(options_.losses.c_str(), "w"));
      if (losses_ == nullptr) throw UsageError("cannot write " + options_.losses + ": " + std::strerror(errno));
    }

    fmt::print("compiling\n");
    Compiler compiler(options_, device_);
    const LossArgs<Shape> loss_arguments = loss_shape(size_);
    const auto gradient_function = value_and_grad(training_loss(), tigon::wrt<"weights">);
    const tigon::Extents whole = size_.of_windows(options_.batch, options_.context);
    const auto turn =
        compiler(rotation(), {}, tigon::extents<Time, Half>(options_.context, size_.channels() / 2), options_.unfused);
    const auto measure = compiler(total_loss(), loss_arguments, whole, options_.unfused);
    const auto gradient = compiler(gradient_function, loss_arguments, whole, options_.unfused);
    const auto update_step = compiler(update(), update_shape(size_), size_.of_weights(), options_.unfused);
    const auto next = compiler(next_byte(), next_shape(size_), size_.of_windows(1, options_.context), options_.unfused);

    angles_ = turn(stream_, {.base = 10000.0F});
    const double before = held_out_bits(measure);
    const ExitCode code = train(gradient, update_step);
    if (code != done) return code;
    const double after = held_out_bits(measure);
    const double counted = byte_model_bits(text_);
    fmt::print(
        "held-out bits per byte: {:.3f} at the start, {:.3f} at the end; order-2 byte model {:.3f} ({:.2f} of it)\n",
        before, after, counted, after / counted);
    compiler.report();
    report_workspace(*gradient_function.trace(loss_arguments), gradient);
    if (options_.compare_unfused) {
      compare(gradient, compiler(gradient_function, loss_arguments, whole, true));
    }
    generate(next);
    if (!options_.forms.empty()) {
      fmt::print("graphs, plans, loop nests and {} text of every function: {}/\n",
                 device_ == tigon::Device::cpu() ? "LLVM" : "CUDA", options_.forms);
      write_gpu_forms(options_.forms);
    }
    if (options_.goal > 0 && after > options_.goal * counted) {
      fmt::print("the goal was at most {:.2f} of the byte model's bits\n", options_.goal);
      return goal_missed;
    }
    return done;
  }

 private:
  [[nodiscard]] LossArgs<Buffer> loss_args() const {
    return {.weights = view(state_.weights),
            .cos = angles_.cos,
            .sin = angles_.sin,
            .bytes = exchange_.bytes(),
            .target = exchange_.target()};
  }

  template <class Measure>
  double held_out_bits(const Measure& measure) {
    const LossArgs<Buffer> args = loss_args();
    const tigon::Storage memory = workspace_for(measure, device_);
    double nats = 0;
    const auto collect = [&] {
      for (const f32 sum : exchange_.collect()) nats += sum;
    };
    for (std::int64_t first = 0; first < windows_.held_out_count(); first += options_.batch) {
      exchange_.send([&](i32* bytes, i32* target) { windows_.held_out(first, bytes, target); });
      measure.into(stream_, args, {.value = exchange_.result()}, memory.data(), memory.bytes());
      if (exchange_.full()) collect();
    }
    collect();
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
  auto gradient_results() const {
    typename Gradient::template Results<Buffer> results;
    results.grad.weights.layers.resize(static_cast<std::size_t>(size_.layers));
    for_each_weight([](auto& mine, const auto& view) { mine = view; }, results.grad.weights, gradients_);
    return results;
  }

  template <class Gradient, class Update>
  ExitCode train(const Gradient& gradient, const Update& update_step) {
    gradients_ = view(state_.gradients);
    auto results = gradient_results<Gradient>();
    const LossArgs<Buffer> gradient_args = loss_args();
    UpdateArgs<Buffer> update_args{.weights = view(state_.weights),
                                   .gradients = gradients_,
                                   .first = view(state_.first),
                                   .second = view(state_.second)};
    UpdateOut<Buffer> updated;  // but for the gradient's norm, everything lies where its input does
    const auto with_layers = [&](auto&... weights) { (weights.layers.resize(state_.weights.layers.size()), ...); };
    with_layers(updated.weights, updated.first, updated.second);
    const tigon::Storage gradient_memory = workspace_for(gradient, device_);
    const tigon::Storage update_memory = workspace_for(update_step, device_);

    fmt::print("training\n");
    const auto tokens_per_step = static_cast<double>(options_.batch * options_.context);
    Progress progress;
    const Clock clock;
    double gradient_seconds = 0, update_seconds = 0, share = 0;
    std::int64_t step = 0;
    Losses losses(losses_.get());
    while (share < 1) {
      exchange_.send([&](i32* bytes, i32* target) { windows_.draw(random_, bytes, target); });
      update_args.learning_rate = static_cast<f32>(learning_rate(share));
      Clock part;
      results.value = exchange_.result();
      gradient.into(stream_, gradient_args, results, gradient_memory.data(), gradient_memory.bytes());
      gradient_seconds += part.seconds();
      update_args.step = static_cast<f32>(++step);
      part = Clock();
      updated.gradient_norm = exchange_.result();
      update_step.into(stream_, update_args, updated, update_memory.data(), update_memory.bytes());
      update_seconds += part.seconds();

      share = static_cast<double>(step) / static_cast<double>(options_.steps);
      if (options_.seconds > 0) share = std::max(share, clock.seconds() / options_.seconds);
      if (share < 1 && step < losses.next_look() && !exchange_.full()) continue;
      if (!losses.look(exchange_.collect(), clock.seconds())) {
        progress.finish();
        fmt::print("the loss is {} and the gradient's norm {} at step {}\n", losses.loss(), losses.norm(),
                   losses.step());
        return diverged;
      }
      const double seconds = clock.seconds();
      progress.show(std::min(share, 1.0), step, losses.smooth(), static_cast<double>(step) * tokens_per_step / seconds,
                    seconds * (1 - std::min(share, 1.0)) / share);
    }
    progress.finish();
    if (losses_ != nullptr && (std::fflush(losses_.get()) != 0 || std::ferror(losses_.get()) != 0))
      throw UsageError("cannot write " + options_.losses + " (--losses): " + std::strerror(errno));
    const double seconds = clock.seconds(), steps = static_cast<double>(step);
    const double rest = seconds - gradient_seconds - update_seconds;
    fmt::print(
        "{} steps, {:.0f} tokens in {:.1f} s: {:.0f} tokens/s; a step: {} {:.1f} ms, update {:.2f} ms, rest "
        "{:.2f} ms\n",
        step, steps * tokens_per_step, seconds, steps * tokens_per_step / seconds,
        device_ == tigon::Device::cpu() ? "gradient" : "launching the gradient", gradient_seconds / steps * 1e3,
        update_seconds / steps * 1e3, rest / steps * 1e3);
    return done;
  }

  template <class Gradient>
  void report_workspace(const tigon::dsl::Graph& graph, const Gradient& gradient) const {
    const tigon::plan::Plan& own = tigon::runtime::plan_of(gradient.core());
    const tigon::Extents& extents = gradient.core().request().extents;
    const tigon::plan::Plan other =
        device_ == tigon::Device::cpu()
            ? tigon::runtime::make_plan(graph, extents, {.unfused = !options_.unfused})
            : tigon::runtime::make_plan(
                  graph, extents, {.unfused = !options_.unfused},
                  tigon::runtime::cuda_model(tigon::runtime::CudaDriver::get().device(device_.ordinal())));
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
    exchange_.send([&](i32* bytes, i32* target) { windows_.draw(random, bytes, target); });
    constexpr int repetitions = 10;
    auto results = gradient_results<Gradient>();
    const auto timed = [&](const Gradient& gradient) {
      const tigon::Storage memory = workspace_for(gradient, device_);
      results.value = exchange_.result();
      const auto once = [&] { gradient.into(stream_, args, results, memory.data(), memory.bytes()); };
      once();
      stream_.synchronize();
      const Clock clock;
      for (int i = 0; i < repetitions; ++i) once();
      stream_.synchronize();
      return clock.seconds() / repetitions * 1e3;
    };
    const double fused_ms = timed(fused);
    const double unfused_ms = timed(unfused);
    const std::vector<f32> losses = exchange_.collect();
    fmt::print("the gradient: {:.1f} ms (loss {:.6f}), unfused {:.1f} ms (loss {:.6f})\n", fused_ms, losses[0],
               unfused_ms, losses[1]);
  }

  // Samples byte after byte; the window holds the last bytes, one row of the whole context at a time.
  template <class Next>
  void generate(const Next& next) {
    if (options_.generate == 0 || options_.prompt.empty()) return;
    const auto window = allocate<i32(Batch, Time)>({1, options_.context});
    const auto given = allocate<i32(Batch, Time)>({1, options_.context}, device_);
    const auto probabilities = allocate<f32(Batch, Vocab)>({1, size_.vocab});
    NextArgs<Buffer> args{.weights = view(state_.weights), .cos = angles_.cos, .sin = angles_.sin, .bytes = given};
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
      tigon::copy(stream_, given, window);
      const auto made = next(stream_, args);
      tigon::copy(stream_, probabilities, made.value);
      stream_.synchronize();
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
  std::string why_not_a_gpu_;
  tigon::Device device_;
  Stream stream_;
  State state_;
  Exchange exchange_;
  Rotation<Owned> angles_;
  Weights<Buffer> gradients_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> losses_{nullptr, std::fclose};
};

}  // namespace

ExitCode run(const Options& options) { return Training(options).run(); }

}  // namespace language_model
