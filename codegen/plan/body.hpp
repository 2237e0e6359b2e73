// Builds the steps of one body of work: the whole function, or what a chunk loop repeats.
#pragma once
#include "codegen/plan/cluster.hpp"

namespace tigon::plan {

// Where a target goes.
struct Destination {
  BufferId buffer = no_buffer;
  std::vector<BufferId> slots{};  // for a state: one buffer per slot instead
  std::vector<dsl::AxisId> layout;
  dsl::OutputMode mode = dsl::OutputMode::write;
  std::string name;
};
using Destinations = std::map<dsl::NodeId, Destination>;

// The destination that a value reaches by elementwise maps that nobody else reads, if it has the value's dtype and
// axes: the value may then be made in the destination's own memory. `no_node` if there is none.
dsl::NodeId sole_destination(const dsl::Graph& graph, const Destinations& destinations, dsl::NodeId node);

class Body {
 public:
  Body(Plan& plan, const schedule::DeviceModel& device, const PlanOptions& options)
      : plan_(plan), device_(device), options_(options) {}

  // Steps that compute the work's targets into their destinations; adds buffers, kernels and notes to the plan.
  std::vector<Step> steps(Work work, const Destinations& destinations);
  // Everything in memory after the last call.
  [[nodiscard]] const StoredValues& stored() const { return stored_; }

 private:
  Step matmul_step(const Work& work, const Cluster& cluster, const Destinations& destinations);
  // One launch for clusters that do not read each other. `whole`: nothing may be left in partitions.
  Step launch_step(const Work& work, const std::vector<const Cluster*>& clusters, const Destinations& destinations,
                   bool whole = false);
  BufferId workspace_buffer(std::string name, DType dtype, std::vector<dsl::AxisId> axes, dsl::AxisSet chunked,
                            dsl::NodeId node);
  // Values of the workspace that no later cluster reads may be overwritten by results of their shape.
  void find_reusable(const Work& work, const Clustering& clustering);
  bool read_later(const Work& work, dsl::NodeId node) const;
  void reuse_dying_input(const Work& work, const std::vector<const Cluster*>& clusters, KernelPieces& pieces,
                         std::size_t output_number) const;
  dsl::AxisId partition_axis(const schedule::PartitionCount& count, dsl::AxisSet chunked);

  Plan& plan_;
  const schedule::DeviceModel& device_;
  const PlanOptions& options_;
  StoredValues stored_;
  std::map<dsl::NodeId, dsl::NodeId> homes_;        // contraction -> the target in whose memory it is made
  std::vector<dsl::NodeId> detours_;                // targets whose memory is taken until the end: copied there last
  std::map<dsl::NodeId, std::size_t> last_reader_;  // cluster that reads the value last; absent: it must be kept
  std::size_t current_cluster_ = 0;                 // the last cluster of the launch being built
};

// Fills what follows from the steps: lives of workspace buffers, the predicted time.
void finish_plan(Plan& plan);

}  // namespace tigon::plan
