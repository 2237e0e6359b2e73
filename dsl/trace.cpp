// Keeps the stack of functions being traced and maps C++ axis types to the axes of a graph.
#include "dsl/trace.hpp"

#include <atomic>

#include "tigon/error.hpp"

namespace tigon::detail {
namespace {

thread_local Trace* innermost = nullptr;

// Tells the values of a trace from those of one that lay at the same address before.
std::uint32_t next_serial() {
  static std::atomic<std::uint32_t> last{0};
  std::uint32_t serial = ++last;
  return serial != 0 ? serial : ++last;
}

}  // namespace

Trace::Trace(std::string name) : serial_(next_serial()), name_(name), builder_(std::move(name)) {}

dsl::NodeId Trace::use(Value value) const {
  if (value.trace == serial_) return value.node;
  if (value.trace == 0) {
    throw Error({.function = name_, .cure = "Give it a value before it is used"}, "an empty tensor is used");
  }
  throw Error({.function = name_, .cure = "Pass it as an argument, or compute it inside"},
              "a tensor of another traced function is used");
}

Value Trace::give(dsl::NodeId node, const TypeRef& type) {
  dsl::AxisSet seen;
  for (const dsl::AxisId axis : builder_.node(node).axes) {
    const dsl::AxisInfo& info = builder_.graph().axes[axis];
    const AxisRef* found = nullptr;
    for (const AxisRef& ref : type.axes) {
      if (origin_[axis] == ref.tag) found = &ref;
    }
    if (found == nullptr) {
      throw Error({.kind = ErrorKind::internal, .function = name_, .axis = info.name},
                  "a traced value has an axis that its C++ type lacks");
    }
    for (const dsl::AxisId other : seen) {
      if (origin_[other] != found->tag) continue;
      const auto extent = [this](dsl::AxisId id) {
        const std::int64_t fixed = builder_.graph().axes[id].fixed;
        return fixed < 0 ? std::string("one that is not fixed") : std::to_string(fixed);
      };
      throw Error({.function = name_,
                   .axis = std::string(found->name),
                   .found = extent(axis),
                   .expected = extent(other),
                   .cure = "Give the second use an axis type of its own"},
                  "one axis type meets itself with two extents");
    }
    seen |= dsl::AxisSet::of(axis);
  }
  return give(builder_.node(node).dtype == type.dtype ? node : builder_.cast(type.dtype, node));
}

dsl::AxisId Trace::remember(dsl::AxisId id, const void* tag) {
  if (origin_.size() <= id) origin_.resize(id + 1, nullptr);
  origin_[id] = tag;
  latest_[tag] = id;
  return id;
}

dsl::AxisId Trace::axis(const AxisRef& axis) {
  const auto found = latest_.find(axis.tag);
  if (found != latest_.end()) return found->second;
  return remember(builder_.axis(axis.tag, axis.name, axis.fixed), axis.tag);
}

dsl::AxisId Trace::axis(const AxisRef& axis, std::int64_t extent) {
  if (extent < -1) {
    throw Error({.function = name_,
                 .axis = std::string(axis.name),
                 .found = std::to_string(extent),
                 .expected = "0 or more",
                 .cure = "Leave it out where the extent follows from others"},
                "an axis is given a negative extent");
  }
  if (extent < 0) return this->axis(axis);
  if (axis.fixed >= 0 && axis.fixed != extent) {
    throw Error({.function = name_,
                 .axis = std::string(axis.name),
                 .found = std::to_string(extent),
                 .expected = std::to_string(axis.fixed)},
                "the axis type fixes another extent");
  }
  return remember(builder_.axis(axis.tag, axis.name, extent), axis.tag);
}

dsl::AxisId Trace::derived_axis(const AxisRef& axis, std::int64_t key) {
  if (axis.fixed >= 0) return this->axis(axis);
  const auto [place, is_new] = derived_.try_emplace({axis.tag, key}, dsl::no_axis);
  if (is_new) {
    derived_tags_.push_back(0);
    place->second = builder_.axis(&derived_tags_.back(), axis.name, -1);
  }
  return remember(place->second, axis.tag);
}

dsl::AxisId Trace::axis_of(dsl::NodeId node, const AxisRef& axis) {
  for (const dsl::AxisId id : builder_.node(node).axes) {
    if (origin_[id] == axis.tag) return id;
  }
  return this->axis(axis);
}

std::vector<dsl::AxisId> Trace::axes_of(dsl::NodeId node, AxisRefs axes) {
  std::vector<dsl::AxisId> ids;
  for (const AxisRef& axis : axes) ids.push_back(axis_of(node, axis));
  return ids;
}

dsl::NodeId Trace::carrying(dsl::NodeId node, const AxisRef& axis) {
  return builder_.broadcast(node, dsl::AxisSet::of(axis_of(node, axis)));
}

Trace* current_trace_or_null() noexcept { return innermost; }

Trace& current_trace(std::string_view what) {
  if (innermost == nullptr) {
    throw Error({.function = std::string(what), .cure = "Call it inside a function given to tigon::function"},
                "no function is being traced on this thread");
  }
  return *innermost;
}

TraceScope::TraceScope(Trace& trace) : trace_(&trace), outer_(innermost) { innermost = trace_; }
TraceScope::~TraceScope() { innermost = outer_; }

void set_location(const Location& location) {
  if (innermost != nullptr) innermost->builder().set_location(location.file_name(), static_cast<int>(location.line()));
}

void refuse_absent(std::string_view what) {
  throw Error({.function = innermost != nullptr ? innermost->name() : std::string()}, std::string(what));
}

}  // namespace tigon::detail
