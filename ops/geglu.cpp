// The catalogue's GeGLU, with GELU by tanh or by erf.
#include "ops/entry_support.hpp"
#include "tigon/ops/gated.hpp"

namespace tigon::ops {
namespace {

template <class D>
struct GegluOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Tokens, Hidden)>, gate), (Slot<D(Tokens, Hidden)>, up));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<D(Tokens, Hidden)>, y));
  };
};

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, [&]<class D>() {
    using Of = GegluOf<D>;
    const Gelu form = settings.is("gelu", "erf") ? Gelu::erf : Gelu::tanh;
    return *function("geglu", [form](typename Of::template Args<Tensor> in) {
              return typename Of::template Out<Tensor>{.y = geglu(in.gate, in.up, form)};
            }).trace();
  });
}

constexpr AxisDefault axes[] = {{"tokens", 8192}, {"hidden", 11008}};
constexpr std::string_view gelu_values[] = {"tanh", "erf"};
constexpr OptionSpec options[] = {{"gelu", gelu_values}};
constexpr std::string_view wrt[] = {"gate", "up"};
constexpr std::string_view outputs[] = {"y"};

}  // namespace

constinit const OpEntry geglu_entry = {.name = "geglu",
                                       .doc = "GeGLU, gelu rounded before the product",
                                       .formula = "y = gelu(gate) * up",
                                       .axes = axes,
                                       .long_axis = "hidden",
                                       .dtypes = float_dtypes,
                                       .options = options,
                                       .wrt = wrt,
                                       .differentiated = outputs,
                                       .forward = forward};

}  // namespace tigon::ops
