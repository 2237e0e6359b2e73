// Cuts a vjp in two: a forward graph that also yields what is saved, and a backward graph that reads it.
#include "dsl/build_state.hpp"
#include "dsl/differentiate.hpp"
#include "dsl/passes.hpp"
#include "dsl/rebuild.hpp"

namespace tigon::dsl {
namespace {

class Cut {
 public:
  Cut(const Graph& whole, const DifferentiateOptions& options) : whole_(whole) {
    find_later(options);
    const std::size_t first_gradient = whole.outputs.size() - gradient_count();
    chosen_.resize(whole.nodes.size());
    for (std::size_t i = first_gradient; i < whole.outputs.size(); ++i) choose(whole.outputs[i].node);
  }

  Linearized run() {
    const std::size_t own = whole_.outputs.size() - gradient_count();
    Builder forward = Builder::rebuilding(whole_);
    std::vector<NodeId> renewed(whole_.nodes.size(), no_node);
    for (const InputInfo& input : whole_.inputs)
      if (!later_[input.node]) renewed[input.node] = forward.remake(whole_, input.node, {});
    for (const ScalarInfo& scalar : whole_.scalars) renewed[scalar.node] = forward.remake(whole_, scalar.node, {});
    for (std::size_t i = 0; i < own; ++i) {
      OutputInfo output = whole_.outputs[i];
      output.node = copy(forward, renewed, output.node);
      forward.output(std::move(output));
    }
    for (std::size_t k = 0; k < saved_.size(); ++k) {
      forward.output({.name = saved_name(k),
                      .node = copy(forward, renewed, saved_[k]),
                      .dtype = whole_.node(saved_[k]).dtype,
                      .axes = layout(saved_[k])});
    }

    Builder backward = Builder::rebuilding(whole_);
    renewed.assign(whole_.nodes.size(), no_node);
    for (const InputInfo& input : whole_.inputs)
      if (read_[input.node]) renewed[input.node] = backward.remake(whole_, input.node, {});
    for (std::size_t k = 0; k < saved_.size(); ++k) {
      renewed[saved_[k]] = backward.input(saved_name(k), whole_.node(saved_[k]).dtype, layout(saved_[k]));
      const std::string name = whole_.name_of(saved_[k]);
      if (name[0] != '%') backward.name(renewed[saved_[k]], name);
    }
    for (std::size_t i = own; i < whole_.outputs.size(); ++i) {
      OutputInfo output = whole_.outputs[i];
      output.node = copy(backward, renewed, output.node);
      backward.output(std::move(output));
    }
    return {std::move(forward).finish(), std::move(backward).finish()};
  }

 private:
  static std::string saved_name(std::size_t k) { return "saved." + std::to_string(k); }

  std::size_t gradient_count() const {
    std::size_t count = 0;
    while (count < whole_.outputs.size() &&
           whole_.outputs[whole_.outputs.size() - 1 - count].name.starts_with(gradient_name(""))) {
      ++count;
    }
    return count;
  }

  // Nodes that depend on an upstream exist only in the backward graph.
  void find_later(const DifferentiateOptions& options) {
    later_.assign(whole_.nodes.size(), false);
    read_.assign(whole_.nodes.size(), false);
    for (const InputInfo& input : whole_.inputs)
      for (const std::string& output : options.upstreams)
        if (input.name == upstream_name(output)) later_[input.node] = read_[input.node] = true;
    for (NodeId id = 0; id < whole_.nodes.size(); ++id)
      for (const NodeId operand : whole_.operands(id))
        if (later_[operand]) later_[id] = true;
  }

  // Saved: what a fold has finished (statistics, contractions, rounded to 16 bits where the graph rounds them at once),
  // and gathers and scatters of such values. Recomputed: maps, casts and views of inputs and of saved values.
  void choose(NodeId id) {
    if (chosen_[id]) return;
    chosen_[id] = true;
    const Node& n = whole_.node(id);
    if (n.kind == NodeKind::input) {
      read_[id] = true;
      return;
    }
    const bool rounded_finish = n.kind == NodeKind::cast && is_16_bit_float(n.dtype) &&
                                whole_.node(whole_.operands(id)[0]).kind == NodeKind::finish;
    const bool computed_gather =
        n.kind == NodeKind::gather && whole_.node(whole_.operands(id)[0]).kind != NodeKind::input;
    if (!later_[id] &&
        (n.kind == NodeKind::finish || n.kind == NodeKind::scatter || rounded_finish || computed_gather)) {
      saved_.push_back(id);
      return;
    }
    for (const NodeId operand : whole_.operands(id)) choose(operand);
  }

  std::vector<AxisId> layout(NodeId id) const {
    std::vector<AxisId> axes;
    for (const AxisId axis : whole_.node(id).axes) axes.push_back(axis);
    return axes;
  }

  NodeId copy(Builder& builder, std::vector<NodeId>& renewed, NodeId id) {
    if (renewed[id] != no_node) return renewed[id];
    std::vector<NodeId> operands;
    for (const NodeId operand : whole_.operands(id)) operands.push_back(copy(builder, renewed, operand));
    const SourceLocation& location = whole_.locations[whole_.node(id).location];
    builder.set_location(location.file, location.line);
    renewed[id] = builder.remake(whole_, id, operands);
    const std::string name = whole_.name_of(id);
    if (name[0] != '%') builder.name(renewed[id], name);
    return renewed[id];
  }

  const Graph& whole_;
  std::vector<bool> later_;
  std::vector<bool> read_;    // inputs of the backward graph
  std::vector<bool> chosen_;  // visited by choose
  std::vector<NodeId> saved_;
};

}  // namespace

Linearized linearize(const Graph& graph, const DifferentiateOptions& options,
                     const std::function<Graph(const Graph&)>& before_cut) {
  DifferentiateOptions vjp = options;
  vjp.output.clear();
  vjp.keep_outputs = true;
  if (vjp.upstreams.empty()) {
    for (const OutputInfo& output : graph.outputs)
      if (is_floating(output.dtype)) vjp.upstreams.push_back(output.name);
  }
  Graph whole = simplify(erase_attach(differentiate(graph, vjp)));
  if (before_cut) whole = before_cut(whole);
  return Cut(whole, vjp).run();
}

}  // namespace tigon::dsl
