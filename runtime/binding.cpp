// Strides of split axes, and the comparison that decides whether a bind fits a launch.
#include "runtime/binding.hpp"

namespace tigon::runtime {
using detail::RawBuffer;
using dsl::AxisId;

void append_strides(const plan::Plan& plan, const dsl::Extents& extents, const std::vector<AxisId>& axes, AxisId axis,
                    std::int64_t stride, Strides& strides) {
  if (strides.size() < axes.size() && axes[strides.size()] == axis) {
    strides.push_back(stride);
    return;
  }
  for (const dsl::SplitRelation& split : plan.splits) {
    if (split.whole != axis) continue;
    append_strides(plan, extents, axes, split.outer, stride * extents[split.inner], strides);
    append_strides(plan, extents, axes, split.inner, stride, strides);
    return;
  }
}

bool same_shape(const RawBuffer& a, const RawBuffer& b) {
  if (a.rank != b.rank || a.dtype != b.dtype || !(a.device == b.device)) return false;
  for (int i = 0; i < a.rank; ++i) {
    if (a.extents[static_cast<std::size_t>(i)] != b.extents[static_cast<std::size_t>(i)] ||
        a.strides[static_cast<std::size_t>(i)] != b.strides[static_cast<std::size_t>(i)]) {
      return false;
    }
  }
  return true;
}

}  // namespace tigon::runtime
