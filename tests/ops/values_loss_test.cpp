// Cross entropy with each option, and behind its projection, against a plain loop in f64; and the rows that break
// losses.
#include "run_op.hpp"

using namespace tigon;
using namespace tigon::ops;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

using Options = std::vector<std::pair<std::string, std::string>>;

double option(const Options& options, const std::string& name, double otherwise) {
  for (const auto& [key, value] : options)
    if (key == name) return std::stod(value);
  return otherwise;
}
bool has(const Options& options, const std::string& name, const std::string& value) {
  return std::find(options.begin(), options.end(), std::pair(name, value)) != options.end();
}

struct PlainLoss {
  Numbers rows, z, log_probability, entropy, predicted;
  double loss = 0, z_loss = 0, accuracy = 0;
};

PlainLoss plain_loss(Numbers x, const Numbers& target, const Numbers& weight, std::size_t vocab,
                     const Options& options) {
  const double ignored = option(options, "ignore_index", -100);
  const double smoothing = option(options, "smoothing", 0);
  const double z_scale = option(options, "z_loss", 0);
  const double cap = option(options, "softcap", 0);
  PlainLoss out;
  double count = 0, weights = 0, hits = 0;
  for (std::size_t t = 0; t < target.size(); ++t) {
    if (target[t] == ignored) {
      for (Numbers* row : {&out.rows, &out.z, &out.log_probability, &out.entropy}) row->push_back(0);
      out.predicted.push_back(-1);
      continue;
    }
    double* row = x.data() + t * vocab;
    if (cap != 0)
      for (std::size_t c = 0; c < vocab; ++c) row[c] = cap * std::tanh(row[c] / cap);
    const double top = *std::max_element(row, row + vocab);
    double total = 0, all_weights = 0, weighted = 0, plain = 0;
    for (std::size_t c = 0; c < vocab; ++c) {
      total += std::exp(row[c] - top);
      const double w = weight.empty() ? 1 : weight[c];
      all_weights += w;
      weighted += w * row[c];
    }
    const double lse = top + std::log(total);
    double entropy = 0;
    for (std::size_t c = 0; c < vocab; ++c) {
      const double p = std::exp(row[c] - lse);
      entropy -= p == 0 ? 0 : p * (row[c] - lse);
    }
    const auto y = static_cast<std::size_t>(target[t]);
    const double w = weight.empty() ? 1 : weight[y];
    const double nll = lse - row[y];
    plain = (1 - smoothing) * w * nll;
    if (smoothing != 0) plain += smoothing / static_cast<double>(vocab) * (all_weights * lse - weighted);
    const double token = has(options, "token_scaling", "on") ? std::exp(-nll) : 1;
    out.rows.push_back(plain * token);
    out.z.push_back(z_scale * lse * lse * token);
    out.log_probability.push_back(-nll);
    out.entropy.push_back(entropy);
    const auto best = static_cast<std::size_t>(std::max_element(row, row + vocab) - row);
    out.predicted.push_back(static_cast<double>(best));
    hits += best == y ? 1 : 0;
    count += 1;
    weights += w;
  }
  double divisor = weight.empty() ? std::max(count, 1.0) : std::max(weights, 1.1754943508222875e-38);
  double z_divisor = std::max(count, 1.0);
  out.accuracy = hits / z_divisor;
  if (has(options, "reduction", "sum")) divisor = z_divisor = 1;
  for (std::size_t t = 0; t < target.size(); ++t) {
    out.loss += out.rows[t] / divisor + out.z[t] / z_divisor;
    out.z_loss += out.z[t] / z_divisor;
    out.rows[t] += out.z[t];
  }
  return out;
}

void check_loss(RunOp& run, const PlainLoss& expected, const Options& options) {
  const bool rows = has(options, "reduction", "none");
  check_close(run.value("loss"), rows ? expected.rows : Numbers{expected.loss});
  if (!has(options, "outputs", "all")) return;
  check_close(run.value("z_loss"), rows ? expected.z : Numbers{expected.z_loss});
  check_close(run.value("log_probability"), expected.log_probability);
  check_close(run.value("entropy"), expected.entropy);
  check_close(run.value("predicted"), expected.predicted, 0);
  check_close(run.value("accuracy"), {expected.accuracy});
}

const std::vector<Options> each_option{
    {},
    {{"reduction", "sum"}},
    {{"reduction", "none"}},
    {{"smoothing", "0.1"}},
    {{"z_loss", "0.01"}},
    {{"softcap", "2"}},
    {{"ignore_index", "0"}},
    {{"class_weight", "present"}},
    {{"token_scaling", "on"}},
    {{"outputs", "all"}},
    {{"class_weight", "present"}, {"smoothing", "0.1"}, {"z_loss", "0.01"}},
    {{"reduction", "none"}, {"outputs", "all"}, {"softcap", "2"}, {"smoothing", "0.2"}, {"token_scaling", "on"}},
};

// Gradient of the loss with respect to the logits, by hand: z, mask, cap and class weights as in the forward.
Numbers logits_gradient(const Numbers& x, const Numbers& target, std::size_t vocab) {
  Numbers gradient(x.size());
  double count = 0;
  for (const double y : target) count += y == -100 ? 0 : 1;
  for (std::size_t t = 0; t < target.size(); ++t) {
    if (target[t] == -100) continue;
    double total = 0;
    for (std::size_t c = 0; c < vocab; ++c) total += std::exp(x[t * vocab + c]);
    for (std::size_t c = 0; c < vocab; ++c) {
      const double hit = static_cast<double>(c) == target[t] ? 1 : 0;
      gradient[t * vocab + c] = (std::exp(x[t * vocab + c]) / total - hit) / count;
    }
  }
  return gradient;
}

}  // namespace

TEST_CASE("cross_entropy with each option equals a plain loop") {
  constexpr std::size_t tokens = 8, vocab = 5;
  for (const Options& options : each_option) {
    RunOp run("cross_entropy", {.options = options}, {{"tokens", tokens}, {"vocab", vocab}}, 4);
    run.evaluate();
    const Numbers weight = run.has("weight") ? run.argument("weight") : Numbers{};
    for (const auto& [key, value] : options) UNSCOPED_INFO(key << "=" << value);
    check_loss(run, plain_loss(run.argument("logits"), run.argument("target"), weight, vocab, options), options);
  }
}

TEST_CASE("linear_cross_entropy with each option equals a plain loop") {
  constexpr std::size_t tokens = 6, vocab = 5, hidden = 4;
  for (const std::string bias : {"absent", "present"}) {
    for (const Options& given : each_option) {
      Options options = given;
      options.emplace_back("bias", bias);
      RunOp run("linear_cross_entropy", {.options = options},
                {{"tokens", tokens}, {"vocab", vocab}, {"hidden", hidden}}, 4);
      run.evaluate();
      Numbers logits(tokens * vocab);
      for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t c = 0; c < vocab; ++c) {
          double sum = bias == "present" ? run.argument("bias")[c] : 0;
          for (std::size_t h = 0; h < hidden; ++h)
            sum += run.argument("x")[t * hidden + h] * run.argument("weight")[c * hidden + h];
          logits[t * vocab + c] = sum;
        }
      }
      const Numbers weight = run.has("class_weight") ? run.argument("class_weight") : Numbers{};
      for (const auto& [key, value] : options) UNSCOPED_INFO(key << "=" << value);
      check_loss(run, plain_loss(logits, run.argument("target"), weight, vocab, options), options);
    }
  }
}

TEST_CASE("cross_entropy's gradient equals the formula") {
  RunOp run("cross_entropy", {.gradient = true}, {{"tokens", 8}, {"vocab", 5}}, 4);
  run.evaluate();
  check_close(run.value("grad.logits"), logits_gradient(run.argument("logits"), run.argument("target"), 5));
}

TEST_CASE("cross_entropy: a target that leads by 25 keeps its precision in f32") {
  for (const double lead : {0.0, 16.0, 25.0, 60.0}) {
    RunOp run("cross_entropy", {.gradient = true}, {{"tokens", 1}, {"vocab", 64}});
    Numbers& x = run.argument("logits");
    for (std::size_t c = 0; c < 64; ++c) x[c] = 0.25 * static_cast<double>(c % 3);
    x[17] = 0.5 + lead;
    run.argument("target") = {17};
    run.evaluate(true);
    long double rest = 0;
    for (std::size_t c = 0; c < 64; ++c) rest += c == 17 ? 0 : std::exp(static_cast<long double>(x[c] - x[17]));
    const auto nll = static_cast<double>(std::log1p(rest));
    const auto gradient = static_cast<double>(-rest / (1 + rest));
    INFO("lead " << lead);
    check_close(run.value("loss"), {nll}, 1e-12, 0);
    check_close({run.value("grad.logits")[17]}, {gradient}, 1e-12, 0);
    // What f32 kernels are allowed: the bound is a few ulps of the small values themselves, not of the logits.
    CHECK(run.result("loss").bound[0] <= 2e-5 * nll);
    CHECK(run.result("grad.logits").bound[17] <= 2e-5 * std::fabs(gradient));
  }
}

TEST_CASE("cross_entropy: all targets ignored give 0 and gradients of exactly 0") {
  for (const Options& given : each_option) {
    Options options = given;
    if (option(options, "ignore_index", -100) == 0) continue;
    options.emplace_back("ignore_index", "-100");
    RunOp run("cross_entropy", {.options = options, .gradient = true}, {{"tokens", 3}, {"vocab", 4}});
    run.argument("target") = {-100, -100, -100};
    run.argument("logits")[0] = not_a_number;
    run.argument("logits")[5] = infinity;
    if (run.has("weight")) run.argument("weight")[0] = infinity;
    run.evaluate();
    for (const auto& [key, value] : options) UNSCOPED_INFO(key << "=" << value);
    for (const double gradient : run.value("grad.logits")) CHECK(gradient == 0);
    RunOp forward("cross_entropy", {.options = options}, {{"tokens", 3}, {"vocab", 4}});
    forward.argument("target") = run.argument("target");
    forward.argument("logits") = run.argument("logits");
    if (run.has("weight")) forward.argument("weight") = run.argument("weight");
    forward.evaluate();
    // Class weights enter the smoothing of every row: a bad one shows there only where a row counts.
    for (const double loss : forward.value("loss")) CHECK(loss == 0);
  }
}

TEST_CASE("cross_entropy: ignored rows that hold infinities and NaN change nothing") {
  const Options options{{"z_loss", "0.01"}, {"smoothing", "0.1"}, {"outputs", "all"}};
  RunOp clean("cross_entropy", {.options = options}, {{"tokens", 4}, {"vocab", 3}});
  clean.argument("target") = {1, -100, 2, -100};
  clean.evaluate();
  RunOp dirty("cross_entropy", {.options = options}, {{"tokens", 4}, {"vocab", 3}});
  dirty.argument("target") = clean.argument("target");
  Numbers& x = dirty.argument("logits");
  x[3] = not_a_number;
  x[4] = infinity;
  x[9] = x[10] = x[11] = -infinity;
  dirty.evaluate();
  for (const char* output : {"loss", "z_loss", "log_probability", "entropy", "predicted", "accuracy"})
    check_close(dirty.value(output), clean.value(output), 0);
  RunOp gradient("cross_entropy", {.options = {{"z_loss", "0.01"}, {"smoothing", "0.1"}}, .gradient = true},
                 {{"tokens", 4}, {"vocab", 3}});
  gradient.argument("target") = clean.argument("target");
  gradient.argument("logits") = x;
  gradient.evaluate();
  for (const std::size_t i : {3u, 4u, 5u, 9u, 10u, 11u}) CHECK(gradient.value("grad.logits")[i] == 0);
  for (const std::size_t i : {0u, 1u, 2u, 6u, 7u, 8u}) CHECK(std::isfinite(gradient.value("grad.logits")[i]));
}

TEST_CASE("cross_entropy: NaN in a row that counts stays NaN") {
  RunOp run("cross_entropy", {.options = {{"reduction", "none"}}}, {{"tokens", 2}, {"vocab", 3}});
  run.argument("target") = {1, 1};
  run.argument("logits") = {0, not_a_number, 0, 0, 0, 0};
  run.evaluate();
  CHECK(std::isnan(run.value("loss")[0]));
  check_close({run.value("loss")[1]}, {std::log(3.0)});
}

TEST_CASE("cross_entropy: logits of -infinity beside the target count nothing") {
  RunOp run("cross_entropy", {.options = {{"outputs", "all"}}}, {{"tokens", 2}, {"vocab", 3}});
  run.argument("target") = {1, 0};
  run.argument("logits") = {-infinity, 1, 1, 0, -infinity, -infinity};
  run.evaluate();
  check_close(run.value("log_probability"), {-std::log(2.0), 0});
  check_close(run.value("entropy"), {std::log(2.0), 0});
  check_close(run.value("predicted"), {1, 0}, 0);
  RunOp gradient("cross_entropy", {.gradient = true}, {{"tokens", 2}, {"vocab", 3}});
  gradient.argument("target") = run.argument("target");
  gradient.argument("logits") = run.argument("logits");
  gradient.evaluate();
  check_close(gradient.value("grad.logits"), {0, -0.25, 0.25, 0, 0, 0});
}

TEST_CASE("cross_entropy: a vocabulary of one, and no tokens") {
  for (const Options& options : each_option) {
    RunOp one("cross_entropy", {.options = options, .gradient = true}, {{"tokens", 3}, {"vocab", 1}});
    one.argument("target") = {0, 0, 0};
    one.evaluate();
    if (option(options, "z_loss", 0) == 0)
      for (const double gradient : one.value("grad.logits")) CHECK(std::fabs(gradient) < 1e-15);
    RunOp none("cross_entropy", {.options = options}, {{"tokens", 0}, {"vocab", 4}});
    none.evaluate();
    const Numbers expected = has(options, "reduction", "none") ? Numbers{} : Numbers{0};
    check_close(none.value("loss"), expected, 0);
  }
  RunOp loss("cross_entropy", {}, {{"tokens", 3}, {"vocab", 1}});
  loss.argument("target") = {0, 0, -100};
  loss.evaluate();
  check_close(loss.value("loss"), {0}, 0);
}

TEST_CASE("cross_entropy unreduced: an upstream scales its own row's gradient") {
  RunOp none("cross_entropy", {.options = {{"reduction", "none"}}, .gradient = true}, {{"tokens", 4}, {"vocab", 3}}, 7);
  RunOp sum("cross_entropy", {.options = {{"reduction", "sum"}}, .gradient = true}, {{"tokens", 4}, {"vocab", 3}}, 7);
  none.argument("target") = sum.argument("target") = {2, 0, -100, 1};
  none.argument("upstream.loss") = {0.5, -2, 3, 0};
  none.evaluate();
  sum.evaluate();
  Numbers expected;
  for (std::size_t i = 0; i < 12; ++i)
    expected.push_back(none.argument("upstream.loss")[i / 3] * sum.value("grad.logits")[i]);
  check_close(none.value("grad.logits"), expected);
}
