// The catalogue's embedding.
#include "tigon/ops/embedding.hpp"

#include "ops/entry_support.hpp"

namespace tigon::ops {
namespace {

template <class D>
struct EmbeddingOf {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<D(Vocab, Hidden)>, table), (Slot<i32(Tokens)>, ids));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<D(Tokens, Hidden)>, y));
  };
};

dsl::Graph forward(const Settings& settings) {
  return for_float(settings, [&]<class D>() {
    using Of = EmbeddingOf<D>;
    std::optional<std::int64_t> padding;
    if (!settings.is("padding", "none")) padding = static_cast<std::int64_t>(settings.number("padding"));
    return *function("embedding", [padding](typename Of::template Args<Tensor> in) {
              return typename Of::template Out<Tensor>{.y = embedding<Vocab>(in.table, in.ids, padding)};
            }).trace();
  });
}

constexpr AxisDefault axes[] = {{"tokens", 8192}, {.name = "vocab", .extent = 32768, .least = 1}, {"hidden", 4096}};
constexpr std::string_view padding_values[] = {"none", "0", "-1"};
constexpr OptionSpec options[] = {{"padding", padding_values, any_whole, "the index whose row is 0"}};
constexpr InputHint hints[] = {
    {.input = "ids", .domain = Domain::index, .axis = "vocab", .ignored = 0.2, .ignore = "padding"}};
constexpr std::string_view wrt[] = {"table"};
constexpr std::string_view outputs[] = {"y"};

}  // namespace

constinit const OpEntry embedding_entry = {.name = "embedding",
                                           .doc = "rows of a table by index; the padding index gives 0",
                                           .formula = "y = table[ids]",
                                           .axes = axes,
                                           .long_axis = "vocab",
                                           .dtypes = float_dtypes,
                                           .options = options,
                                           .hints = hints,
                                           .wrt = wrt,
                                           .differentiated = outputs,
                                           .forward = forward};

}  // namespace tigon::ops
