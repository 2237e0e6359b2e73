// The gradient of a product, where no, one or several elements are zero; any and all have none.
#include "dsl/build.hpp"
#include "dsl/differentiate.hpp"
#include "dsl/reference/evaluate.hpp"
#include "dsl/reference/gradcheck.hpp"

namespace tigon::dsl {
namespace {

struct Rows {
  Builder b{"f"};
  AxisId t = b.axis(nullptr, "t"), v = b.axis(nullptr, "v");
  NodeId x = b.input("x", DType::f32, {t, v});
  NodeId reduced(BuiltinMonoid monoid, NodeId operand, std::vector<AxisId> axes) {
    return b.finish(b.fold(b.monoid(monoid), {operand}, std::move(axes)), 0);
  }
};

EvaluateInputs inputs_of(std::vector<double> values, std::int64_t rows, std::int64_t columns) {
  EvaluateInputs inputs;
  inputs.extents = {rows, columns};
  TensorValue x;
  x.dtype = DType::f32;
  x.axes = {0, 1};
  x.extents = inputs.extents;
  x.value = std::move(values);
  x.bound.assign(x.value.size(), 0);
  inputs.tensors.push_back(std::move(x));
  return inputs;
}

// The product of all elements of a row but one, by multiplication alone.
std::vector<double> products_of_others(const std::vector<double>& values, std::size_t columns) {
  std::vector<double> result(values.size(), 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t row = i / columns * columns;
    for (std::size_t j = row; j < row + columns; ++j) result[i] *= j == i ? 1 : values[j];
  }
  return result;
}

}  // namespace

TEST_CASE("the gradient of a product is the product of the others, zeros or not") {
  const std::vector<double> values = {2,   -3, 4,   0.5,  // no zero
                                      2,   0,  -4,  0.5,  // one: the gradient stands there alone
                                      0,   3,  0,   5,    // two: none
                                      -0., 0,  0,   0,    // nothing but zeros
                                      1,   1,  1e3, -1e-3};
  Rows f;
  const NodeId y = f.reduced(BuiltinMonoid::product, f.x, {f.v});
  f.b.output({"y", f.reduced(BuiltinMonoid::sum, y, {f.t}), DType::f32, {}});
  const Graph gradient = differentiate(std::move(f.b).finish(), {.wrt = {"x"}, .output = "y"});
  const std::vector<TensorValue> results = evaluate(gradient, inputs_of(values, 5, 4));
  const std::vector<double> expected = products_of_others(values, 4);
  REQUIRE(results.at(1).value.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("element " << i);
    CHECK(results[1].value[i] == Approx(expected[i]).margin(1e-12));
  }
}

TEST_CASE("gradcheck: a product with and without zeros, over one axis and over two") {
  for (const bool both : {false, true}) {
    for (const int zeros : {0, 1, 2}) {
      std::vector<double> values;
      for (int i = 0; i < 20; ++i) values.push_back(0.4 + 0.07 * i * (i % 3 == 0 ? -1 : 1));
      if (zeros > 0) values[7] = 0;
      if (zeros > 1) values[6] = 0;
      Rows f;
      const NodeId y = f.reduced(BuiltinMonoid::product, f.x, both ? std::vector{f.t, f.v} : std::vector{f.v});
      f.b.output({"y", y, DType::f32, both ? std::vector<AxisId>{} : std::vector{f.t}});
      const Graph graph = std::move(f.b).finish();
      const GradcheckResult result = gradcheck(graph, inputs_of(values, 4, 5), {.step = 1e-4});
      INFO("both axes " << both << ", zeros " << zeros << ": " << result.sentence);
      CHECK(result.passed);
      CHECK(result.worst < 1e-6);
    }
  }
}

TEST_CASE("the gradient of a product can be differentiated again") {
  Rows f;
  f.b.output({"y", f.reduced(BuiltinMonoid::product, f.x, {f.t, f.v}), DType::f32, {}});
  const Graph once = differentiate(std::move(f.b).finish(), {.wrt = {"x"}, .output = "y", .keep_outputs = false});
  const GradcheckResult result = gradcheck(once, inputs_of({0.5, -1.5, 2, 1.25, -0.75, 3}, 2, 3), {.step = 1e-4});
  INFO(result.sentence);
  CHECK(result.passed);
}

TEST_CASE("any and all are boolean: what they decide has a gradient, they have none") {
  Rows f;
  const NodeId positive = f.b.map(ScalarOp::less, {f.b.constant(DType::f32, 0), f.x});
  const NodeId any = f.reduced(BuiltinMonoid::any, positive, {f.v});
  const NodeId all = f.reduced(BuiltinMonoid::all, positive, {f.v});
  const NodeId two = f.b.constant(DType::f32, 2), five = f.b.constant(DType::f32, 5),
               zero = f.b.constant(DType::f32, 0);
  const NodeId factor = f.b.map(ScalarOp::where, {all, five, f.b.map(ScalarOp::where, {any, two, zero})});
  const NodeId y = f.b.map(ScalarOp::mul, {factor, f.x});
  f.b.output({"y", f.reduced(BuiltinMonoid::sum, y, {f.t, f.v}), DType::f32, {}});
  const Graph gradient = differentiate(std::move(f.b).finish(), {.wrt = {"x"}, .output = "y"});
  const std::vector<TensorValue> results = evaluate(gradient, inputs_of({1, 2, -1, 3, -1, -2}, 3, 2));
  CHECK(results.at(1).value == std::vector<double>{5, 5, 2, 2, 0, 0});
}

}  // namespace tigon::dsl
