// Counts the steps of a compiled function and writes its forms as files.
#include "forms.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "codegen/loops/print.hpp"
#include "dsl/print.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cpu_features.hpp"
#include "runtime/program.hpp"

namespace language_model {
namespace {
namespace plan = tigon::plan;

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

std::string shown(const plan::Plan& plan, plan::BufferId id) {
  if (id == plan::no_buffer) return "error flag";
  const plan::Buffer& buffer = plan.buffers[id];
  std::string axes;
  for (const tigon::dsl::AxisId axis : buffer.axes) axes += (axes.empty() ? "" : ", ") + plan.axes[axis].name;
  return fmt::format("{}[{}]", buffer.name, axes);
}

void list_steps(const plan::Plan& plan, const std::vector<plan::Step>& steps, const std::string& indent,
                std::string& text) {
  for (const plan::Step& step : steps) {
    if (const auto* launch = std::get_if<plan::Launch>(&step.node)) {
      text += fmt::format("{}launch {}  {:.0f} us\n", indent, plan.kernels[launch->kernel].name,
                          launch->predicted_ns / 1000);
      for (const plan::BufferId buffer : launch->buffers)
        text += fmt::format("{}    {}\n", indent, shown(plan, buffer));
    } else if (const auto* matmul = std::get_if<plan::Matmul>(&step.node)) {
      text += fmt::format("{}matmul {} {} {} * {}  {:.0f} us\n", indent, shown(plan, matmul->c),
                          matmul->accumulate ? "+=" : "=", shown(plan, matmul->a), shown(plan, matmul->b),
                          matmul->predicted_ns / 1000);
    } else if (const auto* fill = std::get_if<plan::Fill>(&step.node)) {
      text += fmt::format("{}fill {} with {}\n", indent, shown(plan, fill->buffer), fill->value);
    } else {
      const auto& loop = std::get<plan::Loop>(step.node);
      text += fmt::format("{}for each chunk of {} {}\n", indent, loop.chunk, plan.axes[loop.axis].name);
      list_steps(plan, loop.body, indent + "  ", text);
    }
  }
}

void count_steps(const plan::Plan& plan, const std::vector<plan::Step>& steps, std::int64_t times, Calls& calls) {
  for (const plan::Step& step : steps) {
    if (std::holds_alternative<plan::Launch>(step.node)) calls.launches += times;
    if (std::holds_alternative<plan::Matmul>(step.node)) calls.matmuls += times;
    if (const auto* loop = std::get_if<plan::Loop>(&step.node)) {
      const std::int64_t extent = plan.planned[loop->axis];
      count_steps(plan, loop->body, times * ((extent + loop->chunk - 1) / loop->chunk), calls);
    }
  }
}

std::string describe(const plan::Plan& plan) {
  std::string text =
      fmt::format("{} on {}: {} kernels, predicted {:.0f} us, workspace {} bytes\n\nsteps\n", plan.name, plan.device,
                  plan.kernels.size(), plan.predicted_ns / 1000, plan::layout_workspace(plan, plan.planned).bytes);
  list_steps(plan, plan.steps, "  ", text);
  if (!plan.notes.empty()) text += "\nnotes\n";
  for (const plan::Note& note : plan.notes) text += "  " + note.text + "\n";
  return text;
}

}  // namespace

Calls count_calls(const tigon::detail::CompiledCore& core) {
  const plan::Plan& plan = tigon::runtime::plan_of(core);
  Calls calls{.kernels = static_cast<std::int64_t>(plan.kernels.size())};
  count_steps(plan, plan.steps, 1, calls);
  return calls;
}

void write_forms(const std::string& folder, const tigon::detail::CompiledCore& core) {
  const plan::Plan& plan = tigon::runtime::plan_of(core);
  std::string name = plan.name;
  for (char& letter : name) letter = letter == '/' ? '_' : letter;
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  write(path / "graph.txt", tigon::dsl::print(*core.request().graph));
  write(path / "plan.txt", describe(plan));
  const int vector_bytes = tigon::runtime::machine().vector_bytes;
  for (const plan::Kernel& kernel : plan.kernels) {
    write(path / (kernel.name + ".loops"), tigon::loops::print(kernel.scheduled.nest));
    write(path / (kernel.name + ".ll"), tigon::runtime::llvm_text(kernel.scheduled.nest, vector_bytes).text);
  }
}

}  // namespace language_model
