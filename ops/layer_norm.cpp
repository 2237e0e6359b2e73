// The catalogue's LayerNorm.
#include "tigon/ops/layer_norm.hpp"

#include "ops/entry_support.hpp"

namespace tigon::ops {
namespace {

template <class D>
struct LayerNormOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Tokens, Hidden)>, x), (Slot<D(Hidden)>, weight), (Slot<maybe<D(Hidden)>>, bias));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<D(Tokens, Hidden)>, y));
  };
};

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, [&]<class D>() {
    using Of = LayerNormOf<D>;
    const LayerNormOptions options{.epsilon = settings.number("epsilon")};
    typename Of::template Args<Shape> shape;
    if (settings.is("bias", "present")) shape.bias = present;
    return *function("layer_norm", [options](typename Of::template Args<Tensor> in) {
              typename Of::template Out<Tensor> out;
              if (in.bias) {
                out.y = layer_norm<Hidden>(in.x, in.weight, *in.bias, options);
              } else {
                out.y = layer_norm<Hidden>(in.x, in.weight, options);
              }
              return out;
            }).trace(shape);
  });
}

constexpr AxisDefault axes[] = {{"tokens", 8192}, {"hidden", 4096}};
constexpr std::string_view epsilon[] = {"1e-5", "1e-2"};
constexpr std::string_view bias[] = {"present", "absent"};
constexpr OptionSpec options[] = {{"epsilon", epsilon, LayerNormOptions::epsilon_range, "added to the variance"},
                                  {"bias", bias}};
constexpr std::string_view wrt[] = {"x", "weight", "bias"};
constexpr std::string_view outputs[] = {"y"};

}  // namespace

constinit const OpEntry layer_norm_entry = {.name = "layer_norm",
                                            .doc = "LayerNorm, the variance as the mean of squared differences",
                                            .formula = "y = (x - mean(x)) / sqrt(var(x) + epsilon) * weight + bias",
                                            .axes = axes,
                                            .long_axis = "hidden",
                                            .dtypes = float_dtypes,
                                            .options = options,
                                            .wrt = wrt,
                                            .differentiated = outputs,
                                            .forward = forward};

}  // namespace tigon::ops
