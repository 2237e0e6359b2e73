// The table of chunking: passes, passes with a contraction, and contraction work of known losses, layers and gradients.
// Peak memory is compared at one size only, the one the table states; elsewhere what must be stored is compared.
#include <cmath>

#include "levels_cases.hpp"

namespace tigon::dsl::testing {
namespace {

struct Row {
  std::vector<std::string> axes;            // outermost first
  std::vector<std::pair<int, int>> passes;  // by nesting: passes, heavy ones
  double work = 1;                          // contraction work against unchunked when crossing values are recomputed
  double stored_work = 1;                   // and when they are stored
  std::int64_t stored = -1;                 // numbers stored at full extent where large values may be; -1: not said
};

double largest_error(const std::vector<TensorValue>& found, const std::vector<TensorValue>& expected) {
  double largest = 0;
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    REQUIRE(found[i].value.size() == expected[i].value.size());
    for (std::size_t k = 0; k < found[i].value.size(); ++k) {
      const double a = found[i].value[k];
      const double b = expected[i].value[k];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double error = std::abs(a - b) / (1 + std::abs(b));
      largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
    }
  }
  return largest;
}

// Chunk sizes 1, a non-divisor, and full.
std::vector<i64> sizes_of(i64 extent) {
  i64 ragged = 2;
  while (extent % ragged == 0 && ragged < extent) ++ragged;
  return {1, ragged, std::max<i64>(extent, 1)};
}

std::int64_t stored_numbers(const ChunkCase& the, const ChunkedRun& run) {
  std::int64_t count = 0;
  for (const NodeId id : run.stored) {
    std::int64_t elements = 1;
    for (const AxisId axis : the.graph.node(id).axes) elements *= the.inputs.extents[axis];
    count += elements;
  }
  return count;
}

void check(const std::string& name, const ChunkCase& the, const std::vector<Row>& rows) {
  const ChunkedRun whole = run_chunked(the.graph, the.inputs, {});
  const std::vector<TensorValue> reference = evaluate(the.graph, the.inputs, {.honour_casts = false});
  INFO(name);
  REQUIRE(largest_error(whole.outputs, reference) < 1e-10);
  for (const Row& row : rows) {
    std::string nest;
    std::vector<std::vector<i64>> sizes;
    std::size_t ways = 1;
    for (const std::string& axis : row.axes) {
      nest += (nest.empty() ? "" : ">") + axis;
      sizes.push_back(sizes_of(the.inputs.extents[the.axis(axis)]));
      ways *= 3;
    }
    for (const bool store : {false, true}) {
      for (std::size_t way = 0; way < ways; ++way) {
        ChunkedOptions options;
        options.store_large = store;
        std::size_t digits = way;
        for (std::size_t d = 0; d < row.axes.size(); ++d, digits /= 3)
          options.axes.push_back({the.axis(row.axes[d]), sizes[d][digits % 3]});
        INFO(name << " over " << nest << (store ? ", stored" : "") << ", sizes " << way);
        const ChunkedRun run = run_chunked(the.graph, the.inputs, options);
        REQUIRE(run.refusal.empty());
        CHECK(largest_error(run.outputs, whole.outputs) < 1e-10);
        if (whole.contraction_work > 0) {
          const double work = store ? row.stored_work : row.work;
          CHECK(run.contraction_work / whole.contraction_work == Approx(work).margin(0.005));
        }
        if (store) {
          if (row.stored >= 0) CHECK(stored_numbers(the, run) == row.stored);
          continue;
        }
        for (std::size_t d = 0; d < row.axes.size(); ++d) {
          CHECK(run.passes[d].passes == row.passes[d].first);
          CHECK(run.passes[d].heavy == row.passes[d].second);
        }
      }
    }
  }
}

constexpr std::int64_t tokens_by_vocab = 12 * 17;

}  // namespace

TEST_CASE("levels table: linear cross entropy", "[levels]") {
  for (const Loss loss : {Loss::mean, Loss::smoothed, Loss::z_softcap, Loss::none}) {
    check("linear CE " + std::to_string(static_cast<int>(loss)), linear_cross_entropy(loss),
          {{{"tokens"}, {{1, 1}}, 1, 1, 0},
           {{"vocab"}, {{2, 2}}, 1.33, 1, tokens_by_vocab},
           {{"hidden"}, {{2, 2}}},
           {{"tokens", "vocab"}, {{1, 1}, {2, 2}}, 1.33},
           {{"vocab", "tokens"}, {{2, 2}, {1, 1}}, 1.33}});
  }
}

// The table's line at 256 tokens, a vocabulary of 1,000 and hidden 32. It held 3 values of tokens by vocabulary
// unchunked, and so does the run here; they differ in the few numbers per token or per chunk that are alive beside
// these.
TEST_CASE("levels table: memory of a larger cross entropy", "[.full][levels]") {
  const ChunkCase the = linear_cross_entropy(Loss::mean, {256, 1000, 32});
  const ChunkedAxis tokens{the.axis("tokens"), 16};
  const ChunkedAxis vocab{the.axis("vocab"), 50};
  const auto peak = [&](std::vector<ChunkedAxis> axes, bool store) {
    return run_chunked(the.graph, the.inputs, {std::move(axes), store}).peak;
  };
  CHECK(static_cast<double>(peak({}, false)) == Approx(768'002).epsilon(0.02));
  CHECK(static_cast<double>(peak({tokens}, false)) == Approx(48'003).epsilon(0.02));
  CHECK(static_cast<double>(peak({vocab}, false)) == Approx(39'426).epsilon(0.02));
  CHECK(static_cast<double>(peak({vocab}, true)) == Approx(295'426).epsilon(0.02));
  CHECK(peak({tokens, vocab}, false) <= 2'978);
  CHECK(peak({tokens, vocab}, true) <= 18'978);
  CHECK(peak({vocab, tokens}, false) <= 3'938);
  CHECK(peak({vocab, tokens}, true) <= 259'938);
}

TEST_CASE("levels table: cross entropy over a count", "[levels]") {
  const std::vector<Row> rows{{{"tokens"}, {{2, 1}}}, {{"vocab"}, {{2, 2}}, 1.33, 1, tokens_by_vocab}};
  check("ignored mean", linear_cross_entropy(Loss::ignored_mean), rows);
  check("weighted + z", linear_cross_entropy(Loss::weighted_z), rows);
  ChunkCase ignored = linear_cross_entropy(Loss::ignored_mean);
  for (double& y : ignored.inputs.tensors[ignored.input("y")].value) y = 1;
  check("all ignored", ignored, rows);
  const ChunkedRun run = run_chunked(ignored.graph, ignored.inputs, {});
  for (const double gradient : run.outputs[1].value) CHECK(gradient == 0);
}

TEST_CASE("levels table: axes of extent 0", "[levels]") {
  const std::vector<Row> rows{{{"tokens"}, {{2, 1}}}, {{"vocab"}, {{2, 2}}}};
  check("no hidden", linear_cross_entropy(Loss::ignored_mean, {12, 17, 0}), rows);
  check("no tokens", linear_cross_entropy(Loss::ignored_mean, {0, 17, 5}), rows);
  check("no tokens, nested", linear_cross_entropy(Loss::mean, {0, 17, 5}),
        {{{"tokens", "vocab"}, {{1, 1}, {0, 0}}}, {{"vocab", "tokens"}, {{2, 2}, {1, 1}}}});
  ChunkCase empty = linear_cross_entropy(Loss::ignored_mean, {0, 0, 5});
  check("no vocabulary", empty, rows);
}

TEST_CASE("levels table: a function of the mean", "[levels]") {
  check("exp(mean)", linear_cross_entropy(Loss::exp_mean),
        {{{"tokens"}, {{2, 2}}, 1.33, 1},
         // The log-sum-exp of each token is kept from the first outer pass: no third run of the logits.
         {{"tokens", "vocab"}, {{2, 2}, {1, 1}}, 1.33, 1}});
  const ChunkCase late = linear_cross_entropy(Loss::exp_mean_late);
  check("exp(mean), late", late, {{{"tokens"}, {{2, 2}}, 1.33, 1, 12 * 5}});
  const ChunkedRun run = run_chunked(late.graph, late.inputs, {{{late.axis("tokens"), 5}}, true});
  CHECK(run.passes[0].passes == 2);
  CHECK(run.passes[0].heavy == 1);  // tokens by hidden are stored, not tokens by vocabulary
}

TEST_CASE("levels table: infinities", "[levels]") {
  const std::vector<Row> rows{{{"tokens"}, {{2, 1}}}, {{"vocab"}, {{2, 2}}, 1.33}};
  const double infinity = std::numeric_limits<double>::infinity();
  const ChunkCase plain = linear_cross_entropy(Loss::infinite_logits);
  const auto values = [](ChunkCase& the, const char* input) -> std::vector<double>& {
    return the.inputs.tensors[the.input(input)].value;
  };
  ChunkCase some = plain;
  for (std::size_t i = 0; i < 204; i += 5) values(some, "bias")[i] = -infinity;
  for (std::size_t t = 0; t < 12; ++t)
    values(some, "bias")[t * 17 + static_cast<std::size_t>(values(some, "y")[t])] = 1;
  check("-inf logits", some, rows);
  const ChunkedRun of_some = run_chunked(some.graph, some.inputs, {});
  for (const double gradient : of_some.outputs[2].value) CHECK(std::isfinite(gradient));
  ChunkCase row = plain;
  for (std::size_t v = 0; v < 17; ++v) values(row, "bias")[3 * 17 + v] = -infinity;
  values(row, "y")[3] = 1;  // ignored
  check("an ignored row of -inf", row, rows);
  ChunkCase open_row = row;
  values(open_row, "y")[3] = 2;
  check("a row of -inf", open_row, rows);
  ChunkCase ignored = plain;
  for (std::size_t h = 0; h < 5; ++h) values(ignored, "x")[4 * 5 + h] = infinity;
  values(ignored, "y")[4] = 1;
  check("inf in an ignored row", ignored, rows);
  const ChunkedRun of_ignored = run_chunked(ignored.graph, ignored.inputs, {});
  for (const std::size_t output : {std::size_t{1}, std::size_t{2}})
    for (const double gradient : of_ignored.outputs[output].value) CHECK(std::isfinite(gradient));
  ChunkCase positive = plain;
  values(positive, "bias")[2 * 17 + 3] = values(positive, "bias")[2 * 17 + 9] = infinity;
  check("+inf logits", positive, rows);
  ChunkCase weighted = linear_cross_entropy(Loss::weighted_z);
  weighted.inputs.tensors[weighted.input("weight")].value[0] = infinity;
  for (double& y : weighted.inputs.tensors[weighted.input("y")].value) y = y == 0 ? 2 : y;
  check("an infinite weight that nobody picks", weighted, rows);
}

TEST_CASE("levels table: distillation, preferences and policies", "[levels]") {
  check("JSD", distillation(), {{{"tokens"}, {{1, 1}}}, {{"vocab"}, {{3, 3}}, 2.13}});
  check("DPO", preference(),
        {{{"pairs"}, {{1, 1}}},
         {{"time"}, {{2, 2}}, 1.25},
         {{"pair"}, {{2, 2}}, 1.25},
         {{"vocab"}, {{2, 2}}, 1.25},
         {{"pairs", "time"}, {{1, 1}, {2, 2}}, 1.25},
         {{"time", "pairs"}, {{2, 2}, {1, 1}}, 1.25}});
  check("KTO, KL from a second forward", kto(true), {{{"batch"}, {{2, 2}}}});
  check("KTO, KL from the same logits", kto(false), {{{"batch"}, {{2, 2}}, 1.33}});
  check("GRPO", policy(Policy::token), {{{"time"}, {{2, 1}}}, {{"batch"}, {{2, 1}}}});
  check("GSPO", policy(Policy::sequence_of_any_count), {{{"batch"}, {{2, 1}}}, {{"time"}, {{3, 2}}, 1.33}});
  // The table's 3 passes over time have a middle one of masks only, the sum of masks by 1/count. Where the count is
  // known to be at least 1 its reciprocal is carried beside the cotangent, so the sum needs no count and no pass.
  check("GSPO, at least one token", policy(Policy::sequence), {{{"batch"}, {{2, 1}}}, {{"time"}, {{2, 2}}, 1.33}});
}

TEST_CASE("levels table: MLP and attention", "[levels]") {
  check("SwiGLU", swiglu(Mlp::forward), {{{"tokens"}, {{1, 1}}}, {{"width"}, {{1, 1}}}});
  check("SwiGLU vjp", swiglu(Mlp::vjp), {{{"tokens"}, {{1, 1}}}, {{"width"}, {{1, 1}}}});
  check("SwiGLU, sum of squares", swiglu(Mlp::squares), {{{"width"}, {{2, 2}}, 1.21}});
  check("attention", attention_forward(), {{{"query"}, {{1, 1}}}, {{"key"}, {{2, 2}}, 1.44}});
  check("attention vjp", attention_vjp(), {{{"query"}, {{1, 1}}}, {{"key"}, {{3, 3}}, 1.59}});
  check("attention vjp, O and lse saved", attention_vjp_saved(), {{{"query"}, {{1, 1}}}, {{"key"}, {{1, 1}}}});
}

TEST_CASE("levels table: norms", "[levels]") {
  const auto over = [](int hidden) { return std::vector<Row>{{{"hidden"}, {{hidden, 0}}}, {{"tokens"}, {{1, 0}}}}; };
  check("RMSNorm and gradient", rms_norm(false), over(2));
  check("RMSNorm and gradient, other association", rms_norm(true), over(2));
  check("LayerNorm by moments", layer_norm_forward(false), over(2));
  check("LayerNorm in two passes", layer_norm_forward(true), over(3));
  check("LayerNorm gradient, statistics saved", layer_norm_gradient(Statistics::saved), over(2));
  check("LayerNorm gradient by moments", layer_norm_gradient(Statistics::moments), over(3));
  check("LayerNorm gradient in two passes", layer_norm_gradient(Statistics::two_pass), over(4));
}

TEST_CASE("levels table: embedding, predictions, monoids, gathers", "[levels]") {
  check("embedding", embedding(), {{{"tokens"}, {{1, 0}}}, {{"vocab"}, {{1, 0}}}, {{"hidden"}, {{1, 0}}}});
  check("argmax, confidence, rank, entropy", predictions(), {{{"tokens"}, {{1, 1}}}, {{"vocab"}, {{2, 2}}, 2.0}});
  check("affine composition", affine_composition(), {{{"rows"}, {{1, 0}}}, {{"steps"}, {{2, 0}}}});
  check("moments over two axes", moments_of_two_axes(),
        {{{"rows"}, {{1, 0}}},
         {{"columns"}, {{1, 0}}},
         {{"rows", "columns"}, {{1, 0}, {1, 0}}},
         {{"columns", "rows"}, {{1, 0}, {1, 0}}}});
  check("gather with fill", remapped_vocabulary(),
        {{{"vocab_student"}, {{2, 2}}},
         {{"vocab_teacher"}, {{1, 0}}},
         {{"vocab_student", "vocab_teacher"}, {{2, 2}, {1, 0}}},
         {{"vocab_teacher", "vocab_student"}, {{1, 0}, {1, 0}}}});
  check("window over a computed table", window(true), {{{"time"}, {{2, 0}}, 1, 1, 24}});
  check("window over an input", window(false), {{{"time"}, {{1, 0}}, 1, 1, 0}});
}

}  // namespace tigon::dsl::testing
