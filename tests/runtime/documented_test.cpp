// The examples in the public headers' comments compile and run; each is looked up in its header, so that neither text
// changes alone.
#include <fstream>
#include <sstream>

#include "tests/runtime/error_text.hpp"
#include "tigon/linearize.hpp"
#include "tigon/monoid.hpp"
#include "tigon/tigon.hpp"

namespace {

using namespace tigon;

// Without blanks, line ends and the slashes of comments.
std::string squeezed(const std::string& text) {
  std::string result;
  for (const char c : text)
    if (c != ' ' && c != '\n' && c != '/') result += c;
  return result;
}
bool stands_in(const std::string& header, const std::string& code) {
  std::ifstream file(std::string(TIGON_SOURCE_DIR "/include/tigon/") + header);
  std::stringstream text;
  text << file.rdbuf();
  if (squeezed(text.str()).find(squeezed(code)) != std::string::npos) return true;
  WARN(header << " does not have `" << code << "`");
  return false;
}

// The code, and a check that the header has it.
#define DOCUMENTED(header, ...)           \
  CHECK(stands_in(header, #__VA_ARGS__)); \
  __VA_ARGS__

struct Tokens : tigon::axis<"tokens"> {};
struct Vocab : axis<"vocab"> {};
struct Hidden : axis<"hidden"> {};
struct Keys : axis<"keys"> {};
struct Pair : axis<"pair", 2> {};

template <template <class> class Slot>
struct NormArgs {
  TIGON_ARGS(NormArgs, (Slot<bf16(Tokens, Hidden)>, x), (Slot<maybe<bf16(Hidden)>>, weight), (Slot<scalar<f32>>, eps));
};
template <template <class> class Slot>
struct DocumentedLayer {
  TIGON_ARGS(DocumentedLayer, (Slot<f32(Hidden)>, up));
};
template <template <class> class Slot>
struct ModelArgs {
  TIGON_ARGS(ModelArgs, (std::vector<DocumentedLayer<Slot>>, layers), (Slot<maybe<f32(Hidden)>>, bias),
             (Slot<f32(Tokens, Hidden)>, x), (Slot<f32(Vocab, Hidden)>, weight), (Slot<i32(Tokens)>, y));
};
template <template <class> class Slot>
struct ModelOut {
  TIGON_OUT(ModelOut, (Slot<f32(Tokens, Hidden)>, y));
};
const auto model = tigon::function("model", [](const ModelArgs<Tensor>& in) {
  Tensor<f32(Tokens, Hidden)> y = in.x;
  for (const auto& layer : in.layers) y = y * layer.up;
  if (in.bias) y = y + *in.bias;
  return ModelOut<Tensor>{.y = y};
});

}  // namespace

TEST_CASE("what the headers say about axes, slots and structs") {
  CHECK(stands_in("axis.hpp", "struct Tokens : tigon::axis<\"tokens\"> {};"));
  CHECK(stands_in("axis.hpp", "axis<\"pair\", 2>"));
  CHECK(Pair::fixed_extent == 2);
  CHECK(stands_in("arguments.hpp",
                  "TIGON_ARGS(NormArgs, (Slot<bf16(Tokens, Hidden)>, x), (Slot<maybe<bf16(Hidden)>>, weight), "
                  "(Slot<scalar<f32>>, eps));"));
  CHECK(stands_in("arguments.hpp", "(Weights<InPlace<\"weights\", Slot>::template slot>, weights)"));
  CHECK(stands_in("tensor.hpp", "if (in.bias) y = y + *in.bias;"));
  const NormArgs<Shape> norm{.x = {}, .weight = present, .eps = {}};
  CHECK(norm.weight.given);
  DOCUMENTED("compile.hpp", ModelArgs<Shape> shape; shape.bias = present; shape.layers.resize(32);)
  CHECK((shape.bias.given && shape.layers.size() == 32));
  CHECK(stands_in("buffer.hpp", "allocate<bf16(Tokens, Hidden)>({8192, 4096})"));
  CHECK(allocate<bf16(Tokens, Hidden)>({8192, 4096}).extents[1] == 4096);
  CHECK(stands_in("extents.hpp", "extents<Tokens, Vocab>(8192, 128256)"));
  CHECK(extents<Tokens, Vocab>(8192, 128256).size() == 2);
  CHECK(stands_in("extents.hpp", "from_to(1, 8192)"));
  CHECK(extents<Tokens, Vocab>(from_to(1, 8192), 128256)[0].low == 1);
}

TEST_CASE("what the headers say about reductions, monoids and self-products") {
  CHECK(stands_in("reduce.hpp", "sum<Tokens, Vocab>(x)"));
  CHECK(stands_in("reduce.hpp", "nll = (parts.max - at<V>(x, y)) + parts.log_rest"));
  CHECK(stands_in("shape.hpp", "dot<D>(q, rename<Tokens, Keys>(q))"));
  DOCUMENTED("monoid.hpp",
             const auto weighted = tigon::monoid<2, 2>("weighted_mean", {0.0, 0.0})
                                       .lift([](auto x, Scalar) { return std::array{x[0] * x[1], x[1]}; })
                                       .merge([](auto a, auto b) { return std::array{a[0] + b[0], a[1] + b[1]}; })
                                       .finish("mean", [](auto s) { return s[0] / s[1]; });)
  (void)weighted;
  const auto f = function("f", [](const ModelArgs<Tensor>& in) {
    const auto x = dot<Hidden>(in.x, in.weight);
    const auto parts = log_softmax_parts<Vocab>(x);
    const auto nll = (parts.max - at<Vocab>(x, in.y)) + parts.log_rest;
    const auto gram = dot<Hidden>(in.x, rename<Tokens, Keys>(in.x));
    return sum<Tokens>(nll) + sum<Tokens, Vocab>(x) + sum<Tokens, Keys>(gram);
  });
  CHECK(f.trace() != nullptr);
}

TEST_CASE("what the headers say about gradients") {
  CHECK(stands_in("differentiate.hpp", "wrt<\"layers\">"));
  CHECK(stands_in("differentiate.hpp", "grad_dtype<\"weight\", f32>"));
  CHECK(stands_in("differentiate.hpp", "grad_accumulate<\"weight\">"));
  ModelArgs<Shape> shape;
  shape.layers.resize(2);
  const auto x = allocate<f32(Tokens, Hidden)>({4, 8}), dy = allocate<f32(Tokens, Hidden)>({4, 8});
  const auto up = allocate<f32(Hidden)>({8});
  std::fill_n(x.data, 32, 2.0F);
  std::fill_n(dy.data, 32, 1.0F);
  std::fill_n(up.data, 8, 3.0F);
  ModelArgs<Buffer> args{.layers = {}, .bias = {}, .x = x, .weight = {}, .y = {}};
  args.layers.resize(2);
  for (auto& layer : args.layers) layer.up = up;
  const auto f = model;
  const Stream stream;
  // [forward, backward] = compile(linearize(f, wrt<"x">), extents), as linearize.hpp opens
  CHECK(stands_in("linearize.hpp", "auto [forward, backward] = compile(linearize(f, wrt<\"x\">), extents)"));
  auto [forward, backward] = compile(linearize(f, wrt<"x">), shape, extents<Tokens, Vocab, Hidden>(4, 16, 8));
  DOCUMENTED("linearize.hpp", auto [out, saved] = forward(stream, args);)
  CHECK(out.y.data[0] == 18.0F);
  CHECK(stands_in("linearize.hpp", "Args<Gradient> gradients = backward(stream, saved, {.y = dy});"));
  ModelArgs<Gradient> gradients = backward(stream, saved, {.y = dy});
  CHECK(gradients.x.buffer().data[31] == 9.0F);
  CHECK(stands_in("differentiate.hpp", "{.arguments = {...}, .upstream = {.y = dy}}"));
  const auto pull = vjp(f, wrt<"layers">);
  decltype(pull)::Arguments<Shape> pull_shape;
  pull_shape.arguments.layers.resize(2);
  const auto pulled = compile(pull, pull_shape, extents<Tokens, Vocab, Hidden>(4, 16, 8))(
      stream, {.arguments = args, .upstream = {.y = dy}});
  CHECK(pulled.grad.layers[1].up.buffer().data[0] == 24.0F);
}
