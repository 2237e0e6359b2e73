// Decides, from extents and options alone, which operands and results of contractions are kept in 16 bits.
#include "dsl/passes.hpp"

#include "dsl/build_state.hpp"
#include "dsl/rebuild.hpp"

namespace tigon::dsl {
namespace {

bool is_op(const Graph& graph, NodeId id, ScalarOp op) {
  return graph.node(id).kind == NodeKind::map && graph.op(id) == op;
}

using Rounded = std::vector<std::optional<DType>>;  // by node

// The 16-bit dtype that a factor is kept in, if there is one: it is a widened value, perhaps masked, or another
// contraction rounds it already.
std::optional<DType> held_in_16_bits(const Graph& graph, const Rounded& rounded, NodeId id) {
  if (rounded[id]) return rounded[id];
  if (graph.node(id).kind == NodeKind::cast && graph.node(id).dtype == DType::f32) {
    const DType from = graph.node(graph.operands(id)[0]).dtype;
    if (is_16_bit_float(from)) return from;
  }
  if (is_op(graph, id, ScalarOp::where) && is_zero(graph, graph.operands(id)[2])) {
    return held_in_16_bits(graph, rounded, graph.operands(id)[1]);
  }
  return std::nullopt;
}

// Whether the contraction's value is read by anything but scaling, masking, adding and rounding on its way to an
// output: only then does it live in memory as a value of its own. Sums of contractions are one accumulator:
// `accumulated` marks them and their terms.
class ReadAgain {
 public:
  ReadAgain(const Graph& graph, const Rounded& accumulated) : read_(graph.nodes.size()) {
    for (NodeId id = static_cast<NodeId>(graph.nodes.size()); id-- > 0;) {
      const auto operands = graph.operands(id);
      for (std::size_t k = 0; k < operands.size(); ++k) {
        const bool passes = passes_on(graph, id, static_cast<int>(k));
        const bool rounded = graph.node(id).kind == NodeKind::cast && is_16_bit_float(graph.node(id).dtype);
        const bool one_accumulator = accumulated[id] && accumulated[operands[k]];
        if (!rounded && !one_accumulator && (!passes || read_[id])) read_[operands[k]] = true;
      }
    }
  }
  bool operator()(NodeId id) const { return read_[id]; }

 private:
  static bool passes_on(const Graph& graph, NodeId id, int operand) {
    const Node& n = graph.node(id);
    if (n.kind == NodeKind::cast || n.kind == NodeKind::view) return true;
    if (n.kind != NodeKind::map) return false;
    const auto rank_0 = [&](int k) { return graph.node(graph.operands(id)[k]).axes.empty(); };
    switch (graph.op(id)) {
      case ScalarOp::add:
      case ScalarOp::sub:
      case ScalarOp::neg:
        return true;
      case ScalarOp::mul:
        return rank_0(1 - operand);
      case ScalarOp::div:
        return operand == 0 && rank_0(1);
      case ScalarOp::where:
        return operand != 0 && is_zero(graph, graph.operands(id)[3 - operand]);
      default:
        return false;
    }
  }
  std::vector<bool> read_;
};

}  // namespace

std::optional<Contraction> contraction_at(const Graph& graph, NodeId finish) {
  if (graph.node(finish).kind != NodeKind::finish) return std::nullopt;
  Contraction c;
  c.finish = finish;
  c.fold = graph.operands(finish)[0];
  if (graph.node(c.fold).kind != NodeKind::fold || graph.fold(c.fold).of_states) return std::nullopt;
  if (graph.monoid_of(c.fold).name != builtin_monoid(BuiltinMonoid::sum).name) return std::nullopt;
  const NodeId product = graph.operands(c.fold)[0];
  if (!is_op(graph, product, ScalarOp::mul)) return std::nullopt;
  c.a = graph.operands(product)[0];
  c.b = graph.operands(product)[1];
  const AxisSet a_axes = graph.node(c.a).axes;
  const AxisSet b_axes = graph.node(c.b).axes;
  c.contracted = graph.folded_axes(c.fold);
  c.batch = (a_axes & b_axes) - c.contracted;
  c.rows = a_axes - b_axes;
  c.columns = b_axes - a_axes;
  const bool both_carry = (a_axes & b_axes).contains(c.contracted) && !c.contracted.empty();
  if (!both_carry || c.rows.empty() || c.columns.empty()) return std::nullopt;
  return c;
}

double contraction_work(const Contraction& contraction, const Extents& extents) {
  double work = 1;
  for (const AxisId axis : contraction.batch | contraction.rows | contraction.columns | contraction.contracted) {
    work *= static_cast<double>(extents.at(axis));
  }
  return work;
}

namespace {

// What is rounded to which dtype: factors by node, the folds concerned, and results (sums of contractions too) by node.
struct Decisions {
  Rounded factors;
  Rounded folds;
  Rounded results;
};

// The contractions that one 16-bit factor makes 16-bit; a factor that is rounded for one is rounded for all.
void decide_factors(const Graph& graph, const std::vector<Contraction>& large, Decisions& decided) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Contraction& c : large) {
      if (decided.folds[c.fold]) continue;
      const std::optional<DType> a = held_in_16_bits(graph, decided.factors, c.a);
      const std::optional<DType> b = held_in_16_bits(graph, decided.factors, c.b);
      if ((!a && !b) || (a && b && *a != *b)) continue;
      const DType dtype = a ? *a : *b;
      decided.folds[c.fold] = decided.factors[c.a] = decided.factors[c.b] = dtype;
      changed = true;
    }
  }
}

void decide_results(const Graph& graph, const std::vector<Contraction>& large, std::optional<DType> keep,
                    Decisions& decided) {
  Rounded accumulated(graph.nodes.size());
  for (const Contraction& c : large)
    if (decided.folds[c.fold]) accumulated[c.finish] = keep.value_or(*decided.folds[c.fold]);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!is_op(graph, id, ScalarOp::add) && !is_op(graph, id, ScalarOp::sub)) continue;
    const NodeId left = graph.operands(id)[0];
    const NodeId right = graph.operands(id)[1];
    const bool same_shape = graph.node(left).axes == graph.node(right).axes;
    if (same_shape && accumulated[left] && accumulated[left] == accumulated[right]) accumulated[id] = accumulated[left];
  }
  const ReadAgain read_again(graph, accumulated);
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    if (accumulated[id] && is_16_bit_float(*accumulated[id]) && read_again(id)) decided.results[id] = accumulated[id];
}

}  // namespace

Graph round_contractions(const Graph& graph, const Extents& extents, const RoundingOptions& options) {
  if (options.exact) return graph;
  std::vector<Contraction> large;
  const std::vector<bool> live = live_nodes(graph);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const std::optional<Contraction> c = live[id] ? contraction_at(graph, id) : std::nullopt;
    if (!c || graph.node(id).dtype != DType::f32) continue;
    if (contraction_work(*c, extents) >= double{large_contraction}) large.push_back(*c);
  }
  Decisions decided{Rounded(graph.nodes.size()), Rounded(graph.nodes.size()), Rounded(graph.nodes.size())};
  decide_factors(graph, large, decided);
  decide_results(graph, large, options.keep_large_as, decided);
  return rebuild(graph, [&](Builder& builder, NodeId id, std::span<const NodeId> operands) -> NodeId {
    if (decided.folds[id]) {
      const auto span = builder.graph().operands(operands[0]);
      std::array<NodeId, 2> rounded{span[0], span[1]};
      for (NodeId& factor : rounded) factor = builder.cast(DType::f32, builder.cast(*decided.folds[id], factor));
      const FoldInfo& fold = graph.fold(id);
      return builder.fold(builder.monoid(BuiltinMonoid::sum), {builder.map(ScalarOp::mul, rounded)}, fold.axes);
    }
    if (decided.results[id]) {
      const NodeId rounded = builder.cast(*decided.results[id], builder.remake(graph, id, operands));
      // The rounded value is what is stored, and what a reader knows by the user's name.
      if (const std::string name = graph.name_of(id); name[0] != '%') builder.name(rounded, name);
      return builder.cast(DType::f32, rounded);
    }
    return no_node;
  });
}

}  // namespace tigon::dsl
