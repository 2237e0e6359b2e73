// Names that a user gives with named() stand in the kernels' texts; kernels of layers that differ only in an index are
// equal, and compile once.
#include <set>

#include "codegen/loops/print.hpp"
#include "runtime/compiled.hpp"
#include "runtime/program.hpp"
#include "tigon/ops/all.hpp"
#include "tigon/tigon.hpp"

namespace {

using namespace tigon;

struct Tokens : axis<"tokens"> {};
struct Vocab : axis<"vocab"> {};
struct Hidden : axis<"hidden"> {};

template <template <class> class Slot>
struct NamesArgs {
  TIGON_ARGS(NamesArgs, (Slot<f32(Tokens, Hidden)>, x), (Slot<f32(Vocab, Hidden)>, weight),
             (Slot<i32(Tokens)>, target));
};

template <class F>
plan::Plan plan_of(const F& function, const Extents& given) {
  return runtime::make_plan(*function.trace(), given, {});
}
std::string texts(const plan::Plan& plan) {
  std::string all;
  for (const plan::Kernel& kernel : plan.kernels) {
    all += loops::print(kernel.scheduled.nest);
    all += runtime::llvm_text(kernel.scheduled.nest, 32).text;
  }
  return all;
}

}  // namespace

TEST_CASE("a stored value, a reduction and their gradient bear the user's names in the kernels") {
  const auto loss = function("loss", [](const NamesArgs<Tensor>& in) {
    const auto scores = named(dot<Hidden>(in.x, in.weight), "scores");
    const auto normaliser = named(logsumexp<Vocab>(scores), "normaliser");
    return mean<Tokens>(normaliser - at<Vocab>(scores, in.target));
  });
  const auto given = extents<Tokens, Vocab, Hidden>(256, 512, 64);
  const std::string forward = texts(plan_of(loss, given));
  INFO(forward);
  CHECK(forward.find("scores") != std::string::npos);
  CHECK(forward.find("normaliser") != std::string::npos);
  const std::string backward = texts(plan_of(value_and_grad(loss, wrt<"x", "weight">), given));
  INFO(backward);
  CHECK(backward.find("d_scores") != std::string::npos);
}

TEST_CASE("names with an index do not make equal kernels unequal") {
  const auto layers = function("layers", [](const NamesArgs<Tensor>& in) {
    Tensor<f32(Tokens, Hidden)> x = in.x;
    for (int layer = 0; layer < 8; ++layer) {
      const auto place = "layers[" + std::to_string(layer) + "].";
      const auto scores = named(dot<Hidden>(x, in.weight), place + "scores");
      const auto share = named(softmax<Vocab>(scores), place + "share");
      x = named(x + dot<Vocab>(share, in.weight), place + "next");
    }
    return x;
  });
  const plan::Plan plan = plan_of(layers, extents<Tokens, Vocab, Hidden>(256, 512, 64));
  std::set<std::string> different;
  for (const plan::Kernel& kernel : plan.kernels) {
    std::string text = runtime::llvm_text(kernel.scheduled.nest, 32).text;
    different.insert(text);
  }
  INFO(plan.kernels.size() << " kernels, " << different.size() << " texts");
  CHECK(plan.kernels.size() >= 16);
  CHECK(different.size() <= 6);  // the first layer reads the argument, the last writes the result
}
