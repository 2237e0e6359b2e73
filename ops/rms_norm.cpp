// The catalogue's RMSNorm.
#include "tigon/ops/rms_norm.hpp"

#include "ops/norm_options.hpp"

namespace tigon::ops {
namespace {

template <class D>
struct RmsNormOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Tokens, Hidden)>, x), (Slot<maybe<D(Hidden)>>, weight));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<D(Tokens, Hidden)>, y));
  };
};

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, [&]<class D>() {
    using Of = RmsNormOf<D>;
    const RmsNormOptions options = rms_norm_options(settings);
    typename Of::template Args<Shape> shape;
    if (settings.is("weight", "present")) shape.weight = present;
    return *function("rms_norm", [options](typename Of::template Args<Tensor> in) {
              typename Of::template Out<Tensor> out;
              if (in.weight) {
                out.y = rms_norm<Hidden>(in.x, *in.weight, options);
              } else {
                out.y = rms_norm<Hidden>(in.x, options);
              }
              return out;
            }).trace(shape);
  });
}

constexpr AxisDefault axes[] = {{"tokens", 8192}, {"hidden", 4096}};
constexpr std::string_view present_absent[] = {"present", "absent"};
constexpr OptionSpec options[] = {
    rms_norm_option_list[0], rms_norm_option_list[1], rms_norm_option_list[2], {"weight", present_absent}};
constexpr std::string_view wrt[] = {"x", "weight"};
constexpr std::string_view outputs[] = {"y"};

}  // namespace

constinit const OpEntry rms_norm_entry = {.name = "rms_norm",
                                          .doc = "RMSNorm; casting says where a 16-bit one rounds",
                                          .formula = "y = x / sqrt(mean(x^2) + epsilon) * (offset + weight)",
                                          .axes = axes,
                                          .long_axis = "hidden",
                                          .dtypes = float_dtypes,
                                          .options = options,
                                          .wrt = wrt,
                                          .differentiated = outputs,
                                          .forward = forward};

}  // namespace tigon::ops
