// The catalogue's AdamW update, in place.
#include "tigon/ops/adamw.hpp"

#include "ops/entry_support.hpp"

namespace tigon::ops {
namespace {

struct Elements : axis<"elements"> {};

// The moments' dtype M is f32 or the parameter's.
template <class D, class M>
struct AdamwOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Elements)>, parameter), (Slot<D(Elements)>, gradient), (Slot<M(Elements)>, first),
               (Slot<M(Elements)>, second), (Slot<scalar<f32>>, learning_rate), (Slot<scalar<f32>>, beta1),
               (Slot<scalar<f32>>, beta2), (Slot<scalar<f32>>, epsilon), (Slot<scalar<f32>>, weight_decay),
               (Slot<scalar<f32>>, step), (Slot<maybe<f32()>>, clip));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<inplace<"parameter", D(Elements)>>, parameter), (Slot<inplace<"first", M(Elements)>>, first),
              (Slot<inplace<"second", M(Elements)>>, second));
  };
};

template <class D, class M>
dsl::Graph forward_with(const Settings& settings) {
  using Of = AdamwOf<D, M>;
  typename Of::template Args<Shape> shape;
  if (settings.is("clip", "present")) shape.clip = present;
  return *function("adamw", [](typename Of::template Args<Tensor> in) {
            const auto update = adamw(in.parameter, in.gradient, in.first, in.second,
                                      {.learning_rate = in.learning_rate,
                                       .beta1 = in.beta1,
                                       .beta2 = in.beta2,
                                       .epsilon = in.epsilon,
                                       .weight_decay = in.weight_decay,
                                       .step = in.step,
                                       .clip = in.clip});
            return typename Of::template Out<Tensor>{
                .parameter = update.parameter, .first = update.first, .second = update.second};
          }).trace(shape);
}

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, [&]<class D>() {
    return settings.is("moments", "f32") ? forward_with<D, f32>(settings) : forward_with<D, D>(settings);
  });
}

constexpr AxisDefault axes[] = {{"elements", 16777216}};
constexpr std::string_view moments[] = {"f32", "parameter"};
constexpr OptionSpec options[] = {{"moments", moments, no_number, "dtype of the running means"},
                                  {"clip", absent_present, no_number, "a factor of the gradient, on the device"}};
constexpr InputHint hints[] = {{"second", Domain::uniform, 0, 2},
                               {"clip", Domain::uniform, 0.1, 1},
                               {"learning_rate", Domain::uniform, 1e-4, 1e-2},
                               {"beta1", Domain::uniform, 0.8, 0.95},
                               {"beta2", Domain::uniform, 0.95, 0.999},
                               {"epsilon", Domain::uniform, 1e-8, 1e-6},
                               {"weight_decay", Domain::uniform, 0, 0.1},
                               {"step", Domain::uniform, 1, 1000}};

}  // namespace

constinit const OpEntry adamw_entry = {
    .name = "adamw",
    .doc = "AdamW's update of one tensor, in place",
    .formula = "p = p (1 - lr wd) - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)",
    .axes = axes,
    .long_axis = "elements",
    .dtypes = float_dtypes,
    .options = options,
    .hints = hints,
    .forward = forward};

}  // namespace tigon::ops
