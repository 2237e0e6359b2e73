// Reads a plan's facts off its steps, its kernels' graphs and their nests; computes nothing that the plan does not say.
#include "codegen/plan/facts.hpp"

#include <set>

#include "codegen/loops/walk.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::plan {
using dsl::AxisId;
using dsl::Graph;
using dsl::NodeId;
using dsl::NodeKind;

namespace {

std::string type_text(const Plan& plan, const Buffer& buffer) {
  std::string axes;
  for (const AxisId axis : buffer.axes) axes += (axes.empty() ? "" : ", ") + plan.axes[axis].name;
  return fmt::format("{}[{}]", name(buffer.dtype), axes);
}

std::string axis_names(const Graph& graph, const std::vector<AxisId>& axes) {
  std::string names;
  for (const AxisId axis : axes) names += (names.empty() ? "" : ", ") + graph.axes[axis].name;
  return names;
}

// The word for a node in a list of what was fused; empty for what is no work of its own.
std::string work_of(const Graph& graph, NodeId id) {
  const dsl::Node& node = graph.node(id);
  switch (node.kind) {
    case NodeKind::map:
      return std::string(dsl::name(graph.op(id)));
    case NodeKind::cast: {
      const dsl::Node& operand = graph.node(graph.operands(id)[0]);
      const bool widens = is_16_bit_float(operand.dtype) && node.dtype == DType::f32;
      return widens ? "" : fmt::format("cast {}", name(node.dtype));
    }
    case NodeKind::fold: {
      const dsl::FoldInfo& fold = graph.fold(id);
      const char* of = fold.of_states ? " of parts" : "";
      return fmt::format("{}<{}>{}", graph.monoids[fold.monoid].name, axis_names(graph, fold.axes), of);
    }
    case NodeKind::gather:
      return fmt::format("gather<{}>", graph.axes[graph.gathers[node.payload].axis].name);
    case NodeKind::scatter:
      return fmt::format("scatter<{}>", graph.axes[graph.scatters[node.payload].axis].name);
    default:
      return "";
  }
}

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size(), false);
  for (const dsl::OutputInfo& output : graph.outputs) live[output.node] = true;
  for (NodeId id = static_cast<NodeId>(graph.nodes.size()); id-- > 0;) {
    if (!live[id]) continue;
    for (const NodeId operand : graph.operands(id)) live[operand] = true;
  }
  return live;
}

std::vector<std::string> fused_work(const Graph& graph, const std::vector<bool>& live) {
  std::vector<std::pair<std::string, int>> kinds;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!live[id]) continue;
    const std::string word = work_of(graph, id);
    if (word.empty()) continue;
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == word; });
    if (known == kinds.end())
      kinds.emplace_back(word, 1);
    else
      ++known->second;
  }
  std::vector<std::string> result;
  for (const auto& [word, count] : kinds) result.push_back(count == 1 ? word : fmt::format("{} x {}", word, count));
  return result;
}

// Elements that gathers fetch from this input, or -1 where something else reads it too.
double gathered_elements(const Graph& graph, const std::vector<bool>& live, NodeId input, const dsl::Extents& extents) {
  double elements = 0;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!live[id]) continue;
    const auto operands = graph.operands(id);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] != input) continue;
      if (graph.node(id).kind != NodeKind::gather || i != 0) return -1;
      double fetched = 1;
      for (const AxisId axis : graph.node(id).axes) fetched *= static_cast<double>(extents[axis]);
      elements += fetched;
    }
  }
  for (const dsl::OutputInfo& output : graph.outputs) {
    if (output.node == input) return -1;
  }
  return elements;
}

// By parameter: the number of loops that load it, each load counted at the innermost loop that its place depends on.
std::vector<int> sweeps_of(const loops::Nest& nest) {
  std::vector<std::set<loops::LoopId>> depends(nest.exprs.size());
  for (std::size_t id = 0; id < nest.exprs.size(); ++id) {
    const loops::Expr& e = nest.exprs[id];
    if (e.kind == loops::ExprKind::loop_index) depends[id].insert(e.payload);
    for (const loops::ExprId arg : loops::args_of(nest, static_cast<loops::ExprId>(id))) {
      depends[id].insert(depends[arg].begin(), depends[arg].end());
    }
  }
  std::vector<std::set<std::pair<std::size_t, loops::LoopId>>> places(nest.parameters.size());
  constexpr loops::LoopId outside = 0xffffffffu;
  for (std::size_t part = 0; part < nest.parts.size(); ++part) {
    std::vector<bool> seen(nest.exprs.size(), false);
    const auto visit = [&](const auto& self, const loops::Block& block, std::vector<loops::LoopId>& around) -> void {
      for (const loops::Statement& statement : block) {
        std::vector<loops::ExprId> stack;
        loops::each_own_expr(statement, [&](loops::ExprId id) { stack.push_back(id); });
        while (!stack.empty()) {
          const loops::ExprId id = stack.back();
          stack.pop_back();
          if (seen[id]) continue;
          seen[id] = true;
          for (const loops::ExprId arg : loops::args_of(nest, id)) stack.push_back(arg);
          if (nest.exprs[id].kind != loops::ExprKind::load) continue;
          loops::LoopId at = outside;
          for (const loops::LoopId loop : around) {
            if (depends[id].contains(loop)) at = loop;
          }
          places[nest.exprs[id].payload].insert({part, at});
        }
        const loops::Block* body = loops::body_of(statement);
        if (body == nullptr) continue;
        const auto* loop = std::get_if<loops::Loop>(&statement.node);
        if (loop != nullptr) around.push_back(loop->id);
        self(self, *body, around);
        if (loop != nullptr) around.pop_back();
      }
    };
    std::vector<loops::LoopId> around = {nest.parts[part].grid.id};
    visit(visit, nest.parts[part].grid.body, around);
  }
  std::vector<int> result;
  for (const auto& of_parameter : places) result.push_back(static_cast<int>(of_parameter.size()));
  return result;
}

class Reader {
 public:
  explicit Reader(const Plan& plan)
      : plan_(plan), read_once_(plan.buffers.size(), 0), written_once_(plan.buffers.size(), 0) {
    std::map<std::string, int> met;
    for (const Buffer& buffer : plan.buffers) {
      const int count = ++met[buffer.name];
      names_.push_back(count == 1 ? buffer.name : fmt::format("{}'{}", buffer.name, count));
    }
  }

  PlanFacts read() {
    PlanFacts facts;
    facts.name = plan_.name;
    facts.device = plan_.device;
    facts.predicted_ns = plan_.predicted_ns;
    facts.front = plan_.front;
    facts.notes = plan_.notes;
    for (std::size_t axis = 0; axis < plan_.axes.size(); ++axis) {
      const auto id = static_cast<AxisId>(axis);
      const bool made = std::any_of(plan_.partition_axes.begin(), plan_.partition_axes.end(),
                                    [&](const PartitionAxis& partition) { return partition.axis == id; });
      facts.axes.push_back({plan_.axes[axis].name, plan_.planned[axis], plan_.fixed.contains(id), made});
    }
    const WorkspaceLayout layout = layout_workspace(plan_, plan_.planned);
    facts.workspace_bytes = layout.bytes;
    facts.steps = read_steps(plan_.steps, plan_.planned, 1);
    for (BufferId id = 0; id < plan_.buffers.size(); ++id) {
      const Buffer& buffer = plan_.buffers[id];
      const char* homes[] = {"argument", "output", "workspace"};
      dsl::Extents extents = plan_.planned;
      for (const AxisId axis : buffer.chunked) extents[axis] = std::min(extents[axis], longest_chunk_[axis]);
      facts.buffers.push_back({names_[id], type_text(plan_, buffer), homes[static_cast<int>(buffer.home)],
                               bytes_of(buffer, extents), layout.offsets[id], buffer.first_step, buffer.last_step});
    }
    const auto add_up = [&](const auto& self, const std::vector<StepFact>& steps) -> void {
      for (const StepFact& step : steps) {
        facts.bytes += step.total_bytes;
        self(self, step.body);
      }
    };
    add_up(add_up, facts.steps);
    for (BufferId id = 0; id < plan_.buffers.size(); ++id) {
      const Buffer& buffer = plan_.buffers[id];
      if (buffer.home == Home::workspace) continue;
      // A result that steps add to is read on the way only because of how it is made, unless the caller's value counts.
      const bool made_here =
          buffer.home == Home::output && plan_.outputs[buffer.index].mode != dsl::OutputMode::accumulate;
      facts.minimum_bytes += written_once_[id] + (made_here ? 0 : read_once_[id]);
    }
    return facts;
  }

 private:
  static double bytes_of(const Buffer& buffer, const dsl::Extents& extents) {
    return static_cast<double>(element_count(buffer, extents)) * size_of(buffer.dtype);
  }

  // Extents as a step inside loops sees them; `runs`: how often the loops repeat it.
  std::vector<StepFact> read_steps(const std::vector<Step>& steps, const dsl::Extents& extents, double runs) {
    std::vector<StepFact> result;
    for (const Step& step : steps) {
      StepFact fact;
      if (const auto* launch = std::get_if<Launch>(&step.node))
        fact = read_launch(*launch, extents);
      else if (const auto* matmul = std::get_if<Matmul>(&step.node))
        fact = read_matmul(*matmul, extents);
      else if (const auto* fill = std::get_if<Fill>(&step.node))
        fact = read_fill(*fill, extents);
      else
        fact = read_loop(std::get<Loop>(step.node), extents, runs);
      fact.runs = fact.kind == StepFact::Kind::loop ? 1 : runs;
      result.push_back(std::move(fact));
    }
    return result;
  }

  // How often the loops around a step repeat it on the same elements of something with these axes.
  [[nodiscard]] double repeats(dsl::AxisSet axes) const {
    double count = 1;
    for (const auto& [axis, chunks] : around_) count *= axes.contains(axis) ? 1 : static_cast<double>(chunks);
    return count;
  }

  UseFact use(std::vector<double>& once, BufferId id, double bytes, double total) {
    const Buffer& buffer = plan_.buffers[id];
    once[id] = std::max(once[id], std::min(total, bytes_of(buffer, plan_.planned)));
    return {names_[id], type_text(plan_, buffer), bytes, total};
  }
  UseFact use(std::vector<double>& once, BufferId id, const dsl::Extents& extents) {
    const Buffer& buffer = plan_.buffers[id];
    dsl::AxisSet axes;
    for (const AxisId axis : buffer.axes) axes |= dsl::AxisSet::of(axis);
    return use(once, id, bytes_of(buffer, extents), bytes_of(buffer, plan_.planned) * repeats(axes));
  }

  static void add_up(StepFact& fact) {
    for (const UseFact& read : fact.reads) {
      fact.minimum_bytes += read.bytes;
      fact.bytes += read.bytes * read.sweeps;
      fact.total_bytes += read.total_bytes * read.sweeps;
    }
    for (const UseFact& write : fact.writes) {
      fact.minimum_bytes += write.bytes;
      fact.bytes += write.bytes;
      fact.total_bytes += write.total_bytes;
    }
  }

  StepFact read_launch(const Launch& launch, const dsl::Extents& extents) {
    const Kernel& kernel = plan_.kernels[launch.kernel];
    const loops::Nest& nest = kernel.scheduled.nest;
    StepFact fact;
    fact.kind = StepFact::Kind::launch;
    fact.number = ++number_;
    fact.kernel = kernel.name;
    fact.family = kernel.scheduled.family;
    fact.why = kernel.scheduled.explanation;
    fact.provenance = kernel.provenance;
    fact.flops = launch.counts.flops;
    fact.exponentials = launch.counts.exponentials;
    fact.predicted_ns = launch.predicted_ns;
    const std::vector<bool> live = live_nodes(kernel.graph);
    fact.fused = fused_work(kernel.graph, live);
    fact.rounds = roundings(kernel.graph, live);
    for (const schedule::PartitionCount& partition : kernel.scheduled.partitions) {
      fact.partitions.push_back(partition.count(extents));
    }
    std::vector<double> gathered(nest.parameters.size(), -1), gathered_in_all(nest.parameters.size(), -1);
    std::vector<bool> reads(nest.parameters.size(), false);  // holds something when the launch starts
    for (std::size_t i = 0; i < kernel.graph.inputs.size(); ++i) {
      const double elements = gathered_elements(kernel.graph, live, kernel.graph.inputs[i].node, extents);
      const double in_all =
          gathered_elements(kernel.graph, live, kernel.graph.inputs[i].node, plan_.planned) * repeats(launch.chunked);
      if (i >= kernel.scheduled.input_parameters.size()) continue;
      for (const loops::ParameterId parameter : kernel.scheduled.input_parameters[i]) {
        gathered[parameter] = elements;
        gathered_in_all[parameter] = in_all;
        reads[parameter] = true;
      }
    }
    for (std::size_t i = 0; i < kernel.scheduled.output_parameters.size(); ++i) {
      if (kernel.graph.outputs[i].mode != dsl::OutputMode::accumulate) continue;
      for (const loops::ParameterId parameter : kernel.scheduled.output_parameters[i]) reads[parameter] = true;
    }
    const std::vector<int> sweeps = sweeps_of(nest);
    for (std::size_t p = 0; p < nest.parameters.size(); ++p) {
      if (launch.buffers[p] == no_buffer) continue;
      const Buffer& buffer = plan_.buffers[launch.buffers[p]];
      if (reads[p]) {
        const double fetched = gathered[p] * size_of(buffer.dtype);
        const bool only_gathered = gathered[p] >= 0 && fetched < bytes_of(buffer, extents);
        fact.reads.push_back(
            only_gathered ? use(read_once_, launch.buffers[p], fetched, gathered_in_all[p] * size_of(buffer.dtype))
                          : use(read_once_, launch.buffers[p], extents));
        fact.reads.back().gathered = only_gathered;
        fact.reads.back().sweeps = std::max(1, sweeps[p]);
      }
      if (nest.parameters[p].access != loops::Access::read)
        fact.writes.push_back(use(written_once_, launch.buffers[p], extents));
    }
    for (const UseFact& write : fact.writes) fact.name += (fact.name.empty() ? "" : ", ") + write.name;
    add_up(fact);
    return fact;
  }

  static std::vector<std::string> roundings(const Graph& graph, const std::vector<bool>& live) {
    std::vector<std::string> result;
    std::map<DType, int> unnamed;
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      const dsl::Node& node = graph.node(id);
      if (!live[id] || node.kind != NodeKind::cast || !is_16_bit_float(node.dtype)) continue;
      if (size_of(graph.node(graph.operands(id)[0]).dtype) <= 2) continue;
      std::string value;
      for (const dsl::NamedNode& named : graph.names) {
        if (named.node == id) value = named.name;
      }
      for (const dsl::OutputInfo& output : graph.outputs) {
        if (output.node == id) value = output.name;
      }
      if (value.empty())
        ++unnamed[node.dtype];
      else
        result.push_back(fmt::format("{} to {}", value, name(node.dtype)));
    }
    for (const auto& [dtype, count] : unnamed) {
      result.push_back(fmt::format("{} inner value{} to {}", count, count == 1 ? "" : "s", name(dtype)));
    }
    return result;
  }

  StepFact read_matmul(const Matmul& matmul, const dsl::Extents& extents) {
    StepFact fact;
    fact.kind = StepFact::Kind::matmul;
    fact.number = ++number_;
    fact.name = names_[matmul.c];
    fact.accumulate = matmul.accumulate;
    fact.flops = matmul.counts.flops;
    fact.exponentials = matmul.counts.exponentials;
    fact.predicted_ns = matmul.predicted_ns;
    fact.fused = {"contraction"};
    for (const MatmulAxis& axis : matmul.axes) {
      const bool in_a = axis.a.axis != dsl::no_axis, in_b = axis.b.axis != dsl::no_axis;
      std::int64_t& size = axis.c.axis == dsl::no_axis ? fact.k : in_a && in_b ? fact.batch : in_a ? fact.m : fact.n;
      size *= extents[axis.axis];
    }
    for (const BufferId operand : {matmul.a, matmul.b}) {
      fact.reads.push_back(use(read_once_, operand, extents));
    }
    if (matmul.accumulate) fact.reads.push_back(use(read_once_, matmul.c, extents));
    fact.writes.push_back(use(written_once_, matmul.c, extents));
    if (is_16_bit_float(plan_.buffers[matmul.c].dtype)) {
      fact.rounds.push_back(fmt::format("{} to {}", fact.name, name(plan_.buffers[matmul.c].dtype)));
    }
    add_up(fact);
    return fact;
  }

  StepFact read_fill(const Fill& fill, const dsl::Extents& extents) {
    StepFact fact;
    fact.kind = StepFact::Kind::fill;
    fact.number = ++number_;
    fact.name = names_[fill.buffer];
    fact.value = fill.value;
    fact.writes.push_back(use(written_once_, fill.buffer, extents));
    add_up(fact);
    return fact;
  }

  StepFact read_loop(const Loop& loop, const dsl::Extents& extents, double runs) {
    StepFact fact;
    fact.kind = StepFact::Kind::loop;
    fact.name = plan_.axes[loop.axis].name;
    fact.chunk = loop.chunk;
    fact.chunk_count = loop.chunk > 0 ? (extents[loop.axis] + loop.chunk - 1) / loop.chunk : 0;
    longest_chunk_[loop.axis] = std::max(longest_chunk_[loop.axis], loop.chunk);
    dsl::Extents inside = extents;
    inside[loop.axis] = std::min(loop.chunk, extents[loop.axis]);
    around_.emplace_back(loop.axis, fact.chunk_count);
    fact.body = read_steps(loop.body, inside, runs * static_cast<double>(fact.chunk_count));
    around_.pop_back();
    for (const StepFact& step : fact.body) {
      fact.predicted_ns += step.predicted_ns * static_cast<double>(fact.chunk_count);
    }
    return fact;
  }

  const Plan& plan_;
  std::vector<std::string> names_;                       // by buffer, no two alike
  std::vector<double> read_once_, written_once_;         // by buffer: the most that one step reads or writes of it
  std::vector<std::pair<AxisId, std::int64_t>> around_;  // the loops around what is being read, and their chunks
  std::array<std::int64_t, dsl::max_axes> longest_chunk_{};
  int number_ = 0;
};

}  // namespace

PlanFacts facts_of(const Plan& plan) { return Reader(plan).read(); }

std::string_view name_of(StepFact::Kind kind) {
  constexpr std::string_view names[] = {"launch", "matmul", "fill", "loop"};
  return names[static_cast<int>(kind)];
}
std::string_view name_of(Note::Kind kind) {
  constexpr std::string_view names[] = {"fused", "refused", "rounding", "stored", "chunked"};
  return names[static_cast<int>(kind)];
}

}  // namespace tigon::plan
