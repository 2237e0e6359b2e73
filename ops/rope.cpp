// The catalogue's rotary position embedding, with angles given or computed.
#include "tigon/ops/rope.hpp"

#include "ops/entry_support.hpp"

namespace tigon::ops {
namespace {

struct Heads : axis<"heads"> {};
struct Channels : axis<"channels"> {};
struct Half : axis<"half"> {};

template <class D>
struct RopeOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Tokens, Heads, Channels)>, x), (Slot<maybe<f32(Tokens, Half)>>, cos),
               (Slot<maybe<f32(Tokens, Half)>>, sin), (Slot<maybe<i32(Tokens)>>, position));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<D(Tokens, Heads, Channels)>, y));
  };
};

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, [&]<class D>() {
    using Of = RopeOf<D>;
    const RopeLayout layout = settings.is("layout", "interleaved") ? RopeLayout::interleaved : RopeLayout::half_split;
    const double base = settings.number("base");
    typename Of::template Args<Shape> shape;
    if (settings.is("angles", "given")) {
      shape.cos = present;
      shape.sin = present;
    } else {
      shape.position = present;
    }
    return *function("rope", [layout, base](typename Of::template Args<Tensor> in) {
              typename Of::template Out<Tensor> out;
              if (in.cos) {
                out.y = rope<Channels, Half>(in.x, *in.cos, *in.sin, layout);
              } else {
                const auto angles = rope_angles<Half>(*in.position, base);
                out.y = rope<Channels, Half>(in.x, angles.cos, angles.sin, layout);
              }
              return out;
            }).trace(shape);
  });
}

constexpr AxisDefault axes[] = {{"tokens", 4096}, {"heads", 32, 1, 0, 3}, {"channels", 128, 2, 0, 64}};
constexpr std::string_view layout[] = {"half_split", "interleaved"};
constexpr std::string_view angles[] = {"given", "computed"};
constexpr std::string_view base[] = {"10000", "500000"};
constexpr OptionSpec options[] = {{"layout", layout, no_number, "which channels make a pair"},
                                  {"angles", angles, no_number, "cos and sin as arguments, or out of positions"},
                                  {"base", base, rope_base_range, "of the computed angles' frequencies"}};
constexpr InputHint hints[] = {{"cos", Domain::uniform, -1, 1},
                               {"sin", Domain::uniform, -1, 1},
                               {.input = "position", .domain = Domain::index, .axis = "tokens"}};
constexpr std::string_view wrt[] = {"x"};
constexpr std::string_view outputs[] = {"y"};

}  // namespace

constinit const OpEntry rope_entry = {.name = "rope",
                                      .doc = "rotary position embedding of one tensor of heads",
                                      .formula = "(a, b) -> (a cos - b sin, b cos + a sin) for each pair of channels",
                                      .axes = axes,
                                      .long_axis = "tokens",
                                      .dtypes = float_dtypes,
                                      .options = options,
                                      .hints = hints,
                                      .wrt = wrt,
                                      .differentiated = outputs,
                                      .forward = forward};

}  // namespace tigon::ops
