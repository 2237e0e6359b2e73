// What there is to say about a plan, as numbers and names: the one source of its printed text and of its JSON.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tigon::plan {

struct AxisFact {
  std::string name;
  std::int64_t extent = 0;  // as planned
  bool fixed = false;       // stands in kernels' texts; else given at run time
  bool partitions = false;  // made by the planner: the shares of a grid loop
};

// A buffer as one step uses it. Bytes are of one run of the step, at the planned extents.
struct UseFact {
  std::string name;
  std::string type;        // "bf16[tokens, hidden]"
  double bytes = 0;        // touched once
  double total_bytes = 0;  // the same over all runs: the last chunk of a loop may be shorter
  int sweeps = 1;          // how often the step's text goes through it
  bool gathered = false;
};

struct StepFact {
  enum class Kind : std::uint8_t { launch, matmul, fill, loop } kind = Kind::launch;
  int number = 0;          // from 1, loops not counted (0)
  double runs = 1;         // how often the loops around it repeat it
  std::string name;        // what it stores: names of buffers, of which no two are alike
  std::string kernel;      // launch: the function's name in generated text
  std::string family;      // launch: the schedule
  std::string why;         // launch: the schedule's own sentence
  std::string provenance;  // "model/norm.cpp:31"
  std::vector<std::string> fused;
  std::vector<std::string> rounds;  // values that the step rounds to 16 bits
  std::vector<UseFact> reads, writes;
  std::vector<std::int64_t> partitions;  // launch: independent shares, by part
  double bytes = 0;                      // touched by one run: every buffer once per sweep, from memory or cache
  double minimum_bytes = 0;              // every buffer once
  double total_bytes = 0;                // touched by all runs
  double flops = 0, exponentials = 0;
  double predicted_ns = 0;  // of one run; of a loop: all its chunks
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool accumulate = false;
  double value = 0;              // fill
  std::int64_t chunk = 0;        // loop
  std::int64_t chunk_count = 0;  // loop
  std::vector<StepFact> body;    // loop
};

struct BufferFact {
  std::string name, type, home;
  double bytes = 0;
  std::int64_t offset = 0;  // workspace
  int first_step = -1, last_step = -1;
};

struct PlanFacts {
  std::string name, device;
  std::vector<AxisFact> axes;
  std::int64_t workspace_bytes = 0;
  double predicted_ns = 0;
  double bytes = 0;          // touched by all steps
  double minimum_bytes = 0;  // arguments and results once: what no fusion could avoid
  std::vector<StepFact> steps;
  std::vector<BufferFact> buffers;
  std::vector<FrontEntry> front;
  std::vector<Note> notes;
};

PlanFacts facts_of(const Plan& plan);

// Words shared by text and JSON.
std::string_view name_of(StepFact::Kind kind);
std::string_view name_of(Note::Kind kind);

}  // namespace tigon::plan
