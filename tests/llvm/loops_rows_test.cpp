// Nests over rows, compiled and run: pointwise, sums, softmax, logsumexp, argmax, ragged ends.
#include <cmath>

#include "dsl/monoid.hpp"
#include "loops_run.hpp"

using namespace tigon;
using namespace tigon::testing;
using loops::Access;
using loops::ExprId;

namespace {

const std::vector<std::int64_t> widths = {0, 1, 3, 15, 16, 17, 63, 64, 65, 100, 255, 1000, 32003};

loops::Nest pointwise_nest() {
  Rows rows("pointwise");
  auto& b = rows.builder;
  const auto x = rows.matrix("x");
  const auto y = rows.matrix("y", DType::f32, Access::write);
  const auto scale = b.scalar(b.scalar_parameter("scale", DType::f32));
  rows.rows_part([&](loops::Block& body, ExprId row) {
    loops::Loop lanes = rows.lanes();
    const ExprId i = rows.index(lanes);
    const ExprId v = b.load(x, {row, i});
    lanes.body.push_back(loops::let("scaled", b.add(b.mul(v, scale), b.number(DType::f32, 1))));
    lanes.body.push_back(loops::store(y, {row, i}, b.add(b.mul(v, scale), b.number(DType::f32, 1))));
    body.push_back(loops::statement(lanes));
  });
  return b.nest;
}

// y = softmax(x) in three sweeps, sum and max also stored.
loops::Nest softmax_nest(std::int64_t columns = loops::at_run_time) {
  Rows rows("softmax", columns);
  auto& b = rows.builder;
  const auto x = rows.matrix("x");
  const auto y = rows.matrix("y", DType::f32, Access::write);
  const auto lse = rows.vector_of(rows.row_axis, "lse", DType::f32, Access::write);
  const int monoid = b.monoid(dsl::builtin_monoid(dsl::BuiltinMonoid::logsumexp));
  const auto fold = b.fold("total", monoid, DType::f32);
  rows.rows_part([&](loops::Block& body, ExprId row) {
    loops::Loop first = rows.lanes();
    first.folds = {fold};
    first.body.push_back(loops::update(fold, {b.load(x, {row, rows.index(first)})}));
    body.push_back(loops::statement(first));
    const ExprId value = b.finish(fold, dsl::lse_value);
    body.push_back(loops::let("log_total", value));
    body.push_back(loops::store(lse, {row}, value));
    loops::Loop second = rows.lanes();
    const ExprId i = rows.index(second);
    second.body.push_back(loops::store(y, {row, i}, b.op(ScalarOp::exp, {b.sub(b.load(x, {row, i}), value)})));
    body.push_back(loops::statement(second));
  });
  return b.nest;
}

}  // namespace

TEST_CASE("a pointwise nest runs on every machine and width", "[loops]") {
  const loops::Nest nest = pointwise_nest();
  for (const auto& machine : machines()) {
    const NestKernel kernel = compile_nest(nest, machine);
    for (const std::int64_t columns : widths) {
      const std::int64_t count = 3;
      const std::vector<float> x = numbers(static_cast<std::size_t>(count * columns));
      std::vector<float> y(x.size() + 1, 7.0F);
      NestLaunch launch;
      launch.pointers = {const_cast<float*>(x.data()), y.data()};
      launch.extents = {{"row", count}, {"column", columns}};
      launch.strides = {{{0, 0}, columns}, {{1, 0}, columns}};
      launch.partitions = {2};
      launch.scalars = {2.5F};
      run_nest(kernel, launch, 1);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) wrong += y[i] != std::fma(x[i], 2.5F, 1.0F);
      INFO(columns << " columns, " << machine.vector_bytes << " bytes\n" << kernel.text);
      CHECK(wrong == 0);
      CHECK(y.back() == 7.0F);
    }
  }
}

TEST_CASE("softmax by a streaming logsumexp agrees with f64", "[loops]") {
  const loops::Nest nest = softmax_nest();
  for (const auto& machine : machines()) {
    const NestKernel kernel = compile_nest(nest, machine);
    for (const std::int64_t columns : widths) {
      const std::int64_t count = 2;
      std::vector<float> x = numbers(static_cast<std::size_t>(count * columns));
      for (float& v : x) v *= 10;
      std::vector<float> y(x.size() + 1, 7.0F);
      std::vector<float> lse(2, 0.0F);
      NestLaunch launch;
      launch.pointers = {x.data(), y.data(), lse.data()};
      launch.extents = {{"row", count}, {"column", columns}};
      launch.strides = {{{0, 0}, columns}, {{1, 0}, columns}};
      launch.partitions = {2};
      run_nest(kernel, launch);
      for (std::int64_t row = 0; row < count; ++row) {
        const float* in = x.data() + row * columns;
        double total = 0;
        for (std::int64_t i = 0; i < columns; ++i) total += std::exp(static_cast<double>(in[i]));
        INFO(columns << " columns, " << machine.vector_bytes << " bytes");
        CHECK(static_cast<double>(lse[static_cast<std::size_t>(row)]) == Approx(std::log(total)).epsilon(1e-6));
        double worst = 0;
        for (std::int64_t i = 0; i < columns; ++i) {
          const double expected = std::exp(static_cast<double>(in[i])) / total;
          worst =
              std::max(worst, std::abs(static_cast<double>(y[static_cast<std::size_t>(row * columns + i)]) - expected) /
                                  expected);
        }
        CHECK(worst < 3e-6);
      }
      CHECK(y.back() == 7.0F);
    }
  }
}
