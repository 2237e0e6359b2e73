// Cuts a kernel's own small graph out of a large one: from its sinks down to what is stored.
#pragma once
#include <map>

#include "codegen/plan/plan.hpp"

namespace tigon::plan {

// Where a node's value (or state, one buffer per slot) lies.
struct Stored {
  std::vector<BufferId> slots;
  std::vector<dsl::AxisId> layout;
  dsl::AxisId partition = dsl::no_axis;  // a state still in parts: this axis leads the layout and is to be merged over
};
using StoredValues = std::map<dsl::NodeId, Stored>;

struct Sink {
  dsl::NodeId node = dsl::no_node;
  std::vector<dsl::AxisId> layout;
  dsl::OutputMode mode = dsl::OutputMode::write;
  std::string name;
};

struct Extracted {
  dsl::Graph graph;                    // outputs in the order of the sinks
  std::vector<dsl::NodeId> inputs;     // by graph input: the outer node
  std::vector<std::uint32_t> scalars;  // by graph scalar: the outer graph's scalar
};

// `axes` is the plan's axis table (the outer graph's, possibly longer); AxisIds stay the same. A sink that is itself
// stored is copied. Names of inputs come from `name_of`.
Extracted extract(const dsl::Graph& graph, const std::vector<dsl::AxisInfo>& axes, const std::vector<Sink>& sinks,
                  const StoredValues& stored);

// A name for generated text: the user's, the input's or output's, else by kind and number.
std::string value_name(const dsl::Graph& graph, dsl::NodeId node);

}  // namespace tigon::plan
