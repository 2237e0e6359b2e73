// A lookup with a fill along an empty axis asks for no element, so what lies behind it is not checked there.
#include <catch2/catch.hpp>

#include "dsl/build.hpp"
#include "dsl/passes.hpp"
#include "run_graph.hpp"

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
