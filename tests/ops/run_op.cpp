// Evaluates one op and finds its arguments and results by name.
#include "run_op.hpp"

#include "tigon/error.hpp"

namespace tigon::ops {

RunOp::RunOp(std::string_view op, OpChoice choice, NamedExtents extents, std::uint64_t seed) {
  const OpEntry& entry = find_op(op);
  graph_ = entry.trace(choice);
  inputs_ = draw_inputs(entry, choice, graph_, extents_of(entry, graph_, extents), seed);
  for (const double scalar : inputs_.scalars) scalars_.push_back({scalar});
}

Numbers& RunOp::argument(std::string_view name) {
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
    if (graph_.inputs[i].name == name) return inputs_.tensors[i].value;
  for (std::size_t i = 0; i < graph_.scalars.size(); ++i)
    if (graph_.scalars[i].name == name) return scalars_[i];
  throw Error({.argument = std::string(name)}, "no such argument");
}

bool RunOp::has(std::string_view name) const {
  return std::any_of(graph_.inputs.begin(), graph_.inputs.end(), [&](const auto& input) { return input.name == name; });
}

void RunOp::evaluate(bool honour_casts) {
  for (std::size_t i = 0; i < scalars_.size(); ++i) inputs_.scalars[i] = scalars_[i].at(0);
  results_ = dsl::evaluate(graph_, inputs_, {.honour_casts = honour_casts});
}

const dsl::TensorValue& RunOp::result(std::string_view output) const {
  for (std::size_t i = 0; i < graph_.outputs.size(); ++i)
    if (graph_.outputs[i].name == output) return results_.at(i);
  throw Error({.argument = std::string(output)}, "no such result");
}

void check_close(const Numbers& computed, const Numbers& expected, double tolerance, double scale) {
  REQUIRE(computed.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("element " << i << ": " << computed[i] << ", expected " << expected[i]);
    if (std::isnan(expected[i])) {
      CHECK(std::isnan(computed[i]));
    } else if (std::isinf(expected[i])) {
      CHECK(computed[i] == expected[i]);
    } else {
      CHECK(std::fabs(computed[i] - expected[i]) <= tolerance * std::max(scale, std::fabs(expected[i])));
    }
  }
}

double rounded(DType dtype, double value) {
  const float number = static_cast<float>(value);
  switch (dtype) {
    case DType::bf16:
      return static_cast<double>(to_f32(to_bf16(number)));
    case DType::f16:
      return static_cast<double>(to_f32(to_f16(number)));
    case DType::f32:
      return static_cast<double>(number);
    default:
      return value;
  }
}

}  // namespace tigon::ops
