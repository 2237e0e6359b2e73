// The facts and the text of a plan with a chunk loop, written by hand.
#include "codegen/plan/explain.hpp"
#include "codegen/plan/facts.hpp"
#include "codegen/plan/print.hpp"
#include "run_command.hpp"

using namespace tigon;
using namespace tigon::plan;
using tigon::test::contains;
using tigon::test::lines_with;

namespace {

constexpr dsl::AxisId tokens = 0, vocab = 1, hidden = 2;

// scores[tokens] = ... of logits = x . weight, by chunks of 4 of 10 tokens; weight_sum += x . logits over the chunks.
Plan chunked_plan() {
  Plan plan;
  plan.name = "looped";
  plan.device = "cpu";
  plan.axes = {{.name = "tokens"}, {.name = "vocab"}, {.name = "hidden"}};
  plan.planned = {10, 6, 5};
  plan.fixed = dsl::AxisSet::of(vocab) | dsl::AxisSet::of(hidden);
  plan.outputs.resize(1);
  plan.buffers = {
      {.name = "x", .dtype = DType::bf16, .axes = {tokens, hidden}, .home = Home::argument},
      {.name = "weight", .dtype = DType::bf16, .axes = {vocab, hidden}, .home = Home::argument, .index = 1},
      {.name = "total", .dtype = DType::f32, .axes = {vocab, hidden}, .home = Home::output},
      {.name = "logits",
       .dtype = DType::bf16,
       .axes = {tokens, vocab},
       .home = Home::workspace,
       .chunked = dsl::AxisSet::of(tokens),
       .first_step = 1,
       .last_step = 3},
  };
  Matmul logits;
  logits.name = "logits";
  logits.a = 0;
  logits.b = 1;
  logits.c = 3;
  logits.axes = {{.axis = tokens, .a = {tokens, {}}, .b = {}, .c = {tokens, {}}},
                 {.axis = vocab, .a = {}, .b = {vocab, {}}, .c = {vocab, {}}},
                 {.axis = hidden, .a = {hidden, {}}, .b = {hidden, {}}, .c = {}}};
  logits.chunked = dsl::AxisSet::of(tokens);
  logits.counts.flops = 2 * 4 * 6 * 5;
  logits.predicted_ns = 100;
  Matmul total;
  total.name = "total";
  total.a = 3;
  total.b = 0;
  total.c = 2;
  total.accumulate = true;
  total.axes = {{.axis = vocab, .a = {vocab, {}}, .b = {}, .c = {vocab, {}}},
                {.axis = hidden, .a = {}, .b = {hidden, {}}, .c = {hidden, {}}},
                {.axis = tokens, .a = {tokens, {}}, .b = {tokens, {}}, .c = {}}};
  total.chunked = dsl::AxisSet::of(tokens);
  total.predicted_ns = 50;
  Loop loop;
  loop.axis = tokens;
  loop.chunk = 4;
  loop.body = {{logits}, {total}};
  plan.steps = {{Fill{2, 0.0}}, {loop}};
  plan.predicted_ns = 450;
  plan.front = {{48, 450, "chunks of 4 tokens", true}, {120, 440, "one chunk", false}};
  plan.notes = {{Note::Kind::rounding, "logits to bf16"}, {Note::Kind::refused, "vocab in slabs: the rows are short"}};
  return plan;
}

}  // namespace

TEST_CASE("facts of a chunk loop count each chunk, the last one as short as it is") {
  const PlanFacts facts = facts_of(chunked_plan());
  REQUIRE(facts.steps.size() == 2);
  CHECK(facts.steps[0].kind == StepFact::Kind::fill);
  CHECK(facts.steps[0].bytes == 6 * 5 * 4);
  const StepFact& loop = facts.steps[1];
  CHECK(loop.chunk_count == 3);
  CHECK(loop.predicted_ns == 450);
  REQUIRE(loop.body.size() == 2);
  const StepFact& logits = loop.body[0];
  CHECK(logits.number == 2);
  CHECK(logits.runs == 3);
  CHECK(logits.m == 4);
  CHECK(logits.n == 6);
  CHECK(logits.k == 5);
  CHECK(logits.bytes == 2 * (4 * 5 + 6 * 5 + 4 * 6));
  // x and logits pass by once in all, the weights three times.
  CHECK(logits.total_bytes == 2 * (10 * 5 + 3 * 6 * 5 + 10 * 6));
  const StepFact& total = loop.body[1];
  CHECK(total.m == 6);
  CHECK(total.n == 5);
  CHECK(total.k == 4);
  CHECK(total.total_bytes == 2 * (10 * 6 + 10 * 5) + 3 * 2 * 4 * (6 * 5));
  CHECK(facts.bytes == facts.steps[0].bytes + logits.total_bytes + total.total_bytes);
  // Each argument read once and the result written once, unless the caller's value is added to.
  CHECK(facts.minimum_bytes == 2 * (10 * 5 + 6 * 5) + 4 * 6 * 5);
  Plan added = chunked_plan();
  added.outputs[0].mode = dsl::OutputMode::accumulate;
  CHECK(facts_of(added).minimum_bytes == 2 * (10 * 5 + 6 * 5) + 2 * 4 * 6 * 5);
  CHECK(facts.workspace_bytes == 64);  // a chunk's logits, 4 x 6 x 2 bytes, aligned
  REQUIRE(facts.buffers.size() == 4);
  CHECK(facts.buffers[3].bytes == 4 * 6 * 2);
}

TEST_CASE("a chunk loop is printed with its steps inside, the strategies and the notes") {
  const std::string text = print(chunked_plan());
  INFO(text);
  CHECK(text.rfind("looped on cpu · tokens 10 (run time), vocab = 6, hidden = 5 · workspace 64 B\n", 0) == 0);
  CHECK(contains(text, "\n   1  fill    total"));
  CHECK(contains(text, "\n  loop tokens by 4: 3 chunks, 450 ns predicted\n"));
  CHECK(contains(lines_with(text, "|  2  matmul  logits"), "4 x 6 x 5"));
  CHECK(contains(lines_with(text, "|  3  matmul  total"), "6 x 5 x 4, added"));
  CHECK(contains(lines_with(text, "rounds"), "logits to bf16"));
  CHECK(contains(lines_with(text, "<- chosen"), "450 ns  chunks of 4 tokens"));
  CHECK_FALSE(contains(lines_with(text, "one chunk"), "chosen"));
  CHECK(contains(text, "\n  rounding logits to bf16\n"));
  CHECK(contains(text, "\n  refused  vocab in slabs: the rows are short\n"));
  CHECK(contains(explain_json(chunked_plan()), "\"chunk_count\": 3"));
}

TEST_CASE("numbers are written for people") {
  CHECK(memory_text(0) == "0 B");
  CHECK(memory_text(1023) == "1023 B");
  CHECK(memory_text(1024) == "1 KiB");
  CHECK(memory_text(250.0 * 1024 * 1024) == "250 MiB");
  CHECK(traffic_text(201.3e6) == "201.3 MB");
  CHECK(traffic_text(1073741824) == "1.07 GB");
  CHECK(time_text(999.9) == "1.00 us");
  CHECK(time_text(52000) == "52 us");
  CHECK(time_text(33.81e6) == "33.8 ms");
  CHECK(count_text(1.08e12, "FLOP") == "1.08 TFLOP");
  CHECK(count_text(12, "FLOP") == "12 FLOP");
  CHECK(count_text(134.2e6, "exponentials") == "134.2 M exponentials");
}
