// Axes that the language's tests share, and a graph's values written as one expression without names or places.
#pragma once
#include <string>

#include "dsl/graph.hpp"
#include "tigon/tigon.hpp"

struct Tokens : tigon::axis<"tokens"> {};
struct Vocab : tigon::axis<"vocab"> {};
struct Hidden : tigon::axis<"hidden"> {};
struct Two : tigon::axis<"two", 2> {};
struct Half : tigon::axis<"half"> {};

// "div(sum<tokens>(x), f32(extent(tokens)))": every operand in full, casts as f32(...), a cast input as such.
std::string expression(const tigon::dsl::Graph& graph, tigon::dsl::NodeId node);
// The expression of an output, then " : f32[tokens, hidden]" in its layout.
std::string output(const tigon::dsl::Graph& graph, const std::string& name = "value");
// The printed graph without the places in the user's files.
std::string printed(const tigon::dsl::Graph& graph);
// The message of the tigon::Error that the call throws; fails the test if it throws none.
std::string message_of(const std::function<void()>& call);

template <template <class> class Slot>
struct XYArgs {
  TIGON_ARGS(XYArgs, (Slot<tigon::f32(Tokens, Hidden)>, x), (Slot<tigon::f32(Hidden)>, y),
             (Slot<tigon::bf16(Tokens)>, h), (Slot<tigon::i32(Tokens)>, i), (Slot<bool(Tokens)>, b),
             (Slot<tigon::scalar<tigon::f32>>, s));
};

// What a lambda over the common arguments traces to.
template <class F>
std::string traced(F body) {
  using R = decltype(body(XYArgs<tigon::Tensor>()));
  auto wrapped = [body](XYArgs<tigon::Tensor> in) -> R { return body(in); };
  return output(*tigon::function("f", wrapped).trace());
}
