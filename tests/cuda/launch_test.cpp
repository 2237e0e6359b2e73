// Functions compiled for a CUDA device and launched through the public interface, on the emulated driver.
#include <cmath>
#include <thread>

#include "runtime/cuda/driver.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support.hpp"
#include "tigon/tigon.hpp"

namespace cuda_launch_test {
using namespace tigon;

struct Tokens : axis<"tokens"> {};
struct Vocab : axis<"vocab"> {};
struct Hidden : axis<"hidden"> {};

template <template <class> class Slot>
struct LinearLossArgs {
  TIGON_ARGS(LinearLossArgs, (Slot<f32(Tokens, Hidden)>, x), (Slot<f32(Vocab, Hidden)>, weight),
             (Slot<i32(Tokens)>, target), (Slot<scalar<f32>>, gamma));
};

const auto linear_loss = function("linear_loss", [](const LinearLossArgs<Tensor>& in) {
  const auto logits = dot<Hidden>(in.x, in.weight);
  const auto log_p = at<Vocab>(logits, in.target) - logsumexp<Vocab>(logits);
  return -mean<Tokens>(pow(1 - exp(log_p), in.gamma) * log_p);
});

template <template <class> class Slot>
struct ScaleArgs {
  TIGON_ARGS(ScaleArgs, (Slot<f32(Tokens, Hidden)>, x), (Slot<scalar<f32>>, factor));
};
const auto scaled = function("scaled", [](const ScaleArgs<Tensor>& in) { return in.x * in.factor; });

constexpr std::int64_t vocab = 515, hidden = 64;

// Arguments on the host and on a device, and what comes back.
struct Problem {
  Device device;
  Stream stream;
  std::int64_t tokens;
  Owned<f32(Tokens, Hidden)> host_x, x;
  Owned<f32(Vocab, Hidden)> host_weight, weight;
  Owned<i32(Tokens)> host_target, target;

  Problem(Device where, std::int64_t count)
      : device(where),
        stream(where),
        tokens(count),
        host_x(allocate<f32(Tokens, Hidden)>({count, hidden})),
        x(allocate<f32(Tokens, Hidden)>({count, hidden}, where)),
        host_weight(allocate<f32(Vocab, Hidden)>({vocab, hidden})),
        weight(allocate<f32(Vocab, Hidden)>({vocab, hidden}, where)),
        host_target(allocate<i32(Tokens)>({count})),
        target(allocate<i32(Tokens)>({count}, where)) {
    for (std::int64_t i = 0; i < count * hidden; ++i) host_x.data[i] = std::sin(0.37F * static_cast<float>(i));
    for (std::int64_t i = 0; i < vocab * hidden; ++i)
      host_weight.data[i] = 0.1F * std::cos(0.71F * static_cast<float>(i));
    for (std::int64_t i = 0; i < count; ++i) host_target.data[i] = static_cast<std::int32_t>(i * 53 % vocab);
    send();
  }
  void send() const {
    copy(stream, x, host_x);
    copy(stream, weight, host_weight);
    copy(stream, target, host_target);
  }
  [[nodiscard]] LinearLossArgs<Buffer> arguments() const {
    LinearLossArgs<Buffer> args;
    args.x = x;
    args.weight = weight;
    args.target = target;
    args.gamma = 2.0F;
    return args;
  }
};

// The loss and the gradient of the weight.
struct Answer {
  float loss = 0;
  std::vector<float> gradient;
};
template <class Step>
Answer run(const Step& step, const Problem& problem) {
  const auto result = step(problem.stream, problem.arguments());
  Answer answer;
  answer.gradient.resize(vocab * hidden);
  copy(problem.stream, Buffer<f32()>(&answer.loss, {}), result.value);
  copy(problem.stream, Buffer<f32(Vocab, Hidden)>(answer.gradient.data(), {vocab, hidden}),
       result.grad.weight.buffer());
  problem.stream.synchronize();
  return answer;
}

auto compile_for(Device device, std::int64_t tokens, std::size_t budget = 0) {
  return compile(value_and_grad(linear_loss, wrt<"x", "weight">), extents<Tokens, Vocab, Hidden>(tokens, vocab, hidden),
                 {.device = device, .memory_budget = budget});
}

bool ready() {
  tigon::testing::use_emulated_driver();
  return tigon::testing::nvrtc_or_skip() != nullptr;
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

template <class Function, class... A>
int driver_call(const char* name, A... arguments) {
  return reinterpret_cast<Function>(emulator::find_entry_point(name))(arguments...);
}

TEST_CASE("a loss on a CUDA device is that of the CPU, whole and in chunks", "[launch]") {
  if (!ready()) return;
  const Answer expected = run(compile_for(Device::cpu(), 96), Problem(Device::cpu(), 96));
  for (const std::size_t budget : {std::size_t{0}, std::size_t{200} * 1024}) {
    const auto step = compile_for(Device::cuda(), 96, budget);
    if (budget > 0) CHECK(step.workspace_bytes() <= budget);
    const Answer answer = run(step, Problem(Device::cuda(), 96));
    CHECK(answer.loss == Approx(expected.loss).epsilon(1e-5));
    double difference = 0;
    for (std::size_t i = 0; i < answer.gradient.size(); ++i)
      difference = std::max(difference, std::fabs(double{answer.gradient[i]} - expected.gradient[i]));
    CHECK(difference < 1e-6);
  }
  CHECK(emulator::reports_text().empty());
}

TEST_CASE("a second compile for a device and other extents compile nothing", "[launch]") {
  if (!ready()) return;
  compile_for(Device::cuda(), 96);
  const auto step = compile_for(Device::cuda(), 96);
  CHECK(step.counters().compilations == 0);
  const Answer few = run(step, Problem(Device::cuda(), 7));
  CHECK(std::isfinite(few.loss));
  CHECK(step.counters().binds == 1);
}

TEST_CASE("an index out of range is told when the stream is waited for, and the function lives on", "[launch]") {
  if (!ready()) return;
  const auto step = compile_for(Device::cuda(), 96);
  Problem problem(Device::cuda(), 96);
  const Answer good = run(step, problem);
  problem.host_target.data[3] = vocab + 5;
  problem.send();
  const std::string message = message_of([&] { run(step, problem); });
  CHECK_THAT(message, Catch::Matchers::Contains("linear_loss") && Catch::Matchers::Contains("out of range"));
  problem.host_target.data[3] = 3 * 53 % vocab;
  problem.send();
  CHECK(run(step, problem).loss == good.loss);
}

TEST_CASE("buffers and streams of another device are refused by name", "[launch]") {
  if (!ready()) return;
  const auto step = compile_for(Device::cuda(), 96);
  const Problem there(Device::cuda(), 96), here(Device::cpu(), 96);
  CHECK_THAT(message_of([&] { step(here.stream, there.arguments()); }),
             Catch::Matchers::Contains("`stream`") && Catch::Matchers::Contains("found cpu, expected cuda:0"));
  LinearLossArgs<Buffer> mixed = there.arguments();
  mixed.weight = here.weight;
  CHECK_THAT(message_of([&] { step(there.stream, mixed); }),
             Catch::Matchers::Contains("`weight`") && Catch::Matchers::Contains("found cpu, expected cuda:0"));
  CHECK_THAT(message_of([] { Stream(Device::cuda(3)); }), Catch::Matchers::Contains("cuda:3"));
}

TEST_CASE("buffers may start at any element", "[launch]") {
  if (!ready()) return;
  const auto step = compile(scaled, extents<Tokens, Hidden>(3, 256), {.device = Device::cuda()});
  const Stream stream(Device::cuda());
  const Storage memory(4096 + 4, Device::cuda());
  std::vector<float> values(3 * 256), back(3 * 256);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Buffer<f32(Tokens, Hidden)> x(static_cast<float*>(memory.data()) + 1, {3, 256}, Device::cuda());
  copy(stream, x, Buffer<f32(Tokens, Hidden)>(values.data(), {3, 256}));
  ScaleArgs<Buffer> args;
  args.x = x;
  args.factor = 3.0F;
  const auto y = step(stream, args);
  copy(stream, Buffer<f32(Tokens, Hidden)>(back.data(), {3, 256}), y.value);
  stream.synchronize();
  for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(back[i] == 3 * values[i]);
  CHECK(emulator::reports_text().empty());
}

TEST_CASE("a launch into the caller's memory is captured in a graph and runs again", "[launch]") {
  if (!ready()) return;
  const auto step = compile(scaled, extents<Tokens, Hidden>(3, 256), {.device = Device::cuda()});
  const Stream stream(Device::cuda());
  const auto x = allocate<f32(Tokens, Hidden)>({3, 256}, Device::cuda());
  const auto result = allocate<f32(Tokens, Hidden)>({3, 256}, Device::cuda());
  std::remove_const_t<decltype(step)>::Results<Buffer> y;
  y.value = result;
  const auto host = allocate<f32(Tokens, Hidden)>({3, 256});
  ScaleArgs<Buffer> args;
  args.x = x;
  args.factor = 2.0F;
  const Storage workspace(std::max<std::size_t>(step.workspace_bytes(), 64), Device::cuda());
  for (int i = 0; i < 3 * 256; ++i) host.data[i] = 1;
  copy(stream, x, host);
  step.into(stream, args, y, workspace.data(), workspace.bytes());
  stream.synchronize();

  const runtime::CudaDevice& device = runtime::CudaDriver::get().device(0);
  const runtime::CurrentContext context(device);
  void* native = stream.native();
  void *graph = nullptr, *executable = nullptr;
  ScaleArgs<Buffer> askew = args;
  const Storage more(4096, Device::cuda());
  askew.x = Buffer<f32(Tokens, Hidden)>(static_cast<float*>(more.data()) + 1, {3, 256}, Device::cuda());
  const auto fresh = compile(function("scaled_anew", [](const ScaleArgs<Tensor>& in) { return in.x * in.factor + 1; }),
                             extents<Tokens, Hidden>(3, 256), {.device = Device::cuda()});
  REQUIRE(driver_call<int (*)(void*, int)>("cuStreamBeginCapture_v2", native, 0) == 0);
  step.into(stream, args, y, workspace.data(), workspace.bytes());
  // What this buffer needs is not compiled, and cannot be now.
  CHECK_THAT(message_of([&] { fresh.into(stream, askew, y, workspace.data(), workspace.bytes()); }),
             Catch::Matchers::Contains("captured"));
  REQUIRE(driver_call<int (*)(void*, void**)>("cuStreamEndCapture", native, &graph) == 0);
  REQUIRE(driver_call<int (*)(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags", &executable, graph,
                                                                  0ULL) == 0);
  for (int i = 0; i < 3 * 256; ++i) host.data[i] = 5;
  copy(stream, x, host);
  REQUIRE(driver_call<int (*)(void*, void*)>("cuGraphLaunch", executable, native) == 0);
  copy(stream, host, result);
  stream.synchronize();
  CHECK(host.data[17] == 10);
  driver_call<int (*)(void*)>("cuGraphExecDestroy", executable);
  driver_call<int (*)(void*)>("cuGraphDestroy", graph);
}

TEST_CASE("the caller's current context stays its current one", "[launch]") {
  if (!ready()) return;
  const runtime::cuda_c::Api& api = runtime::CudaDriver::get().api();
  REQUIRE(api.context_set(nullptr) == 0);
  const Answer answer = run(compile_for(Device::cuda(), 96), Problem(Device::cuda(), 96));
  CHECK(std::isfinite(answer.loss));
  runtime::cuda_c::Context current = nullptr;
  REQUIRE(api.context_get(&current) == 0);
  CHECK(current == nullptr);
}

TEST_CASE("two threads launch one function on streams of their own", "[launch]") {
  if (!ready()) return;
  const auto step = compile_for(Device::cuda(), 24);
  const Problem one(Device::cuda(), 24), two(Device::cuda(), 24);
  const Answer expected = run(step, one);
  Answer from_thread;
  std::thread other([&] { from_thread = run(step, two); });
  const Answer answer = run(step, one);
  other.join();
  CHECK(answer.loss == expected.loss);
  CHECK(answer.gradient == expected.gradient);
  CHECK(from_thread.gradient == expected.gradient);
}

}  // namespace cuda_launch_test
