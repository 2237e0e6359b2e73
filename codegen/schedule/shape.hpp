// How a kernel graph is laid over loops: which axes are rows, which are swept inside a row, what each fold becomes.
#pragma once
#include <vector>

#include "codegen/schedule/kernel.hpp"

namespace tigon::schedule {

struct Shape {
  std::vector<dsl::AxisId> rows;     // flattened in this order and shared out over partitions
  std::vector<dsl::AxisId> columns;  // swept inside a row, outermost first; the last is bound to lanes
  bool split_lanes = false;          // no rows: partitions share the lanes axis itself
  [[nodiscard]] dsl::AxisSet row_set() const;
  [[nodiscard]] dsl::AxisSet column_set() const;
  bool operator==(const Shape&) const = default;
};

enum class FoldRole : std::uint8_t {
  none,
  sweep,   // complete within a row: updated in a sweep over columns, its state is one per row
  grid,    // over the rows: one state per partition (and column), merged by whoever reads it
  serial,  // a loop of its own at the place where it is read
};

// What a part does under a shape. Vectors are indexed by the kernel graph's NodeId.
struct Analysis {
  Shape shape;
  std::vector<FoldRole> role;
  std::vector<int> level;  // passes over the columns needed before the node is known
  int passes = 1;
  double cost_ns = 0;
};

// Refuses a shape under which one sweep has more values, each counted at every place where it is computed.
std::variant<Analysis, Refusal> analyse(const KernelRequest& request, const std::vector<int>& outputs,
                                        const Shape& shape, const DeviceModel& device,
                                        std::size_t most_places = any_places);
// The shapes worth trying for these outputs, most promising first, without duplicates.
std::vector<Shape> candidate_shapes(const KernelRequest& request, const std::vector<int>& outputs);
// The cheapest legal one.
std::variant<Analysis, Refusal> choose(const KernelRequest& request, const std::vector<int>& outputs,
                                       const DeviceModel& device, std::size_t most_places = any_places);

// The columns that the sweep computing an output (or updating a fold) runs over.
dsl::AxisSet sweep_space(const dsl::Graph& graph, dsl::NodeId node, const Analysis& analysis);
dsl::AxisSet set_of(const std::vector<dsl::AxisId>& axes);
// Axes that an output's computation ranges over: its own and, for a fold or a scatter, the folded ones.
dsl::AxisSet output_space(const dsl::Graph& graph, dsl::NodeId node);
// Nodes that the outputs need, ascending; everything in a kernel's graph down to its inputs.
std::vector<dsl::NodeId> cone(const dsl::Graph& graph, const std::vector<int>& outputs);

}  // namespace tigon::schedule
