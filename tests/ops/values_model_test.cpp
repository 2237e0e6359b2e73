// Rope, gated activations, embedding, attention and the optimiser against plain loops in f64.
#include <numbers>

#include "run_op.hpp"

using namespace tigon;
using namespace tigon::ops;

TEST_CASE("rope turns pairs by given and by computed angles") {
  constexpr std::size_t tokens = 4, heads = 2, half = 3;
  for (const std::string layout : {"half_split", "interleaved"}) {
    for (const std::string angles : {"given", "computed"}) {
      RunOp run("rope", {.options = {{"layout", layout}, {"angles", angles}, {"base", "500"}}},
                {{"tokens", tokens}, {"heads", heads}, {"channels", 2 * half}});
      run.evaluate();
      const Numbers& x = run.argument("x");
      Numbers expected(x.size());
      for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t h = 0; h < heads; ++h) {
          for (std::size_t i = 0; i < half; ++i) {
            double c = 0, s = 0;
            if (angles == "given") {
              c = run.argument("cos")[t * half + i];
              s = run.argument("sin")[t * half + i];
            } else {
              const double angle = run.argument("position")[t] / std::pow(500.0, static_cast<double>(i) / half);
              c = std::cos(angle);
              s = std::sin(angle);
            }
            const std::size_t row = (t * heads + h) * 2 * half;
            const std::size_t first = row + (layout == "half_split" ? i : 2 * i);
            const std::size_t second = first + (layout == "half_split" ? half : 1);
            expected[first] = x[first] * c - x[second] * s;
            expected[second] = x[second] * c + x[first] * s;
          }
        }
      }
      INFO(layout << " " << angles);
      check_close(run.value("y"), expected);
    }
  }
}

TEST_CASE("swiglu, packed and with multipliers, equals a plain loop") {
  constexpr std::size_t tokens = 3, hidden = 5;
  for (const std::string packed : {"off", "on"}) {
    RunOp run("swiglu", {.options = {{"packed", packed}, {"gate_multiplier", "0.75"}, {"down_multiplier", "1.5"}}},
              {{"tokens", tokens}, {"hidden", hidden}});
    run.evaluate();
    Numbers expected;
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t c = 0; c < hidden; ++c) {
        const bool both = packed == "on";
        const double gate = both ? run.argument("packed")[t * 2 * hidden + c] : run.argument("gate")[t * hidden + c];
        const double up =
            both ? run.argument("packed")[t * 2 * hidden + hidden + c] : run.argument("up")[t * hidden + c];
        const double scaled = 0.75 * gate;
        expected.push_back(scaled / (1 + std::exp(-scaled)) * up * 1.5);
      }
    }
    check_close(run.value("y"), expected);
  }
}

TEST_CASE("swiglu in bf16 rounds silu before the product") {
  RunOp run("swiglu", {.dtype = DType::bf16}, {{"tokens", 8}, {"hidden", 8}});
  run.evaluate(true);
  Numbers expected;
  for (std::size_t i = 0; i < 64; ++i) {
    const double gate = run.argument("gate")[i];
    const double silu = rounded(DType::bf16, gate / (1 + std::exp(-gate)));
    expected.push_back(rounded(DType::bf16, silu * run.argument("up")[i]));
  }
  check_close(run.value("y"), expected, 0);
}

TEST_CASE("geglu by tanh and by erf equals a plain loop") {
  for (const std::string form : {"tanh", "erf"}) {
    RunOp run("geglu", {.options = {{"gelu", form}}}, {{"tokens", 3}, {"hidden", 5}});
    run.evaluate();
    Numbers expected;
    for (std::size_t i = 0; i < 15; ++i) {
      const double x = run.argument("gate")[i];
      const double inner = form == "erf" ? std::erf(x / std::numbers::sqrt2)
                                         : std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
      expected.push_back(0.5 * x * (1 + inner) * run.argument("up")[i]);
    }
    check_close(run.value("y"), expected);
  }
}

TEST_CASE("embedding: rows by index; the padding row is 0 and gets no gradient") {
  constexpr std::size_t tokens = 6, vocab = 4, hidden = 3;
  for (const std::string padding : {"none", "2", "-1"}) {
    RunOp run("embedding", {.options = {{"padding", padding}}},
              {{"tokens", tokens}, {"vocab", vocab}, {"hidden", hidden}});
    RunOp back("embedding", {.options = {{"padding", padding}}, .gradient = true},
               {{"tokens", tokens}, {"vocab", vocab}, {"hidden", hidden}});
    const Numbers ids = padding == "-1" ? Numbers{-1, 3, 3, 0, 2, -1} : Numbers{1, 3, 3, 0, 2, 2};
    run.argument("ids") = ids;
    back.argument("ids") = ids;
    run.evaluate();
    back.evaluate();
    Numbers expected(tokens * hidden);
    Numbers gradient(vocab * hidden);
    for (std::size_t t = 0; t < tokens; ++t) {
      if (padding != "none" && ids[t] == std::stod(padding)) continue;
      for (std::size_t c = 0; c < hidden; ++c) {
        const std::size_t place = static_cast<std::size_t>(ids[t]) * hidden + c;
        expected[t * hidden + c] = run.argument("table")[place];
        gradient[place] += back.argument("upstream.y")[t * hidden + c];
      }
    }
    INFO(padding);
    check_close(run.value("y"), expected, 0);
    check_close(back.value("grad.table"), gradient);
  }
}

TEST_CASE("attention equals a plain loop, with and without the causal mask") {
  constexpr std::size_t heads = 2, group = 2, queries = 4, keys = 5, channels = 3;
  for (const std::string mask : {"causal", "none"}) {
    for (const std::string scale : {"0", "0.25"}) {
      for (const std::string first : {"0", "1"}) {
        RunOp run("attention", {.options = {{"mask", mask}, {"scale", scale}, {"first_query", first}}},
                  {{"heads", heads}, {"group", group}, {"queries", queries}, {"keys", keys}, {"channels", channels}});
        run.evaluate();
        const Numbers& q = run.argument("q");
        const Numbers& k = run.argument("k");
        const Numbers& v = run.argument("v");
        Numbers expected;
        for (std::size_t h = 0; h < heads; ++h) {
          for (std::size_t g = 0; g < group; ++g) {
            for (std::size_t i = 0; i < queries; ++i) {
              Numbers weight(keys);
              double total = 0;
              for (std::size_t j = 0; j < keys; ++j) {
                if (mask == "causal" && j > i + (first == "1" ? 1 : 0)) continue;
                double score = 0;
                for (std::size_t c = 0; c < channels; ++c)
                  score += q[((h * group + g) * queries + i) * channels + c] * k[(h * keys + j) * channels + c];
                weight[j] = std::exp(score * (scale == "0" ? 1 / std::sqrt(channels) : 0.25));
                total += weight[j];
              }
              for (std::size_t c = 0; c < channels; ++c) {
                double y = 0;
                for (std::size_t j = 0; j < keys; ++j) y += weight[j] / total * v[(h * keys + j) * channels + c];
                expected.push_back(y);
              }
            }
          }
        }
        INFO(mask << " " << scale << " " << first);
        check_close(run.value("y"), expected);
      }
    }
  }
}

TEST_CASE("attention: queries in chunks give what all queries give") {
  const NamedExtents whole{{"heads", 1}, {"group", 1}, {"queries", 6}, {"keys", 6}, {"channels", 3}};
  RunOp all("attention", {}, whole);
  all.evaluate();
  NamedExtents part = whole;
  part["queries"] = 2;
  for (std::size_t chunk = 0; chunk < 3; ++chunk) {
    RunOp some("attention", {.options = {{"first_query", std::to_string(2 * chunk)}}}, part);
    const Numbers& q = all.argument("q");
    some.argument("q") = Numbers(q.begin() + static_cast<std::ptrdiff_t>(6 * chunk),
                                 q.begin() + static_cast<std::ptrdiff_t>(6 * chunk + 6));
    some.argument("k") = all.argument("k");
    some.argument("v") = all.argument("v");
    some.evaluate();
    const Numbers& y = all.value("y");
    check_close(some.value("y"), Numbers(y.begin() + static_cast<std::ptrdiff_t>(6 * chunk),
                                         y.begin() + static_cast<std::ptrdiff_t>(6 * chunk + 6)));
  }
}

TEST_CASE("adamw equals a plain loop over two steps") {
  constexpr std::size_t count = 9;
  Numbers p, m, v;
  for (const double step : {1.0, 2.0}) {
    for (const std::string clip : {"absent", "present"}) {
      RunOp run("adamw", {.options = {{"clip", clip}}}, {{"elements", count}});
      if (step == 1) {
        for (double& first : run.argument("first")) first = 0;
        for (double& second : run.argument("second")) second = 0;
      }
      run.argument("step") = {step};
      run.evaluate();
      const auto number = [&](const char* name) { return run.argument(name)[0]; };
      const double beta1 = number("beta1"), beta2 = number("beta2"), rate = number("learning_rate");
      Numbers parameter, first, second;
      for (std::size_t i = 0; i < count; ++i) {
        const double g = run.argument("gradient")[i] * (clip == "present" ? number("clip") : 1);
        first.push_back(beta1 * run.argument("first")[i] + (1 - beta1) * g);
        second.push_back(beta2 * run.argument("second")[i] + (1 - beta2) * g * g);
        const double mean = first[i] / (1 - std::pow(beta1, step));
        const double square = second[i] / (1 - std::pow(beta2, step));
        parameter.push_back(run.argument("parameter")[i] * (1 - rate * number("weight_decay")) -
                            rate * mean / (std::sqrt(square) + number("epsilon")));
      }
      check_close(run.value("first"), first);
      check_close(run.value("second"), second);
      check_close(run.value("parameter"), parameter, 1e-11);
    }
  }
}

TEST_CASE("adamw's results share the buffers of what they replace") {
  const dsl::Graph graph = find_op("adamw").trace({.dtype = DType::bf16});
  for (const dsl::OutputInfo& output : graph.outputs) {
    CHECK(output.mode == dsl::OutputMode::alias);
    REQUIRE(output.alias_input >= 0);
    CHECK(graph.inputs[static_cast<std::size_t>(output.alias_input)].name == output.name);
  }
}

TEST_CASE("global_norm sums the squares of all tensors and clips") {
  RunOp run("global_norm", {}, {{"vocab", 4}, {"hidden", 3}});
  run.evaluate();
  double squares = 0;
  for (const double x : run.argument("matrix")) squares += x * x;
  for (const double x : run.argument("vector")) squares += x * x;
  check_close(run.value("norm_squared"), {squares});
  check_close(run.value("clip"), {std::min(1.0, run.argument("largest")[0] / (std::sqrt(squares) + 1e-6))});
  run.argument("largest") = {1e6};
  run.evaluate();
  check_close(run.value("clip"), {1}, 0);
}
