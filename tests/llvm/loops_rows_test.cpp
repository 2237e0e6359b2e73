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

TEST_CASE("logsumexp keeps infinities, NaN and equal maxima, wherever they stand in a row", "[loops]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
  const std::int64_t columns = 150;
  const loops::Nest nest = softmax_nest();
  struct Special {
    float first, second;
    double expected;
  };
  const double base = std::log(columns - 2.0);  // of the zeros around
  const Special specials[] = {{infinity, 1, infinity},
                              {infinity, infinity, infinity},
                              {not_a_number, 1, not_a_number},
                              {-infinity, -infinity, base},
                              {200, 200, 200 + std::log(2.0)},
                              {-200, -100, base},
                              {infinity, not_a_number, not_a_number}};
  for (const auto& machine : machines()) {
    const NestKernel kernel = compile_nest(nest, machine);
    for (const Special& special : specials) {
      for (std::int64_t at = 0; at < columns; ++at) {
        std::vector<float> x(static_cast<std::size_t>(columns), 0.0f), y(x.size()), lse(1, -7.0f);
        x[static_cast<std::size_t>(at)] = special.first;
        x[static_cast<std::size_t>((at * 7 + 5) % columns == at ? (at + 1) % columns : (at * 7 + 5) % columns)] =
            special.second;
        NestLaunch launch;
        launch.extents = {{"row", 1}, {"column", columns}};
        launch.partitions = {1};
        launch.strides[{0, 0}] = launch.strides[{1, 0}] = columns;
        launch.pointers = {x.data(), y.data(), lse.data()};
        run_nest(kernel, launch);
        INFO(machine.vector_bytes << " bytes, " << special.first << " at " << at << ", " << special.second);
        if (std::isnan(special.expected)) {
          CHECK(std::isnan(lse[0]));
        } else if (std::isinf(special.expected)) {
          CHECK(lse[0] == special.expected);
        } else {
          CHECK(lse[0] == Approx(special.expected).epsilon(1e-6));
        }
      }
    }
  }
}

TEST_CASE("positions are compared with numbers of any size", "[loops]") {
  Rows rows("positions");
  auto& b = rows.builder;
  const auto wanted = rows.vector_of(rows.row_axis, "wanted", DType::i64);
  const auto y = rows.matrix("y", DType::f32, Access::write);
  rows.rows_part([&](loops::Block& body, ExprId row) {
    loops::Loop lanes = rows.lanes();
    const ExprId i = rows.index(lanes), number = b.load(wanted, {row});
    const auto one_if = [&](ExprId condition, double one) {
      return b.op(ScalarOp::where, {condition, b.number(DType::f32, one), b.number(DType::f32, 0)});
    };
    const ExprId moved = b.add(i, b.integer(3));
    const ExprId equal = one_if(b.op(ScalarOp::equal, {number, moved}), 1);
    const ExprId unequal = one_if(b.op(ScalarOp::not_equal, {i, number}), 2);
    const ExprId below = one_if(b.less(i, number), 4);  // the number may be negative
    const ExprId within = one_if(b.op(ScalarOp::less_equal, {row, i}), 8);
    lanes.body.push_back(loops::store(y, {row, i}, b.add(b.add(equal, unequal), b.add(below, within))));
    body.push_back(loops::statement(lanes));
  });
  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> numbers = {
      0, 2, 3, 17, 63, 64, 99, 100, 103, -1, -100, std::int64_t{1} << 32, 5, -far - 1, far, far - 40};
  const std::int64_t columns = 100, count = static_cast<std::int64_t>(numbers.size());
  for (const auto& machine : machines()) {
    const NestKernel kernel = compile_nest(b.nest, machine);
    std::vector<std::int64_t> given = numbers;
    std::vector<float> got(static_cast<std::size_t>(columns * count), -1.0f);
    NestLaunch launch;
    launch.extents = {{"row", count}, {"column", columns}};
    launch.partitions = {3};
    launch.strides[{1, 0}] = columns;
    launch.pointers = {given.data(), got.data()};
    run_nest(kernel, launch);
    INFO(machine.vector_bytes << " bytes\n" << kernel.text);
    int wrong = 0;
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t number = numbers[static_cast<std::size_t>(row)];
      for (std::int64_t i = 0; i < columns; ++i) {
        const int expected =
            (number == i + 3 ? 1 : 0) + (i != number ? 2 : 0) + (i < number ? 4 : 0) + (row <= i ? 8 : 0);
        wrong += got[static_cast<std::size_t>(row * columns + i)] == static_cast<float>(expected) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}
