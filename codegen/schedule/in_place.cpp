// When a kernel may store a result over one of its inputs: nobody may read an old value after the store.
#include "codegen/schedule/sweeps.hpp"

namespace tigon::schedule {
using dsl::AxisSet;
using dsl::Graph;
using dsl::Node;
using dsl::NodeId;
using dsl::NodeKind;

namespace {

class Safety {
 public:
  Safety(const KernelRequest& request, const std::vector<int>& outputs, const Analysis& analysis)
      : request_(request), graph_(request.graph), outputs_(outputs), analysis_(analysis) {}

  bool safe(int output) const {
    const dsl::OutputInfo& info = graph_.outputs[static_cast<std::size_t>(output)];
    const dsl::InputInfo& input =
        graph_.inputs[static_cast<std::size_t>(request_.in_place[static_cast<std::size_t>(output)])];
    if (input.dtype != info.dtype || input.axes != info.axes || input.monoid >= 0 || graph_.is_state(info.node))
      return false;
    const int level = analysis_.level[info.node];
    const AxisSet space = sweep_space(graph_, info.node, analysis_);
    for (const NodeId sink : sinks()) {
      AxisSet altered;
      if (!reads(sink, input.node, altered)) continue;
      if (!(altered & analysis_.shape.row_set()).empty()) return false;
      const AxisSet own = sweep_space(graph_, sink, analysis_);
      const bool row_value = own.empty() && analysis_.role[sink] != FoldRole::grid;
      if (analysis_.level[sink] > level) return false;
      if (analysis_.level[sink] < level || (row_value && !space.empty())) continue;
      if (!(own == space) || !(altered & analysis_.shape.column_set()).empty()) return false;
    }
    return true;
  }

 private:
  std::vector<NodeId> sinks() const {
    std::vector<NodeId> result;
    for (const NodeId node : cone(graph_, outputs_)) {
      if (analysis_.role[node] == FoldRole::sweep) result.push_back(node);
    }
    for (const int output : outputs_) {
      const NodeId node = graph_.outputs[static_cast<std::size_t>(output)].node;
      if (std::find(result.begin(), result.end(), node) == result.end()) result.push_back(node);
    }
    return result;
  }

  // Whether evaluating the sink loads the input, and which axes stand at another index on some way there. Folds that
  // are complete by then are sinks of their own.
  bool reads(NodeId sink, NodeId input, AxisSet& altered) const {
    std::vector<AxisSet> at(graph_.nodes.size());
    std::vector<bool> reached(graph_.nodes.size(), false);
    reached[sink] = true;
    for (NodeId id = sink + 1; id-- > 0;) {
      if (!reached[id]) continue;
      if (id == input) break;
      const Node& n = graph_.node(id);
      if (n.kind == NodeKind::fold && id != sink && analysis_.role[id] == FoldRole::sweep) continue;
      const auto operands = graph_.operands(id);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        AxisSet inside = at[id];
        if (n.kind == NodeKind::view) {
          for (const dsl::ViewTerm& term : graph_.views[n.payload].terms) inside |= AxisSet::of(term.operand_axis);
        }
        if (n.kind == NodeKind::gather && i == 0) inside |= AxisSet::of(graph_.gathers[n.payload].axis);
        if (n.kind == NodeKind::fold && analysis_.role[id] == FoldRole::serial) inside |= graph_.folded_axes(id);
        // A value of the row is computed before the sweep: where it reads along the columns does not matter.
        if (at[id].empty() && (n.axes & analysis_.shape.column_set()).empty()) inside -= analysis_.shape.column_set();
        reached[operands[i]] = true;
        at[operands[i]] |= inside;
      }
    }
    altered = at[input];
    return reached[input];
  }

  const KernelRequest& request_;
  const Graph& graph_;
  const std::vector<int>& outputs_;
  const Analysis& analysis_;
};

}  // namespace

bool in_place_is_safe(const KernelRequest& request, const std::vector<int>& outputs, const Analysis& analysis,
                      int output) {
  return Safety(request, outputs, analysis).safe(output);
}

}  // namespace tigon::schedule
