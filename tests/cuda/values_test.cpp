// Every op's CUDA kernels on the emulated device, forward and gradient: no fault is reported under any order of warps,
// results lie within the reference's bounds and do not depend on the order, down to the bit.
#include "emitted.hpp"
#include "emulated_run.hpp"
#include "support.hpp"
#include "tigon/error.hpp"

using namespace tigon;
using namespace tigon::testing;

namespace {

// Odd extents, by name; ops take those that they have.
const std::vector<ops::NamedExtents> extent_sets = {
    {{"tokens", 5},
     {"vocab", 1003},
     {"hidden", 96},
     {"heads", 3},
     {"channels", 24},
     {"width", 40},
     {"queries", 7},
     {"keys", 9},
     {"rows", 11}},
    {{"tokens", 37},
     {"vocab", 256},
     {"hidden", 2080},
     {"heads", 1},
     {"channels", 8},
     {"width", 1024},
     {"queries", 1},
     {"keys", 33},
     {"rows", 129}},
    {{"tokens", 1},
     {"vocab", 3},
     {"hidden", 7},
     {"heads", 2},
     {"channels", 6},
     {"width", 1},
     {"queries", 3},
     {"keys", 1},
     {"rows", 1}},
};

void check_op(std::string_view name, bool gradient) {
  if (nvrtc_or_skip() == nullptr) return;
  const ops::OpEntry& entry = ops::find_op(name);
  std::uint64_t seed = 1;
  for (const ops::NamedExtents& set : extent_sets) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      ++seed;
      if (std::find(entry.dtypes.begin(), entry.dtypes.end(), dtype) == entry.dtypes.end()) continue;
      ops::OpChoice choice;
      choice.dtype = dtype;
      choice.gradient = gradient;
      ops::NamedExtents extents;
      for (const ops::AxisDefault& axis : entry.axes) {
        const auto found = set.find(axis.name);
        std::int64_t extent = found == set.end() ? std::min<std::int64_t>(axis.extent, 5) : found->second;
        if (name == "linear_cross_entropy" && axis.name == "hidden") extent = std::min<std::int64_t>(extent, 72);
        extent = std::max(extent, axis.least);
        extents[std::string(axis.name)] = (extent + axis.multiple - 1) / axis.multiple * axis.multiple;
      }
      INFO(name << " " << tigon::name(dtype) << (gradient ? " gradient" : " forward"));
      // The smallest set is for its corners; one order of warps shows them.
      const bool corners = &set == &extent_sets.back();
      try {
        const dsl::Graph graph = entry.trace(choice);
        const dsl::Extents all = ops::extents_of(entry, graph, extents);
        for (std::size_t axis = 0; axis < all.size(); ++axis)
          UNSCOPED_INFO(graph.axes[axis].name << " = " << all[axis]);
        dsl::EvaluateInputs inputs = ops::draw_inputs(entry, choice, graph, all, seed);
        inputs.extents = all;
        const EmulatedRun first = run_emulated(graph, inputs);
        CHECK(first.faults == "");
        CHECK(first.sentence == "");
        if (corners) continue;
        for (const emulator::Schedule& schedule :
             {emulator::Schedule{emulator::Order::reverse, 1, false}, {emulator::Order::seeded, seed, false}}) {
          const EmulatedRun again = run_emulated(graph, inputs, {.schedule = schedule});
          CHECK(again.faults == "");
          CHECK(again.bytes == first.bytes);
        }
      } catch (const Error& error) {
        FAIL_CHECK(error.what() << "\n" << error.details().log);
      } catch (const std::runtime_error& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
}

}  // namespace

#define CHECK_OP(name)                                                \
  TEST_CASE("emulated: " name, "[values]") { check_op(name, false); } \
  TEST_CASE("emulated: " name " gradient", "[values]") { check_op(name, true); }
CHECK_OP("softmax")
CHECK_OP("log_softmax")
CHECK_OP("cross_entropy")
CHECK_OP("linear_cross_entropy")
CHECK_OP("rms_norm")
CHECK_OP("add_rms_norm")
CHECK_OP("layer_norm")
CHECK_OP("rope")
CHECK_OP("swiglu")
CHECK_OP("geglu")
CHECK_OP("embedding")
CHECK_OP("attention")
CHECK_OP("global_norm")
#undef CHECK_OP
TEST_CASE("emulated: adamw", "[values]") { check_op("adamw", false); }

namespace {

// One op's gradient, run in a way of its own.
void check_in(std::string_view name, DType dtype, const ops::NamedExtents& extents, const RunClass& how) {
  const ops::OpEntry& entry = ops::find_op(name);
  ops::OpChoice choice;
  choice.dtype = dtype;
  choice.gradient = true;
  const dsl::Graph graph = entry.trace(choice);
  const dsl::Extents all = ops::extents_of(entry, graph, extents);
  dsl::EvaluateInputs inputs = ops::draw_inputs(entry, choice, graph, all, 7);
  inputs.extents = all;
  const EmulatedRun run = run_emulated(graph, inputs, how);
  INFO(name);
  CHECK(run.faults == "");
  CHECK(run.sentence == "");
}

}  // namespace

TEST_CASE("emulated: buffers that start at any element", "[values]") {
  if (nvrtc_or_skip() == nullptr) return;
  for (const int shift : {1, 3}) {
    const RunClass how{.shift = shift};
    check_in("rms_norm", DType::bf16, {{"tokens", 3}, {"hidden", 512}}, how);
    check_in("cross_entropy", DType::bf16, {{"tokens", 3}, {"vocab", 515}}, how);
    check_in("swiglu", DType::f32, {{"tokens", 3}, {"hidden", 260}}, how);
  }
}

TEST_CASE("emulated: one kernel for each node, and chunks under a small budget", "[values]") {
  if (nvrtc_or_skip() == nullptr) return;
  check_in("layer_norm", DType::bf16, {{"tokens", 5}, {"hidden", 96}}, {.unfused = true});
  check_in("cross_entropy", DType::f32, {{"tokens", 5}, {"vocab", 67}}, {.unfused = true});
  check_in("linear_cross_entropy", DType::bf16, {{"tokens", 64}, {"vocab", 131}, {"hidden", 40}},
           {.memory_budget = 80000});
}
