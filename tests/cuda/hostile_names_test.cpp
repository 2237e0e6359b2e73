// Names and paths that would end a comment, or join it with the next line, leave the CUDA what it is.
#include "dsl/build.hpp"
#include "emulated_run.hpp"
#include "support.hpp"

namespace tigon::testing {

TEST_CASE("emulated: a name may hold anything", "[values]") {
  if (nvrtc_or_skip() == nullptr) return;
  for (const std::string& name :
       {std::string("y\n}\n__global__ void evil() {\n"), std::string("y\\"), std::string(1100, 'n'),
        std::string("*/ \"\xff"), std::string("größe"), std::string("int"), std::string()}) {
    dsl::Builder b("f" + name);
    b.set_location("net/" + name, 7);
    const dsl::AxisId t = b.axis(nullptr, "t" + name), h = b.axis(nullptr, name + "h");
    const dsl::NodeId x = b.input("x", DType::f32, {t, h});
    const dsl::NodeId large = b.map(ScalarOp::exp, {x});
    b.name(large, name);
    const dsl::NodeId total = b.sum(large, {h});
    b.name(total, name + " total");
    b.output({"y", b.map(ScalarOp::div, {large, total}), DType::f32, {t, h}});
    const dsl::Graph graph = std::move(b).finish();
    dsl::EvaluateInputs inputs;
    inputs.extents = {3, 40};
    dsl::TensorValue tensor{.dtype = DType::f32, .axes = {t, h}, .extents = {3, 40}};
    for (int i = 0; i < 120; ++i) tensor.value.push_back(0.0625 * (i % 16));
    tensor.bound.assign(120, 0);
    inputs.tensors.push_back(std::move(tensor));
    INFO(name.substr(0, 40));
    try {
      const EmulatedRun run = run_emulated(graph, inputs);
      CHECK(run.faults == "");
      CHECK(run.sentence == "");
    } catch (const Error& error) {
      FAIL_CHECK(error.what() << "\n" << error.details().log);
    }
  }
}

}  // namespace tigon::testing
