// From a command line's text to an op of the catalogue, its traced graph and its extents; every mistake is an Error
// that names what was meant.
#pragma once
#include "command.hpp"
#include "dsl/reference/evaluate.hpp"
#include "ops/inputs.hpp"
#include "tigon/detail/compiled.hpp"

namespace tigon::tools {

struct Choice {
  const ops::OpEntry* entry = nullptr;
  ops::OpChoice op;  // dtype, options, gradient
  std::shared_ptr<const dsl::Graph> graph;
  dsl::Extents extents;
  CompileOptions options;
};

// Extents that are not asked for are the catalogue's, or at most `largest_default` where that is positive.
Choice choose(const Asked& asked, std::int64_t largest_default = 0);
// A line naming the extents that were not asked for; empty where all were.
std::string defaults_text(const Asked& asked, const Choice& choice);

std::vector<detail::GivenExtent> given_extents(const Choice& choice);
detail::CompileRequest compile_request(const Choice& choice);

const ops::OpEntry& op_named(const std::string& name);
DType dtype_named(const std::string& name);
Device device_named(const std::string& name);  // cpu, cuda, cuda:1
ops::NamedExtents parse_axes(const std::vector<std::string>& texts);
std::size_t parse_bytes(const std::string& text);  // "1GiB", "512 MB", "4096"
// Makes this process compile for the target: "cpu" is this machine. Throws for one that does not exist.
void set_target(const std::string& target);
// Throws where this machine cannot run what is compiled for the target, or for the CPU that $TIGON_CPU names.
void require_runnable(const std::string& target);

// "tokens = 67, vocab = 67"
std::string extents_text(const dsl::Graph& graph, const dsl::Extents& extents);
std::string type_text(const dsl::Graph& graph, DType dtype, const std::vector<dsl::AxisId>& axes);
// Bytes of arguments and results together.
double argument_bytes(const dsl::Graph& graph, const dsl::Extents& extents);
// Throws Error{usage} when `bytes` are more than this machine has to give.
void require_memory(const Choice& choice, double bytes);

}  // namespace tigon::tools
