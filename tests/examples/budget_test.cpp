// The model's gradient under memory budgets, in bf16 as well, where widened copies stand between values and matmuls.
#include "codegen/schedule/gpu.hpp"
#include "examples/language_model/model.hpp"
#include "examples/language_model/weights.hpp"
#include "runtime/compiled.hpp"
#include "tigon/tigon.hpp"

namespace language_model {

TEST_CASE("the model in bf16 has plans in half the memory, for a GPU and for the CPU") {
  const ModelSize size{.layers = 1, .hidden = 64, .heads = 4, .inner = 192, .vocab = 1000};
  const auto graph = tigon::value_and_grad(training_loss<tigon::bf16>(), tigon::wrt<"weights">).trace(loss_shape(size));
  for (const tigon::schedule::DeviceModel& device :
       {*tigon::schedule::gpu_model("sm_90a"), tigon::runtime::cpu_model()}) {
    const auto bytes_in = [&](std::size_t budget) {
      tigon::CompileOptions options;
      options.memory_budget = budget;
      const tigon::plan::Plan plan = tigon::runtime::make_plan(*graph, size.of_windows(4, 64), options, device);
      tigon::dsl::Extents given = plan.planned;
      given.resize(plan.axes.size() - plan.partition_axes.size());
      return tigon::plan::layout_workspace(plan, tigon::plan::bind_extents(plan, given)).bytes;
    };
    const std::int64_t whole = bytes_in(0);
    INFO(device.name << ", " << whole << " bytes without a budget");
    CHECK(bytes_in(static_cast<std::size_t>(whole / 2)) <= whole / 2);
  }
}

}  // namespace language_model
