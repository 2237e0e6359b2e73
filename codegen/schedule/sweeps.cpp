// Partitions share the rows; inside a row each pass sweeps the columns once; states over the grid stay with the
// partition.
#include "codegen/schedule/sweeps.hpp"

#include "tigon/error.hpp"

namespace tigon::schedule {
using dsl::AxisId;
using dsl::AxisSet;
using dsl::NodeId;
using loops::ExprId;

namespace {

class SweepBuilder {
 public:
  SweepBuilder(const KernelRequest& request, const std::vector<int>& outputs, const Analysis& analysis,
               Emitter& emitter, Scheduled& result)
      : request_(request),
        outputs_(outputs),
        analysis_(analysis),
        emitter_(emitter),
        builder_(emitter.builder()),
        result_(result),
        environment_(empty_environment()) {}

  void build(std::uint16_t part, std::int64_t partition_limit, const std::string& name) {
    part_ = part;
    const Shape& shape = analysis_.shape;
    PartitionCount count{.rows = shape.split_lanes ? shape.columns : shape.rows, .unit = 1, .limit = partition_limit};
    if (shape.split_lanes) count.unit = lanes_unit;
    result_.partitions.push_back(count);
    builder_.part(name);
    partition_ = emitter_.open_grid(builder_.nest.parts.back());
    partitions_ = builder_.partitions(part);

    initialise_partials();
    open_rows();
    emitter_.begin_checks();
    for (const int output : outputs_) declare_grid_fold(output);
    for (int level = 0; level < analysis_.passes; ++level) pass(level);
    row_stores();
    emitter_.close();  // rows
    emitter_.end_checks();
    for (const int output : outputs_) store_grid_fold(output);
    builder_.nest.parts.back().grid = emitter_.take_outermost();
  }

 private:
  static constexpr std::int64_t lanes_unit = 64;  // partitions of a split axis start at multiples of this many elements
  using Sink = std::pair<NodeId, int>;            // a fold or output node, and the output's number or -1

  const dsl::Graph& graph() const { return request_.graph; }
  NodeId node_of(int output) const { return graph().outputs[static_cast<std::size_t>(output)].node; }
  const dsl::OutputInfo& info(int output) const { return graph().outputs[static_cast<std::size_t>(output)]; }
  const std::vector<loops::ParameterId>& parameters(int output) const {
    return result_.output_parameters[static_cast<std::size_t>(output)];
  }

  // [begin, end) of this partition's share of n units.
  std::pair<ExprId, ExprId> share(ExprId n) {
    const ExprId next = builder_.add(partition_, builder_.integer(1));
    return {builder_.floor_div(builder_.mul(partition_, n), partitions_),
            builder_.floor_div(builder_.mul(next, n), partitions_)};
  }

  void open_rows() {
    const Shape& shape = analysis_.shape;
    if (shape.rows.empty()) {
      emitter_.open(
          {.name = "once", .bind = loops::Bind::serial, .begin = builder_.integer(0), .end = builder_.integer(1)});
      return;
    }
    ExprId rows = emitter_.extent(shape.rows[0]);
    std::string name = graph().axes[shape.rows[0]].name;
    for (std::size_t i = 1; i < shape.rows.size(); ++i) {
      rows = builder_.mul(rows, emitter_.extent(shape.rows[i]));
      name += "_" + graph().axes[shape.rows[i]].name;
    }
    const auto [begin, end] = share(rows);
    ExprId row = emitter_.open({.name = name, .bind = loops::Bind::rows, .begin = begin, .end = end});
    for (std::size_t i = shape.rows.size(); i-- > 1;) {
      const ExprId extent = emitter_.extent(shape.rows[i]);
      environment_[shape.rows[i]] = builder_.rem(row, extent);
      row = builder_.floor_div(row, extent);
    }
    environment_[shape.rows[0]] = row;
  }

  // Opens loops over these columns, the last of the shape's order on lanes. Returns how many.
  int open_columns(AxisSet space) {
    const Shape& shape = analysis_.shape;
    std::vector<AxisId> axes;
    for (const AxisId axis : shape.columns) {
      if (space.contains(axis)) axes.push_back(axis);
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const bool last = i + 1 == axes.size();
      ExprId begin = builder_.integer(0);
      ExprId end = emitter_.extent(axes[i]);
      if (last && shape.split_lanes) {
        const ExprId unit = builder_.integer(lanes_unit);
        const auto [first, stop] = share(builder_.ceil_div(end, unit));
        begin = builder_.mul(first, unit);
        end = builder_.min(builder_.mul(stop, unit), end);
      }
      environment_[axes[i]] = emitter_.open({.name = graph().axes[axes[i]].name,
                                             .bind = last ? loops::Bind::lanes : loops::Bind::serial,
                                             .begin = begin,
                                             .end = end});
    }
    return static_cast<int>(axes.size());
  }
  void close_loops(int count) {
    for (int i = 0; i < count; ++i) emitter_.close();
  }

  bool carries_columns(int output) const { return !(graph().node(node_of(output)).axes).empty(); }

  // Index of a partial state: the partition, then the axes that the state carries.
  std::vector<ExprId> partial_index(int output) {
    std::vector<ExprId> index{partition_};
    for (const AxisId axis : info(output).axes) index.push_back(environment_[axis]);
    return index;
  }

  // A grid fold that carries columns lives in memory, one row of states for each partition, from the identity on.
  void initialise_partials() {
    for (const int output : outputs_) {
      const NodeId node = node_of(output);
      if (analysis_.role[node] != FoldRole::grid) continue;
      result_.outputs[static_cast<std::size_t>(output)].partial = true;
      if (!carries_columns(output)) continue;
      const int monoid = builder_.monoid(graph().monoid_of(node));
      const std::vector<ExprId> identity = builder_.identity(monoid, graph().node(node).dtype);
      const int loops = open_columns(graph().node(node).axes);
      emitter_.add({loops::StoreState{static_cast<std::uint32_t>(monoid), parameters(output), partial_index(output),
                                      identity, loops::StoreMode::write}});
      close_loops(loops);
    }
  }

  void declare_grid_fold(int output) {
    const NodeId node = node_of(output);
    if (analysis_.role[node] != FoldRole::grid || carries_columns(output)) return;
    grid_folds_[node] =
        emitter_.declare_fold(info(output).name, builder_.monoid(graph().monoid_of(node)), graph().node(node).dtype);
  }

  void store_grid_fold(int output) {
    const auto found = grid_folds_.find(node_of(output));
    if (found == grid_folds_.end()) return;
    store_states(output, {partition_}, found->second, loops::StoreMode::write);
  }

  void store_states(int output, std::vector<ExprId> index, loops::FoldId fold, loops::StoreMode mode) {
    const dsl::Monoid& monoid = graph().monoid_of(node_of(output));
    std::vector<ExprId> slots;
    for (std::size_t slot = 0; slot < monoid.state.size(); ++slot) {
      slots.push_back(builder_.fold_state(fold, static_cast<int>(slot)));
    }
    emitter_.add({loops::StoreState{static_cast<std::uint32_t>(builder_.monoid(monoid)), parameters(output),
                                    std::move(index), std::move(slots), mode}});
  }
  loops::StoreMode state_mode(int output) const {
    return info(output).mode == dsl::OutputMode::accumulate ? loops::StoreMode::accumulate : loops::StoreMode::write;
  }

  std::vector<ExprId> index_of(int output) const {
    std::vector<ExprId> index;
    for (const AxisId axis : info(output).axes) index.push_back(environment_[axis]);
    return index;
  }

  // Stores an output whose value is known at this place.
  void store(int output) {
    const NodeId node = node_of(output);
    const auto at = static_cast<std::size_t>(output);
    if (graph().is_state(node)) {
      const dsl::Monoid& monoid = graph().monoid_of(node);
      emitter_.add({loops::StoreState{static_cast<std::uint32_t>(builder_.monoid(monoid)), parameters(output),
                                      index_of(output), emitter_.state(node, environment_), state_mode(output)}});
      return;
    }
    const loops::StoreMode mode = info(output).mode == dsl::OutputMode::accumulate ? loops::StoreMode::accumulate
                                  : request_.in_place[at] >= 0                     ? loops::StoreMode::in_place
                                                                                   : loops::StoreMode::write;
    const ExprId value = emitter_.value(node, environment_);
    emitter_.add({loops::Store{parameters(output)[0], index_of(output), value, mode, request_.streaming[at]}});
  }

  // The sinks of one pass, by the subspace of the columns that their sweep runs over.
  void pass(int level) {
    std::map<std::uint64_t, std::vector<Sink>> sweeps;
    for (const NodeId node : cone(graph(), outputs_)) {
      if (analysis_.level[node] != level) continue;
      if (analysis_.role[node] == FoldRole::sweep) {
        sweeps[sweep_space(graph(), node, analysis_).bits()].push_back({node, -1});
      }
    }
    for (const int output : outputs_) {
      const NodeId node = node_of(output);
      if (analysis_.level[node] != level || analysis_.role[node] == FoldRole::sweep) continue;
      const AxisSet space = sweep_space(graph(), node, analysis_);
      if (space.empty() && analysis_.role[node] != FoldRole::grid) continue;  // stored at the end of the row
      sweeps[space.bits()].push_back({node, output});
    }
    if (overwrites_at(level)) fix_row_values(level);
    for (const auto& [bits, sinks] : sweeps) sweep(AxisSet::from_bits(bits), sinks);
  }

  bool overwrites_at(int level) const {
    return std::any_of(outputs_.begin(), outputs_.end(), [&](int output) {
      return request_.in_place[static_cast<std::size_t>(output)] >= 0 && analysis_.level[node_of(output)] == level;
    });
  }

  // Values of the row that read what this pass overwrites are computed before it.
  void fix_row_values(int level) {
    const AxisSet columns = analysis_.shape.column_set();
    std::vector<bool> affected(graph().nodes.size(), false), wanted(graph().nodes.size(), false);
    for (std::size_t output = 0; output < request_.in_place.size(); ++output) {
      if (request_.in_place[output] >= 0) {
        affected[graph().inputs[static_cast<std::size_t>(request_.in_place[output])].node] = true;
      }
    }
    for (const int output : outputs_) wanted[node_of(output)] = true;
    const std::vector<NodeId> nodes = cone(graph(), outputs_);
    for (const NodeId node : nodes) {
      for (const NodeId operand : graph().operands(node)) {
        if (affected[operand]) affected[node] = true;
        if (!(graph().node(node).axes & columns).empty()) wanted[operand] = true;
      }
    }
    for (const NodeId node : nodes) {
      const bool row_value = (graph().node(node).axes & columns).empty() && analysis_.role[node] == FoldRole::none;
      if (!row_value || !wanted[node] || !affected[node] || graph().is_state(node) || analysis_.level[node] > level)
        continue;
      if (graph().node(node).kind == dsl::NodeKind::input) continue;
      emitter_.add({loops::Let{fmt::format("row_value_{}", node), emitter_.value(node, environment_)}});
    }
  }

  void sweep(AxisSet space, const std::vector<Sink>& sinks) {
    // The folds are declared at the outermost loop of the sweep and complete when it closes.
    std::vector<std::pair<NodeId, loops::FoldId>> folds;
    const int loops = open_columns(space);
    for (const auto& [node, output] : sinks) {
      if (analysis_.role[node] != FoldRole::sweep) continue;
      folds.emplace_back(node,
                         emitter_.declare_fold_at(loops, fold_name(node), builder_.monoid(graph().monoid_of(node)),
                                                  graph().node(node).dtype));
    }
    std::size_t next = 0;
    std::vector<int> stores;
    for (const auto& [node, output] : sinks) {
      if (analysis_.role[node] == FoldRole::sweep) {
        emitter_.update(folds[next++].second, node, environment_);
      } else if (analysis_.role[node] == FoldRole::grid) {
        update_grid_fold(node, output);
      } else {
        stores.push_back(output);
      }
    }
    store_all(stores);
    close_loops(loops);
    for (const auto& [node, fold] : folds) emitter_.complete(node, environment_, fold);
  }

  void update_grid_fold(NodeId node, int output) {
    if (const auto found = grid_folds_.find(node); found != grid_folds_.end()) {
      emitter_.update(found->second, node, environment_);
      return;
    }
    const int monoid = builder_.monoid(graph().monoid_of(node));
    emitter_.add({loops::StoreState{static_cast<std::uint32_t>(monoid), parameters(output), partial_index(output),
                                    emitter_.lifted(node, environment_), loops::StoreMode::accumulate}});
  }

  void row_stores() {
    std::vector<int> stores;
    for (const int output : outputs_) {
      const NodeId node = node_of(output);
      const FoldRole role = analysis_.role[node];
      const bool in_sweep = role != FoldRole::sweep && !sweep_space(graph(), node, analysis_).empty();
      if (role != FoldRole::grid && !in_sweep) stores.push_back(output);
    }
    store_all(stores);
  }

  // Where one of the stores overwrites what is read, all values are computed before the first store.
  void store_all(const std::vector<int>& stores) {
    const bool overwrites = std::any_of(stores.begin(), stores.end(), [&](int output) {
      return request_.in_place[static_cast<std::size_t>(output)] >= 0;
    });
    for (const int output : stores) {
      const NodeId node = node_of(output);
      if (!overwrites || graph().is_state(node)) continue;
      emitter_.add({loops::Let{info(output).name, emitter_.value(node, environment_)}});
    }
    for (const int output : stores) store(output);
  }

  std::string fold_name(NodeId node) const {
    const std::string name = graph().name_of(node);
    return name.empty() || name[0] == '%' ? graph().monoid_of(node).name : name;
  }

  const KernelRequest& request_;
  const std::vector<int>& outputs_;
  const Analysis& analysis_;
  Emitter& emitter_;
  loops::NestBuilder& builder_;
  Scheduled& result_;
  Environment environment_;
  std::uint16_t part_ = 0;
  ExprId partition_ = loops::no_expr;
  ExprId partitions_ = loops::no_expr;
  std::map<NodeId, loops::FoldId> grid_folds_;
};

}  // namespace

void build_sweeps(const KernelRequest& request, const std::vector<int>& outputs, const Analysis& analysis,
                  const DeviceModel& device, Emitter& emitter, Scheduled& result, const std::string& name) {
  SweepBuilder(request, outputs, analysis, emitter, result)
      .build(static_cast<std::uint16_t>(result.partitions.size()), device.partition_limit, name);
}

}  // namespace tigon::schedule
