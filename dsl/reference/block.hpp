// A box of a value held in memory: some range of each of its axes.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "dsl/graph.hpp"
#include "tigon/dtype.hpp"

namespace tigon::dsl {

struct Range {
  i64 first = 0;
  i64 end = 0;
  [[nodiscard]] i64 size() const { return end - first; }
};
using Ranges = std::vector<Range>;        // by AxisId
using Point = std::array<i64, max_axes>;  // global index by AxisId

// The slots of a state lie one after another, each a whole box. Counts its numbers in `live` while it lives.
class Block {
 public:
  Block(std::vector<AxisId> axes, const Ranges& ranges, std::size_t slots, i64* live, i64* peak);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  [[nodiscard]] std::size_t at(const Point& point, std::size_t slot = 0) const {
    i64 offset = static_cast<i64>(slot) * count_;
    for (std::size_t d = 0; d < axes_.size(); ++d) {
      const i64 index = point[axes_[d]] - box_[d].first;
      if (index < 0 || index >= box_[d].size()) outside(d, point[axes_[d]]);
      offset += index * strides_[d];
    }
    return static_cast<std::size_t>(offset);
  }
  [[nodiscard]] Range range(AxisId axis) const;
  [[nodiscard]] std::span<const AxisId> axes() const { return axes_; }
  [[nodiscard]] i64 count() const { return count_; }
  [[nodiscard]] std::size_t slots() const { return slots_; }
  std::vector<double> data;

 private:
  [[noreturn]] void outside(std::size_t axis, i64 index) const;
  std::vector<AxisId> axes_;
  std::vector<Range> box_;
  std::vector<i64> strides_;
  std::size_t slots_;
  i64 count_ = 1;
  i64* live_;
};

// Calls `visit` for every point of the axes' ranges, the last axis fastest.
template <class Visit>
void for_each_point(std::span<const AxisId> axes, const Ranges& ranges, Point& point, const Visit& visit) {
  if (axes.empty()) return visit();
  const AxisId axis = axes.front();
  for (i64 i = ranges[axis].first; i < ranges[axis].end; ++i) {
    point[axis] = i;
    for_each_point(axes.subspan(1), ranges, point, visit);
  }
}

inline std::vector<AxisId> listed_axes(AxisSet axes) {
  std::vector<AxisId> list;
  for (const AxisId axis : axes) list.push_back(axis);
  return list;
}

}  // namespace tigon::dsl
