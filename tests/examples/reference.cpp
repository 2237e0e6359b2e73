// Prepares a traced graph as the planner does, and evaluates it.
#include "reference.hpp"

#include "dsl/passes.hpp"

namespace language_model_test {
namespace dsl = tigon::dsl;

std::vector<double> numbers(const tigon::detail::RawBuffer& raw) {
  std::int64_t count = 1;
  for (std::size_t d = 0; d < raw.rank; ++d) count *= raw.extents[d];
  std::vector<double> result;
  for (std::int64_t i = 0; i < count; ++i) {
    if (raw.dtype == tigon::DType::f32)
      result.push_back(static_cast<const float*>(raw.pointer)[i]);
    else
      result.push_back(static_cast<const std::int32_t*>(raw.pointer)[i]);
  }
  return result;
}

Results evaluated(const dsl::Graph& traced, const tigon::Extents& extents, const Given& given) {
  dsl::Extents known(traced.axes.size(), -1);
  for (const tigon::detail::GivenExtent& one : extents) {
    for (std::size_t axis = 0; axis < known.size(); ++axis)
      if (traced.axes[axis].tag == one.axis.tag) known[axis] = one.high;
  }
  known = dsl::resolve_extents(traced, std::move(known));
  const dsl::Graph prepared = dsl::prepare(traced, known, {});
  known.resize(prepared.axes.size(), -1);
  known = dsl::resolve_extents(prepared, std::move(known));

  dsl::EvaluateInputs inputs{.tensors = {}, .scalars = {}, .extents = known};
  for (const dsl::InputInfo& info : prepared.inputs) {
    dsl::TensorValue tensor{.dtype = info.dtype, .axes = info.axes};
    for (const dsl::AxisId axis : info.axes) tensor.extents.push_back(known[axis]);
    tensor.value = numbers(given.tensors.at(info.name));
    inputs.tensors.push_back(std::move(tensor));
  }
  for (const dsl::ScalarInfo& info : prepared.scalars) inputs.scalars.push_back(given.scalars.at(info.name));
  std::vector<dsl::TensorValue> values = dsl::evaluate(prepared, inputs);
  Results results;
  for (std::size_t i = 0; i < values.size(); ++i) results[prepared.outputs[i].name] = std::move(values[i]);
  return results;
}

}  // namespace language_model_test
