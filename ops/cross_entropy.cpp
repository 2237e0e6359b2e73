// The catalogue's cross entropy of logits.
#include "ops/loss_options.hpp"

namespace tigon::ops {
namespace {

template <class D>
struct CrossEntropyOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Tokens, Vocab)>, logits), (Slot<i64(Tokens)>, target), (Slot<maybe<f32(Vocab)>>, weight));
  };
};

template <class D>
dsl::Graph forward_in(const Settings& settings) {
  using Of = CrossEntropyOf<D>;
  const CrossEntropyOptions options = cross_entropy_options(settings);
  const bool all = settings.is("outputs", "all");
  typename Of::template Args<Shape> shape;
  if (settings.is("class_weight", "present")) shape.weight = present;
  return for_reduction(settings, [&]<LossReduction reduction>() {
    return *function("cross_entropy", [options, all](typename Of::template Args<Tensor> in) {
              return loss_results<reduction>(cross_entropy_terms<Vocab>(in.logits, in.target, options, in.weight), all);
            }).trace(shape);
  });
}

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, [&]<class D>() { return forward_in<D>(settings); });
}

constexpr AxisDefault axes[] = {{"tokens", 8192}, {.name = "vocab", .extent = 128256, .least = 1}};
constexpr InputHint hints[] = {
    {.input = "target", .domain = Domain::index, .axis = "vocab", .ignored = 0.2, .ignore = "ignore_index"},
    {"weight", Domain::uniform, 0.5, 2}};
constexpr std::string_view wrt[] = {"logits"};

}  // namespace

constinit const OpEntry cross_entropy_entry = {
    .name = "cross_entropy",
    .doc = "cross entropy with smoothing, z-loss, softcap, class weights and per-token results",
    .formula = "loss = mean(logsumexp(x) - x[target]), over targets that are not ignore_index",
    .axes = axes,
    .long_axis = "vocab",
    .dtypes = float_dtypes,
    .options = cross_entropy_option_list,
    .hints = hints,
    .wrt = wrt,
    .differentiated = loss_outputs,
    .forward = forward};

}  // namespace tigon::ops
