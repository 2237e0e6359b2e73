// Writes a plan's facts as JSON.
#include "codegen/plan/explain.hpp"

#include <nlohmann/json.hpp>

#include "codegen/plan/facts.hpp"

namespace tigon::plan {
namespace {

using Json = nlohmann::ordered_json;

Json uses(const std::vector<UseFact>& facts) {
  Json result = Json::array();
  for (const UseFact& use : facts) {
    result.push_back({{"name", use.name},
                      {"type", use.type},
                      {"bytes", use.bytes},
                      {"sweeps", use.sweeps},
                      {"gathered", use.gathered}});
  }
  return result;
}

Json steps(const std::vector<StepFact>& facts) {
  Json result = Json::array();
  for (const StepFact& fact : facts) {
    Json step;
    step["kind"] = name_of(fact.kind);
    if (fact.kind == StepFact::Kind::loop) {
      step["axis"] = fact.name;
      step["chunk"] = fact.chunk;
      step["chunk_count"] = fact.chunk_count;
      step["predicted_ns"] = fact.predicted_ns;
      step["body"] = steps(fact.body);
      result.push_back(std::move(step));
      continue;
    }
    step["number"] = fact.number;
    step["runs"] = fact.runs;
    step["name"] = fact.name;
    step["fused"] = fact.fused;
    step["rounds"] = fact.rounds;
    step["reads"] = uses(fact.reads);
    step["writes"] = uses(fact.writes);
    step["bytes"] = fact.bytes;
    step["minimum_bytes"] = fact.minimum_bytes;
    step["total_bytes"] = fact.total_bytes;
    step["flops"] = fact.flops;
    step["exponentials"] = fact.exponentials;
    step["predicted_ns"] = fact.predicted_ns;
    if (fact.kind == StepFact::Kind::launch) {
      step["kernel"] = fact.kernel;
      step["family"] = fact.family;
      step["why"] = fact.why;
      step["provenance"] = fact.provenance;
      step["partitions"] = fact.partitions;
    } else if (fact.kind == StepFact::Kind::matmul) {
      step["batch"] = fact.batch;
      step["m"] = fact.m;
      step["n"] = fact.n;
      step["k"] = fact.k;
      step["accumulate"] = fact.accumulate;
    } else {
      step["value"] = fact.value;
    }
    result.push_back(std::move(step));
  }
  return result;
}

}  // namespace

std::string explain_json(const Plan& plan) {
  const PlanFacts facts = facts_of(plan);
  Json result;
  result["format"] = 1;
  result["name"] = facts.name;
  result["device"] = facts.device;
  result["axes"] = Json::array();
  for (const AxisFact& axis : facts.axes) {
    result["axes"].push_back(
        {{"name", axis.name}, {"extent", axis.extent}, {"fixed", axis.fixed}, {"partitions", axis.partitions}});
  }
  result["workspace_bytes"] = facts.workspace_bytes;
  result["predicted_ns"] = facts.predicted_ns;
  result["bytes"] = facts.bytes;
  result["minimum_bytes"] = facts.minimum_bytes;
  result["steps"] = steps(facts.steps);
  result["buffers"] = Json::array();
  for (const BufferFact& buffer : facts.buffers) {
    result["buffers"].push_back({{"name", buffer.name},
                                 {"type", buffer.type},
                                 {"home", buffer.home},
                                 {"bytes", buffer.bytes},
                                 {"offset", buffer.offset},
                                 {"first_step", buffer.first_step},
                                 {"last_step", buffer.last_step}});
  }
  result["front"] = Json::array();
  for (const FrontEntry& entry : facts.front) {
    result["front"].push_back({{"workspace_bytes", entry.workspace_bytes},
                               {"predicted_ns", entry.predicted_ns},
                               {"strategy", entry.strategy},
                               {"chosen", entry.chosen}});
  }
  result["notes"] = Json::array();
  for (const Note& note : facts.notes) {
    result["notes"].push_back({{"kind", name_of(note.kind)}, {"text", note.text}});
  }
  // A name that is not UTF-8 must not stop an explanation.
  return result.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tigon::plan
