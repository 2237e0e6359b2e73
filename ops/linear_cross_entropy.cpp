// The catalogue's cross entropy behind the projection that makes the logits.
#include "ops/loss_options.hpp"

namespace tigon::ops {
namespace {

template <class D>
struct LinearCrossEntropyOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Tokens, Hidden)>, x), (Slot<D(Vocab, Hidden)>, weight), (Slot<i64(Tokens)>, target),
               (Slot<maybe<D(Vocab)>>, bias), (Slot<maybe<f32(Vocab)>>, class_weight));
  };
};

template <class D>
dsl::Graph forward_in(const Settings& settings) {
  using Of = LinearCrossEntropyOf<D>;
  const CrossEntropyOptions options = cross_entropy_options(settings);
  const bool all = settings.is("outputs", "all");
  typename Of::template Args<Shape> shape;
  if (settings.is("class_weight", "present")) shape.class_weight = present;
  if (settings.is("bias", "present")) shape.bias = present;
  return for_reduction(settings, [&]<LossReduction reduction>() {
    return *function("linear_cross_entropy", [options, all](typename Of::template Args<Tensor> in) {
              return loss_results<reduction>(linear_cross_entropy_terms<Hidden, Vocab>(
                                                 in.x, in.weight, in.target, options, in.bias, in.class_weight),
                                             all);
            }).trace(shape);
  });
}

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, [&]<class D>() { return forward_in<D>(settings); });
}

constexpr AxisDefault axes[] = {{"tokens", 8192}, {"vocab", 128256, 1, 1, 129}, {"hidden", 4096, 1, 0, 41}};
constexpr const OptionSpec (&shared)[cross_entropy_option_count] = cross_entropy_option_list;
constexpr OptionSpec options[] = {shared[0], shared[1], shared[2],
                                  shared[3], shared[4], shared[5],
                                  shared[6], shared[7], {"bias", absent_present, no_number, "added to the logits"}};
static_assert(std::size(options) == cross_entropy_option_count + 1);
constexpr InputHint hints[] = {
    {.input = "target", .domain = Domain::index, .axis = "vocab", .ignored = 0.2, .ignore = "ignore_index"},
    {"class_weight", Domain::uniform, 0.5, 2},
    {"weight", Domain::uniform, -0.5, 0.5}};
constexpr std::string_view wrt[] = {"x", "weight", "bias"};

}  // namespace

constinit const OpEntry linear_cross_entropy_entry = {
    .name = "linear_cross_entropy",
    .doc = "projection and cross entropy, the logits never stored whole",
    .formula = "loss = cross_entropy(x weight^T + bias, target)",
    .axes = axes,
    .long_axis = "vocab",
    .dtypes = float_dtypes,
    .options = options,
    .hints = hints,
    .wrt = wrt,
    .differentiated = loss_outputs,
    .forward = forward};

}  // namespace tigon::ops
