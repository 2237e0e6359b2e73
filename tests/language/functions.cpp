// Argument and result structs, optional slots, vectors, and what functions refuse.
#include <boost/hana/first.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/second.hpp>
#include <catch2/catch.hpp>

#include "dsl/print.hpp"
#include "tests/language/support.hpp"

using namespace tigon;

namespace {

template <template <class> class Slot>
struct ZLossArgs {
  TIGON_ARGS(ZLossArgs, (Slot<bf16(Tokens, Hidden)>, x), (Slot<bf16(Vocab, Hidden)>, weight),
             (Slot<i32(Tokens)>, target), (Slot<scalar<f32>>, z_scale));
};

const auto z_loss = tigon::function("z_loss", [](ZLossArgs<Tensor> in) {
  auto logits = dot<Hidden>(in.x, in.weight);
  auto lse = logsumexp<Vocab>(logits);
  auto nll = lse - at<Vocab>(logits, in.target);
  return mean<Tokens>(nll + in.z_scale * square(lse));
});

template <template <class> class Slot>
struct Layer {
  TIGON_ARGS(Layer, (Slot<f32(Hidden)>, up), (std::array<Slot<f32(Hidden)>, 2>, norms), (Slot<maybe<f32()>>, gain));
};
template <template <class> class Slot>
struct Head {
  TIGON_ARGS(Head, (Slot<bf16(Vocab, Hidden)>, weight), (Slot<maybe<bf16(Vocab)>>, bias));
};
template <template <class> class Slot>
struct ModelArgs {
  TIGON_ARGS(ModelArgs, (std::vector<Layer<Slot>>, layers), (Head<Slot>, head), (Slot<scalar<f32>>, scale));
};
template <template <class> class Slot>
struct ModelOut {
  TIGON_OUT(ModelOut, (Slot<bf16(Vocab)>, logits), (Slot<maybe<f32()>>, gain), (std::vector<Slot<f32(Hidden)>>, steps));
};

const auto model = tigon::function("model", [](const ModelArgs<Tensor>& in) {
  Tensor<f32(Hidden)> y = in.layers[0].up;
  ModelOut<Tensor> out;
  for (const auto& layer : in.layers) {
    y = y * layer.up + layer.norms[0] - layer.norms[1];
    if (layer.gain) y = y * *layer.gain;
    if (layer.gain) out.gain = *layer.gain;
    out.steps.push_back(y);
  }
  Tensor<f32(Vocab)> logits = dot<Hidden>(in.head.weight, y) * in.scale;
  if (in.head.bias) logits = logits + *in.head.bias;
  out.logits = logits;
  return out;
});

std::string inputs_of(const tigon::dsl::Graph& graph) {
  std::string names;
  for (const tigon::dsl::InputInfo& input : graph.inputs) names += input.name + " ";
  return names;
}

}  // namespace

TEST_CASE("the z-loss of the documentation") {
  CHECK(output(*z_loss.trace()) ==
        "div(sum<tokens>(add(add(sub(logsumexp<vocab>(sum<hidden>(mul(f32(x), f32(weight)))).max, "
        "at<vocab>(sum<hidden>(mul(f32(x), f32(weight))), target)), "
        "logsumexp<vocab>(sum<hidden>(mul(f32(x), f32(weight)))).log_rest), "
        "mul(z_scale, mul(logsumexp<vocab>(sum<hidden>(mul(f32(x), f32(weight)))).lse, "
        "logsumexp<vocab>(sum<hidden>(mul(f32(x), f32(weight)))).lse)))), f32(extent(tokens))) : f32[]");
}

TEST_CASE("the printed form keeps the layout, the user's names and lines") {
  const auto f = tigon::function("scaled", [](XYArgs<Tensor> in) {
    const auto row = named(sum<Hidden>(in.x), "row");
    return exp(row) + row;
  });
  const std::string text = tigon::dsl::print(*f.trace());
  CHECK_THAT(text, Catch::StartsWith("scaled(x: f32[tokens, hidden], y: f32[hidden], h: bf16[tokens], i: i32[tokens], "
                                     "b: bool[tokens], s: f32[])\n"));
  CHECK_THAT(text, Catch::Contains("row  functions.cpp:"));
  CHECK_THAT(text, Catch::Contains("return value = "));
}

TEST_CASE("nested structs, arrays and vectors have paths") {
  ModelArgs<Shape> shape;
  shape.layers.resize(2);
  shape.layers[1].gain = present;
  const auto graph = model.trace(shape);
  CHECK(inputs_of(*graph) ==
        "layers[0].up layers[0].norms[0] layers[0].norms[1] layers[1].up layers[1].norms[0] layers[1].norms[1] "
        "layers[1].gain head.weight ");
  REQUIRE(graph->scalars.size() == 1);
  CHECK(graph->scalars[0].name == "scale");
  CHECK(output(*graph, "steps[0]") ==
        "sub(add(layers[0].norms[0], mul(layers[0].up, layers[0].up)), layers[0].norms[1]) : f32[hidden]");
  CHECK(output(*graph, "gain") == "layers[1].gain : f32[]");
}

TEST_CASE("the structs are Hana structs") {
  Layer<Shape> layer;
  layer.gain = present;
  std::string names;
  boost::hana::for_each(boost::hana::accessors<Layer<Shape>>(),
                        [&](auto accessor) { names += std::string(boost::hana::first(accessor).c_str()) + " "; });
  CHECK(names == "up norms gain ");
  CHECK(boost::hana::second(boost::hana::accessors<Layer<Shape>>()[boost::hana::size_c<2>])(layer).given);
}

TEST_CASE("an absent slot leaves no trace") {
  ModelArgs<Shape> shape;
  shape.layers.resize(1);
  const std::string without = output(*model.trace(shape), "logits");
  shape.head.bias = present;
  const std::string with = output(*model.trace(shape), "logits");
  CHECK_THAT(without, !Catch::Contains("head.bias"));
  CHECK_THAT(with, Catch::Contains("f32(head.bias)"));
  CHECK(output(*model.trace(shape), "gain") == "no output gain");
}

TEST_CASE("an output is rounded to its dtype and laid out as declared") {
  ModelArgs<Shape> shape;
  shape.layers.resize(1);
  CHECK_THAT(output(*model.trace(shape), "logits"), Catch::StartsWith("bf16("));
}

namespace {
template <template <class> class Slot>
struct AdamArgs {
  TIGON_ARGS(AdamArgs, (Slot<f32(Hidden)>, p), (Slot<bf16(Hidden)>, g));
};
template <template <class> class Slot>
struct AdamOut {
  TIGON_OUT(AdamOut, (Slot<inplace<"p", f32(Hidden)>>, p), (Slot<accumulate<f32(Hidden)>>, total));
};
template <template <class> class Slot>
struct WrongAliasOut {
  TIGON_OUT(WrongAliasOut, (Slot<inplace<"q", f32(Hidden)>>, p));
};
template <template <class> class Slot>
struct WrongDtypeOut {
  TIGON_OUT(WrongDtypeOut, (Slot<inplace<"g", f32(Hidden)>>, p));
};
template <template <class> class Slot>
struct TransposedOut {
  TIGON_OUT(TransposedOut, (Slot<f32(Hidden, Tokens)>, x));
};
}  // namespace

TEST_CASE("outputs write, accumulate or share an input's buffer") {
  const auto step = tigon::function(
      "step", [](AdamArgs<Tensor> in) { return AdamOut<Tensor>{.p = in.p - 0.1 * in.g, .total = in.g}; });
  const auto graph = step.trace();
  REQUIRE(graph->outputs.size() == 2);
  CHECK(graph->outputs[0].mode == tigon::dsl::OutputMode::alias);
  CHECK(graph->outputs[0].alias_input == 0);
  CHECK(graph->outputs[1].mode == tigon::dsl::OutputMode::accumulate);

  const auto unknown = tigon::function("unknown", [](AdamArgs<Tensor> in) { return WrongAliasOut<Tensor>{.p = in.p}; });
  CHECK(
      message_of([&] { (void)unknown.trace(); }) ==
      "unknown: an inplace result names an input that the function does not have (argument `p`): found q, expected one "
      "of p, g, or what several of these begin with");
  const auto unlike = tigon::function("unlike", [](AdamArgs<Tensor> in) { return WrongDtypeOut<Tensor>{.p = in.p}; });
  CHECK_THAT(message_of([&] { (void)unlike.trace(); }),
             Catch::Contains("needs the dtype and the order of axes") && Catch::Contains("argument `p`") &&
                 Catch::Contains("found f32[hidden], expected g: bf16[hidden]"));

  const auto transpose =
      tigon::function("transpose", [](XYArgs<Tensor> in) { return TransposedOut<Tensor>{.x = in.x}; });
  CHECK(output(*transpose.trace(), "x") == "x : f32[hidden,tokens]");
}

namespace {
template <template <class> class Slot>
struct Block {
  TIGON_ARGS(Block, (Slot<f32(Hidden)>, up), (std::array<Slot<f32(Tokens)>, 2>, norms), (Slot<maybe<f32()>>, gain));
};
template <template <class> class Slot>
struct Model {
  TIGON_ARGS(Model, (std::vector<Block<Slot>>, blocks), (Slot<f32(Hidden)>, head));
};
template <template <class> class Slot>
struct UpdateArgs {
  TIGON_ARGS(UpdateArgs, (Model<Slot>, weights), (Model<Slot>, gradients), (std::vector<Slot<f32(Hidden)>>, means));
};
template <template <class> class Slot>
struct UpdateOut {
  TIGON_OUT(UpdateOut, (Model<InPlace<"weights", Slot>::template slot>, next),
            (std::vector<Slot<inplace<"means", f32(Hidden)>>>, means), (Slot<f32()>, norm));
};
template <template <class> class Slot>
struct TwiceOut {
  TIGON_OUT(TwiceOut, (Slot<inplace<"p", f32(Hidden)>>, a), (Slot<inplace<"p", f32(Hidden)>>, b));
};

const auto update = tigon::function("update", [](const UpdateArgs<Tensor>& in) {
  UpdateOut<Tensor> out;
  out.next.blocks.resize(in.weights.blocks.size());
  for (std::size_t i = 0; i < in.weights.blocks.size(); ++i) {
    out.next.blocks[i].up = in.weights.blocks[i].up - in.gradients.blocks[i].up;
    for (std::size_t k = 0; k < 2; ++k)
      out.next.blocks[i].norms[k] = in.weights.blocks[i].norms[k] - in.gradients.blocks[i].norms[k];
    if (in.weights.blocks[i].gain) out.next.blocks[i].gain = *in.weights.blocks[i].gain * 2;
  }
  out.next.head = in.weights.head - in.gradients.head;
  for (const auto& mean : in.means) out.means.push_back(mean * 0.9);
  out.norm = sum<Hidden>(in.gradients.head);
  return out;
});
}  // namespace

TEST_CASE("a struct of results shares the buffers of a struct of arguments, place by place") {
  UpdateArgs<Shape> shape;
  for (Model<Shape>* part : {&shape.weights, &shape.gradients}) part->blocks.resize(2);
  shape.weights.blocks[1].gain = present;
  shape.means.resize(2);
  const auto graph = update.trace(shape);
  std::string pairs;
  for (const auto& info : graph->outputs) {
    if (info.mode != tigon::dsl::OutputMode::alias) continue;
    pairs += info.name + "=" + graph->inputs[static_cast<std::size_t>(info.alias_input)].name + " ";
  }
  CHECK(pairs ==
        "next.blocks[0].up=weights.blocks[0].up next.blocks[0].norms[0]=weights.blocks[0].norms[0] "
        "next.blocks[0].norms[1]=weights.blocks[0].norms[1] next.blocks[1].up=weights.blocks[1].up "
        "next.blocks[1].norms[0]=weights.blocks[1].norms[0] next.blocks[1].norms[1]=weights.blocks[1].norms[1] "
        "next.blocks[1].gain=weights.blocks[1].gain next.head=weights.head means[0]=means[0] means[1]=means[1] ");
  CHECK(graph->outputs.back().name == "norm");
  CHECK(graph->outputs.back().mode == tigon::dsl::OutputMode::write);

  const auto twice =
      tigon::function("twice", [](AdamArgs<Tensor> in) { return TwiceOut<Tensor>{.a = in.p, .b = in.p}; });
  CHECK(message_of([&] { (void)twice.trace(); }) ==
        "twice: two inplace results, this and `a`, share one input (argument `b`): found p. Let one of them write to "
        "memory of its own");
}

TEST_CASE("what a function refuses when it is traced") {
  CHECK(message_of([] { (void)tigon::iota<Hidden>(); }) ==
        "iota: no function is being traced on this thread. Call it inside a function given to tigon::function");

  Tensor<f32(Hidden)> leaked;
  const auto leak = tigon::function("leak", [&](XYArgs<Tensor> in) { return leaked = in.y; });
  (void)leak.trace();
  const auto use = tigon::function("use", [&](XYArgs<Tensor> in) { return in.y + leaked; });
  CHECK_THAT(message_of([&] { (void)use.trace(); }),
             Catch::StartsWith("use: a tensor of another traced function is used"));
  const auto empty = tigon::function("empty", [](XYArgs<Tensor> in) { return in.y + Tensor<f32(Hidden)>(); });
  CHECK_THAT(message_of([&] { (void)empty.trace(); }), Catch::StartsWith("empty: an empty tensor is used"));
  const auto unset = tigon::function("unset", [](XYArgs<Tensor>) { return TransposedOut<Tensor>{}; });
  CHECK_THAT(message_of([&] { (void)unset.trace(); }), Catch::StartsWith("unset: a result was not set (argument `x`)"));
  const auto absent = tigon::function("absent", [](const ModelArgs<Tensor>& in) { return *in.head.bias; });
  CHECK_THAT(message_of([&] { (void)absent.trace(); }), Catch::StartsWith("absent: an absent tensor was read"));
}

TEST_CASE("a refused trace leaves none behind") {
  const auto bad = tigon::function("bad", [](XYArgs<Tensor> in) { return in.y + Tensor<f32(Hidden)>(); });
  CHECK_THROWS_AS(bad.trace(), tigon::Error);
  CHECK_THROWS_AS(tigon::iota<Hidden>(), tigon::Error);
}

TEST_CASE("tracing twice gives the same graph") {
  ModelArgs<Shape> shape;
  shape.layers.resize(3);
  shape.layers[2].gain = present;
  shape.head.bias = present;
  CHECK(tigon::dsl::print(*model.trace(shape)) == tigon::dsl::print(*model.trace(shape)));
  CHECK(tigon::dsl::print(*z_loss.trace()) == tigon::dsl::print(*z_loss.trace()));
}

TEST_CASE("optional slots give another value in their place") {
  const auto f = tigon::function("f", [](const Head<Tensor>& in) {
    Tensor<bf16(Vocab)> zero = broadcast<Vocab>(number<bf16>(0));
    return in.bias.or_else(zero);
  });
  CHECK(output(*f.trace()) == "view<+vocab>(0) : bf16[vocab]");
  CHECK(output(*f.trace({.bias = present})) == "bias : bf16[vocab]");
}

TEST_CASE("the prototype of arguments at hand") {
  ModelArgs<Buffer> args;
  args.layers.resize(2);
  float gain = 1;
  args.layers[0].gain = Buffer<f32()>(&gain, {});
  const ModelArgs<Shape> shape = shape_of(args);
  REQUIRE(shape.layers.size() == 2);
  CHECK(shape.layers[0].gain.given);
  CHECK_FALSE(shape.layers[1].gain.given);
  CHECK_FALSE(shape.head.bias.given);
}
