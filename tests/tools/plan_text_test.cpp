// The text and the JSON of plans, as `tigon explain` shows them.
#include <nlohmann/json.hpp>
#include <set>

#include "run_command.hpp"

using namespace tigon::test;
using Json = nlohmann::ordered_json;

namespace {

// A named target: the numbers do not depend on the machine that runs the test.
std::vector<std::string> explain(std::vector<std::string> more) {
  std::vector<std::string> words = {"explain", "--target", "x86-64-v3"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Json explained(std::vector<std::string> more) {
  more.push_back("--json");
  const Ran ran = run_tigon(explain(more));
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  return Json::parse(ran.out);
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

using Keys = std::vector<std::string>;
const Keys common_keys = {"kind",   "number", "runs",          "name",        "fused", "rounds",       "reads",
                          "writes", "bytes",  "minimum_bytes", "total_bytes", "flops", "exponentials", "predicted_ns"};

Keys with(Keys more) {
  Keys keys = common_keys;
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

void check_steps(const Json& steps, int& number, std::set<std::string>& kinds) {
  for (const Json& step : steps) {
    const std::string kind = step.at("kind");
    kinds.insert(kind);
    INFO(step.dump(1));
    if (kind == "loop") {
      CHECK(keys_of(step) == Keys{"kind", "axis", "chunk", "chunk_count", "predicted_ns", "body"});
      check_steps(step.at("body"), number, kinds);
      continue;
    }
    CHECK(step.at("number") == ++number);
    if (kind == "launch") CHECK(keys_of(step) == with({"kernel", "family", "why", "provenance", "partitions"}));
    if (kind == "matmul") CHECK(keys_of(step) == with({"batch", "m", "n", "k", "accumulate"}));
    if (kind == "fill") CHECK(keys_of(step) == with({"value"}));
    double minimum = 0, touched = 0;
    for (const char* direction : {"reads", "writes"}) {
      for (const Json& use : step.at(direction)) {
        CHECK(keys_of(use) == Keys{"name", "type", "bytes", "sweeps", "gathered"});
        minimum += use.at("bytes").get<double>();
        touched += use.at("bytes").get<double>() * use.at("sweeps").get<int>();
      }
    }
    CHECK(step.at("minimum_bytes") == minimum);
    CHECK(step.at("bytes") == touched);
    CHECK(step.at("total_bytes").get<double>() <= touched * step.at("runs").get<double>());
    CHECK(step.at("predicted_ns").get<double>() >= 0);
  }
}

}  // namespace

TEST_CASE("a softmax's plan reads as one kernel over rows") {
  const Ran ran = run_tigon(explain({"softmax", "--axes", "tokens=4096,vocab=32768"}));
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  CHECK(ran.err.empty());  // every extent was given
  CHECK(ran.out.rfind("softmax on cpu · tokens 4096 (run time), vocab = 32768 · workspace 0 B\n", 0) == 0);
  CHECK(contains(lines_with(ran.out, "  1  launch"), " y "));
  CHECK(contains(lines_with(ran.out, "  1  launch"), "(minimum 1.07 GB)"));
  CHECK_FALSE(contains(ran.out, "  2  launch"));
  CHECK(contains(lines_with(ran.out, "fused"), "logsumexp<vocab>"));
  CHECK(contains(lines_with(ran.out, "fused"), "exp"));
  CHECK(contains(lines_with(ran.out, "reads"), "x: f32[tokens, vocab]"));
  CHECK(contains(lines_with(ran.out, "writes"), "y: f32[tokens, vocab]"));
  CHECK(contains(lines_with(ran.out, "from"), "ops/softmax.cpp:"));
  CHECK(contains(lines_with(ran.out, "total"), "arguments and results once: 1.07 GB"));
}

TEST_CASE("a norm's gradient reads as rows and columns at once, then the second stage") {
  const Ran ran =
      run_tigon(explain({"rms_norm", "--gradient", "--dtype", "bf16", "--axes", "tokens=8192,hidden=4096"}));
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  CHECK(ran.out.rfind("rms_norm/vjp on cpu · tokens 8192 (run time), hidden = 4096 · workspace ", 0) == 0);
  CHECK(contains(lines_with(ran.out, "fused"), "sum<hidden>"));
  CHECK(contains(lines_with(ran.out, "fused"), "sum<tokens>"));
  CHECK(contains(lines_with(ran.out, "fused"), "sum<partition> of parts"));
  CHECK(contains(lines_with(ran.out, "rounds"), "grad.x to bf16"));
  CHECK(contains(lines_with(ran.out, "rounds"), "grad.weight to bf16"));
  CHECK(contains(ran.out, "\n  refused  "));
}

TEST_CASE("bytes in a plan are those of its buffers, exactly") {
  const Json softmax = explained({"softmax", "--axes", "tokens=37,vocab=1001"});
  CHECK(softmax.at("minimum_bytes") == 2 * 37 * 1001 * 4);
  CHECK(softmax.at("bytes").get<double>() >= 2 * 37 * 1001 * 4);
  const Json norm = explained({"rms_norm", "--gradient", "--axes", "tokens=37,hidden=101"});
  CHECK(norm.at("minimum_bytes") == (3 * 37 * 101 + 2 * 101) * 4);
  const Json half = explained({"rms_norm", "--gradient", "--dtype", "bf16", "--axes", "tokens=37,hidden=101"});
  CHECK(half.at("minimum_bytes") == (3 * 37 * 101 + 2 * 101) * 2);
  // In place: read and written.
  const Json adamw = explained({"adamw", "--axes", "elements=1000"});
  CHECK(adamw.at("minimum_bytes") == 7 * 1000 * 4);
  // Of a table only the rows that are asked for.
  const Json embedding = explained({"embedding", "--axes", "vocab=5000,tokens=10,hidden=64"});
  CHECK(embedding.at("minimum_bytes") == 10 * 4 + 2 * 10 * 64 * 4);
  const Json& table = embedding.at("steps").at(0).at("reads").at(0);
  CHECK(table.at("name") == "table");
  CHECK(table.at("gathered") == true);
}

TEST_CASE("the JSON has the documented keys in their order") {
  std::set<std::string> kinds;
  for (const std::vector<std::string>& question :
       {std::vector<std::string>{"softmax"},
        {"rms_norm", "--gradient"},
        {"layer_norm", "--gradient", "--unfused"},
        {"linear_cross_entropy", "--gradient", "--axes", "tokens=512,vocab=4096,hidden=256", "--dtype", "bf16"}}) {
    const Json plan = explained(question);
    INFO(plan.dump(1));
    CHECK(keys_of(plan) == Keys{"format", "name", "device", "axes", "workspace_bytes", "predicted_ns", "bytes",
                                "minimum_bytes", "steps", "buffers", "front", "notes"});
    CHECK(plan.at("format") == 1);
    for (const Json& axis : plan.at("axes")) CHECK(keys_of(axis) == Keys{"name", "extent", "fixed", "partitions"});
    for (const Json& buffer : plan.at("buffers")) {
      CHECK(keys_of(buffer) == Keys{"name", "type", "home", "bytes", "offset", "first_step", "last_step"});
    }
    for (const Json& entry : plan.at("front")) {
      CHECK(keys_of(entry) == Keys{"workspace_bytes", "predicted_ns", "strategy", "chosen"});
    }
    for (const Json& note : plan.at("notes")) CHECK(keys_of(note) == Keys{"kind", "text"});
    int number = 0;
    check_steps(plan.at("steps"), number, kinds);
    CHECK(number > 0);
  }
  CHECK(kinds.count("launch") == 1);
  CHECK(kinds.count("matmul") == 1);
}

TEST_CASE("two runs explain with the same bytes") {
  const std::vector<std::string> question = explain({"linear_cross_entropy", "--gradient", "--json"});
  CHECK(run_tigon(question).out == run_tigon(question).out);
}
