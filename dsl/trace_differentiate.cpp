// Differentiates a traced function as a public request says.
#include "dsl/differentiate.hpp"
#include "dsl/graph.hpp"
#include "dsl/printable.hpp"
#include "tigon/detail/differentiated.hpp"
#include "tigon/error.hpp"

namespace tigon::detail {
namespace {

bool takes(const std::string& path, const std::string& input) {
  return input.starts_with(path) &&
         (input.size() == path.size() || input[path.size()] == '.' || input[path.size()] == '[');
}

std::string names_of(const std::vector<dsl::InputInfo>& inputs) {
  std::string names;
  for (const dsl::InputInfo& input : inputs) names += (names.empty() ? "" : ", ") + input.name;
  return names;
}

void check_paths(const dsl::Graph& graph, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const bool found = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                   [&](const dsl::InputInfo& input) { return takes(path, input.name); });
    if (!found) {
      throw Error({.function = graph.name, .argument = path, .expected = "one of " + names_of(graph.inputs)},
                  "no tensor argument that is present has this path");
    }
  }
}

// An option for a gradient that is not asked for would do nothing.
void check_wanted(const dsl::Graph& graph, const GradientRequest& request, const std::string& path,
                  std::string_view option) {
  const bool wanted = std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const dsl::InputInfo& input) {
    return takes(path, input.name) && std::any_of(request.wrt.begin(), request.wrt.end(),
                                                  [&](const std::string& w) { return takes(w, input.name); });
  });
  if (wanted) return;
  std::string names;
  for (const std::string& w : request.wrt) names += (names.empty() ? "" : ", ") + w;
  throw Error({.function = graph.name,
               .argument = path,
               .found = std::string(option),
               .expected = "an argument of wrt: " + names,
               .cure = "Name it in wrt<...> too, or leave the option out"},
              "an option is given for a gradient that is not asked for");
}

dsl::DifferentiateOptions options_of(const dsl::Graph& graph, const GradientRequest& request) {
  check_paths(graph, request.wrt);
  check_paths(graph, request.accumulated);
  for (const std::string& path : request.accumulated) check_wanted(graph, request, path, "grad_accumulate");
  dsl::DifferentiateOptions options;
  options.wrt = request.wrt;
  for (const PathDType& dtype : request.dtypes) {
    check_paths(graph, {dtype.path});
    check_wanted(graph, request, dtype.path, "grad_dtype");
    options.gradient_dtypes.push_back({dtype.path, dtype.dtype});
  }
  return options;
}

std::vector<std::string> upstreams_of(const dsl::Graph& graph, std::vector<std::string> given) {
  if (!given.empty()) return given;
  for (const dsl::OutputInfo& output : graph.outputs) {
    if (is_floating(output.dtype)) given.push_back(output.name);
  }
  return given;
}

GraphPointer finished(dsl::Graph graph, const std::string& name, const GradientRequest& request) {
  graph.name = dsl::printable_name(name);
  for (dsl::OutputInfo& output : graph.outputs) {
    for (const std::string& path : request.accumulated) {
      if (takes(dsl::gradient_name(path), output.name)) output.mode = dsl::OutputMode::accumulate;
    }
  }
  return std::make_shared<const dsl::Graph>(std::move(graph));
}

}  // namespace

GraphPointer value_and_grad(const GraphPointer& graph, const std::string& name, const GradientRequest& request,
                            const std::string& output) {
  dsl::DifferentiateOptions options = options_of(*graph, request);
  const auto found = std::find_if(graph->outputs.begin(), graph->outputs.end(),
                                  [&](const dsl::OutputInfo& info) { return info.name == output; });
  if (found == graph->outputs.end()) {
    throw Error(
        {.function = graph->name, .argument = output, .cure = "Name the result to differentiate `loss`, or use vjp"},
        "the function has no result of this name");
  }
  if (!found->axes.empty() || !is_floating(found->dtype)) {
    throw Error({.function = graph->name, .argument = output, .cure = "Reduce it, or use vjp"},
                "the gradient of a result that is not one floating-point number was asked for");
  }
  options.output = output;
  return finished(dsl::differentiate(*graph, options), name, request);
}

GraphPointer vjp(const GraphPointer& graph, const std::string& name, const GradientRequest& request,
                 std::vector<std::string> upstreams) {
  dsl::DifferentiateOptions options = options_of(*graph, request);
  options.upstreams = upstreams_of(*graph, std::move(upstreams));
  options.keep_outputs = false;
  return finished(dsl::differentiate(*graph, options), name, request);
}

LinearizedGraphs linearize(const GraphPointer& graph, const std::string& name, const GradientRequest& request,
                           std::vector<std::string> upstreams) {
  dsl::DifferentiateOptions options = options_of(*graph, request);
  options.upstreams = upstreams_of(*graph, std::move(upstreams));
  dsl::Linearized both = dsl::linearize(*graph, options);
  LinearizedGraphs result;
  for (std::size_t i = graph->outputs.size(); i < both.forward.outputs.size(); ++i) {
    result.saved.push_back(both.forward.outputs[i].name);
  }
  result.forward = finished(std::move(both.forward), name + "/forward", {});
  result.backward = finished(std::move(both.backward), name + "/backward", request);
  return result;
}

}  // namespace tigon::detail
