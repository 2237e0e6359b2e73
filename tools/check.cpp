// `tigon check`: compiled results against the reference, forward and gradient, within the reference's own bounds.
#include <fmt/format.h>

#include "codegen/plan/print.hpp"
#include "dsl/passes.hpp"
#include "dsl/reference/compare.hpp"
#include "emulated.hpp"
#include "paint.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/prepared.hpp"
#include "tigon/error.hpp"
#include "values.hpp"

namespace tigon::tools {
namespace {

// The same arguments for a graph that passes have rebuilt: found by name, laid out as before.
dsl::EvaluateInputs inputs_for(const dsl::Graph& prepared, const dsl::Graph& graph, const dsl::EvaluateInputs& inputs) {
  dsl::EvaluateInputs result;
  result.extents.assign(prepared.axes.size(), -1);
  for (std::size_t a = 0; a < prepared.axes.size(); ++a) {
    for (std::size_t b = 0; b < graph.axes.size(); ++b) {
      if (prepared.axes[a].name == graph.axes[b].name) result.extents[a] = inputs.extents[b];
    }
  }
  result.extents = dsl::resolve_extents(prepared, std::move(result.extents));
  for (const dsl::InputInfo& input : prepared.inputs) {
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      if (graph.inputs[i].name != input.name) continue;
      dsl::TensorValue tensor = inputs.tensors[i];
      tensor.axes = input.axes;
      tensor.extents = extents_of(input.axes, result.extents);
      result.tensors.push_back(std::move(tensor));
    }
  }
  for (const dsl::ScalarInfo& scalar : prepared.scalars) {
    for (std::size_t i = 0; i < graph.scalars.size(); ++i) {
      if (graph.scalars[i].name == scalar.name) result.scalars.push_back(inputs.scalars[i]);
    }
  }
  return result;
}

struct Tally {
  int results = 0;
  int wrong = 0;
};

void report(const std::string& output, const std::string& type, const dsl::TensorValue& expected,
            const std::vector<double>& computed, Tally& tally) {
  const dsl::Comparison comparison = dsl::compare(expected, computed);
  dsl::ErrorHistogram histogram;  // of error / bound; twice the bound is allowed
  histogram.add(expected, computed);
  ++tally.results;
  tally.wrong += comparison.passed ? 0 : 1;
  std::string line =
      fmt::format("    {:18} {:28} {:>9} value{} error/allowed: worst {:.2g}, median {:.2g}", output, type,
                  computed.size(), computed.size() == 1 ? " " : "s", comparison.worst_ratio, 0.5 * histogram.median());
  if (comparison.undetermined > 0) line += fmt::format(", {} undetermined", comparison.undetermined);
  out(line + "  " + (comparison.passed ? paint(Colour::green, "ok") : paint(Colour::red, "FAILED")) + "\n");
  if (!comparison.passed) out("      " + comparison.sentence + "\n");
}

void check_choice(const Choice& choice, std::uint64_t seed, const Stream& stream, Tally& tally) {
  const dsl::Graph& graph = *choice.graph;
  const dsl::EvaluateInputs inputs = ops::draw_inputs(*choice.entry, choice.op, graph, choice.extents, seed);
  std::vector<Tensor> memory;
  std::vector<detail::RawBuffer> in;
  for (const dsl::TensorValue& tensor : inputs.tensors) {
    memory.push_back(allocate(tensor.dtype, tensor.extents));
    fill(memory.back(), tensor.value);
    if (stream.device().kind() != Device::Kind::cpu) memory.back() = to_device(stream, memory.back());
    in.push_back(memory.back().raw);
  }
  const std::shared_ptr<detail::CompiledCore> core = detail::compile_core(compile_request(choice));
  std::vector<detail::RawBuffer> results(graph.outputs.size());
  std::shared_ptr<void> owner;
  try {
    owner = core->launch_pooled(stream, in, runtime::raw_scalars(graph.scalars, inputs.scalars), results);
    stream.synchronize();
  } catch (const Error& error) {
    const std::string faults = emulated_faults();
    if (faults.empty()) throw;
    throw Error({.kind = ErrorKind::internal, .function = graph.name, .found = error.what(), .log = faults},
                "the emulated device found faults in a kernel");
  }

  const dsl::Graph prepared = dsl::prepare(graph, choice.extents, {.exact = choice.options.exact});
  const std::vector<dsl::TensorValue> expected = dsl::evaluate(prepared, inputs_for(prepared, graph, inputs));
  out(paint(Colour::bold, choice.op.gradient ? "  gradient" : "  forward") + "\n");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto at = std::find_if(graph.outputs.begin(), graph.outputs.end(),
                                 [&](const dsl::OutputInfo& info) { return info.name == prepared.outputs[i].name; });
    if (at == graph.outputs.end()) {
      throw Error({.kind = ErrorKind::internal, .function = graph.name, .argument = prepared.outputs[i].name},
                  "a pass made a result of its own");
    }
    const detail::RawBuffer& result = results[static_cast<std::size_t>(at - graph.outputs.begin())];
    const std::vector<double> computed =
        result.device.kind() == Device::Kind::cpu ? read(result) : read(to_host(stream, result).raw);
    report(at->name, type_text(graph, at->dtype, at->axes), expected[i], computed, tally);
  }
}

}  // namespace

int check(const Asked& asked, std::int64_t seed, const std::string& device_name) {
  // A prime: vectors, tiles and partitions all have ragged ends.
  constexpr std::int64_t largest_default = 131;
  if (seed < 0) {
    throw Error({.argument = "--seed", .found = std::to_string(seed), .expected = "0 or more"}, "the seed is negative");
  }
  const Device device = device_named(device_name);
  const bool on_cpu = device.kind() == Device::Kind::cpu;
  if (on_cpu) require_runnable(asked.target);
  if (!on_cpu && asked.target != "cpu") {
    throw Error({.argument = "--target",
                 .found = asked.target + " with --device " + device_name,
                 .cure = "Leave --target away: kernels are made for the device that they run on"},
                "a device has one target");
  }
  std::vector<Choice> choices;
  for (const bool gradient : {false, true}) {
    if (gradient && !choices.front().entry->has_gradient()) continue;
    Asked direction = asked;
    direction.gradient = gradient;
    choices.push_back(choose(direction, largest_default));
    choices.back().options.device = device;
    // Values as doubles with bounds and marks, 17 bytes where 2 to 4 are stored.
    require_memory(choices.back(), argument_bytes(*choices.back().graph, choices.back().extents) * 9.5);
  }
  const Choice& forward = choices.front();
  // Made before anything is printed: it is what fails where there is no driver.
  const Stream stream = on_cpu ? Stream() : Stream(device);
  out(fmt::format(
      "{} {} · {} · seed {}{}\n", asked.op, name(forward.op.dtype), extents_text(*forward.graph, forward.extents), seed,
      on_cpu ? ""
             : " · " + runtime::CudaDriver::get().device(device.ordinal()).name + (emulated() ? " (emulated)" : "")));
  Tally tally;
  for (const Choice& choice : choices) check_choice(choice, static_cast<std::uint64_t>(seed), stream, tally);
  if (tally.wrong > 0) {
    out(paint(Colour::red, fmt::format("failed: {} of {} results outside their bounds", tally.wrong, tally.results)) +
        "\n");
    return exit_failed;
  }
  out(fmt::format("{}: {} result{} within {} bound{}\n", paint(Colour::green, "ok"), tally.results,
                  tally.results == 1 ? "" : "s", tally.results == 1 ? "its" : "their", tally.results == 1 ? "" : "s"));
  return exit_ok;
}

}  // namespace tigon::tools
