// Compares gradients with central differences along random directions and single elements.
#include "dsl/reference/gradcheck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "dsl/differentiate.hpp"
#include "dsl/reference/random_source.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl {
namespace {

class Check {
 public:
  Check(const Graph& graph, const Graph& gradient, const EvaluateInputs& inputs, const GradcheckOptions& options)
      : graph_(graph), gradient_(gradient), inputs_(inputs), options_(options), random_(options.seed) {
    inputs_.extents = resolve_extents(graph, inputs.extents);
    for (const TensorValue& value : evaluate(graph_, inputs_, {.honour_casts = false})) {
      std::vector<double>& weights = weights_.emplace_back();
      for (std::size_t i = 0; i < value.value.size(); ++i)
        weights.push_back(random_.uniform(0.5, 1.5) * (random_.chance(0.5) ? 1 : -1));
    }
  }

  GradcheckResult run() {
    const std::vector<TensorValue> gradients = evaluate_gradient();
    for (std::size_t i = 0; i < gradient_.outputs.size(); ++i) {
      for (std::size_t k = 0; k < graph_.inputs.size(); ++k) {
        if (gradient_.outputs[i].name == gradient_name(graph_.inputs[k].name)) check_input(k, gradients[i]);
      }
    }
    result_.passed =
        result_.checked > 0 && result_.worst <= options_.tolerance && 2 * result_.skipped <= result_.checked;
    result_.sentence = fmt::format("{} derivatives checked, {} near kinks skipped; worst relative error {:.3g} at {}",
                                   result_.checked, result_.skipped, result_.worst, result_.where);
    return result_;
  }

 private:
  std::vector<TensorValue> evaluate_gradient() {
    EvaluateInputs given;
    for (const AxisInfo& axis : gradient_.axes) {
      i64 extent = -1;
      for (std::size_t a = 0; a < graph_.axes.size(); ++a) {
        if (graph_.axes[a].name == axis.name) extent = inputs_.extents[a];
      }
      given.extents.push_back(extent);
    }
    given.extents = resolve_extents(gradient_, given.extents);
    for (const ScalarInfo& scalar : gradient_.scalars) {
      for (std::size_t k = 0; k < graph_.scalars.size(); ++k) {
        if (graph_.scalars[k].name == scalar.name) given.scalars.push_back(inputs_.scalars[k]);
      }
    }
    for (const InputInfo& input : gradient_.inputs) {
      TensorValue tensor;
      tensor.dtype = input.dtype;
      tensor.axes = input.axes;
      for (const AxisId axis : input.axes) tensor.extents.push_back(given.extents[axis]);
      tensor.value = numbers_of(input.name);
      given.tensors.push_back(std::move(tensor));
    }
    return evaluate(gradient_, given, {.honour_casts = false});
  }

  const std::vector<double>& numbers_of(const std::string& name) const {
    for (std::size_t k = 0; k < graph_.inputs.size(); ++k) {
      if (graph_.inputs[k].name == name) return inputs_.tensors[k].value;
    }
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      if (upstream_name(graph_.outputs[i].name) == name) return weights_[i];
    }
    throw Error({.kind = ErrorKind::internal, .function = gradient_.name, .argument = name},
                "the gradient's graph reads an input that the graph does not have");
  }

  // The weighted sum of all float outputs.
  double loss() const {
    double total = 0;
    const auto outputs = evaluate(graph_, inputs_, {.honour_casts = false});
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!is_floating(outputs[i].dtype)) continue;
      for (std::size_t e = 0; e < outputs[i].value.size(); ++e) total += weights_[i][e] * outputs[i].value[e];
    }
    return total;
  }

  void check_input(std::size_t number, const TensorValue& gradient) {
    const std::vector<double> start = inputs_.tensors[number].value;
    const auto count = static_cast<i64>(start.size());
    if (count == 0) return;
    std::vector<double> direction(start.size());
    for (int d = 0; d < options_.directions; ++d) {
      for (std::size_t i = 0; i < start.size(); ++i)
        direction[i] = std::isfinite(start[i]) ? random_.uniform(-1, 1) : 0;
      check_direction(number, start, direction, gradient,
                      fmt::format("{}, direction {}", graph_.inputs[number].name, d));
    }
    for (i64 c = 0; c < std::min<i64>(options_.coordinates, count); ++c) {
      const i64 at = count <= options_.coordinates ? c : random_.below(count);
      if (!std::isfinite(start[static_cast<std::size_t>(at)])) continue;
      std::fill(direction.begin(), direction.end(), 0.0);
      direction[static_cast<std::size_t>(at)] = 1;
      check_direction(number, start, direction, gradient,
                      fmt::format("{}, element {}", graph_.inputs[number].name, at));
    }
    inputs_.tensors[number].value = start;
  }

  void check_direction(std::size_t number, const std::vector<double>& start, const std::vector<double>& direction,
                       const TensorValue& gradient, const std::string& where) {
    double expected = 0;
    double terms = 0;
    for (std::size_t i = 0; i < start.size(); ++i) {
      if (direction[i] == 0) continue;
      expected += gradient.value[i] * direction[i];
      terms += std::abs(gradient.value[i] * direction[i]);
    }
    const auto loss_at = [&](double step) {
      std::vector<double>& moved = inputs_.tensors[number].value;
      for (std::size_t i = 0; i < start.size(); ++i) moved[i] = start[i] + step * direction[i];
      return loss();
    };
    ++result_.checked;
    if (!std::isfinite(expected)) {
      note(std::numeric_limits<double>::infinity(), where);
      return;
    }
    const double here = loss_at(0);
    double step = options_.step;
    for (int attempt = 0; attempt < 3; ++attempt, step /= 16) {
      // Central differences of three steps, extrapolated; where they disagree a kink lies between the ends. At a kink
      // right here they agree on the mean slope, but the two sides' slopes do not approach each other.
      double central[3];
      double bend[3];
      for (const int k : {0, 1, 2}) {
        const double reach = step / (1 << k);
        const double up = loss_at(reach);
        const double down = loss_at(-reach);
        central[k] = (up - down) / (2 * reach);
        bend[k] = std::abs((up - here) - (here - down)) / reach;
      }
      const double better = (4 * central[1] - central[0]) / 3;
      const double best = (4 * central[2] - central[1]) / 3;
      const double size = std::max({std::abs(best), std::abs(expected), 0.1 * terms, 1e-3});
      if (!(std::abs(best - better) <= 0.3 * options_.tolerance * size)) continue;
      if (bend[2] > 1e-3 * size && bend[2] > 0.6 * bend[0]) break;
      note(std::abs(best - expected) / size, where);
      return;
    }
    ++result_.skipped;
  }

  void note(double error, const std::string& where) {
    if (error <= result_.worst && !result_.where.empty()) return;
    result_.worst = error;
    result_.where = where;
  }

  const Graph& graph_;
  const Graph& gradient_;
  EvaluateInputs inputs_;
  GradcheckOptions options_;
  RandomSource random_;
  std::vector<std::vector<double>> weights_;  // by output: its cotangent
  GradcheckResult result_;
};

}  // namespace

GradcheckResult gradcheck(const Graph& graph, const Graph& gradient, const EvaluateInputs& inputs,
                          const GradcheckOptions& options) {
  return Check(graph, gradient, inputs, options).run();
}

GradcheckResult gradcheck(const Graph& graph, const EvaluateInputs& inputs, const GradcheckOptions& options) {
  DifferentiateOptions wanted{.wrt = options.wrt, .keep_outputs = false};
  if (wanted.wrt.empty()) {
    for (const InputInfo& input : graph.inputs) {
      if (is_floating(input.dtype)) wanted.wrt.push_back(input.name);
    }
  }
  for (const OutputInfo& output : graph.outputs) {
    if (is_floating(output.dtype)) wanted.upstreams.push_back(output.name);
  }
  const Graph gradient = differentiate(graph, wanted);
  return gradcheck(graph, gradient, inputs, options);
}

}  // namespace tigon::dsl
