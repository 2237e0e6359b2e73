// Draws arguments by the entries' hints.
#include "ops/inputs.hpp"

#include "dsl/reference/random_source.hpp"
#include "tigon/error.hpp"

namespace tigon::ops {
namespace {

double exact_in(DType dtype, double value) {
  switch (dtype) {
    case DType::f16:
      return static_cast<double>(to_f32(to_f16(static_cast<float>(value))));
    case DType::bf16:
      return static_cast<double>(to_f32(to_bf16(static_cast<float>(value))));
    case DType::f32:
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

InputHint hint_of(const OpEntry& entry, const std::string& input) {
  for (const InputHint& hint : entry.hints)
    if (hint.input == input) return hint;
  return {};
}

std::int64_t extent_of(const OpEntry& entry, const dsl::Graph& graph, const dsl::Extents& extents,
                       std::string_view axis) {
  for (std::size_t i = 0; i < graph.axes.size(); ++i)
    if (graph.axes[i].name == axis) return extents[i];
  throw Error({.kind = ErrorKind::internal, .function = std::string(entry.name), .axis = std::string(axis)},
              "an input hint names an axis that the graph does not have");
}

class Draw {
 public:
  Draw(const OpEntry& entry, const OpChoice& choice, const dsl::Graph& graph, const dsl::Extents& extents,
       std::uint64_t seed)
      : entry_(entry), settings_(entry, choice), graph_(graph), extents_(extents), random_(seed) {}

  // What draws one element of the input.
  auto element(const std::string& input, DType dtype) {
    const InputHint hint = hint_of(entry_, input);
    std::int64_t extent = 0;
    double ignored_value = 0;
    double share = 0;
    if (hint.domain == Domain::index) {
      extent = extent_of(entry_, graph_, extents_, hint.axis);
      if (!hint.ignore.empty() && !settings_.is(hint.ignore, "none")) {
        ignored_value = settings_.number(hint.ignore);
        share = hint.ignored;
      }
    }
    return [=, this] {
      switch (hint.domain) {
        case Domain::normal:
          return exact_in(dtype, random_.normal());
        case Domain::uniform:
          return exact_in(dtype, random_.uniform(hint.low, hint.high));
        case Domain::index:
          break;
      }
      if (share > 0 && random_.chance(share)) return ignored_value;
      return extent == 0 ? 0.0 : static_cast<double>(random_.below(extent));
    };
  }

 private:
  const OpEntry& entry_;
  Settings settings_;
  const dsl::Graph& graph_;
  const dsl::Extents& extents_;
  mutable dsl::RandomSource random_;
};

}  // namespace

dsl::Extents extents_of(const OpEntry& entry, const dsl::Graph& graph, const NamedExtents& asked) {
  std::string names;
  for (const AxisDefault& axis : entry.axes) names += (names.empty() ? "" : ", ") + std::string(axis.name);
  for (const auto& [name, extent] : asked) {
    const auto known = std::find_if(entry.axes.begin(), entry.axes.end(),
                                    [&, key = std::string_view(name)](const AxisDefault& a) { return a.name == key; });
    if (known == entry.axes.end()) {
      throw Error({.function = std::string(entry.name), .axis = name, .expected = "one of " + names},
                  "the op has no axis of this name");
    }
    if (extent < 0 || extent % known->multiple != 0) {
      throw Error({.function = std::string(entry.name),
                   .axis = name,
                   .found = std::to_string(extent),
                   .expected = "a multiple of " + std::to_string(known->multiple)},
                  "the axis cannot have this extent");
    }
  }
  dsl::Extents extents(graph.axes.size(), -1);
  for (std::size_t i = 0; i < graph.axes.size(); ++i) {
    for (const AxisDefault& axis : entry.axes) {
      if (graph.axes[i].name != axis.name) continue;
      const auto found = asked.find(axis.name);
      extents[i] = found == asked.end() ? axis.extent : found->second;
    }
  }
  return dsl::resolve_extents(graph, std::move(extents));
}

dsl::EvaluateInputs draw_inputs(const OpEntry& entry, const OpChoice& choice, const dsl::Graph& graph,
                                const dsl::Extents& extents, std::uint64_t seed) {
  Draw draw(entry, choice, graph, extents, seed);
  dsl::EvaluateInputs inputs;
  inputs.extents = extents;
  for (const dsl::InputInfo& input : graph.inputs) {
    dsl::TensorValue tensor;
    tensor.dtype = input.dtype;
    tensor.axes = input.axes;
    std::int64_t count = 1;
    for (const dsl::AxisId axis : input.axes) {
      tensor.extents.push_back(extents[axis]);
      count *= extents[axis];
    }
    const auto element = draw.element(input.name, input.dtype);
    tensor.value.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) tensor.value.push_back(element());
    inputs.tensors.push_back(std::move(tensor));
  }
  for (const dsl::ScalarInfo& scalar : graph.scalars) {
    inputs.scalars.push_back(draw.element(scalar.name, scalar.dtype)());
  }
  return inputs;
}

}  // namespace tigon::ops
