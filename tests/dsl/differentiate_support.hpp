// Small graphs by hand for tests, and the comparison of a gradient with finite differences in f64.
#pragma once
#include <catch2/catch.hpp>
#include <random>

#include "dsl/build.hpp"
#include "dsl/differentiate.hpp"
#include "dsl/passes.hpp"
#include "dsl/print.hpp"
#include "dsl/reference/evaluate.hpp"
#include "tigon/error.hpp"

namespace tigon::dsl::testing {

using enum ScalarOp;

// A builder with short spellings.
struct Make : Builder {
  explicit Make(std::string name = "f") : Builder(std::move(name)) {}
  AxisId ax(const char* label, std::int64_t fixed = -1) { return axis(nullptr, label, fixed); }
  NodeId in(const char* label, std::vector<AxisId> axes, DType dtype = DType::f32) {
    return input(label, dtype, std::move(axes));
  }
  NodeId num(double value, DType dtype = DType::f32) { return constant(dtype, value); }
  NodeId m(ScalarOp op, NodeId a) { return map(op, {a}); }
  NodeId m(ScalarOp op, NodeId a, NodeId b) { return map(op, {a, b}); }
  NodeId m(ScalarOp op, NodeId a, NodeId b, NodeId c) { return map(op, {a, b, c}); }
  NodeId mean(NodeId x, std::vector<AxisId> axes) {
    NodeId count = integer(DType::i64, 1);
    for (const AxisId axis : axes) count = m(mul, count, extent(axis));
    const NodeId total = sum(x, std::move(axes));
    return m(div, total, count);
  }
  NodeId reduce(BuiltinMonoid law, NodeId x, std::vector<AxisId> axes, int which = 0) {
    return finish(fold(monoid(law), {x}, std::move(axes)), which);
  }
  NodeId lse(NodeId x, AxisId axis) { return reduce(BuiltinMonoid::logsumexp, x, {axis}, lse_value); }
  void out(const char* label, NodeId node, std::vector<AxisId> axes = {}) {
    output({.name = label, .node = node, .dtype = this->node(node).dtype, .axes = std::move(axes)});
  }
  Graph done() { return std::move(*this).Builder::finish(); }
  using Builder::finish;
};

// The printed form with runs of spaces made one.
inline std::string squeezed(const Graph& graph) {
  std::string text;
  for (const char c : print(graph))
    if (c != ' ' || text.empty() || text.back() != ' ') text += c;
  return text;
}

inline std::int64_t elements(const Graph& graph, const std::vector<AxisId>& axes, const Extents& extents) {
  (void)graph;
  std::int64_t count = 1;
  for (const AxisId axis : axes) count *= extents[axis];
  return count;
}

// Random inputs: floats in (-2, 2), integers in [0, integer_limit).
inline EvaluateInputs random_inputs(const Graph& graph, Extents extents, unsigned seed, int integer_limit = 3) {
  EvaluateInputs inputs;
  inputs.extents = resolve_extents(graph, std::move(extents));
  std::mt19937 random(seed);
  for (const InputInfo& info : graph.inputs) {
    TensorValue tensor{.dtype = info.dtype, .axes = info.axes};
    for (const AxisId axis : info.axes) tensor.extents.push_back(inputs.extents[axis]);
    for (std::int64_t i = elements(graph, info.axes, inputs.extents); i-- > 0;) {
      const double unit = static_cast<double>(random() % 65536) / 65536.0;
      tensor.value.push_back(is_floating(info.dtype) ? std::floor(4 * unit * 32) / 32 - 2 + 1.0 / 64  // exact in bf16
                                                     : std::floor(unit * integer_limit));
    }
    inputs.tensors.push_back(std::move(tensor));
  }
  for (std::size_t i = 0; i < graph.scalars.size(); ++i) inputs.scalars.push_back(0.5 + 0.25 * static_cast<double>(i));
  return inputs;
}

inline TensorValue value_of(const Graph& graph, const EvaluateInputs& inputs, const std::string& output,
                            bool honour_casts = false) {
  const std::vector<TensorValue> values = evaluate(graph, inputs, {.honour_casts = honour_casts});
  for (std::size_t i = 0; i < values.size(); ++i)
    if (graph.outputs[i].name == output) return values[i];
  throw std::runtime_error("no output " + output);
}

// Compares every gradient of `output` with central differences.
inline void check_gradient(const Graph& graph, const std::vector<std::string>& wrt, Extents extents, unsigned seed = 1,
                           const std::string& output = "loss", int integer_limit = 3) {
  const Graph gradient =
      prepare(differentiate(graph, {.wrt = wrt, .output = output}), resolve_extents(graph, extents), {.exact = true});
  INFO(print(graph));
  INFO(print(gradient));
  const Graph forward = erase_attach(graph);
  EvaluateInputs inputs = random_inputs(graph, extents, seed, integer_limit);
  EvaluateInputs of_gradient = inputs;
  of_gradient.extents.resize(gradient.axes.size(), -1);
  const double base = value_of(forward, inputs, output).value.at(0);
  CHECK(value_of(gradient, of_gradient, output).value.at(0) == Approx(base).epsilon(1e-12));
  for (std::size_t k = 0; k < graph.inputs.size(); ++k) {
    const std::string name = gradient_name(graph.inputs[k].name);
    const bool asked = std::any_of(gradient.outputs.begin(), gradient.outputs.end(),
                                   [&](const OutputInfo& info) { return info.name == name; });
    if (!asked) continue;
    const TensorValue found = value_of(gradient, of_gradient, name);
    const auto info = std::find_if(gradient.outputs.begin(), gradient.outputs.end(),
                                   [&](const OutputInfo& output_info) { return output_info.name == name; });
    REQUIRE((info->declared.empty() ? info->axes : info->declared) == graph.inputs[k].axes);
    REQUIRE(found.value.size() == inputs.tensors[k].value.size());
    for (std::size_t i = 0; i < found.value.size(); ++i) {
      constexpr double step = 1e-5;
      EvaluateInputs moved = inputs;
      moved.tensors[k].value[i] = inputs.tensors[k].value[i] + step;
      const double above = value_of(forward, moved, output).value.at(0);
      moved.tensors[k].value[i] = inputs.tensors[k].value[i] - step;
      const double below = value_of(forward, moved, output).value.at(0);
      const double expected = (above - below) / (2 * step);
      INFO(name << "[" << i << "]");
      CHECK(found.value[i] == Approx(expected).epsilon(1e-6).margin(1e-8));
    }
  }
}

}  // namespace tigon::dsl::testing
