// The graphs that the verified table of chunking is about, built by hand at sizes that make its ratios come out.
#pragma once
#include <string>
#include <vector>

#include "differentiate_support.hpp"
#include "dsl/reference/run_chunked.hpp"

namespace tigon::dsl::testing {

// A prepared graph, exact, with its extents and inputs.
struct ChunkCase {
  Graph graph;
  EvaluateInputs inputs;
  [[nodiscard]] AxisId axis(const std::string& name) const;
  [[nodiscard]] std::size_t input(const std::string& name) const;
  [[nodiscard]] std::size_t output(const std::string& name) const;
};
ChunkCase prepared(const Graph& graph, std::vector<std::pair<std::string, std::int64_t>> extents,
                   int integer_limit = 3);

enum class Loss { mean, smoothed, z_softcap, none, ignored_mean, weighted_z, exp_mean, exp_mean_late, infinite_logits };
struct CrossEntropySizes {
  std::int64_t tokens = 12, vocab = 17, hidden = 5;
};
// Linear cross entropy with the gradients of x and w. exp_mean_late: the derivative of the exponential multiplies the
// gradients at the end, after the last contraction.
ChunkCase linear_cross_entropy(Loss loss, CrossEntropySizes sizes = {});
ChunkCase distillation();  // generalised Jensen-Shannon; the teacher's hidden axis is longer by 8/5
ChunkCase preference();    // DPO: policy and reference logits over pairs, two answers, time
ChunkCase kto(bool second_forward);
enum class Policy { token, sequence, sequence_of_any_count };
// GRPO by token, GSPO by sequence; the count of tokens is taken to be at least 1, or not.
ChunkCase policy(Policy what);
enum class Mlp { forward, vjp, squares };
ChunkCase swiglu(Mlp what);
ChunkCase attention_forward();
ChunkCase attention_vjp();
ChunkCase attention_vjp_saved();
ChunkCase rms_norm(bool gradient_first_association);
ChunkCase layer_norm_forward(bool two_pass);
enum class Statistics { saved, moments, two_pass };
ChunkCase layer_norm_gradient(Statistics statistics);
ChunkCase embedding();
ChunkCase predictions();
ChunkCase affine_composition();
ChunkCase moments_of_two_axes();
ChunkCase remapped_vocabulary();
ChunkCase window(bool computed);

}  // namespace tigon::dsl::testing
