// The catalogue's RMSNorm fused with the addition of the residual.
#include "ops/norm_options.hpp"

namespace tigon::ops {
namespace {

template <class D>
struct AddRmsNormOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Tokens, Hidden)>, x), (Slot<D(Tokens, Hidden)>, residual), (Slot<D(Hidden)>, weight));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<D(Tokens, Hidden)>, y), (Slot<D(Tokens, Hidden)>, sum));
  };
};

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, [&]<class D>() {
    using Of = AddRmsNormOf<D>;
    const RmsNormOptions options = rms_norm_options(settings);
    return *function("add_rms_norm", [options](typename Of::template Args<Tensor> in) {
              const auto both = add_rms_norm<Hidden>(in.x, in.residual, in.weight, options);
              return typename Of::template Out<Tensor>{.y = both.y, .sum = both.sum};
            }).trace();
  });
}

constexpr AxisDefault axes[] = {{"tokens", 8192}, {"hidden", 4096}};
constexpr std::string_view wrt[] = {"x", "residual", "weight"};
constexpr std::string_view outputs[] = {"y", "sum"};

}  // namespace

constinit const OpEntry add_rms_norm_entry = {.name = "add_rms_norm",
                                              .doc = "the residual's addition and RMSNorm of the rounded sum",
                                              .formula = "sum = x + residual, y = rms_norm(sum)",
                                              .axes = axes,
                                              .long_axis = "hidden",
                                              .dtypes = float_dtypes,
                                              .options = rms_norm_option_list,
                                              .wrt = wrt,
                                              .differentiated = outputs,
                                              .forward = forward};

}  // namespace tigon::ops
