// The catalogue's softmax.
#include "tigon/ops/softmax.hpp"

#include "ops/entry_support.hpp"

namespace tigon::ops {
namespace {

template <class D>
struct SoftmaxOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Tokens, Vocab)>, x));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<D(Tokens, Vocab)>, y));
  };
};

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, []<class D>() {
    using Of = SoftmaxOf<D>;
    return *function("softmax", [](typename Of::template Args<Tensor> in) {
              return typename Of::template Out<Tensor>{.y = ops::softmax<Vocab>(in.x)};
            }).trace();
  });
}

constexpr AxisDefault axes[] = {{"tokens", 4096}, {"vocab", 32768}};
constexpr std::string_view wrt[] = {"x"};
constexpr std::string_view outputs[] = {"y"};

}  // namespace

constinit const OpEntry softmax_entry = {.name = "softmax",
                                         .doc = "softmax over the vocabulary",
                                         .formula = "y = exp(x - logsumexp(x))",
                                         .axes = axes,
                                         .long_axis = "vocab",
                                         .dtypes = float_dtypes,
                                         .wrt = wrt,
                                         .differentiated = outputs,
                                         .forward = forward};

}  // namespace tigon::ops
