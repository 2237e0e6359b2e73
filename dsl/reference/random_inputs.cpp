// Random inputs of a graph, and the histogram of what graphs are made of.
#include <fmt/format.h>

#include <algorithm>

#include "dsl/reference/bounded.hpp"
#include "dsl/reference/random_graph.hpp"
#include "dsl/reference/random_source.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::dsl {
namespace {

// What an integer input has to point into.
struct Pointee {
  i64 extent = -1;       // -1: it indexes nothing
  bool outside = false;  // whether an index outside the axis is allowed everywhere
};

// Notes that `index` is an index into an axis, down to the inputs it is read from.
void follow(const Graph& graph, NodeId index, i64 extent, bool outside, std::vector<Pointee>& pointees) {
  const Node& node = graph.node(index);
  const auto operands = graph.operands(index);
  if (node.kind == NodeKind::input) {
    Pointee& pointee = pointees[node.payload];
    pointee.outside = outside && (pointee.extent < 0 || pointee.outside);
    pointee.extent = pointee.extent < 0 ? extent : std::min(pointee.extent, extent);
  } else if (node.kind == NodeKind::view || node.kind == NodeKind::cast || node.kind == NodeKind::gather) {
    follow(graph, operands[0], extent, outside, pointees);
  } else if (node.kind == NodeKind::map && graph.op(index) == ScalarOp::where) {
    follow(graph, operands[1], extent, outside, pointees);
    follow(graph, operands[2], extent, outside, pointees);
  }
}

std::vector<Pointee> find_pointees(const Graph& graph, const Extents& extents) {
  std::vector<Pointee> pointees(graph.inputs.size());
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::gather) {
      const GatherInfo& gather = graph.gathers[node.payload];
      follow(graph, graph.operands(id)[1], extents[gather.axis], gather.policy != IndexPolicy::checked, pointees);
    } else if (node.kind == NodeKind::scatter) {
      follow(graph, graph.operands(id)[1], extents[graph.scatters[node.payload].axis], true, pointees);
    }
  }
  return pointees;
}

double draw(RandomSource& random, DType dtype, const Pointee& pointee) {
  if (dtype == DType::boolean) return random.chance(0.7) ? 1 : 0;
  if (is_floating(dtype)) return round_to(dtype, random.normal());
  if (pointee.extent < 0) return static_cast<double>(random.below(17) - 8);
  if (pointee.outside && random.chance(0.05)) return random.chance(0.5) ? -1 : static_cast<double>(pointee.extent);
  return pointee.extent == 0 ? 0 : static_cast<double>(random.below(pointee.extent));
}

}  // namespace

EvaluateInputs random_inputs(const Graph& graph, const Extents& extents, std::uint64_t seed, bool specials) {
  RandomSource random(seed);
  EvaluateInputs inputs;
  inputs.extents = resolve_extents(graph, extents);
  const std::vector<Pointee> pointees = find_pointees(graph, inputs.extents);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const InputInfo& input = graph.inputs[i];
    TensorValue tensor;
    tensor.dtype = input.dtype;
    tensor.axes = input.axes;
    i64 count =
        input.monoid < 0 ? 1 : static_cast<i64>(graph.monoids[static_cast<std::size_t>(input.monoid)].state.size());
    for (const AxisId axis : input.axes) {
      tensor.extents.push_back(inputs.extents[axis]);
      count *= inputs.extents[axis];
    }
    const bool infinities = specials && random.chance(0.15);
    const bool large = specials && random.chance(0.15);
    const bool dyadic = random.chance(0.2);
    tensor.value.reserve(static_cast<std::size_t>(count));
    for (i64 k = 0; k < count; ++k) {
      double value = draw(random, input.dtype, pointees[i]);
      if (is_floating(input.dtype)) {
        if (dyadic) value = std::floor(value * 8) / 8;
        if (infinities && random.chance(0.02)) value = -std::numeric_limits<double>::infinity();
        if (large && random.chance(0.02)) value = round_to(input.dtype, value * 4096);
      }
      tensor.value.push_back(value);
    }
    inputs.tensors.push_back(std::move(tensor));
  }
  for (const ScalarInfo& scalar : graph.scalars) {
    inputs.scalars.push_back(is_floating(scalar.dtype) ? round_to(scalar.dtype, random.uniform(0.5, 1.5))
                                                       : static_cast<double>(random.below(2)));
  }
  return inputs;
}

void count_nodes(const Graph& graph, NodeHistogram& histogram) {
  static constexpr const char* kinds[node_kind_count] = {"input",   "scalar", "constant", "iota",   "extent", "map",
                                                         "cast",    "view",   "fold",     "finish", "scan",   "gather",
                                                         "scatter", "random", "loop",     "attach"};
  static constexpr const char* policies[] = {"checked", "fill", "clamp"};
  static constexpr const char* views[] = {"rename", "split", "merge_outer", "merge_inner"};
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.node(id);
    const std::string kind = kinds[static_cast<int>(node.kind)];
    ++histogram[kind];
    if (node.kind == NodeKind::map) ++histogram["map " + std::string(name(graph.op(id)))];
    if (node.kind == NodeKind::cast || node.kind == NodeKind::input)
      ++histogram[kind + " " + std::string(name(node.dtype))];
    if (node.kind == NodeKind::gather)
      ++histogram["gather " + std::string(policies[static_cast<int>(graph.gathers[node.payload].policy)])];
    if (node.kind == NodeKind::fold) {
      ++histogram["fold " + graph.monoid_of(id).name];
      const NodeId operand = graph.operands(id)[0];
      if (graph.node(operand).kind == NodeKind::map && graph.op(operand) == ScalarOp::mul)
        ++histogram["fold of a product"];
    }
    if (node.kind == NodeKind::view) {
      const ViewInfo& view = graph.views[node.payload];
      for (const ViewTerm& term : view.terms) ++histogram["view " + std::string(views[static_cast<int>(term.kind)])];
      if (!view.added.empty()) ++histogram["view broadcast"];
    }
  }
  histogram["output"] += static_cast<i64>(graph.outputs.size());
}

std::string print(const NodeHistogram& histogram) {
  std::string text;
  for (const auto& [what, count] : histogram) text += fmt::format("{:<20}{:>8}\n", what, count);
  return text;
}

}  // namespace tigon::dsl
