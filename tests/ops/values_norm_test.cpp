// Softmax and the norms against plain loops in f64.
#include "run_op.hpp"

using namespace tigon;
using namespace tigon::ops;

namespace {

constexpr std::size_t rows = 5;
constexpr std::size_t columns = 7;

OpChoice with(std::vector<std::pair<std::string, std::string>> options, DType dtype = DType::f32) {
  return {.dtype = dtype, .options = std::move(options)};
}

// x / sqrt(mean x^2 + eps) of each row with no rounding at all.
Numbers plain_rms(const Numbers& x, const Numbers& weight, double offset, double epsilon) {
  Numbers y(x.size());
  for (std::size_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (std::size_t c = 0; c < columns; ++c) squares += x[r * columns + c] * x[r * columns + c];
    const double scale = 1 / std::sqrt(squares / columns + epsilon);
    for (std::size_t c = 0; c < columns; ++c) {
      const double factor = weight.empty() ? 1 : weight[c] + offset;
      y[r * columns + c] = x[r * columns + c] * scale * factor;
    }
  }
  return y;
}

}  // namespace

TEST_CASE("softmax and log_softmax equal a plain loop") {
  for (const std::string op : {"softmax", "log_softmax"}) {
    RunOp run(op, {}, {{"tokens", rows}, {"vocab", columns}});
    run.evaluate();
    const Numbers& x = run.argument("x");
    Numbers expected(x.size());
    for (std::size_t r = 0; r < rows; ++r) {
      double total = 0;
      for (std::size_t c = 0; c < columns; ++c) total += std::exp(x[r * columns + c]);
      for (std::size_t c = 0; c < columns; ++c) {
        const double p = std::exp(x[r * columns + c]) / total;
        expected[r * columns + c] = op == "softmax" ? p : std::log(p);
      }
    }
    check_close(run.value("y"), expected);
  }
}

TEST_CASE("softmax: -infinity counts nothing; a row of it gives 0 with gradient 0") {
  const double infinity = std::numeric_limits<double>::infinity();
  RunOp run("softmax", {.gradient = true}, {{"tokens", 2}, {"vocab", 3}});
  run.argument("x") = {-infinity, 0, 0, -infinity, -infinity, -infinity};
  run.argument("upstream.y") = {1, 2, 4, 1, 2, 4};
  run.evaluate();
  check_close(run.value("grad.x"), {0, -0.5, 0.5, 0, 0, 0});
  RunOp forward("softmax", {}, {{"tokens", 2}, {"vocab", 3}});
  forward.argument("x") = run.argument("x");
  forward.evaluate();
  check_close(forward.value("y"), {0, 0.5, 0.5, 0, 0, 0});
}

TEST_CASE("rms_norm without rounding: all modes are one formula") {
  for (const std::string casting : {"llama", "gemma", "none"}) {
    for (const std::string offset : {"0", "1"}) {
      for (const std::string weight : {"present", "absent"}) {
        RunOp run("rms_norm", with({{"casting", casting}, {"offset", offset}, {"weight", weight}, {"epsilon", "1e-2"}}),
                  {{"tokens", rows}, {"hidden", columns}});
        run.evaluate();
        const Numbers w = weight == "present" ? run.argument("weight") : Numbers{};
        check_close(run.value("y"), plain_rms(run.argument("x"), w, offset == "1" ? 1 : 0, 1e-2));
      }
    }
  }
}

TEST_CASE("rms_norm in bf16 rounds where its casting mode says") {
  // Each step's result is rounded by the loop exactly where the mode rounds; what is between is f32, whose rounding is
  // too small to matter here: a 16-bit rounding left out or put elsewhere moves some of 35 elements by 2^-9.
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const std::string casting : {"llama", "gemma", "none"}) {
      RunOp run("rms_norm", with({{"casting", casting}, {"offset", "1"}, {"epsilon", "1e-2"}}, dtype),
                {{"tokens", rows}, {"hidden", columns}}, 3);
      run.evaluate(true);
      const Numbers& x = run.argument("x");
      const Numbers& w = run.argument("weight");
      const auto round = [&](double value) { return rounded(dtype, value); };
      Numbers expected(x.size());
      for (std::size_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (std::size_t c = 0; c < columns; ++c) {
          const double square = x[r * columns + c] * x[r * columns + c];
          squares += casting == "none" ? round(square) : square;
        }
        double scale = 0;
        if (casting == "none") {
          scale = round(1 / std::sqrt(round(round(squares / columns) + round(1e-2))));
        } else {
          scale = 1 / std::sqrt(squares / columns + 1e-2);
        }
        for (std::size_t c = 0; c < columns; ++c) {
          const double normal = x[r * columns + c] * scale;
          expected[r * columns + c] =
              casting == "gemma" ? round(normal * (w[c] + 1)) : round(round(normal) * round(w[c] + 1));
        }
      }
      INFO(casting);
      check_close(run.value("y"), expected, 0);
    }
  }
}

TEST_CASE("add_rms_norm normalises the rounded sum and returns it") {
  RunOp run("add_rms_norm", with({}, DType::bf16), {{"tokens", rows}, {"hidden", columns}});
  run.evaluate(true);
  const Numbers& x = run.argument("x");
  Numbers sum(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] = rounded(DType::bf16, x[i] + run.argument("residual")[i]);
  check_close(run.value("sum"), sum, 0);
  RunOp norm("rms_norm", with({}, DType::bf16), {{"tokens", rows}, {"hidden", columns}});
  norm.argument("x") = sum;
  norm.argument("weight") = run.argument("weight");
  norm.evaluate(true);
  check_close(run.value("y"), norm.value("y"), 0);
}

TEST_CASE("layer_norm equals a plain loop and does not cancel around a large mean") {
  for (const double shift : {0.0, 1e6}) {
    RunOp run("layer_norm", {}, {{"tokens", rows}, {"hidden", columns}});
    for (double& x : run.argument("x")) x += shift;
    run.evaluate();
    const Numbers& x = run.argument("x");
    Numbers expected(x.size());
    for (std::size_t r = 0; r < rows; ++r) {
      double mean = 0;
      for (std::size_t c = 0; c < columns; ++c) mean += x[r * columns + c] / columns;
      double variance = 0;
      for (std::size_t c = 0; c < columns; ++c) variance += std::pow(x[r * columns + c] - mean, 2) / columns;
      for (std::size_t c = 0; c < columns; ++c) {
        expected[r * columns + c] =
            (x[r * columns + c] - mean) / std::sqrt(variance + 1e-5) * run.argument("weight")[c] +
            run.argument("bias")[c];
      }
    }
    check_close(run.value("y"), expected, shift == 0 ? 1e-12 : 1e-8);
  }
}
