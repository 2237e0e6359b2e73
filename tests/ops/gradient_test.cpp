// Every op's gradient against finite differences in f64, under a pairwise cover of its options.
#include "dsl/reference/gradcheck.hpp"
#include "pairwise.hpp"

using namespace tigon;
using namespace tigon::ops;

namespace {

// Small extents with room for each axis' multiple.
NamedExtents small_extents(const OpEntry& entry) {
  NamedExtents extents;
  std::int64_t next = 3;
  for (const AxisDefault& axis : entry.axes) extents[std::string(axis.name)] = axis.multiple * next++;
  return extents;
}

// Options under which a result is meant to have another gradient than its value's, or none.
bool is_held_constant(const std::pair<std::string, std::string>& option) {
  return option == std::pair<std::string, std::string>("token_scaling", "on");
}

}  // namespace

TEST_CASE("gradients of the catalogue agree with finite differences") {
  for (const OpEntry* entry : catalogue()) {
    if (!entry->has_gradient()) continue;
    std::vector<int> counts;
    for (const OptionSpec& option : entry->options) counts.push_back(static_cast<int>(option.values.size()));
    const auto rows = counts.empty() ? std::vector<std::vector<int>>{{}} : pairwise(counts);
    std::uint64_t seed = 1;
    for (const std::vector<int>& row : rows) {
      OpChoice choice;
      for (std::size_t i = 0; i < row.size(); ++i) {
        std::pair<std::string, std::string> option(entry->options[i].name,
                                                   entry->options[i].values[static_cast<std::size_t>(row[i])]);
        if (!is_held_constant(option)) choice.options.push_back(std::move(option));
      }
      dsl::Graph graph = entry->trace(choice);
      std::erase_if(graph.outputs, [&](const dsl::OutputInfo& output) {
        return std::find(entry->differentiated.begin(), entry->differentiated.end(), output.name) ==
               entry->differentiated.end();
      });
      const dsl::Extents extents = extents_of(*entry, graph, small_extents(*entry));
      const dsl::EvaluateInputs inputs = draw_inputs(*entry, choice, graph, extents, seed++);
      dsl::GradcheckOptions options;
      for (const std::string_view path : entry->wrt)
        for (const dsl::InputInfo& input : graph.inputs)
          if (input.name == path) options.wrt.emplace_back(path);
      const dsl::GradcheckResult result = dsl::gradcheck(graph, inputs, options);
      INFO(entry->name);
      for (const auto& [key, value] : choice.options) UNSCOPED_INFO(key << "=" << value);
      INFO(result.sentence);
      CHECK(result.passed);
    }
  }
}

TEST_CASE("token scaling weighs each token's gradient by its probability") {
  const OpEntry& entry = find_op("cross_entropy");
  const auto gradient = [&](const std::string& scaling, const std::string& reduction, bool log_probability) {
    OpChoice choice{.options = {{"token_scaling", scaling}, {"reduction", reduction}}, .gradient = !log_probability};
    if (log_probability) choice.options.emplace_back("outputs", "all");
    const dsl::Graph graph = entry.trace(choice);
    const dsl::Extents extents = extents_of(entry, graph, {{"tokens", 4}, {"vocab", 5}});
    dsl::EvaluateInputs inputs = draw_inputs(entry, choice, graph, extents, 5);
    const auto results = dsl::evaluate(graph, inputs, {.honour_casts = false});
    for (std::size_t i = 0; i < graph.outputs.size(); ++i)
      if (graph.outputs[i].name == (log_probability ? "log_probability" : "grad.logits")) return results[i].value;
    return std::vector<double>{};
  };
  const auto plain = gradient("off", "sum", false);
  const auto scaled = gradient("on", "sum", false);
  const auto log_probability = gradient("off", "sum", true);
  REQUIRE(plain.size() == 20);
  REQUIRE(scaled.size() == 20);
  for (std::size_t i = 0; i < 20; ++i)
    CHECK(scaled[i] == Approx(plain[i] * std::exp(log_probability[i / 5])).margin(1e-12));
}
