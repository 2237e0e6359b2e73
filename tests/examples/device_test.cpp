// A whole step of training on a CUDA device, the emulated one, against the reference and the CPU; and what the program
// does with --device.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "examples/language_model/model.hpp"
#include "examples/language_model/text.hpp"
#include "examples/language_model/weights.hpp"
#include "reference.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/nvrtc/compiler.hpp"
#include "tests/tools/run_command.hpp"

namespace {

using namespace language_model;
using namespace language_model_test;
using tigon::Device;
using tigon::Owned;

// Larger models have bounds that say nothing: they grow by a factor of a hundred or more with each layer.
constexpr ModelSize size{.layers = 1, .hidden = 8, .heads = 4, .inner = 22};
constexpr std::int64_t batch = 4, context = 8;

auto gradient_function() { return value_and_grad(training_loss(), tigon::wrt<"weights">); }

// What every step begins with, on the host.
struct Start {
  Weights<Owned> weights = allocate_weights(size), zeros = allocate_weights(size);
  Owned<tigon::i32(Batch, Time)> bytes = tigon::allocate<tigon::i32(Batch, Time)>({batch, context});
  Owned<tigon::i32(Batch, Time)> target = tigon::allocate<tigon::i32(Batch, Time)>({batch, context});
  Rotation<Owned> angles = tigon::compile(rotation(), tigon::extents<Time, Half>(context, size.channels() / 2))(
      tigon::Stream(), {.base = 10000.0F});
  Start() {
    Random random(7);
    draw_weights(weights, random);
    for (std::int64_t i = 0; i < batch * context; ++i) {
      bytes.data[i] = static_cast<tigon::i32>(random.below(size.vocab));
      target.data[i] = i % 11 == 5 ? nothing_to_predict : static_cast<tigon::i32>(random.below(size.vocab));
    }
  }
};

constexpr f32 learning_rate = 4e-3F;

// What a step gives, on the host. The norm is that of the gradients.
struct Step {
  Owned<f32()> loss = tigon::allocate<f32()>({}), norm = tigon::allocate<f32()>({});
  Weights<Owned> gradients = allocate_weights(size), weights = allocate_weights(size), first = allocate_weights(size),
                 second = allocate_weights(size);
};

Step step_on(Device device, const Start& start) {
  const auto gradient =
      tigon::compile(gradient_function(), loss_shape(size), size.of_windows(batch, context), {.device = device});
  const auto update_step = tigon::compile(update(), update_shape(size), size.of_weights(), {.device = device});

  const tigon::Stream stream(device);
  const auto there = [&](const Weights<Owned>& host) {
    Weights<Owned> result = allocate_weights(size, device);
    copy_weights(stream, result, host);
    return result;
  };
  const Weights<Owned> weights = there(start.weights), first = there(start.zeros), second = there(start.zeros);
  const auto bytes = tigon::allocate<tigon::i32(Batch, Time)>({batch, context}, device);
  const auto target = tigon::allocate<tigon::i32(Batch, Time)>({batch, context}, device);
  const auto cos = tigon::allocate<f32(Time, Half)>({context, size.channels() / 2}, device);
  const auto sin = tigon::allocate<f32(Time, Half)>({context, size.channels() / 2}, device);
  copy(stream, bytes, start.bytes);
  copy(stream, target, start.target);
  copy(stream, cos, start.angles.cos);
  copy(stream, sin, start.angles.sin);

  Step step;
  const auto made =
      gradient(stream, {.weights = view(weights), .cos = cos, .sin = sin, .bytes = bytes, .target = target});
  copy(stream, step.loss, made.value);
  Weights<Buffer> gradients = view(weights);
  for_each_weight([](auto& mine, const auto& one) { mine = one.buffer(); }, gradients, made.grad.weights);
  for_each_weight([&](const auto& host, const auto& one) { copy(stream, host, one); }, step.gradients, gradients);
  // Written over the arguments, or beside them: as the returning form of a launch does it.
  const auto updated = update_step(stream, {.weights = view(weights),
                                            .gradients = gradients,
                                            .first = view(first),
                                            .second = view(second),
                                            .learning_rate = learning_rate,
                                            .step = 1.0F});
  const auto back = [&](const auto& host, const auto& one) { copy(stream, host, one); };
  for_each_weight(back, step.weights, updated.weights);
  for_each_weight(back, step.first, updated.first);
  for_each_weight(back, step.second, updated.second);
  copy(stream, step.norm, updated.gradient_norm);
  stream.synchronize();
  return step;
}

// Checks every element against the reference; returns the largest share of a bound that was used up.
double check_within(const std::string& path, const tigon::detail::RawBuffer& raw,
                    const tigon::dsl::TensorValue& expected) {
  const std::vector<double> values = numbers(raw);
  REQUIRE(values.size() == expected.value.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double bound = expected.bound.empty() ? 0 : expected.bound[i];
    const double difference = std::abs(values[i] - expected.value[i]);
    INFO(path << " at " << i << ": " << values[i] << ", reference " << expected.value[i] << ", bound " << bound);
    REQUIRE(difference <= bound);
    if (bound > 0) worst = std::max(worst, difference / bound);
  }
  return worst;
}

double check_within(const std::string& root, const Weights<Owned>& weights, const Results& expected) {
  double worst = 0;
  const auto check = [&](const std::string& path, const auto& slot) {
    worst = std::max(worst, check_within(root + "." + path, slot.raw(), expected.at(root + "." + path)));
  };
  std::string path;
  tigon::detail::visit_slots(weights, path, check);
  return worst;
}

// A bound says something where it is far below the size of what it bounds.
double bound_over_size(const Results& results, const std::string& root) {
  double bound = 0, largest = 0;
  for (const auto& [path, value] : results) {
    if (!path.starts_with(root)) continue;
    for (const double one : value.value) largest = std::max(largest, std::abs(one));
    for (const double one : value.bound) bound = std::max(bound, one);
  }
  return bound / largest;
}

// Where the bound says nothing: how far f32 gradients may lie from the reference's, as a share of the largest of their
// tensor. Between loss and embedding lie, there and back, about 2 x 300 roundings (sums over 8 channels, 8 positions,
// 256 bytes and 32 tokens, and some 40 maps a layer), each of at most 2^-24 of its value. Were they all to add up, they
// would make 600 x 2^-24 = 3.6e-5; of both signs as they are, some sqrt(600) x 2^-24 = 1.5e-6. The three norms may
// raise what passes them by their inputs' spread, a small factor: so the former is what is allowed.
constexpr double gradient_tolerance = 600 * 0x1p-24;

// The largest difference of any tensor's elements as a share of its largest one.
double largest_share(const Weights<Owned>& weights, const Results& expected) {
  double worst = 0;
  const auto add = [&](const std::string& path, const auto& slot) {
    const std::vector<double> values = numbers(slot.raw()), &right = expected.at("grad.weights." + path).value;
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(right[i]));
      difference = std::max(difference, std::abs(values[i] - right[i]));
    }
    REQUIRE(largest > 0);
    worst = std::max(worst, difference / largest);
  };
  std::string path;
  tigon::detail::visit_slots(weights, path, add);
  return worst;
}

bool nvrtc_is_there() {
  const tigon::runtime::LibrarySearch search = tigon::runtime::NvrtcCompiler::search();
  if (!search.found()) WARN("skipped: " + search.describe());
  return search.found();
}

}  // namespace

TEST_CASE("a step of training on the emulated device is the reference's and the CPU's, within the reference's bounds") {
  if (!nvrtc_is_there()) return;
  ::setenv("TIGON_CUDA_DRIVER", "emulated", 1);
  const Start start;
  const Results expected = evaluated(gradient_function(), loss_shape(size), size.of_windows(batch, context),
                                     {.weights = view(start.weights),
                                      .cos = start.angles.cos,
                                      .sin = start.angles.sin,
                                      .bytes = start.bytes,
                                      .target = start.target});
  CHECK(expected.at("value").bound[0] < 0.05);  // a bound that says something

  const Step cpu = step_on(Device::cpu(), start), gpu = step_on(Device::cuda(), start);
  CHECK(std::abs(*cpu.loss.data - *gpu.loss.data) <= expected.at("value").bound[0]);
  for (const Step* step : {&cpu, &gpu}) {
    INFO((step == &cpu ? "on the CPU" : "on the emulated device"));
    check_within("value", step->loss.raw(), expected.at("value"));
    check_within("grad.weights", step->gradients, expected);
    const double share = largest_share(step->gradients, expected);
    CHECK(share <= gradient_tolerance);
    // The update is judged by the gradients that the device itself made: it divides by their size, however small.
    const Results updated = evaluated(update(), update_shape(size), size.of_weights(),
                                      {.weights = view(start.weights),
                                       .gradients = view(step->gradients),
                                       .first = view(start.zeros),
                                       .second = view(start.zeros),
                                       .learning_rate = learning_rate,
                                       .step = 1.0F});
    check_within("gradient_norm", step->norm.raw(), updated.at("gradient_norm"));
    double of_update = 0;
    of_update = std::max(of_update, check_within("weights", step->weights, updated));
    of_update = std::max(of_update, check_within("first", step->first, updated));
    of_update = std::max(of_update, check_within("second", step->second, updated));
    CHECK(bound_over_size(updated, "weights.") < 1e-3 * learning_rate);
    WARN("gradients differ by " << share << " of the largest; the update uses " << of_update << " of its bound");
  }
  CHECK(tigon::emulator::reports_text().empty());
}

TEST_CASE("a model of bf16 activations has the reference's loss, on the CPU") {
  const Start start;
  const LossArgs<Buffer> args{.weights = view(start.weights),
                              .cos = start.angles.cos,
                              .sin = start.angles.sin,
                              .bytes = start.bytes,
                              .target = start.target};
  const tigon::Extents extents = size.of_windows(batch, context);
  const Results expected = evaluated(training_loss<bf16>(), loss_shape(size), extents, args);
  const auto made = tigon::compile(training_loss<bf16>(), loss_shape(size), extents)(tigon::Stream(), args);
  // Its bound is the worst case of 16-bit roundings, and says nothing. The reference rounds at the same places, but
  // where f32 sums differ in their last bits it may round the other way: by 2^-8 of a value in some, of 29 targets.
  const double rounded = expected.at("value").value[0];
  CHECK(*made.value.data == Approx(rounded).epsilon(1e-3));
  // Eight bits a value: a hundredth or so of a logit.
  const double wide = evaluated(training_loss(), loss_shape(size), extents, args).at("value").value[0];
  CHECK(*made.value.data == Approx(wide).epsilon(5e-3));
  CHECK(std::abs(*made.value.data - wide) > 1e-5 * wide);  // it does compute with 16 bits
  WARN("bf16 " << *made.value.data << ", reference " << rounded << ", f32 " << wide);
}

TEST_CASE("--device takes the emulated device when it is named, and only then") {
  using namespace tigon::test;
  const Folder folder;
  const std::string file = folder.path() + "/text";
  write_text(file, std::string(45000, 'a'));
  const auto run = [&](const std::string& device, const std::string& driver) {
    return run_program(command_path("examples/language_model"),
                       {"--device", device, "--text", file, "--steps", "2", "--layers", "1", "--hidden", "8",
                        "--context", "128", "--batch", "32", "--generate", "0", "--forms", ""},
                       {{"TIGON_CUDA_DRIVER", driver}});
  };
  const Ran best = run("best", "emulated");
  INFO(best.out << best.err);
  CHECK(best.code == 0);
  CHECK(contains(best.out, "device: cpu (no GPU: the CUDA driver is the emulated one; --device cuda takes it)\n"));
  const Ran none = run("cuda", "/nowhere/libcuda.so.1");
  INFO(none.out << none.err);
  CHECK(none.code == 2);
  CHECK(contains(none.err, "--device cuda: no usable CUDA driver library was found"));
  const Ran without = run("best", "/nowhere/libcuda.so.1");
  CHECK(without.code == 0);
  CHECK(contains(without.out, "device: cpu\n"));
}

TEST_CASE("the program trains on the emulated device as it does on the CPU") {
  using namespace tigon::test;
  if (!nvrtc_is_there()) return;
  const Folder folder;
  const std::string file = folder.path() + "/text";
  std::string text;
  while (text.size() < 41000) text += "some text to learn, again and again; ";
  write_text(file, text);
  const auto train = [&](const std::string& device) {
    const std::string losses = folder.path() + "/" + device;
    const Ran ran =
        run_program(command_path("examples/language_model"),
                    {"--device",  device, "--text",  file, "--steps",    "3", "--layers", "1", "--hidden", "8",
                     "--context", "8",    "--batch", "64", "--generate", "3", "--forms",  "",  "--losses", losses},
                    {{"TIGON_CUDA_DRIVER", "emulated"}});
    INFO(ran.out << ran.err);
    REQUIRE(ran.code == 0);
    CHECK(contains(ran.out, "device: " + device));
    if (device == "cuda") CHECK(contains(ran.out, "(NVIDIA H200, emulated)"));
    std::vector<double> numbers;
    std::istringstream lines(tigon::test::read_text(losses));
    for (double loss = 0; lines >> loss;) numbers.push_back(loss);
    return numbers;
  };
  const std::vector<double> cpu = train("cpu"), gpu = train("cuda");
  REQUIRE(cpu.size() == 3);
  REQUIRE(gpu.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(gpu[i] == Approx(cpu[i]).epsilon(1e-5));
  CHECK(cpu[2] != cpu[0]);
}
