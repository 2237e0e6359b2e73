// Counts the steps of a compiled function and writes its forms as files.
#include "forms.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "codegen/loops/print.hpp"
#include "codegen/plan/print.hpp"
#include "dsl/print.hpp"
#include "options.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cpu_features.hpp"
#include "runtime/nvrtc/text.hpp"
#include "runtime/program.hpp"

namespace language_model {
namespace {
namespace plan = tigon::plan;

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

}  // namespace

Calls count_calls(const tigon::detail::CompiledCore& core) {
  const plan::Plan& plan = tigon::runtime::plan_of(core);
  Calls calls{.kernels = static_cast<std::int64_t>(plan.kernels.size())};
  count_steps(plan, plan.steps, 1, calls);
  return calls;
}

void prepare_forms(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder, error)) error = std::make_error_code(std::errc::not_a_directory);
  if (!error && ::access(folder.c_str(), W_OK | X_OK) != 0) error = {errno, std::generic_category()};
  if (error) throw UsageError("cannot write to the folder " + folder + " (--forms): " + error.message());
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

void write_forms(const std::string& folder, const tigon::dsl::Graph& graph, const plan::Plan& plan, bool gpu) {
  std::string name = plan.name;
  for (char& letter : name) letter = letter == '/' ? '_' : letter;
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  write_file(path / "graph.txt", tigon::dsl::print(graph));
  write_file(path / "plan.txt", plan::print(plan));
  const int vector_bytes = tigon::runtime::machine().vector_bytes;
  for (const plan::Kernel& kernel : plan.kernels) {
    write_file(path / (kernel.name + ".loops"), tigon::loops::print(kernel.scheduled.nest));
    if (gpu)
      write_file(path / (kernel.name + ".cu"), tigon::runtime::cuda_text(kernel).text);
    else
      write_file(path / (kernel.name + ".ll"), tigon::runtime::llvm_text(kernel.scheduled.nest, vector_bytes).text);
  }
}

void write_forms(const std::string& folder, const tigon::detail::CompiledCore& core) {
  const bool gpu = core.request().options.device.kind() == tigon::Device::Kind::cuda;
  write_forms(folder, *core.request().graph, tigon::runtime::plan_of(core), gpu);
}

}  // namespace language_model
