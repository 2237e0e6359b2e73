// The model with one kernel per operation against the fused one: the first losses agree within the reference's bound,
// and training ends at the same bits per byte.
#include <charconv>
#include <cmath>
#include <cstring>

#include "examples/language_model/model.hpp"
#include "examples/language_model/text.hpp"
#include "examples/language_model/weights.hpp"
#include "reference.hpp"
#include "tests/tools/run_command.hpp"

namespace {

using namespace language_model;
using namespace language_model_test;
using tigon::Owned;
using tigon::Shape;
using tigon::Stream;

// The reference bounds the worst case, which grows by a factor of a hundred or more with each layer and with the
// lengths of sums: only a small model's bound says anything about its loss.
constexpr ModelSize size{.layers = 1, .hidden = 8, .heads = 1, .inner = 8};
constexpr std::int64_t batch = 4, context = 8;

// One of the two ways to train: its functions, its weights and its running means.
struct Side {
  explicit Side(bool unfused)
      : options{.unfused = unfused},
        gradient(tigon::compile(value_and_grad(training_loss(), tigon::wrt<"weights">), loss_shape(size),
                                size.of_windows(batch, context), options)),
        update_step(tigon::compile(update(), update_shape(size), size.of_weights(), options)) {
    Random random(7);
    draw_weights(weights, random);
    angles = tigon::compile(rotation(), tigon::extents<Time, Half>(context, size.channels() / 2), options)(
        Stream(), {.base = 10000.0F});
  }
  LossArgs<Buffer> args(const Owned<tigon::i32(Batch, Time)>& bytes,
                        const Owned<tigon::i32(Batch, Time)>& target) const {
    return {.weights = view(weights), .cos = angles.cos, .sin = angles.sin, .bytes = bytes, .target = target};
  }
  // The loss before the update.
  double step(const LossArgs<Buffer>& at, int number) {
    const auto result = gradient(Stream(), at);
    Weights<Buffer> gradients = view(weights);
    for_each_weight([](auto& mine, const auto& made) { mine = made.buffer(); }, gradients, result.grad.weights);
    const auto updated = update_step(Stream(), {.weights = view(weights),
                                                .gradients = gradients,
                                                .first = view(first),
                                                .second = view(second),
                                                .learning_rate = 4e-3F,
                                                .step = static_cast<f32>(number)});
    const auto copy = [](const auto& mine, const auto& made) {
      if (mine.data == made.data) return;
      std::memcpy(mine.data, made.data, numbers(mine.raw()).size() * sizeof(f32));
    };
    for_each_weight(copy, weights, updated.weights);
    for_each_weight(copy, first, updated.first);
    for_each_weight(copy, second, updated.second);
    return *result.value.data;
  }

  tigon::CompileOptions options;
  decltype(tigon::compile(value_and_grad(training_loss(), tigon::wrt<"weights">), LossArgs<Shape>(), {})) gradient;
  decltype(tigon::compile(update(), UpdateArgs<Shape>(), {})) update_step;
  Weights<Owned> weights = allocate_weights(size), first = allocate_weights(size), second = allocate_weights(size);
  Rotation<Owned> angles;
};

// "held-out bits per byte: 8.733 at the start, 1.570 at the end; ..."
double bits_at_the_end(const std::string& out) {
  const std::string mark = " at the start, ";
  const std::size_t at = out.find(mark);
  REQUIRE(at != std::string::npos);
  double bits = 0;
  std::from_chars(out.data() + at + mark.size(), out.data() + out.size(), bits);
  return bits;
}

}  // namespace

TEST_CASE("the first twenty losses, fused and unfused, agree within the reference's bound") {
  Side fused(false), unfused(true);
  const Text text = read_text("");
  const Windows windows(text, batch, context);
  Random random(3);
  const auto bytes = tigon::allocate<tigon::i32(Batch, Time)>({batch, context});
  const auto target = tigon::allocate<tigon::i32(Batch, Time)>({batch, context});
  double first_loss = 0, last_loss = 0, worst = 0;
  for (int step = 1; step <= 20; ++step) {
    windows.draw(random, bytes.data, target.data);
    const tigon::dsl::TensorValue expected =
        evaluated(training_loss(), loss_shape(size), size.of_windows(batch, context), fused.args(bytes, target))
            .at("value");
    const double bound = expected.bound.at(0);
    const double a = fused.step(fused.args(bytes, target), step), b = unfused.step(unfused.args(bytes, target), step);
    INFO("step " << step << ": reference " << expected.value.at(0) << " with bound " << bound << ", fused " << a
                 << ", unfused " << b);
    CHECK(bound < 0.05);  // a bound that says something
    CHECK(std::abs(a - expected.value[0]) <= bound);
    CHECK(std::abs(a - b) <= bound);
    worst = std::max(worst, std::abs(a - b) / bound);
    (step == 1 ? first_loss : last_loss) = a;
  }
  CHECK(last_loss < first_loss);
  WARN("largest difference of the losses as a share of the bound: " << worst);
}

TEST_CASE("training unfused ends at the bits per byte of training fused") {
  using namespace tigon::test;
  const auto bits = [](std::vector<std::string> more) {
    std::vector<std::string> words = {"--layers", "1",   "--hidden",   "32", "--context", "64", "--batch", "16",
                                      "--steps",  "200", "--generate", "0",  "--forms",   ""};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_program(command_path("examples/language_model"), words);
    INFO(ran.out << ran.err);
    REQUIRE(ran.code == 0);
    return bits_at_the_end(ran.out);
  };
  const double fused = bits({}), unfused = bits({"--unfused"});
  CHECK(fused < 4);  // 8 without training
  CHECK(std::abs(fused - unfused) <= 0.02);
  WARN("bits per byte: fused " << fused << ", unfused " << unfused);
}
