// The catalogue's squared norm of all gradients and the factor that clips them.
#include "ops/entry_support.hpp"
#include "tigon/ops/adamw.hpp"

namespace tigon::ops {
namespace {

template <class D>
struct GlobalNormOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Vocab, Hidden)>, matrix), (Slot<D(Hidden)>, vector), (Slot<scalar<f32>>, largest));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<f32()>, norm_squared), (Slot<f32()>, clip));
  };
};

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, []<class D>() {
    using Of = GlobalNormOf<D>;
    return *function("global_norm", [](typename Of::template Args<Tensor> in) {
              const auto squared = global_norm_squared(in.matrix, in.vector);
              return
                  typename Of::template Out<Tensor>{.norm_squared = squared, .clip = clip_factor(squared, in.largest)};
            }).trace();
  });
}

constexpr AxisDefault axes[] = {{"vocab", 32768}, {"hidden", 4096}};
constexpr InputHint hints[] = {{"largest", Domain::uniform, 0.5, 2}};
constexpr std::string_view wrt[] = {"matrix", "vector"};
constexpr std::string_view outputs[] = {"norm_squared"};

}  // namespace

constinit const OpEntry global_norm_entry = {.name = "global_norm",
                                             .doc = "squared norm over several tensors, and the clipping factor",
                                             .formula = "norm_squared = sum of squares, clip = min(1, largest / norm)",
                                             .axes = axes,
                                             .long_axis = "vocab",
                                             .dtypes = float_dtypes,
                                             .hints = hints,
                                             .wrt = wrt,
                                             .differentiated = outputs,
                                             .forward = forward};

}  // namespace tigon::ops
