// Functions that differentiate others, by the names and dtypes of what they trace to.
#include <catch2/catch.hpp>

#include "tests/language/support.hpp"

using namespace tigon;

namespace {

template <template <class> class Slot>
struct LinearArgs {
  TIGON_ARGS(LinearArgs, (Slot<bf16(Tokens, Hidden)>, x), (Slot<bf16(Vocab, Hidden)>, weight),
             (Slot<maybe<bf16(Vocab)>>, bias), (Slot<scalar<f32>>, scale));
};
template <template <class> class Slot>
struct LossOut {
  TIGON_OUT(LossOut, (Slot<f32()>, loss), (Slot<i64(Tokens)>, predicted));
};

const auto linear = tigon::function("linear", [](LinearArgs<Tensor> in) {
  Tensor<f32(Tokens, Vocab)> y = dot<Hidden>(in.x, in.weight) * in.scale;
  if (in.bias) y = y + *in.bias;
  return y;
});
const auto loss = tigon::function("loss", [](LinearArgs<Tensor> in) {
  const auto y = dot<Hidden>(in.x, in.weight);
  return LossOut<Tensor>{.loss = mean<Tokens>(logsumexp<Vocab>(y)), .predicted = argmax<Vocab>(y)};
});
const auto single = tigon::function(
    "single", [](LinearArgs<Tensor> in) { return mean<Tokens>(logsumexp<Vocab>(dot<Hidden>(in.x, in.weight))); });

std::string signature_of(const tigon::dsl::Graph& graph) {
  std::string text = graph.name + "(";
  for (const auto& input : graph.inputs) text += input.name + " ";
  text += "->";
  for (const auto& info : graph.outputs) {
    text += " " + info.name + ":" + std::string(tigon::name(info.dtype));
    if (info.mode == tigon::dsl::OutputMode::accumulate) text += "+";
  }
  return text + ")";
}

}  // namespace

TEST_CASE("value_and_grad keeps the results and adds gradients in their inputs' dtypes") {
  CHECK(signature_of(*value_and_grad(single, wrt<"x", "weight">).trace()) ==
        "single/value_and_grad(x weight -> value:f32 grad.x:bf16 grad.weight:bf16)");
  CHECK(signature_of(*value_and_grad(loss, wrt<"weight">, grad_dtype<"weight", f32>).trace()) ==
        "loss/value_and_grad(x weight -> loss:f32 predicted:i64 grad.weight:f32)");
  CHECK(signature_of(
            *value_and_grad(single, wrt<"weight">, grad_dtype<"weight", f32>, grad_accumulate<"weight">).trace()) ==
        "single/value_and_grad(x weight -> value:f32 grad.weight:f32+)");
}

TEST_CASE("vjp takes an upstream for each result, or for those that are marked") {
  const auto pull = vjp(linear, wrt<"x", "bias">);
  auto shape = decltype(pull)::Arguments<Shape>();
  shape.arguments.bias = present;
  CHECK(signature_of(*pull.trace(shape)) == "linear/vjp(x weight bias upstream.value -> grad.x:bf16 grad.bias:bf16)");

  const auto of_loss = vjp(loss, wrt<"x">);
  auto marked = decltype(of_loss)::Arguments<Shape>();
  marked.upstream.loss = present;
  CHECK(signature_of(*of_loss.trace(marked)) == signature_of(*of_loss.trace()));
}

TEST_CASE("what differentiation refuses") {
  CHECK(message_of([] { (void)value_and_grad(single, wrt<"wieght">).trace(); }) ==
        "single: no tensor argument that is present has this path (argument `wieght`): expected one of x, weight");
  CHECK_THAT(message_of([] { (void)value_and_grad(single, wrt<"bias">).trace(); }), Catch::Contains("argument `bias`"));
  CHECK_THAT(message_of([] { (void)value_and_grad(single, wrt<"x">, grad_dtype<"y", f32>).trace(); }),
             Catch::Contains("argument `y`"));
}

TEST_CASE("an option for a gradient that is not asked for is refused") {
  CHECK(
      message_of([] { (void)value_and_grad(single, wrt<"x">, grad_dtype<"weight", f32>).trace(); }) ==
      "single: an option is given for a gradient that is not asked for (argument `weight`): found grad_dtype, expected "
      "an argument of wrt: x. Name it in wrt<...> too, or leave the option out");
  CHECK_THAT(message_of([] { (void)vjp(linear, wrt<"weight">, grad_accumulate<"weight", "x">).trace(); }),
             Catch::Contains("argument `x`") && Catch::Contains("found grad_accumulate"));
}

TEST_CASE("linearize hands saved values from forward to backward") {
  const auto both = linearize(single, wrt<"weight">, grad_dtype<"weight", f32>);
  const detail::LinearizedGraphs graphs = detail::linearize(single.trace(), single.name(), both.request(), {});
  REQUIRE_FALSE(graphs.saved.empty());
  CHECK(graphs.forward->name == "single/forward");
  CHECK(graphs.forward->outputs.size() == 1 + graphs.saved.size());
  CHECK(graphs.forward->outputs[0].name == "value");
  const std::string backward = signature_of(*graphs.backward);
  CHECK_THAT(backward, Catch::StartsWith("single/backward(") && Catch::EndsWith("-> grad.weight:f32)"));
  for (const std::string& saved : graphs.saved) CHECK_THAT(backward, Catch::Contains(saved + " "));
  CHECK_THAT(backward, Catch::Contains("upstream.value "));
}
