// The fuser: which values are stored, and which of them one kernel computes together.
#pragma once
#include "codegen/plan/contraction.hpp"
#include "codegen/plan/extract.hpp"

namespace tigon::plan {

// What is to be computed. Values in `stored` (and inputs) are in memory; `targets` must be stored at the end.
struct Work {
  const dsl::Graph* graph = nullptr;
  const std::vector<dsl::AxisInfo>* axes = nullptr;
  dsl::Extents extents;  // chunked axes at their chunk's length
  dsl::AxisSet fixed, chunked;
  StoredValues stored;
  std::vector<dsl::NodeId> targets;
  std::vector<std::vector<dsl::AxisId>> layouts;  // by node, for values that have no destination
  std::map<dsl::NodeId, dsl::NodeId> overwrites;  // target -> the input node whose buffer it is stored into
};

// One step: a matmul, or a kernel given by the nodes it stores.
struct Cluster {
  std::optional<Contraction> matmul;
  std::vector<dsl::NodeId> sinks;  // stored nodes, ascending
  std::vector<dsl::NodeId> reads;  // nodes of other clusters that it reads, ascending
  double predicted_ns = 0;
};

struct Clustering {
  std::vector<Cluster> clusters;  // in an order in which they can run
  std::vector<Note> notes;
  std::size_t predictions = 0;  // kernels whose time the schedules were asked to predict
};
Clustering cluster(const Work& work, const schedule::DeviceModel& device, const PlanOptions& options);

// The request for a kernel that stores these nodes, given that every node in `stored` is in memory.
struct KernelPieces {
  Extracted extracted;
  schedule::KernelRequest request;
};
KernelPieces kernel_request(const Work& work, const std::vector<dsl::NodeId>& sinks, const StoredValues& stored);

}  // namespace tigon::plan
