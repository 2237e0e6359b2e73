// The catalogue's attention, with groups of query heads that share keys and values.
#include "tigon/ops/attention.hpp"

#include "ops/entry_support.hpp"

namespace tigon::ops {
namespace {

struct Heads : axis<"heads"> {};
struct Group : axis<"group"> {};
struct Queries : axis<"queries"> {};
struct Keys : axis<"keys"> {};
struct Channels : axis<"channels"> {};

template <class D>
struct AttentionOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Heads, Group, Queries, Channels)>, q), (Slot<D(Heads, Keys, Channels)>, k),
               (Slot<D(Heads, Keys, Channels)>, v));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<D(Heads, Group, Queries, Channels)>, y));
  };
};

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, [&]<class D>() {
    using Of = AttentionOf<D>;
    AttentionOptions options;
    options.scale = settings.number("scale");
    options.first_query = static_cast<std::int64_t>(settings.number("first_query"));
    if (settings.is("mask", "none")) options.mask = AttentionMask::none;
    return *function("attention", [options](typename Of::template Args<Tensor> in) {
              return
                  typename Of::template Out<Tensor>{.y = attention<Queries, Keys, Channels>(in.q, in.k, in.v, options)};
            }).trace();
  });
}

constexpr AxisDefault axes[] = {{"heads", 8, 1, 0, 3},
                                {"group", 4, 1, 0, 3},
                                {"queries", 2048, 1, 0, 41},
                                {"keys", 2048, 1, 0, 129},
                                {"channels", 128, 1, 1, 41}};
constexpr std::string_view mask[] = {"causal", "none"};
constexpr std::string_view scale[] = {"0", "0.25"};
constexpr std::string_view first_query[] = {"0", "2"};
constexpr OptionSpec options[] = {
    {"mask", mask},
    {"scale", scale, AttentionOptions::scale_range, "of the scores; 0: 1 / sqrt(channels)"},
    {"first_query", first_query, AttentionOptions::first_query_range, "position of query 0 among the keys"}};
constexpr std::string_view wrt[] = {"q", "k", "v"};
constexpr std::string_view outputs[] = {"y"};

}  // namespace

constinit const OpEntry attention_entry = {.name = "attention",
                                           .doc = "scaled dot-product attention, causal or full, grouped heads",
                                           .formula = "y = softmax(scale q k^T) v",
                                           .axes = axes,
                                           .long_axis = "keys",
                                           .dtypes = float_dtypes,
                                           .options = options,
                                           .wrt = wrt,
                                           .differentiated = outputs,
                                           .forward = forward};

}  // namespace tigon::ops
