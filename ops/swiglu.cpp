// The catalogue's SwiGLU, of two tensors or of one that holds both halves.
#include "ops/entry_support.hpp"
#include "tigon/ops/gated.hpp"

namespace tigon::ops {
namespace {

struct Both : axis<"both"> {};

template <class D>
struct SwigluOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<maybe<D(Tokens, Hidden)>>, gate), (Slot<maybe<D(Tokens, Hidden)>>, up),
               (Slot<maybe<D(Tokens, Both)>>, packed));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<D(Tokens, Hidden)>, y));
  };
};

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, [&]<class D>() {
    using Of = SwigluOf<D>;
    const SwigluOptions options{settings.number("gate_multiplier"), settings.number("down_multiplier")};
    typename Of::template Args<Shape> shape;
    if (settings.is("packed", "on")) {
      shape.packed = present;
    } else {
      shape.gate = present;
      shape.up = present;
    }
    return *function("swiglu", [options](typename Of::template Args<Tensor> in) {
              typename Of::template Out<Tensor> out;
              if (in.packed) {
                out.y = packed_swiglu<Both, Hidden>(*in.packed, options);
              } else {
                out.y = swiglu(*in.gate, *in.up, options);
              }
              return out;
            }).trace(shape);
  });
}

constexpr AxisDefault axes[] = {{"tokens", 8192}, {"hidden", 11008}};
constexpr std::string_view gate_multiplier[] = {"1", "0.75"};
constexpr std::string_view down_multiplier[] = {"1", "1.5"};
constexpr OptionSpec options[] = {{"packed", off_on, no_number, "gate and up are the halves of one tensor"},
                                  {"gate_multiplier", gate_multiplier, SwigluOptions::multiplier_range},
                                  {"down_multiplier", down_multiplier, SwigluOptions::multiplier_range}};
constexpr std::string_view wrt[] = {"gate", "up", "packed"};
constexpr std::string_view outputs[] = {"y"};

}  // namespace

constinit const OpEntry swiglu_entry = {.name = "swiglu",
                                        .doc = "SwiGLU, silu rounded before the product",
                                        .formula = "y = silu(gate) * up",
                                        .axes = axes,
                                        .long_axis = "hidden",
                                        .dtypes = float_dtypes,
                                        .options = options,
                                        .wrt = wrt,
                                        .differentiated = outputs,
                                        .forward = forward};

}  // namespace tigon::ops
