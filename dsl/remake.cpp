// Rebuilds a node of one graph through another builder's constructors, translating its payload.
#include "dsl/build_state.hpp"

namespace tigon::dsl {
namespace {

class Translator {
 public:
  Translator(Builder& builder, const Graph& from) : builder_(builder), from_(from) {}

  AxisId axis(AxisId id) const {
    if (id == no_axis) return id;
    const AxisInfo& wanted = from_.axes[id];
    const std::vector<AxisInfo>& own = builder_.graph().axes;
    const auto same = [&](const AxisInfo& info) {
      return info.name == wanted.name && info.tag == wanted.tag && info.fixed == wanted.fixed;
    };
    if (id < own.size() && same(own[id])) return id;
    const auto found = std::find_if(own.begin(), own.end(), same);
    if (found != own.end()) return static_cast<AxisId>(found - own.begin());
    return builder_.axis(wanted.tag, wanted.name, wanted.fixed);
  }
  std::vector<AxisId> axes(const std::vector<AxisId>& ids) const {
    std::vector<AxisId> result;
    for (const AxisId id : ids) result.push_back(axis(id));
    return result;
  }
  AxisSet axes(AxisSet set) const {
    AxisSet result;
    for (const AxisId id : set) result |= AxisSet::of(axis(id));
    return result;
  }
  ViewInfo view(ViewInfo info) const {
    for (ViewTerm& term : info.terms) {
      term = {axis(term.operand_axis), term.kind, axis(term.a), axis(term.b), axis(term.inner)};
    }
    info.added = axes(info.added);
    return info;
  }

 private:
  Builder& builder_;
  const Graph& from_;
};

}  // namespace

NodeId Builder::remake(const Graph& from, NodeId like, std::span<const NodeId> operands) {
  const Translator translate(*this, from);
  const Node n = from.node(like);
  switch (n.kind) {
    case NodeKind::input: {
      const InputInfo& info = from.inputs[n.payload];
      const int monoid_number = info.monoid < 0 ? -1 : monoid(Monoid(from.monoids[info.monoid]));
      return input(info.name, info.dtype, translate.axes(info.axes), monoid_number);
    }
    case NodeKind::scalar:
      return scalar(from.scalars[n.payload].name, n.dtype);
    case NodeKind::constant: {
      const Constant c = from.constants[n.payload];
      return n.dtype == DType::i32 || n.dtype == DType::i64 ? integer(n.dtype, c.integer) : constant(n.dtype, c.number);
    }
    case NodeKind::iota:
      return iota(translate.axis(static_cast<AxisId>(n.payload)));
    case NodeKind::extent:
      return extent(translate.axis(static_cast<AxisId>(n.payload)));
    case NodeKind::map:
      return map(static_cast<ScalarOp>(n.payload), operands);
    case NodeKind::cast:
      return cast(n.dtype, operands[0]);
    case NodeKind::view:
      return view(operands[0], translate.view(from.views[n.payload]));
    case NodeKind::fold: {
      const FoldInfo info = from.folds[n.payload];
      if (info.of_states) return fold_states(operands[0], translate.axes(info.axes));
      return fold(monoid(Monoid(from.monoids[info.monoid])), operands, translate.axes(info.axes));
    }
    case NodeKind::finish:
      return finish(operands[0], static_cast<int>(n.payload));
    case NodeKind::gather: {
      const GatherInfo info = from.gathers[n.payload];
      return gather(operands[0], operands[1], translate.axis(info.axis), info.policy, info.fill);
    }
    case NodeKind::scatter: {
      const ScatterInfo info = from.scatters[n.payload];
      return scatter(operands[0], operands[1], translate.axis(info.axis), translate.axes(info.folded));
    }
    case NodeKind::attach:
      return attach(operands[0], operands.size() > 1 ? operands[1] : no_node);
    case NodeKind::scan:
    case NodeKind::random:
    case NodeKind::loop:
      break;
  }
  throw Error({.kind = ErrorKind::internal, .function = from.name}, "scan, random and loop nodes cannot be built yet");
}

}  // namespace tigon::dsl
