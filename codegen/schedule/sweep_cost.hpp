// Predicts the time of one sweep: every value it computes, counted as often as the emitter's loops compute it.
#pragma once
#include <map>

#include "codegen/schedule/shape.hpp"

namespace tigon::schedule {

// Follows the emitter: a value is computed once for each set of indices that its axes have where it is read. Folds that
// are no sweeps are loops at that place, so that a fold read inside another fold's loop runs each time that loop does.
class SweepCost {
 public:
  // `space`: the columns that the sweep runs over. `most_places`: how many values, each at one place, may be counted.
  SweepCost(const KernelRequest& request, const DeviceModel& device, const Analysis& analysis, dsl::AxisSet space,
            std::size_t most_places);

  // The values read by a sink, at the sweep's own indices; 0 for what has been counted.
  double of(dsl::NodeId node) { return of(node, start_); }
  // Evaluations of what the whole sweep computes for each of its points, lanes counted in full vectors.
  [[nodiscard]] double points(bool vector) const;
  [[nodiscard]] double op_ns(bool vector) const { return vector ? device_.vector_op_ns : device_.scalar_op_ns; }
  [[nodiscard]] double merge_cost(dsl::NodeId fold) const;
  [[nodiscard]] dsl::AxisId lanes() const { return lanes_; }
  // More places were met than may be counted; the cost is then too low.
  [[nodiscard]] bool exhausted() const { return places_ >= most_places_; }
  // Values met so far, each once for every place.
  [[nodiscard]] std::size_t places() const { return places_; }

 private:
  using IndexId = std::uint32_t;
  enum class Lane : std::uint8_t { no, contiguous, strided };
  // What stands for an axis where a value is read. 0 is the index of an axis that no loop covers.
  struct Index {
    dsl::AxisSet around;  // the sweep's loops that it depends on, or that stand around the fold whose loop it is
    double runs = 1;      // of the folds' loops around it, for each run of those
    int depth = 0;        // of the folds' loops
    Lane lane = Lane::no;
  };
  using Environment = std::array<IndexId, dsl::max_axes>;
  using Gathered = std::pair<dsl::NodeId, std::vector<IndexId>>;  // the value that is the index, and its own indices

  double of(dsl::NodeId node, const Environment& at);
  double of_fold(dsl::NodeId node, const Environment& at);
  double of_operands(dsl::NodeId node, const Environment& at);
  Index together(dsl::AxisSet axes, const Environment& at) const;
  Environment through_view(dsl::NodeId node, const Environment& at);
  double evaluations(const Index& index) const;
  bool is_finished(dsl::NodeId fold, const Environment& at) const;
  bool stands_inside_rows(dsl::NodeId fold) const;
  dsl::AxisSet loops_around(const Index& index, dsl::NodeId fold) const;
  bool is_new(dsl::NodeId node, const Environment& at);
  IndexId add(const Index& index);
  double product(dsl::AxisSet axes) const;

  const KernelRequest& request_;
  const DeviceModel& device_;
  const Analysis& analysis_;
  dsl::AxisSet rows_, loops_;
  std::vector<dsl::AxisId> columns_;  // those of the space, outermost first
  dsl::AxisId lanes_ = dsl::no_axis;
  std::size_t most_places_;
  std::vector<Index> indices_{Index{}};
  std::map<std::array<std::uint32_t, 5>, IndexId> of_views_;  // by kind, operands and the inner axis
  std::map<Gathered, IndexId> of_gathers_;
  Environment start_{};
  std::vector<std::vector<IndexId>> counted_;  // by node: for each place, the indices of the axes that it carries
  std::size_t places_ = 0;
};

}  // namespace tigon::schedule
