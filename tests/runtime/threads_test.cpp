// A plan's bytes do not depend on the number of threads, nor its texts on the process.
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "codegen/plan/print.hpp"
#include "dsl/passes.hpp"
#include "dsl/reference/random_graph.hpp"
#include "losses.hpp"
#include "problem.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/program.hpp"
#include "tigon/ops/cross_entropy.hpp"

using namespace tigon;
using namespace tigon::test;

namespace {

Problem random_problem(std::uint64_t seed, std::int64_t most_elements) {
  const dsl::RandomGraph random =
      dsl::random_graph(seed, {.steps = 6, .most_elements = most_elements, .empty_axes = false});
  Problem problem{dsl::prepare(random.graph, random.extents, {}), random.extents, {}};
  problem.inputs = dsl::random_inputs(problem.graph, random.extents, seed);
  problem.inputs.extents = random.extents;
  return problem;
}

// Large enough for several shares and chunks.
std::vector<Problem> losses() {
  const NamedExtents extents{{"tokens", 600}, {"vocab", 1001}, {"hidden", 24}};
  std::vector<Problem> problems;
  const auto add = [&](const auto& loss) {
    problems.push_back(make_problem(*value_and_grad(loss, wrt<"x", "weight">).trace(), extents, 1001));
  };
  add(linear_focal<f32>());
  add(linear_focal<bf16>());
  add(random_loss(11));
  add(random_loss(12));
  return problems;
}

// Launches that are worth sharing between two workers.
int shared_launches(const Problem& problem, const plan::PlanOptions& options) {
  int count = 0;
  each_step(plan_of(problem, options).steps, [&](const plan::Step& step) {
    const auto* launch = std::get_if<plan::Launch>(&step.node);
    count += launch != nullptr && runtime::workers_for(launch->predicted_ns, 2) == 2;
  });
  return count;
}

void check_same_bytes(const Problem& problem, const plan::PlanOptions& options) {
  const auto run = [&](int threads) {
    return run_on_cpu(problem.graph, problem.planned, problem.inputs, options, threads).bytes;
  };
  const auto one = run(1);
  CHECK((run(2) == one));
  CHECK((run(2) == one));
  CHECK((run(1) == one));
}

// The printed plans and the texts of all kernels of some random graphs and losses.
std::string all_texts() {
  std::string text;
  const auto add = [&](const Problem& problem, const plan::PlanOptions& options) {
    const plan::Plan plan = plan_of(problem, options);
    text += plan::print(plan);
    for (const plan::Kernel& kernel : plan.kernels) text += runtime::llvm_text(kernel.scheduled.nest, 32).text;
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) add(random_problem(seed, 20'000), {});
  for (const Problem& problem : losses()) {
    add(problem, with_budget(0));
    add(problem, with_budget(1'000'000));
  }
  return text;
}

// What `all_texts` yields in another process.
std::string texts_of_child() {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(ends[0]);
    // Other addresses than the parent's: what depends on them shows.
    const std::vector<std::unique_ptr<char[]>> shift = [] {
      std::vector<std::unique_ptr<char[]>> blocks;
      for (std::size_t i = 1; i < 500; ++i) blocks.push_back(std::make_unique<char[]>(i * 16));
      return blocks;
    }();
    int status = 1;
    try {
      const std::string text = all_texts();
      std::size_t written = 0;
      while (written < text.size()) {
        const ssize_t now = write(ends[1], text.data() + written, text.size() - written);
        if (now <= 0) break;
        written += static_cast<std::size_t>(now);
      }
      if (written == text.size()) status = 0;
    } catch (...) {
    }
    _exit(status);
  }
  close(ends[1]);
  std::string text;
  char part[65536];
  for (ssize_t count = read(ends[0], part, sizeof part); count > 0; count = read(ends[0], part, sizeof part)) {
    text.append(part, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  return text;
}

}  // namespace

TEST_CASE("two processes emit the same plans and texts") {
  const std::string other = texts_of_child();
  const std::string own = all_texts();
  CHECK(own.size() > 100'000);
  CHECK((own == other));
  CHECK((texts_of_child() == other));
}

TEST_CASE("random graphs: the same bytes on one and two threads, and each time") {
  int graphs = 0;
  for (std::uint64_t seed = 1; seed <= 300 && graphs < 40; ++seed) {
    INFO("seed " << seed);
    const Problem problem = random_problem(seed, 400'000);
    if (shared_launches(problem, {}) == 0) continue;  // runs on one thread anyway
    ++graphs;
    check_same_bytes(problem, {});
  }
  CHECK(graphs == 40);
}

TEST_CASE("losses: the same bytes on one and two threads, and each time") {
  for (const Problem& problem : losses()) {
    INFO(problem.graph.name);
    for (const double budget : {0.0, 1e6}) {
      CHECK(shared_launches(problem, with_budget(budget)) > 0);
      check_same_bytes(problem, with_budget(budget));
    }
  }
}
