// Packs drawn arguments into buffers, launches, and compares each output with the evaluated graph.
#include "compiled_run.hpp"

#include <cstring>

#include "dsl/passes.hpp"
#include "dsl/reference/compare.hpp"
#include "runtime/prepared.hpp"
#include "tigon/buffer.hpp"
#include "tigon/detail/compiled.hpp"

namespace tigon::ops {
namespace {

template <class Visit>
void visit_dtype(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::boolean:
      visit(std::uint8_t{});
      break;
    case DType::i32:
      visit(i32{});
      break;
    case DType::i64:
      visit(i64{});
      break;
    case DType::f16:
      visit(f16{});
      break;
    case DType::bf16:
      visit(bf16{});
      break;
    case DType::f32:
      visit(f32{});
      break;
    case DType::f64:
      visit(f64{});
      break;
  }
}

template <class T>
T narrow(double value) {
  if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, f16>) {
    return to_f16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}
template <class T>
double widen(T value) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
    return static_cast<double>(to_f32(value));
  } else {
    return static_cast<double>(value);
  }
}

// A tensor's values in memory of its dtype.
struct Packed {
  Storage memory;
  detail::RawBuffer raw;

  explicit Packed(const dsl::TensorValue& tensor)
      : memory(std::max<std::size_t>(64, tensor.value.size() * static_cast<std::size_t>(size_of(tensor.dtype)))) {
    visit_dtype(tensor.dtype, [&]<class T>(T) {
      for (std::size_t i = 0; i < tensor.value.size(); ++i) {
        const T value = narrow<T>(tensor.value[i]);
        std::memcpy(static_cast<std::byte*>(memory.data()) + i * sizeof(T), &value, sizeof(T));
      }
    });
    raw.pointer = memory.data();
    raw.dtype = tensor.dtype;
    raw.rank = static_cast<std::uint8_t>(tensor.extents.size());
    std::int64_t stride = 1;
    for (std::size_t d = tensor.extents.size(); d-- > 0;) {
      raw.extents[d] = tensor.extents[d];
      raw.strides[d] = stride;
      stride *= std::max<std::int64_t>(tensor.extents[d], 1);
    }
  }
};

std::vector<double> unpacked(const detail::RawBuffer& raw, std::size_t count) {
  std::vector<double> values(count);
  visit_dtype(raw.dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, static_cast<const std::byte*>(raw.pointer) + i * sizeof(T), sizeof(T));
      values[i] = widen(value);
    }
  });
  return values;
}

template <class Infos>
std::vector<std::string> names_of(const Infos& infos) {
  std::vector<std::string> names;
  for (const auto& info : infos) names.push_back(info.name);
  return names;
}

std::vector<detail::GivenExtent> given_extents(const dsl::Graph& graph, const dsl::Extents& extents) {
  std::vector<detail::GivenExtent> given;
  for (std::size_t i = 0; i < graph.axes.size(); ++i)
    given.push_back({{graph.axes[i].tag, graph.axes[i].name, graph.axes[i].fixed}, extents[i], extents[i]});
  return given;
}

// The same arguments for a graph that passes have rebuilt: found by name, laid out as before.
dsl::EvaluateInputs inputs_for(const dsl::Graph& prepared, const dsl::Graph& graph, const dsl::EvaluateInputs& inputs) {
  dsl::EvaluateInputs result;
  result.extents.assign(prepared.axes.size(), -1);
  for (std::size_t a = 0; a < prepared.axes.size(); ++a)
    for (std::size_t b = 0; b < graph.axes.size(); ++b)
      if (prepared.axes[a].name == graph.axes[b].name) result.extents[a] = inputs.extents[b];
  result.extents = dsl::resolve_extents(prepared, std::move(result.extents));
  for (const dsl::InputInfo& input : prepared.inputs) {
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      if (graph.inputs[i].name != input.name) continue;
      dsl::TensorValue tensor = inputs.tensors[i];
      tensor.axes = input.axes;
      tensor.extents.clear();
      for (const dsl::AxisId axis : input.axes) tensor.extents.push_back(result.extents[axis]);
      result.tensors.push_back(std::move(tensor));
    }
  }
  for (const dsl::ScalarInfo& scalar : prepared.scalars)
    for (std::size_t i = 0; i < graph.scalars.size(); ++i)
      if (graph.scalars[i].name == scalar.name) result.scalars.push_back(inputs.scalars[i]);
  return result;
}

}  // namespace

CompiledRun run_compiled(const OpCase& one, bool gradient, std::uint64_t seed) {
  OpChoice choice = one.choice;
  choice.gradient = gradient;
  const auto graph = std::make_shared<const dsl::Graph>(one.entry->trace(choice));
  const dsl::Extents extents = extents_of(*one.entry, *graph, one.extents);
  const dsl::EvaluateInputs inputs = draw_inputs(*one.entry, choice, *graph, extents, seed);

  detail::CompileRequest request{graph,
                                 names_of(graph->inputs),
                                 names_of(graph->scalars),
                                 names_of(graph->outputs),
                                 given_extents(*graph, extents),
                                 {.device = Device::cpu()}};
  const std::shared_ptr<detail::CompiledCore> core = detail::compile_core(std::move(request));
  std::vector<Packed> arguments;
  std::vector<detail::RawBuffer> in;
  for (const dsl::TensorValue& tensor : inputs.tensors) in.push_back(arguments.emplace_back(tensor).raw);
  std::vector<detail::RawBuffer> out(graph->outputs.size());
  const std::shared_ptr<void> owner =
      core->launch_pooled(Stream(), in, runtime::raw_scalars(graph->scalars, inputs.scalars), out);

  const dsl::Graph prepared = dsl::prepare(*graph, extents, {});
  const auto expected = dsl::evaluate(prepared, inputs_for(prepared, *graph, inputs));
  CompiledRun result;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto at = std::find_if(graph->outputs.begin(), graph->outputs.end(),
                                 [&](const dsl::OutputInfo& info) { return info.name == prepared.outputs[i].name; });
    const auto place = static_cast<std::size_t>(at - graph->outputs.begin());
    const dsl::Comparison comparison = dsl::compare(expected[i], unpacked(out.at(place), expected[i].value.size()));
    result.worst_ratio = std::max(result.worst_ratio, comparison.worst_ratio);
    if (comparison.passed || !result.passed) continue;
    result.passed = false;
    result.sentence = at->name + ": " + comparison.sentence;
  }
  return result;
}

}  // namespace tigon::ops
