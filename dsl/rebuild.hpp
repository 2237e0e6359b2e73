// Rebuilds a graph node by node through the constructors: the frame of every pass.
#pragma once
#include <functional>

#include "dsl/build.hpp"

namespace tigon::dsl {

// Makes the new node for an old one, given its new operands; `no_node` asks for the plain remake.
using RebuildRule = std::function<NodeId(Builder&, NodeId old, std::span<const NodeId> operands)>;

// The nodes that outputs need, in order; inputs and scalars are kept, needed or not. Names and locations travel along.
// `of_output` may change an output before it is added; its node is the new one.
using OutputRule = std::function<void(Builder&, OutputInfo&)>;
Graph rebuild(const Graph& graph, const RebuildRule& rule, const OutputRule& of_output = {});

// Which nodes the outputs need.
std::vector<bool> live_nodes(const Graph& graph);

}  // namespace tigon::dsl
