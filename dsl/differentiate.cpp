// Reverse mode: cotangents flow from the outputs to the inputs, in descending order of nodes.
#include "dsl/differentiate.hpp"

#include "dsl/build_state.hpp"
#include "dsl/gather_adjoint.hpp"
#include "dsl/scalar_derivative.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::dsl {
namespace {

using enum ScalarOp;

// Graph nodes as numbers for the derivative rules; masks are collected beside the value.
struct NodeCalculus {
  using Number = NodeId;
  Builder& builder;
  DType dtype;
  std::vector<NodeId>& masks;
  NodeId map(ScalarOp op, std::initializer_list<NodeId> operands) const { return builder.map(op, operands); }
  NodeId constant(double value) const { return builder.constant(dtype, value); }
  NodeId masked(NodeId condition, NodeId value) const {
    masks.push_back(condition);
    return value;
  }
};

struct Contribution {
  NodeId user = no_node;
  int operand = 0;
  Cotangent cotangent;
  NodeId one_hot = no_node;         // the one-hot mask among the cotangent's masks, if a gather's adjoint put one there
  NodeId one_hot_gather = no_node;  // and that gather, whose table is the node that is contributed to
};

bool within(const std::string& path, const std::string& prefix) {
  if (path.compare(0, prefix.size(), prefix) != 0) return false;
  return path.size() == prefix.size() || path[prefix.size()] == '.' || path[prefix.size()] == '[';
}

class Differentiator {
 public:
  Differentiator(const Graph& graph, const DifferentiateOptions& options)
      : primal_(graph), options_(options), builder_(Graph(graph)), algebra_(builder_) {
    contributions_.resize(primal_.nodes.size());
    finish_cotangents_.resize(primal_.nodes.size());
    choose_inputs();
    find_needed();
  }

  Graph run() {
    if (options_.keep_outputs) {
      for (const OutputInfo& output : primal_.outputs) builder_.output(output);
    }
    seed();
    for (NodeId id = static_cast<NodeId>(primal_.nodes.size()); id-- > 0;) {
      if (needed_[id] && primal_.node(id).kind != NodeKind::input) visit(id);
    }
    for (const InputInfo& input : primal_.inputs)
      if (wanted_[input.node]) write_gradient(input);
    return std::move(builder_).finish();
  }

 private:
  // ---- what is asked ---------------------------------------------------------------------------------------------
  void choose_inputs() {
    wanted_.assign(primal_.nodes.size(), false);
    for (const std::string& path : options_.wrt) {
      bool found = false;
      for (const InputInfo& input : primal_.inputs) {
        if (!within(input.name, path)) continue;
        found = true;
        if (is_floating(input.dtype)) {
          wanted_[input.node] = true;
        } else if (input.name == path) {
          throw Error({.function = primal_.name,
                       .argument = path,
                       .found = std::string(tigon::name(input.dtype)),
                       .expected = "a float dtype"},
                      "an integer argument has no gradient");
        }
      }
      if (!found) throw Error({.function = primal_.name, .argument = path}, "no argument has this name or prefix");
    }
  }

  // Whether a change of the operand reaches the node's value differentiably.
  bool flows(NodeId id, int operand) const {
    const Node& n = primal_.node(id);
    const DType from = primal_.node(primal_.operands(id)[operand]).dtype;
    switch (n.kind) {
      case NodeKind::map:
        return is_floating(n.dtype) && has_derivative(primal_.op(id), operand);
      case NodeKind::cast:
        return is_floating(n.dtype) && is_floating(from);
      case NodeKind::finish:
        return is_floating(n.dtype);
      case NodeKind::gather:
      case NodeKind::scatter:
        return operand == 0 && is_floating(n.dtype);
      case NodeKind::attach:
        return operand == 1;
      default:
        return is_floating(from);
    }
  }

  void find_needed() {
    needed_ = wanted_;
    for (NodeId id = 0; id < primal_.nodes.size(); ++id) {
      const auto operands = primal_.operands(id);
      for (std::size_t k = 0; k < operands.size(); ++k)
        if (needed_[operands[k]] && flows(id, static_cast<int>(k))) needed_[id] = true;
    }
  }

  void seed() {
    if (!options_.output.empty()) {
      const OutputInfo& output = find_output(options_.output);
      if (!output.axes.empty()) {
        throw Error({.function = primal_.name,
                     .argument = output.name,
                     .found = std::to_string(output.axes.size()) + " axes",
                     .expected = "none",
                     .cure = "Reduce it, or take a vjp with an upstream"},
                    "only a value without axes has a gradient");
      }
      contribute(no_node, 0, output.node, {builder_.constant(arithmetic(output.dtype), 1)});
    }
    int number = 0;
    for (const std::string& name : options_.upstreams) {
      const OutputInfo& output = find_output(name);
      const NodeId upstream = builder_.input(upstream_name(name), output.dtype, output.axes);
      contribute(no_node, ++number, output.node, {upstream});
    }
  }

  const OutputInfo& find_output(const std::string& name) const {
    for (const OutputInfo& output : primal_.outputs) {
      if (output.name != name) continue;
      if (is_floating(output.dtype) && !primal_.is_state(output.node)) return output;
      throw Error({.function = primal_.name, .argument = name, .found = std::string(tigon::name(output.dtype))},
                  "this output has no gradient");
    }
    throw Error({.function = primal_.name, .argument = name}, "no output has this name");
  }

  // ---- contributions ---------------------------------------------------------------------------------------------
  void contribute(NodeId user, int operand, NodeId to, Cotangent cotangent, OneHot one_hot = {}) {
    if (!needed_[to]) return;
    algebra_.normalise(cotangent);
    contributions_[to].push_back({user, operand, std::move(cotangent), one_hot.mask, one_hot.gather});
  }

  // The sum of the contributions, in the order of the nodes that made them, in f32 (f64 for f64).
  std::optional<Cotangent> total(NodeId id) {
    std::vector<Contribution>& parts = contributions_[id];
    if (parts.empty()) return std::nullopt;
    std::sort(parts.begin(), parts.end(), [](const Contribution& a, const Contribution& b) {
      return std::pair(a.user + 1, a.operand) < std::pair(b.user + 1, b.operand);  // the seed (no_node) first
    });
    sharpen(parts);
    Cotangent sum = parts[0].cotangent;
    for (std::size_t i = 1; i < parts.size(); ++i) sum = algebra_.add(sum, parts[i].cotangent);
    return sum;
  }

  // The node's cotangent, rounded once to the node's dtype.
  std::optional<Cotangent> cotangent_of(NodeId id) {
    std::optional<Cotangent> sum = total(id);
    if (!sum) return sum;
    sum->value = builder_.cast(primal_.node(id).dtype, sum->value);
    const std::string name = primal_.name_of(id);
    if (name[0] != '%' && sum->value >= primal_.nodes.size() && builder_.node(sum->value).kind != NodeKind::constant) {
      builder_.name(sum->value, "d_" + name);
    }
    return sum;
  }

  // A * exp(t) - where(hit, B, 0)  ->  where(hit, A * expm1(t at the index) + (A - B), A * exp(t)): a confident target,
  // where exp(t) is nearly 1, keeps its full precision. Inside the mask t equals its gathered value, which is cheap.
  void sharpen(std::vector<Contribution>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].one_hot == no_node) continue;
      for (std::size_t j = 0; j < parts.size(); ++j) {
        if (j == i || parts[j].one_hot != no_node) continue;
        std::optional<Cotangent> merged = sharpened(parts[j].cotangent, parts[i]);
        if (!merged) continue;
        parts[j].cotangent = std::move(*merged);
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
        sharpen(parts);
        return;
      }
    }
  }

  std::optional<Cotangent> sharpened(const Cotangent& smooth, const Contribution& spike) {
    const Graph& graph = builder_.graph();
    const auto is_exp = [&](NodeId id) { return graph.node(id).kind == NodeKind::map && graph.op(id) == exp; };
    NodeId exponential = no_node;
    NodeId factor = no_node;  // none: 1
    if (is_exp(smooth.value)) {
      exponential = smooth.value;
    } else if (graph.node(smooth.value).kind == NodeKind::map && graph.op(smooth.value) == mul) {
      for (int k = 0; k < 2; ++k) {
        if (!is_exp(graph.operands(smooth.value)[k])) continue;
        exponential = graph.operands(smooth.value)[k];
        factor = graph.operands(smooth.value)[1 - k];
      }
    }
    if (exponential == no_node) return std::nullopt;
    const std::vector<NodeId>& spike_masks = spike.cotangent.masks;
    if (!std::includes(spike_masks.begin(), spike_masks.end(), smooth.masks.begin(), smooth.masks.end())) {
      return std::nullopt;
    }
    const DType dtype = graph.node(exponential).dtype;
    if (factor == no_node) factor = builder_.constant(dtype, 1);
    const NodeId exponent = graph.operands(exponential)[0];
    Cotangent bare_spike = spike.cotangent;
    std::erase(bare_spike.masks, spike.one_hot);
    bare_spike.value = builder_.cast(dtype, bare_spike.value);
    std::array<Cotangent, 2> both{Cotangent{factor, smooth.scale, smooth.masks}, bare_spike};
    Cotangent merged = algebra_.factor_common(both);
    const NodeId a = both[0].value;
    const NodeId b = both[1].value;  // negative of B
    std::map<NodeId, NodeId> gathered;
    const NodeId exponent_at_index = gather_through(exponent, spike.one_hot_gather, gathered);
    NodeId on_target = builder_.map(mul, {a, builder_.map(expm1, {exponent_at_index})});
    if (const std::optional<NodeId> rest = sum_unless_zero(a, b)) on_target = builder_.map(add, {on_target, *rest});
    merged.value = builder_.map(where, {spike.one_hot, on_target, builder_.map(mul, {a, exponential})});
    return merged;
  }

  // a + b, or nothing where b is -a: structurally, so that (u + v) - u is v without a rounding.
  std::optional<NodeId> sum_unless_zero(NodeId a, NodeId b) {
    const Graph& graph = builder_.graph();
    const NodeId sum = builder_.map(add, {a, b});
    if (graph.node(sum).kind == NodeKind::constant) {
      return constant_value(graph, sum) == 0.0 ? std::nullopt : std::optional(sum);
    }
    if (graph.node(sum).kind != NodeKind::map) return sum;
    const NodeId left = graph.operands(sum)[0];
    const NodeId right = graph.operands(sum)[1];
    const bool is_add = graph.op(sum) == add;
    if (!is_add && graph.op(sum) != sub) return sum;
    // Whether taking y with the sum's sign leaves nothing of x.
    const auto cancels = [&](NodeId x, NodeId y) {
      if (!is_add) return x == y;
      const auto p = constant_value(graph, x);
      const auto q = constant_value(graph, y);
      return p && q && *p == -*q;
    };
    if (cancels(left, right)) return std::nullopt;
    for (int side = 0; side < (is_add ? 2 : 1); ++side) {
      const NodeId whole = side == 0 ? left : right;
      const NodeId taken = side == 0 ? right : left;
      if (graph.node(whole).kind != NodeKind::map || graph.op(whole) != add) continue;
      for (int k = 0; k < 2; ++k)
        if (cancels(graph.operands(whole)[k], taken)) return graph.operands(whole)[1 - k];
    }
    return sum;
  }

  // The value of a node at a gather's index, computed from gathers as deep as maps go.
  NodeId gather_through(NodeId id, NodeId gather, std::map<NodeId, NodeId>& done) {
    const GatherInfo info = builder_.graph().gathers[builder_.node(gather).payload];
    const NodeId table = builder_.graph().operands(gather)[0];
    const NodeId index = builder_.graph().operands(gather)[1];
    if (id == table) return gather;
    const Node n = builder_.node(id);
    if (!n.axes.contains(info.axis)) return id;
    if (const auto known = done.find(id); known != done.end()) return known->second;
    NodeId result = no_node;
    if (n.kind == NodeKind::map || n.kind == NodeKind::cast) {
      const auto span = builder_.graph().operands(id);
      std::vector<NodeId> operands(span.begin(), span.end());
      for (NodeId& operand : operands) operand = gather_through(operand, gather, done);
      result = n.kind == NodeKind::cast ? builder_.cast(n.dtype, operands[0])
                                        : builder_.map(static_cast<ScalarOp>(n.payload), operands);
    } else if (n.kind == NodeKind::iota) {
      result = builder_.cast(DType::i64, index);
    } else {
      result = builder_.gather(id, index, info.axis, info.policy, info.fill);
    }
    return done[id] = result;
  }

  // ---- one rule per node kind --------------------------------------------------------------------------------------
  void visit(NodeId id) {
    const Node n = primal_.node(id);
    if (n.location != 0) {
      const SourceLocation& location = primal_.locations[n.location];
      builder_.set_location(location.file, location.line);
    }
    if (n.kind == NodeKind::fold) return visit_fold(id);
    std::optional<Cotangent> g = cotangent_of(id);
    if (!g) return;
    const NodeId operand = primal_.operands(id)[0];
    switch (n.kind) {
      case NodeKind::map:
        return visit_map(id, *g);
      case NodeKind::cast:
        return contribute(id, 0, operand, std::move(*g));
      case NodeKind::view:
        return visit_view(id, std::move(*g));
      case NodeKind::finish:
        return visit_finish(id, std::move(*g));
      case NodeKind::gather: {
        GatherAdjoint adjoint = gather_adjoint(builder_, id, std::move(*g));
        return contribute(id, 0, operand, std::move(adjoint.table), adjoint.one_hot);
      }
      case NodeKind::scatter:
        return contribute(id, 0, operand, scatter_adjoint(builder_, id, std::move(*g)));
      case NodeKind::attach:
        return contribute(id, 1, primal_.operands(id)[1], std::move(*g));
      default:
        throw Error({.kind = ErrorKind::internal, .function = primal_.name},
                    "node " + primal_.name_of(id) + " has no derivative rule");
    }
  }

  void visit_map(NodeId id, const Cotangent& g) {
    const ScalarOp op = primal_.op(id);
    const auto operands = primal_.operands(id);
    const AxisSet axes = primal_.node(id).axes;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const int number = static_cast<int>(k);
      if (!needed_[operands[k]] || !flows(id, number)) continue;
      Cotangent part = g;
      const bool scale = (op == mul && algebra_.multiply_scale(part, operands[1 - k])) ||
                         (op == div && k == 0 && algebra_.divide_scale(part, operands[1]));
      if (!scale) {
        std::vector<NodeId> masks;
        const NodeCalculus calculus{builder_, primal_.node(id).dtype, masks};
        part.value = cotangent(calculus, op, number, operands, id, part.value);
        for (const NodeId condition : masks) algebra_.mask(part, condition);
      }
      algebra_.normalise(part);
      contribute(id, number, operands[k],
                 algebra_.reduce(std::move(part), axes - primal_.node(operands[k]).axes, g.value));
    }
  }

  void visit_view(NodeId id, Cotangent g) {
    const ViewInfo& info = primal_.views[primal_.node(id).payload];
    g = algebra_.reduce(std::move(g), info.added);
    const AxisSet operand_axes = primal_.node(primal_.operands(id)[0]).axes;
    // A merged axis whose outer part the operand lacks repeats the operand: those repetitions are summed.
    AxisSet repeated;
    g.value = inverse_view(g.value, info, operand_axes, repeated);
    std::vector<NodeId> masks;
    for (const NodeId condition : g.masks) masks.push_back(inverse_view(condition, info, operand_axes, repeated));
    std::sort(masks.begin(), masks.end());
    masks.erase(std::unique(masks.begin(), masks.end()), masks.end());
    g.masks = std::move(masks);
    contribute(id, 0, primal_.operands(id)[0], algebra_.reduce(std::move(g), repeated));
  }

  NodeId inverse_view(NodeId value, const ViewInfo& info, AxisSet operand_axes, AxisSet& repeated) {
    ViewInfo inverse;
    AxisSet handled;
    const AxisSet axes = builder_.node(value).axes;
    for (const ViewTerm& term : info.terms) {
      switch (term.kind) {
        case ViewKind::rename:
          if (axes.contains(term.a))
            inverse.terms.push_back({term.a, ViewKind::rename, term.operand_axis, no_axis, no_axis});
          break;
        case ViewKind::split: {
          const AxisSet pair = AxisSet::of(term.a) | AxisSet::of(term.b);
          if ((axes & pair).empty()) break;
          value = builder_.broadcast(value, pair);
          inverse.terms.push_back({term.a, ViewKind::merge_outer, term.operand_axis, no_axis, term.b});
          inverse.terms.push_back({term.b, ViewKind::merge_inner, term.operand_axis, no_axis, term.b});
          break;
        }
        case ViewKind::merge_outer:
        case ViewKind::merge_inner: {
          if (handled.contains(term.a) || !axes.contains(term.a)) break;
          handled |= AxisSet::of(term.a);
          const AxisId outer = term.kind == ViewKind::merge_outer ? term.operand_axis : outer_part(term.a, term.inner);
          inverse.terms.push_back({term.a, ViewKind::split, outer, term.inner, no_axis});
          repeated |= (AxisSet::of(outer) | AxisSet::of(term.inner)) - operand_axes;
          break;
        }
      }
    }
    return builder_.view(value, std::move(inverse));
  }

  AxisId outer_part(AxisId whole, AxisId inner) const {
    for (const SplitRelation& split : primal_.splits)
      if (split.whole == whole && split.inner == inner) return split.outer;
    throw Error({.kind = ErrorKind::internal, .function = primal_.name, .axis = primal_.axes[whole].name},
                "a merged axis has no outer part");
  }

  void visit_finish(NodeId id, Cotangent g) {
    const NodeId state = primal_.operands(id)[0];
    if (primal_.node(state).kind != NodeKind::fold) return;
    std::vector<std::optional<Cotangent>>& slots = finish_cotangents_[state];
    slots.resize(primal_.monoid_of(state).finishes.size());
    slots[primal_.node(id).payload] = std::move(g);
  }

  void visit_fold(NodeId id) {
    const auto& slots = finish_cotangents_[id];
    std::vector<Cotangent> present;
    for (const auto& slot : slots)
      if (slot) present.push_back(*slot);
    if (present.empty()) return;
    const Monoid& law = primal_.monoid_of(id);
    if (!law.adjoint || primal_.fold(id).of_states) {
      throw Error({.function = primal_.name,
                   .found = law.name,
                   .cure = "Give the monoid an adjoint, or wrap the value in stop_gradient"},
                  "this reduction has no gradient");
    }
    const Cotangent common = algebra_.factor_common(present);
    const auto operands = primal_.operands(id);
    FoldCotangents at{id, {operands.begin(), operands.end()}, {}, {}};
    std::size_t next = 0;
    for (std::size_t k = 0; k < law.finishes.size(); ++k) {
      const bool read = k < slots.size() && slots[k].has_value();
      at.finishes.push_back(read ? builder_.finish(id, static_cast<int>(k)) : no_node);
      at.cotangents.push_back(read ? present[next++].value : no_node);
    }
    const std::vector<NodeId> values = law.adjoint(builder_, at);
    AxisSet axes;
    for (const NodeId operand : operands) axes |= primal_.node(operand).axes;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (values.at(k) == no_node || !needed_[operands[k]]) continue;
      Cotangent part{values[k], common.scale, common.masks};
      algebra_.normalise(part, true);
      contribute(id, static_cast<int>(k), operands[k],
                 algebra_.reduce(std::move(part), axes - primal_.node(operands[k]).axes));
    }
  }

  // ---- results -----------------------------------------------------------------------------------------------------
  void write_gradient(const InputInfo& input) {
    DType dtype = input.dtype;
    for (const GradientDType& asked : options_.gradient_dtypes)
      if (within(input.name, asked.path)) dtype = asked.dtype;
    const std::optional<Cotangent> sum = total(input.node);
    const NodeId value = sum ? algebra_.materialise(*sum) : builder_.constant(dtype, 0);
    OutputInfo output;
    output.name = gradient_name(input.name);
    output.node = value;
    output.dtype = dtype;
    output.axes = input.axes;
    builder_.output(std::move(output));
  }

  const Graph& primal_;
  const DifferentiateOptions& options_;
  Builder builder_;
  CotangentAlgebra algebra_;
  std::vector<bool> wanted_;
  std::vector<bool> needed_;
  std::vector<std::vector<Contribution>> contributions_;
  std::vector<std::vector<std::optional<Cotangent>>> finish_cotangents_;  // by fold, then finish number
};

}  // namespace

std::string gradient_name(const std::string& input) { return "grad." + input; }
std::string upstream_name(const std::string& output) { return "upstream." + output; }

Graph differentiate(const Graph& graph, const DifferentiateOptions& options) {
  return Differentiator(graph, options).run();
}

}  // namespace tigon::dsl
