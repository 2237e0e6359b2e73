// The model with one kernel per operation against the fused one: the first losses agree within the reference's bound,
// and training ends at the same bits per byte.
#include <charconv>
#include <cmath>
#include <cstring>

#include "dsl/passes.hpp"
#include "dsl/reference/evaluate.hpp"
#include "examples/language_model/model.hpp"
#include "examples/language_model/text.hpp"
#include "examples/language_model/weights.hpp"
#include "tests/tools/run_command.hpp"

namespace {

using namespace language_model;
using tigon::Owned;
using tigon::Shape;
using tigon::Stream;
namespace dsl = tigon::dsl;

// The reference bounds the worst case, which grows by a factor of a hundred or more with each layer and with the
// lengths of sums: only a small model's bound says anything about its loss.
constexpr ModelSize size{.layers = 1, .hidden = 8, .heads = 1, .inner = 8};
constexpr std::int64_t batch = 4, context = 8;

std::vector<double> numbers(const tigon::detail::RawBuffer& raw) {
  std::int64_t count = 1;
  for (std::size_t d = 0; d < raw.rank; ++d) count *= raw.extents[d];
  std::vector<double> result;
  for (std::int64_t i = 0; i < count; ++i) {
    if (raw.dtype == tigon::DType::f32)
      result.push_back(static_cast<const float*>(raw.pointer)[i]);
    else
      result.push_back(static_cast<const std::int32_t*>(raw.pointer)[i]);
  }
  return result;
}

// The reference's value of the loss at these arguments, and its bound.
dsl::TensorValue evaluated_loss(const dsl::Graph& prepared, const dsl::Extents& extents, const LossArgs<Buffer>& args) {
  dsl::EvaluateInputs inputs{.tensors = {}, .scalars = {}, .extents = extents};
  std::map<std::string, tigon::detail::RawBuffer> by_path;
  std::string root;
  auto add = [&](const std::string& path, const auto& slot) { by_path[path] = slot.raw(); };
  tigon::detail::visit_slots(args, root, add);
  for (const dsl::InputInfo& info : prepared.inputs) {
    dsl::TensorValue tensor{.dtype = info.dtype, .axes = info.axes};
    for (const dsl::AxisId axis : info.axes) tensor.extents.push_back(extents[axis]);
    tensor.value = numbers(by_path.at(info.name));
    inputs.tensors.push_back(std::move(tensor));
  }
  return dsl::evaluate(prepared, inputs).at(0);
}

// One of the two ways to train: its functions, its weights and its running means.
struct Side {
  explicit Side(bool unfused)
      : options{.unfused = unfused},
        gradient(tigon::compile(value_and_grad(training_loss(), tigon::wrt<"weights">), loss_shape(), model_extents(),
                                options)),
        update_step(tigon::compile(
            update(), update_shape(),
            tigon::extents<Hidden, Heads, Channels, Inner>(size.hidden, size.heads, size.channels(), size.inner),
            options)) {
    Random random(7);
    draw_weights(weights, random);
    angles = tigon::compile(rotation(), tigon::extents<Time, Half>(context, size.channels() / 2), options)(
        Stream(), {.base = 10000.0F});
  }
  static LossArgs<Shape> loss_shape() {
    LossArgs<Shape> shape;
    shape.weights.layers.resize(size.layers);
    return shape;
  }
  static UpdateArgs<Shape> update_shape() {
    UpdateArgs<Shape> shape;
    for (Weights<Shape>* weights : {&shape.weights, &shape.gradients, &shape.first, &shape.second})
      weights->layers.resize(size.layers);
    return shape;
  }
  static tigon::Extents model_extents() {
    return tigon::extents<Batch, Time, Hidden, Heads, Channels, Half, Inner>(
        batch, context, size.hidden, size.heads, size.channels(), size.channels() / 2, size.inner);
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
  const auto traced = training_loss().trace(Side::loss_shape());
  dsl::Extents extents(traced->axes.size(), -1);
  for (const tigon::detail::GivenExtent& given : Side::model_extents()) {
    for (std::size_t axis = 0; axis < extents.size(); ++axis)
      if (traced->axes[axis].tag == given.axis.tag) extents[axis] = given.high;
  }
  extents = dsl::resolve_extents(*traced, std::move(extents));
  const dsl::Graph prepared = dsl::prepare(*traced, extents, {});
  dsl::Extents prepared_extents = extents;
  prepared_extents.resize(prepared.axes.size(), -1);
  prepared_extents = dsl::resolve_extents(prepared, std::move(prepared_extents));

  const Text text = read_text("");
  const Windows windows(text, batch, context);
  Random random(3);
  const auto bytes = tigon::allocate<tigon::i32(Batch, Time)>({batch, context});
  const auto target = tigon::allocate<tigon::i32(Batch, Time)>({batch, context});
  double first_loss = 0, last_loss = 0, worst = 0;
  for (int step = 1; step <= 20; ++step) {
    windows.draw(random, bytes.data, target.data);
    const dsl::TensorValue expected = evaluated_loss(prepared, prepared_extents, fused.args(bytes, target));
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
