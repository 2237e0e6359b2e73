// Launches with arguments that cannot be right are refused by name, and more shapes than the table holds bind once
// each.
#include "tigon/error.hpp"
#include "tigon/tigon.hpp"

namespace {

using namespace tigon;

struct Tokens : axis<"tokens"> {};
struct Hidden : axis<"hidden"> {};

template <template <class> class Slot>
struct ScaleArgs {
  TIGON_ARGS(ScaleArgs, (Slot<f32(Tokens, Hidden)>, x), (Slot<scalar<f32>>, factor));
};

const auto scaled_sum =
    function("scaled_sum", [](const ScaleArgs<Tensor>& in) { return sum<Tokens, Hidden>(square(in.x) * in.factor); });

std::string message_of(const std::function<void()>& launch) {
  try {
    launch();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("an extent below zero is refused and named") {
  const auto step = compile(scaled_sum, extents<Tokens, Hidden>(from_to(1, 8), 16));
  auto x = allocate<f32(Tokens, Hidden)>({4, 16});
  const Buffer<f32(Tokens, Hidden)> wrong(x.data, {-1, 16});
  const std::string message = message_of([&] { step(Stream(), {.x = wrong, .factor = 1.0f}); });
  CHECK(message.find("argument `x`") != std::string::npos);
  CHECK(message.find("-1 along dimension 0") != std::string::npos);
}

TEST_CASE("a range of extents that no buffer can have is refused at compile") {
  const std::string message =
      message_of([&] { compile(scaled_sum, extents<Tokens, Hidden>(from_to(1, 1LL << 40), 16)); });
  CHECK(message.find("axis `tokens`") != std::string::npos);
}

TEST_CASE("gradients of a function with a host number launch into the caller's buffers") {
  const auto step = compile(value_and_grad(scaled_sum, wrt<"x">), extents<Tokens, Hidden>(4, 16));
  auto x = allocate<f32(Tokens, Hidden)>({4, 16});
  for (int i = 0; i < 64; ++i) x.data[i] = 0.5f;
  auto value = allocate<f32()>({});
  auto gradient = allocate<f32(Tokens, Hidden)>({4, 16});
  const ScaleArgs<Buffer> args{.x = x, .factor = 3.0f};
  decltype(step)::Results<Buffer> results;
  results.value = value;
  results.grad.x = Buffer<f32(Tokens, Hidden)>(gradient);
  const std::size_t bytes = std::max<std::size_t>(step.workspace_bytes(args), 64);
  const Storage workspace(bytes);
  step.into(Stream(), args, results, workspace.data(), bytes);
  CHECK(value.data[0] == 48.0f);
  CHECK(gradient.data[63] == 3.0f);
  const std::string message = message_of([&] { step.into(Stream(), args, results, nullptr, 1 << 20); });
  CHECK(message.find("argument `workspace`") != std::string::npos);
}

TEST_CASE("more shapes than the table holds bind once each") {
  const auto step = compile(scaled_sum, extents<Tokens, Hidden>(from_to(1, 40), 16));
  auto x = allocate<f32(Tokens, Hidden)>({40, 16});
  for (int i = 0; i < 640; ++i) x.data[i] = 1.0f;
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t tokens = 1; tokens <= 40; ++tokens) {
      const auto out = step(Stream(), {.x = Buffer<f32(Tokens, Hidden)>(x.data, {tokens, 16}), .factor = 1.0f});
      CHECK(out.value.data[0] == static_cast<float>(16 * tokens));
    }
  }
  CHECK(step.counters().binds == 40);
}
