// Results and gradients against values that another project computed: tests/golden/ops.txt and the script beside it.
#include <fstream>
#include <sstream>

#include "run_op.hpp"

using namespace tigon;
using namespace tigon::ops;

namespace {

using Named = std::vector<std::pair<std::string, Numbers>>;

struct Golden {
  std::string title;  // the op and its options
  std::string op;
  std::vector<std::pair<std::string, std::string>> options;
  NamedExtents extents;
  Named inputs, outputs, gradients;
};

std::pair<std::string, std::string> parted(const std::string& text) {
  const std::size_t at = text.find('=');
  return {text.substr(0, at), text.substr(at + 1)};
}

std::vector<Golden> read_goldens() {
  std::ifstream file(TIGON_SOURCE_DIR "/tests/golden/ops.txt");
  REQUIRE(file.good());
  std::vector<Golden> goldens;
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream words(text);
    std::string kind, word;
    if (!(words >> kind) || kind == "#") continue;
    if (kind == "case") {
      Golden& golden = goldens.emplace_back();
      golden.title = text;
      words >> golden.op;
      while (words >> word) golden.options.push_back(parted(word));
    } else if (kind == "extents") {
      while (words >> word) {
        const auto [name, extent] = parted(word);
        goldens.back().extents[name] = std::stoll(extent);
      }
    } else {
      std::string name;
      words >> name;
      Numbers values;
      while (words >> word) values.push_back(std::stod(word));
      Golden& golden = goldens.back();
      Named& place = kind == "output" ? golden.outputs : kind == "gradient" ? golden.gradients : golden.inputs;
      place.emplace_back(name, std::move(values));
    }
  }
  return goldens;
}

void fill(RunOp& run, const Golden& golden, bool gradient) {
  for (const auto& [name, values] : golden.inputs) {
    if (!gradient && name.starts_with("upstream.")) continue;
    Numbers& argument = run.argument(name);
    REQUIRE(argument.size() == values.size());
    argument = values;
  }
}

}  // namespace

TEST_CASE("goldens: results and gradients equal another project's") {
  const std::vector<Golden> goldens = read_goldens();
  CHECK(goldens.size() >= 35);
  for (const Golden& golden : goldens) {
    INFO(golden.title);
    RunOp forward(golden.op, {.options = golden.options}, golden.extents);
    fill(forward, golden, false);
    forward.evaluate();
    for (const auto& [name, values] : golden.outputs) check_close(forward.value(name), values, 1e-11);
    if (golden.gradients.empty()) continue;
    RunOp backward(golden.op, {.options = golden.options, .gradient = true}, golden.extents);
    fill(backward, golden, true);
    backward.evaluate();
    for (const auto& [name, values] : golden.gradients) check_close(backward.value("grad." + name), values, 1e-11);
  }
}
