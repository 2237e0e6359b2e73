// What the typed half hands to the runtime, seen by a core that records it.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "tests/language/support.hpp"

using namespace tigon;

namespace {

std::size_t allocations = 0;

template <template <class> class Slot>
struct Layer {
  TIGON_ARGS(Layer, (Slot<f32(Hidden)>, up), (Slot<maybe<bf16(Hidden)>>, gain));
};
template <template <class> class Slot>
struct NetArgs {
  TIGON_ARGS(NetArgs, (std::vector<Layer<Slot>>, layers), (Slot<scalar<f32>>, scale), (Slot<f32(Tokens, Hidden)>, x),
             (Slot<scalar<i32>>, step));
};
template <template <class> class Slot>
struct NetOut {
  TIGON_OUT(NetOut, (Slot<f32(Tokens, Hidden)>, y), (Slot<f32()>, loss));
};
const auto net = tigon::function("net", [](const NetArgs<Tensor>& in) {
  Tensor<f32(Tokens, Hidden)> y = in.x * in.scale;
  for (const auto& layer : in.layers) y = y * layer.up;
  return NetOut<Tensor>{.y = y, .loss = sum<Tokens, Hidden>(y) + in.step};
});

// Records a launch without allocating, and gives what a test has put into `pool`.
class RecordingCore final : public detail::CompiledCore {
 public:
  explicit RecordingCore(detail::CompileRequest request) : CompiledCore(std::move(request)) {}
  void launch(const Stream&, std::span<const detail::RawBuffer> in, std::span<const detail::RawScalar> numbers,
              std::span<const detail::RawBuffer> out, void* workspace, std::size_t bytes) override {
    std::copy(in.begin(), in.end(), inputs.begin());
    std::copy(out.begin(), out.end(), outputs.begin());
    std::copy(numbers.begin(), numbers.end(), scalars.begin());
    input_count = in.size();
    output_count = out.size();
    scalar_count = numbers.size();
    given_workspace = workspace;
    given_bytes = bytes;
  }
  std::shared_ptr<void> launch_pooled(const Stream& stream, std::span<const detail::RawBuffer> in,
                                      std::span<const detail::RawScalar> numbers,
                                      std::span<detail::RawBuffer> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = pool[i];
    launch(stream, in, numbers, out, nullptr, 0);
    return owner;
  }
  std::size_t workspace_bytes() const override { return 4096; }
  std::size_t workspace_bytes(std::span<const detail::RawBuffer> in) override { return 64 * in.size(); }
  Counters counters() const override { return {}; }

  std::array<detail::RawBuffer, 64> inputs, outputs, pool;
  std::array<detail::RawScalar, 64> scalars{};
  std::size_t input_count = 0, output_count = 0, scalar_count = 0, given_bytes = 0;
  void* given_workspace = nullptr;
  std::shared_ptr<void> owner;
};

template <template <template <class> class> class Args, class R>
auto recorded(const Function<Args, R>& function, const Args<Shape>& shape, std::shared_ptr<RecordingCore>& core) {
  auto traced = function.trace_with_results(shape);
  auto request = detail::compile_request<Args>(traced.graph, shape, {}, {});
  detail::add_paths(traced.result, request.outputs, nullptr);
  core = std::make_shared<RecordingCore>(std::move(request));
  return Compiled<Args, R>(core, traced.result);
}

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("a launch hands over buffers and scalars in the order of their paths") {
  std::shared_ptr<RecordingCore> core;
  NetArgs<Shape> shape;
  shape.layers.resize(2);
  shape.layers[1].gain = present;
  const auto step = recorded(net, shape, core);
  CHECK(core->request().inputs ==
        std::vector<std::string>{"layers[0].up", "layers[0].gain", "layers[1].up", "layers[1].gain", "x"});
  CHECK(core->request().scalars == std::vector<std::string>{"scale", "step"});
  CHECK(core->request().outputs == std::vector<std::string>{"y", "loss"});

  std::vector<float> up(8), x(24), y(24);
  std::vector<bf16> gain(8);
  float loss = 0;
  NetArgs<Buffer> args;
  args.layers.resize(2);
  for (auto& layer : args.layers) layer.up = Buffer<f32(Hidden)>(up.data(), {8});
  args.layers[1].gain = Buffer<bf16(Hidden)>(gain.data(), {8});
  args.scale = 0.5F;
  args.step = 7;
  args.x = Buffer<f32(Tokens, Hidden)>(x.data(), {3, 8}, {16, 1});
  const NetOut<Buffer> out{.y = Buffer<f32(Tokens, Hidden)>(y.data(), {3, 8}), .loss = Buffer<f32()>(&loss, {})};

  const std::size_t before = allocations;
  step.into(Stream(), args, out, y.data(), 96);
  CHECK(allocations == before);

  REQUIRE(core->input_count == 5);
  CHECK(core->inputs[0].pointer == up.data());
  CHECK(core->inputs[1].pointer == nullptr);
  CHECK(core->inputs[3].pointer == gain.data());
  CHECK(core->inputs[3].dtype == DType::bf16);
  CHECK(core->inputs[4].rank == 2);
  CHECK(core->inputs[4].extents[0] == 3);
  CHECK(core->inputs[4].strides[0] == 16);
  REQUIRE(core->scalar_count == 2);
  CHECK(core->scalars[0].bits == std::bit_cast<std::uint32_t>(0.5F));
  CHECK(core->scalars[1].bits == 7);
  REQUIRE(core->output_count == 2);
  CHECK(core->outputs[0].strides[0] == 8);
  CHECK(core->outputs[1].pointer == &loss);
  CHECK(core->given_workspace == y.data());
  CHECK(core->given_bytes == 96);
  CHECK(step.workspace_bytes() == 4096);
  CHECK(step.workspace_bytes(args) == 320);

  args.step = {};
  CHECK(message_of([&] { step.into(Stream(), args, out, nullptr, 0); }) ==
        "net: a scalar argument was not given (argument `step`)");
  args.step = 7;
  args.layers.resize(1);
  CHECK_THAT(message_of([&] { step.into(Stream(), args, out, nullptr, 0); }),
             Catch::Contains("another number of buffers") && Catch::Contains("expected 5"));
  args.layers.resize(3);
  CHECK_THAT(message_of([&] { step.into(Stream(), args, out, nullptr, 0); }), Catch::Contains("expected 5"));
}

TEST_CASE("more buffers than the stack holds are packed without allocating from the second launch on") {
  std::shared_ptr<RecordingCore> core;
  NetArgs<Shape> shape;
  shape.layers.resize(25);
  const auto step = recorded(net, shape, core);
  NetArgs<Buffer> args;
  args.layers.resize(25);
  args.scale = 1.0F;
  args.step = 1;
  std::vector<float> up(4);
  args.layers[24].up = Buffer<f32(Hidden)>(up.data(), {4});
  const NetOut<Buffer> out;
  step.into(Stream(), args, out, nullptr, 0);
  const std::size_t before = allocations;
  step.into(Stream(), args, out, nullptr, 0);
  CHECK(allocations == before);
  CHECK(core->input_count == 51);
  CHECK(core->inputs[48].pointer == up.data());
}

TEST_CASE("the returning form gives results by name, which keep their memory") {
  std::shared_ptr<RecordingCore> core;
  const auto function = tigon::function("total", [](XYArgs<Tensor> in) { return sum<Hidden>(in.y); });
  const auto step = recorded(value_and_grad(function, wrt<"y">), {}, core);
  CHECK(core->request().outputs == std::vector<std::string>{"value", "grad.x", "grad.y", "grad.h", "grad.i", "grad.b"});
  float value = 3;
  std::vector<float> gradient(4, 1.0F);
  core->pool[0] = Buffer<f32()>(&value, {}).raw();
  core->pool[2] = Buffer<f32(Hidden)>(gradient.data(), {4}).raw();
  core->owner = std::make_shared<int>(1);

  XYArgs<Buffer> args;
  args.s = 1.0F;
  auto [total, grad] = step(Stream(), args);
  CHECK(*total.data == 3);
  CHECK(core->owner.use_count() == 3);
  CHECK_FALSE(grad.x);
  CHECK(grad.y.buffer().data == gradient.data());
  CHECK(grad.y.buffer().extents[0] == 4);
  CHECK(message_of([&] { (void)grad.x.buffer(); }) == "this gradient was not asked for. Name the argument in wrt<...>");
  CHECK(message_of([&] { (void)grad.y.buffer<bf16>(); }) ==
        "the gradient has another dtype: found f32, expected bf16. Read it with buffer<D>(), D being the dtype that "
        "grad_dtype asked for");
}
