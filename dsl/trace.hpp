// A function being traced: the builder, which graph axis each C++ axis type stands for, and the stack of traces.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dsl/build.hpp"
#include "tigon/detail/trace.hpp"

namespace tigon::detail {

class Trace {
 public:
  explicit Trace(std::string name);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  [[nodiscard]] dsl::Builder& builder() { return builder_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  // The node of a value of this trace; throws Error for an empty value or one of another trace.
  dsl::NodeId use(Value value) const;
  Value give(dsl::NodeId node) { return {node, serial_}; }
  // The same, after checking that the node's axes are among the type's and its dtype is the type's (cast if not).
  Value give(dsl::NodeId node, const TypeRef& type);

  // One C++ axis type may stand for several axes of the graph, told apart by extents that splits give.
  dsl::AxisId axis(const AxisRef& axis);                       // its last use here, or a new one
  dsl::AxisId axis(const AxisRef& axis, std::int64_t extent);  // with an extent given at this place
  dsl::AxisId axis_of(dsl::NodeId node, const AxisRef& axis);  // as the node has it, else its last use
  dsl::AxisId derived_axis(const AxisRef& axis,
                           std::int64_t key);  // one that shares its extent symbol only with equal keys
  std::vector<dsl::AxisId> axes_of(dsl::NodeId node, AxisRefs axes);
  // The node, broadcast if it does not vary over the axis.
  dsl::NodeId carrying(dsl::NodeId node, const AxisRef& axis);

 private:
  dsl::AxisId remember(dsl::AxisId id, const void* tag);

  std::uint32_t serial_;  // never 0
  std::string name_;
  dsl::Builder builder_;
  std::vector<const void*> origin_;  // by AxisId: the C++ axis type's tag
  std::map<const void*, dsl::AxisId> latest_;
  std::map<std::pair<const void*, std::int64_t>, dsl::AxisId> derived_;
  std::deque<char> derived_tags_;
};

// The innermost function being traced on this thread; throws Error naming `what` if there is none.
Trace& current_trace(std::string_view what);
Trace* current_trace_or_null() noexcept;

// Makes a trace the innermost one for its lifetime.
class TraceScope {
 public:
  explicit TraceScope(Trace& trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  Trace* trace_;
  Trace* outer_;
};

struct UserMonoid {
  dsl::Monoid monoid;
};
// The finish of this name; throws Error if there is none.
int finish_number(const dsl::Monoid& monoid, std::string_view name);

}  // namespace tigon::detail
