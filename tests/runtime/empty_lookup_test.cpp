// Lookups with a fill along an empty axis: they ask for no element, so nothing behind them is checked or read.
#include <catch2/catch.hpp>

#include "dsl/build.hpp"
#include "dsl/passes.hpp"
#include "run_graph.hpp"
#include "runtime/bound.hpp"
#include "runtime/compiled.hpp"
#include "tigon/buffer.hpp"

using namespace tigon;

TEST_CASE("a checked lookup behind a lookup with a fill is checked only where the outer one finds an element") {
  dsl::Builder b("behind_fill");
  const dsl::AxisId row = b.axis(nullptr, "row"), inner = b.axis(nullptr, "inner"), table = b.axis(nullptr, "table");
  const dsl::NodeId values = b.input("values", DType::f32, {table});
  // 7, 8, ... as indices of `values`, of which there are 3: wrong for every element that exists.
  const dsl::NodeId wrong = b.map(ScalarOp::add, {b.iota(inner), b.integer(DType::i64, 7)});
  const dsl::NodeId found = b.gather(values, wrong, table, dsl::IndexPolicy::checked);
  const dsl::NodeId index = b.input("index", DType::i64, {row});
  const dsl::NodeId y = b.gather(found, index, inner, dsl::IndexPolicy::fill, 0.25);
  b.output({.name = "y", .node = y, .dtype = DType::f32, .axes = {row}});
  const dsl::Graph traced = std::move(b).finish();

  for (const std::int64_t length : {0, 2}) {
    const dsl::Extents extents = {5, length, 3};
    const dsl::Graph graph = dsl::prepare(traced, extents, {});
    dsl::EvaluateInputs inputs;
    inputs.extents = extents;
    for (const dsl::InputInfo& input : graph.inputs) {
      dsl::TensorValue tensor{.dtype = input.dtype, .axes = input.axes};
      tensor.extents = {extents[input.axes[0]]};
      tensor.value = input.name == "index" ? std::vector<double>{-1, 0, 1, 2, 3} : std::vector<double>{1, 2, 3};
      inputs.tensors.push_back(std::move(tensor));
    }
    INFO("inner axis of " << length);
    if (length == 0) {
      CHECK(test::run_on_cpu(graph, extents, inputs, {}, 1).outputs.at(0) == std::vector<double>(5, 0.25));
    } else {
      CHECK_THROWS(test::run_on_cpu(graph, extents, inputs, {}, 1));
    }
  }
}

TEST_CASE("an empty table of a lookup with a fill may be null, whatever its other axes") {
  for (const bool matrix : {false, true}) {
    dsl::Builder b("empty_table");
    const dsl::AxisId row = b.axis(nullptr, "row"), table = b.axis(nullptr, "table"),
                      column = b.axis(nullptr, "column");
    std::vector<dsl::AxisId> of_values = {table}, of_y = {row};
    if (matrix) {
      of_values.push_back(column);
      of_y.push_back(column);
    }
    const dsl::NodeId values = b.input("values", DType::f32, of_values);
    const dsl::NodeId index = b.input("index", DType::i64, {row});
    const dsl::NodeId y = b.gather(values, index, table, dsl::IndexPolicy::fill, 0.25);
    b.output({.name = "y", .node = y, .dtype = DType::f32, .axes = of_y});
    const dsl::Graph traced = std::move(b).finish();

    const dsl::Extents extents = {5, 0, 70'000};
    const dsl::Graph graph = dsl::prepare(traced, extents, {});
    const auto program = runtime::build_program(plan::plan(graph, extents, runtime::cpu_model(), {}));
    const runtime::Bound bound(program, plan::bind_extents(program->plan, extents), {}, {});
    std::vector<std::int64_t> indices = {-1, 0, 1, 2, 3};
    std::vector<float> found(matrix ? 5 * 70'000 : 5);
    std::vector<void*> in;
    for (const dsl::InputInfo& input : graph.inputs) in.push_back(input.name == "index" ? indices.data() : nullptr);
    std::vector<void*> out = {found.data()};
    const Storage workspace(static_cast<std::size_t>(bound.workspace_bytes()) + 64);
    bound.run({.inputs = in, .outputs = out, .scalars = {}, .workspace = workspace.data()}, {.max_threads = 1});
    CHECK(std::count(found.begin(), found.end(), 0.25F) == static_cast<std::ptrdiff_t>(found.size()));
  }
}
