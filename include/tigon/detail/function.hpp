// The untyped half of Function: registers arguments and results around the call of the user's function.
#pragma once
#include <memory>
#include <string>

#include "tigon/detail/trace.hpp"

namespace tigon::dsl {
struct Graph;
}

namespace tigon::detail {

using GraphPointer = std::shared_ptr<const dsl::Graph>;

// While it lives, tensors made on this thread belong to the function being traced. Defined in dsl/trace_function.cpp.
class FunctionTrace {
 public:
  FunctionTrace(const std::string& name, const Location& location);
  ~FunctionTrace();
  FunctionTrace(const FunctionTrace&) = delete;
  FunctionTrace& operator=(const FunctionTrace&) = delete;

  Value input(const std::string& path, const TypeRef& type, bool is_scalar);
  // Rounds to the declared dtype and lays out in the declared order of axes. `shares`: the input of an inplace result.
  void output(const std::string& path, Value value, const TypeRef& type, OutputKind kind, std::string_view shares);
  GraphPointer finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tigon::detail
