// A step lives if it writes an argument, a result, or workspace that a living step reads.
#include "codegen/plan/dead_steps.hpp"

namespace tigon::plan {
namespace {

struct Touched {
  std::vector<BufferId> reads, writes;
};

Touched touched_by(const Plan& plan, const Step& step) {
  Touched result;
  if (const auto* launch = std::get_if<Launch>(&step.node)) {
    const auto& parameters = plan.kernels[launch->kernel].scheduled.nest.parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (launch->buffers[i] == no_buffer) continue;
      if (parameters[i].access != loops::Access::write) result.reads.push_back(launch->buffers[i]);
      if (parameters[i].access != loops::Access::read) result.writes.push_back(launch->buffers[i]);
    }
  } else if (const auto* matmul = std::get_if<Matmul>(&step.node)) {
    result.reads = {matmul->a, matmul->b};
    if (matmul->accumulate) result.reads.push_back(matmul->c);
    result.writes = {matmul->c};
  } else if (const auto* fill = std::get_if<Fill>(&step.node)) {
    result.writes = {fill->buffer};
  }
  return result;
}

void add_reads(const Plan& plan, const std::vector<Step>& steps, std::vector<int>& reads) {
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<Loop>(&step.node)) add_reads(plan, loop->body, reads);
    // Also what a step writes over in place, for another has made it.
    for (const BufferId buffer : touched_by(plan, step).reads) ++reads[buffer];
  }
}

bool drop_unread(const Plan& plan, std::vector<Step>& steps, const std::vector<int>& reads) {
  bool dropped = false;
  std::erase_if(steps, [&](Step& step) {
    bool dead = false;
    if (auto* loop = std::get_if<Loop>(&step.node)) {
      dropped = drop_unread(plan, loop->body, reads) || dropped;
      dead = loop->body.empty();
    } else {
      const Touched touched = touched_by(plan, step);
      dead = std::all_of(touched.writes.begin(), touched.writes.end(), [&](BufferId buffer) {
        return plan.buffers[buffer].home == Home::workspace && reads[buffer] == 0;
      });
      // A kernel that only checks indices writes to no buffer.
      dead = dead && !touched.writes.empty();
    }
    dropped = dropped || dead;
    return dead;
  });
  return dropped;
}

void renumber(std::vector<Step>& steps, const std::vector<std::uint32_t>& numbers) {
  for (Step& step : steps) {
    if (auto* launch = std::get_if<Launch>(&step.node)) launch->kernel = numbers[launch->kernel];
    if (auto* loop = std::get_if<Loop>(&step.node)) renumber(loop->body, numbers);
  }
}

void mark_kernels(const std::vector<Step>& steps, std::vector<bool>& launched) {
  for (const Step& step : steps) {
    if (const auto* launch = std::get_if<Launch>(&step.node)) launched[launch->kernel] = true;
    if (const auto* loop = std::get_if<Loop>(&step.node)) mark_kernels(loop->body, launched);
  }
}

}  // namespace

void drop_dead_steps(Plan& plan) {
  for (bool again = true; again;) {
    std::vector<int> reads(plan.buffers.size(), 0);
    add_reads(plan, plan.steps, reads);
    again = drop_unread(plan, plan.steps, reads);
  }
  std::vector<bool> launched(plan.kernels.size(), false);
  mark_kernels(plan.steps, launched);
  std::vector<std::uint32_t> numbers(plan.kernels.size(), 0);
  std::vector<Kernel> kernels;
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    if (!launched[i]) continue;
    numbers[i] = static_cast<std::uint32_t>(kernels.size());
    kernels.push_back(std::move(plan.kernels[i]));
  }
  plan.kernels = std::move(kernels);
  renumber(plan.steps, numbers);
}

}  // namespace tigon::plan
