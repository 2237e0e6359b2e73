// Forms of nests beyond plain rows, compiled and run against plain loops.
#include <cmath>

#include "dsl/monoid.hpp"
#include "dsl/program.hpp"
#include "loops_run.hpp"

using namespace tigon;
using namespace tigon::testing;
using loops::Access;
using loops::Bind;
using loops::Block;
using loops::ExprId;
using loops::Loop;
using loops::StoreMode;

namespace {

const std::vector<std::int64_t> widths = {0, 1, 7, 16, 33, 64, 129, 1003};

int builtin(loops::NestBuilder& b, dsl::BuiltinMonoid which) { return b.monoid(dsl::builtin_monoid(which)); }

NestLaunch launch_rows(std::int64_t rows, std::int64_t columns, std::vector<void*> pointers, std::int64_t partitions) {
  NestLaunch launch;
  launch.extents = {{"row", rows}, {"column", columns}};
  launch.partitions = {partitions};
  for (int p = 0; p < static_cast<int>(pointers.size()); ++p) launch.strides[{p, 0}] = columns;
  launch.pointers = std::move(pointers);
  return launch;
}

std::string label(const lower::CpuMachine& machine, std::int64_t columns) {
  return fmt::format("{} bytes, {} columns", machine.vector_bytes, columns);
}

// Runs `check(kernel, machine, columns)` for every machine and width.
void everywhere(const loops::Nest& nest, const std::function<void(const NestKernel&, std::int64_t)>& check) {
  for (const auto& machine : machines()) {
    const NestKernel kernel = compile_nest(nest, machine);
    for (const std::int64_t columns : widths) {
      INFO(label(machine, columns) << "\n" << kernel.text);
      check(kernel, columns);
    }
  }
}

loops::Nest columns_nest() {
  Rows rows("columns");
  auto& b = rows.builder;
  const auto x = rows.matrix("x");
  const auto share = b.axis("share");
  const auto partial =
      b.parameter({"partial", DType::f32, {share, rows.column_axis}, {loops::at_run_time, 1}, Access::read_write, ""});
  b.stride(partial, 0);
  const auto sum = static_cast<std::uint32_t>(builtin(b, dsl::BuiltinMonoid::sum));
  rows.rows_part([&](Block& body, ExprId row) {
    Loop lanes = rows.lanes();
    const ExprId i = rows.index(lanes);
    const ExprId partition = b.loop_index(b.nest.parts[0].grid.id);
    lanes.body.push_back(
        {loops::StoreState{sum, {partial}, {partition, i}, {b.load(x, {row, i})}, StoreMode::accumulate}});
    body.push_back(statement(lanes));
  });
  return b.nest;
}

loops::Nest inner_nest() {
  Rows rows("inner");
  auto& b = rows.builder;
  const auto x = rows.matrix("x");
  const auto y = rows.vector_of(rows.column_axis, "y", DType::f32, Access::write);
  const auto at = rows.vector_of(rows.column_axis, "at", DType::i64, Access::write);
  const auto sum = b.fold("total", builtin(b, dsl::BuiltinMonoid::sum), DType::f32);
  const auto best = b.fold("best", builtin(b, dsl::BuiltinMonoid::argmax), DType::f32);
  b.part("columns");
  Loop lanes = rows.lanes();
  const ExprId i = rows.index(lanes);
  Loop inner = b.loop("row", Bind::serial, b.integer(0), b.extent(rows.row_axis));
  const ExprId row = rows.index(inner);
  inner.folds = {sum, best};
  const ExprId v = b.load(x, {row, i});
  inner.body.push_back(loops::update(sum, {b.mul(v, v)}));
  inner.body.push_back(loops::update(best, {v}, row));
  lanes.body.push_back(statement(inner));
  lanes.body.push_back(loops::store(y, {i}, b.finish(sum, 0)));
  lanes.body.push_back(loops::store(at, {i}, b.finish(best, 1)));
  b.nest.parts[0].grid.body.push_back(statement(lanes));
  return b.nest;
}

loops::Nest argmax_nest() {
  Rows rows("argmax");
  auto& b = rows.builder;
  const auto x = rows.matrix("x");
  const auto y = rows.vector_of(rows.row_axis, "y", DType::i64, Access::write);
  const auto best = b.fold("best", builtin(b, dsl::BuiltinMonoid::argmax), DType::f32);
  rows.rows_part([&](Block& body, ExprId row) {
    Loop lanes = rows.lanes();
    const ExprId i = rows.index(lanes);
    lanes.folds = {best};
    lanes.body.push_back(loops::update(best, {b.load(x, {row, i})}, i));
    body.push_back(statement(lanes));
    body.push_back(loops::store(y, {row}, b.finish(best, 1)));
  });
  return b.nest;
}

loops::Nest all_nest() {
  Rows rows("all");
  auto& b = rows.builder;
  const auto x = rows.matrix("x");
  const auto share = b.axis("share");
  const auto y = b.parameter({"y", DType::f32, {share}, {1}, Access::write, ""});
  const auto largest = b.fold("largest", builtin(b, dsl::BuiltinMonoid::max), DType::f32);
  const auto rows_seen = b.fold("rows_seen", builtin(b, dsl::BuiltinMonoid::sum), DType::f32);
  rows.rows_part(
      [&](Block& body, ExprId row) {
        Loop lanes = rows.lanes();
        lanes.body.push_back(loops::update(largest, {b.load(x, {row, rows.index(lanes)})}));
        body.push_back(statement(lanes));
        body.push_back(loops::update(rows_seen, {b.number(DType::f32, 1)}));
      },
      {largest, rows_seen});
  auto& grid = b.nest.parts[0].grid;
  grid.body.push_back(
      loops::store(y, {b.loop_index(grid.id)},
                   b.add(b.finish(largest, 0), b.mul(b.finish(rows_seen, 0), b.number(DType::f32, 100)))));
  return b.nest;
}

loops::Nest indices_nest() {
  Rows rows("indices");
  auto& b = rows.builder;
  const auto x = rows.matrix("x");
  const auto index = rows.vector_of(rows.column_axis, "index", DType::i32);
  const auto gathered = rows.matrix("gathered", DType::f32, Access::write);
  const auto reversed = rows.matrix("reversed", DType::f32, Access::write);
  const auto transposed = b.parameter(
      {"transposed", DType::f32, {rows.column_axis, rows.row_axis}, {loops::at_run_time, 1}, Access::write, ""});
  b.stride(transposed, 0);
  const auto scattered = rows.matrix("scattered", DType::f32, Access::write);
  rows.rows_part([&](Block& body, ExprId row) {
    Loop lanes = rows.lanes();
    const ExprId i = rows.index(lanes);
    const ExprId v = b.load(x, {row, i});
    const ExprId at = b.cast(DType::i64, b.load(index, {i}));
    const ExprId back = b.sub(b.sub(b.extent(rows.column_axis), b.integer(1)), i);
    lanes.body.push_back(
        loops::when(b.op(ScalarOp::less_equal, {b.integer(0), at}),
                    {loops::store(gathered, {row, i}, b.load(x, {row, at})), loops::store(scattered, {row, at}, v)}));
    lanes.body.push_back(
        loops::store(reversed, {row, back}, b.add(b.load(x, {row, back}), b.mul(v, b.number(DType::f32, 2)))));
    lanes.body.push_back(loops::store(transposed, {i, row}, v));
    body.push_back(statement(lanes));
  });
  return b.nest;
}

loops::Nest dtypes_nest() {
  Rows rows("dtypes");
  auto& b = rows.builder;
  const auto x = rows.matrix("x", DType::bf16);
  const auto h = rows.matrix("h", DType::f16);
  const auto flag = rows.matrix("flag", DType::boolean);
  const auto y = rows.matrix("y", DType::bf16, Access::write);
  const auto half = rows.matrix("half", DType::f16, Access::write);
  const auto positive = rows.matrix("positive", DType::boolean, Access::write);
  const auto place = rows.matrix("place", DType::i64, Access::write);
  const auto wide = rows.matrix("wide", DType::f64, Access::write);
  rows.rows_part([&](Block& body, ExprId row) {
    Loop lanes = rows.lanes();
    const ExprId i = rows.index(lanes);
    const ExprId sum = b.add(b.load(x, {row, i}), b.load(h, {row, i}));
    const ExprId chosen = b.op(ScalarOp::where, {b.load(flag, {row, i}), sum, b.op(ScalarOp::neg, {sum})});
    lanes.body.push_back(loops::let("chosen", chosen));
    lanes.body.push_back(loops::store(y, {row, i}, b.cast(DType::bf16, chosen)));
    lanes.body.push_back(loops::store(half, {row, i}, b.cast(DType::f16, chosen)));
    lanes.body.push_back(loops::store(positive, {row, i}, b.less(b.number(DType::f32, 0), chosen)));
    const ExprId seven = b.sub(i, b.integer(7));
    lanes.body.push_back(loops::store(
        place, {row, i}, b.add(b.mul(b.floor_div(seven, b.integer(3)), b.integer(10)), b.rem(seven, b.integer(3)))));
    lanes.body.push_back(loops::store(wide, {row, i}, b.mul(b.cast(DType::f64, chosen), b.cast(DType::f64, i))));
    body.push_back(statement(lanes));
  });
  return b.nest;
}

loops::Nest staged_nest() {
  Rows rows("staged", 200);
  auto& b = rows.builder;
  const auto m = rows.matrix("m", DType::f32, Access::read_write);
  const auto p = rows.matrix("p", DType::f32, Access::read_write);
  const auto total_out = rows.vector_of(rows.row_axis, "total", DType::bf16, Access::read_write);
  const auto held = b.stage({"held", DType::f32, {200}, loops::Keep::scratch, 1});
  const auto total = b.fold("total", builtin(b, dsl::BuiltinMonoid::sum), DType::f32);
  rows.rows_part([&](Block& body, ExprId row) {
    Loop first = rows.lanes();
    const ExprId i = rows.index(first);
    first.folds = {total};
    const ExprId doubled = b.mul(b.load(m, {row, i}), b.number(DType::f32, 2));
    first.body.push_back(loops::stage_store(held, {i}, doubled));
    first.body.push_back(loops::update(total, {doubled}));
    body.push_back(statement(first));
    body.push_back(loops::store(total_out, {row}, b.finish(total, 0), StoreMode::accumulate));
    Loop second = rows.lanes();
    const ExprId j = rows.index(second);
    const ExprId next = b.add(b.load(m, {row, j}), b.stage_load(held, {j}));
    second.body.push_back(loops::store(m, {row, j}, next, StoreMode::in_place));
    // Reads m through `next`: its old value, though m is stored by now.
    second.body.push_back(loops::store(p, {row, j}, b.sub(b.load(p, {row, j}), next), StoreMode::in_place));
    body.push_back(statement(second));
  });
  return b.nest;
}

loops::Nest parts_nest() {
  Rows rows("parts");
  auto& b = rows.builder;
  const auto x = rows.matrix("x", DType::f32, Access::write);
  const auto y = rows.matrix("y", DType::f32, Access::write);
  for (int part = 0; part < 2; ++part)
    rows.rows_part([&](Block& body, ExprId row) {
      Loop lanes = rows.lanes();
      const ExprId i = rows.index(lanes);
      const ExprId value = b.add(b.cast(DType::f32, b.add(b.mul(row, b.integer(1000)), i)), b.number(DType::f32, part));
      lanes.body.push_back(loops::store(part == 0 ? x : y, {row, i}, value));
      body.push_back(statement(lanes));
    });
  return b.nest;
}

loops::Nest affine_nest() {
  // State (scale, shift) of x -> scale * x + shift; merging composes.
  dsl::Monoid affine{
      .name = "affine", .operand_count = 2, .state = {ValueClass::element, ValueClass::element}, .identity = {1, 0}};
  {
    dsl::ProgramBuilder p;
    const auto a = p.input(0), c = p.input(1);
    affine.lift = std::move(p).finish({a, c});
  }
  {
    dsl::ProgramBuilder p;
    const auto a0 = p.input(0), c0 = p.input(1), a1 = p.input(2), c1 = p.input(3);
    affine.merge = std::move(p).finish(
        {p.apply(ScalarOp::mul, {a0, a1}), p.apply(ScalarOp::add, {p.apply(ScalarOp::mul, {a1, c0}), c1})});
  }
  affine.commutative = false;
  Rows rows("affine");
  auto& b = rows.builder;
  const auto x = rows.matrix("x");
  const auto y = rows.vector_of(rows.row_axis, "y", DType::f32, Access::write);
  const auto fold = b.fold("map", b.monoid(affine), DType::f32);
  rows.rows_part([&](Block& body, ExprId row) {
    Loop lanes = rows.lanes();
    lanes.folds = {fold};
    lanes.body.push_back(loops::update(fold, {b.number(DType::f32, 0.5), b.load(x, {row, rows.index(lanes)})}));
    body.push_back(statement(lanes));
    body.push_back(loops::store(y, {row}, b.fold_state(fold, 1)));
  });
  return b.nest;
}

loops::Nest branches_nest() {
  Rows rows("branches");
  auto& b = rows.builder;
  const auto target = rows.vector_of(rows.row_axis, "target", DType::i32);
  const auto x = rows.matrix("x");
  const auto y = rows.vector_of(rows.row_axis, "y", DType::f32, Access::write);
  const auto total = b.fold("total", builtin(b, dsl::BuiltinMonoid::sum), DType::f32);
  rows.rows_part([&](Block& body, ExprId row) {
    const ExprId t = b.load(target, {row});
    const ExprId valid = b.op(ScalarOp::less_equal, {b.number(DType::i32, 0), t});
    Loop unrolled = b.loop("k", Bind::unroll, b.integer(0), b.integer(3));
    unrolled.folds = {total};
    // The row's element at target + k, only read where the target is valid.
    unrolled.body.push_back(
        loops::update(total, {b.load(x, {row, b.add(b.cast(DType::i64, t), rows.index(unrolled))})}));
    body.push_back(loops::when(valid, {statement(unrolled), loops::store(y, {row}, b.finish(total, 0))}));
    body.push_back(
        loops::when(b.op(ScalarOp::logical_not, {valid}), {loops::store(y, {row}, b.number(DType::f32, -5))}));
  });
  return b.nest;
}

}  // namespace

TEST_CASE("partial sums of columns accumulate in memory, by partition", "[loops]") {
  everywhere(columns_nest(), [](const NestKernel& kernel, std::int64_t columns) {
    const std::vector<float> x = numbers(static_cast<std::size_t>(5 * columns));
    std::vector<float> partial(static_cast<std::size_t>(2 * columns), 0.5F);
    std::vector<float> expected = partial;
    for (std::int64_t row = 0; row < 5; ++row)
      for (std::int64_t i = 0; i < columns; ++i)
        expected[static_cast<std::size_t>((row / 3) * columns + i)] += x[static_cast<std::size_t>(row * columns + i)];
    run_nest(kernel, launch_rows(5, columns, {const_cast<float*>(x.data()), partial.data()}, 2), 1);
    CHECK(partial == expected);
  });
}

TEST_CASE("a serial fold inside a lanes body keeps a state for each lane", "[loops]") {
  everywhere(inner_nest(), [](const NestKernel& kernel, std::int64_t columns) {
    const std::vector<float> x = numbers(static_cast<std::size_t>(5 * columns));
    std::vector<float> y(static_cast<std::size_t>(columns), -1);
    std::vector<std::int64_t> at(static_cast<std::size_t>(columns), -1);
    run_nest(kernel, launch_rows(5, columns, {const_cast<float*>(x.data()), y.data(), at.data()}, 1));
    std::size_t wrong = 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      float total = 0;
      std::int64_t largest = 0;
      for (std::int64_t r = 0; r < 5; ++r) {
        const float v0 = x[static_cast<std::size_t>(r * columns + c)];
        total = std::fma(v0, v0, total);
        if (v0 > x[static_cast<std::size_t>(largest * columns + c)]) largest = r;
      }
      wrong += y[static_cast<std::size_t>(c)] != total || at[static_cast<std::size_t>(c)] != largest;
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("argmax over lanes takes the lowest index of the largest value", "[loops]") {
  everywhere(argmax_nest(), [](const NestKernel& kernel, std::int64_t columns) {
    if (columns == 0) return;
    std::vector<float> x = numbers(static_cast<std::size_t>(3 * columns));
    for (float& v : x) v = std::floor(v * 4);  // many ties
    if (columns > 40) x[static_cast<std::size_t>(columns + 37)] = std::nanf("");
    std::vector<std::int64_t> y(3, -1);
    run_nest(kernel, launch_rows(3, columns, {x.data(), y.data()}, 1));
    for (std::int64_t row = 0; row < 3; ++row) {
      const float* v = x.data() + row * columns;
      std::int64_t expected = 0;
      for (std::int64_t i = 1; i < columns; ++i)
        if (!std::isnan(v[expected]) && (std::isnan(v[i]) || v[i] > v[expected])) expected = i;
      CHECK(y[static_cast<std::size_t>(row)] == expected);
    }
  });
}

TEST_CASE("a fold over rows and lanes is merged once, after the rows", "[loops]") {
  everywhere(all_nest(), [](const NestKernel& kernel, std::int64_t columns) {
    if (columns == 0) return;
    const std::vector<float> x = numbers(static_cast<std::size_t>(6 * columns));
    std::vector<float> y(2, -1);
    run_nest(kernel, launch_rows(6, columns, {const_cast<float*>(x.data()), y.data()}, 2), 1);
    for (std::int64_t part = 0; part < 2; ++part) {
      float expected = -INFINITY;
      for (std::int64_t i = 0; i < 3 * columns; ++i)
        expected = std::max(expected, x[static_cast<std::size_t>(part * 3 * columns + i)]);
      CHECK(y[static_cast<std::size_t>(part)] == std::fma(3.0F, 100.0F, expected));
    }
  });
}

TEST_CASE("indices by lane: gather, reverse, stride, a masked scatter", "[loops]") {
  everywhere(indices_nest(), [](const NestKernel& kernel, std::int64_t columns) {
    const std::int64_t count = 3;
    const auto size = static_cast<std::size_t>(count * columns);
    const std::vector<float> x = numbers(size);
    std::vector<std::int32_t> index(static_cast<std::size_t>(columns));
    // A permutation with every third entry left out.
    for (std::int64_t i = 0; i < columns; ++i)
      index[static_cast<std::size_t>(i)] = i % 3 == 1 ? -1 : static_cast<std::int32_t>(columns - 1 - i);
    std::vector<float> gathered(size, 9), reversed(size, 9), transposed(size, 9), scattered(size, 9);
    auto expect_gathered = gathered, expect_reversed = gathered, expect_transposed = gathered,
         expect_scattered = gathered;
    for (std::int64_t r = 0; r < count; ++r)
      for (std::int64_t i = 0; i < columns; ++i) {
        const auto at = static_cast<std::size_t>(r * columns + i);
        const auto back = static_cast<std::size_t>(r * columns + columns - 1 - i);
        if (const auto k = index[static_cast<std::size_t>(i)]; k >= 0) {
          expect_gathered[at] = x[static_cast<std::size_t>(r * columns + k)];
          expect_scattered[static_cast<std::size_t>(r * columns + k)] = x[at];
        }
        expect_reversed[back] = std::fma(x[at], 2.0F, x[back]);
        expect_transposed[static_cast<std::size_t>(i * count + r)] = x[at];
      }
    NestLaunch launch = launch_rows(count, columns,
                                    {const_cast<float*>(x.data()), index.data(), gathered.data(), reversed.data(),
                                     transposed.data(), scattered.data()},
                                    2);
    launch.strides[{4, 0}] = count;
    run_nest(kernel, launch);
    CHECK(gathered == expect_gathered);
    CHECK(reversed == expect_reversed);
    CHECK(transposed == expect_transposed);
    CHECK(scattered == expect_scattered);
  });
}

TEST_CASE("16-bit floats, booleans, i64 and f64 in one body", "[loops]") {
  everywhere(dtypes_nest(), [](const NestKernel& kernel, std::int64_t columns) {
    const auto size = static_cast<std::size_t>(2 * columns);
    const std::vector<float> raw = numbers(size);
    std::vector<bf16> x(size), y(size);
    std::vector<f16> h(size), half(size);
    std::vector<std::uint8_t> flag(size), positive(size, 9);
    std::vector<std::int64_t> place(size);
    std::vector<double> wide(size);
    for (std::size_t i = 0; i < size; ++i) {
      x[i] = to_bf16(raw[i]);
      h[i] = to_f16(raw[size - 1 - i]);
      flag[i] = i % 3 == 0 ? 1 : 0;
    }
    run_nest(kernel, launch_rows(2, columns,
                                 {x.data(), h.data(), flag.data(), y.data(), half.data(), positive.data(), place.data(),
                                  wide.data()},
                                 1));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const float sum = to_f32(x[i]) + to_f32(h[i]);
      const float chosen = flag[i] != 0 ? sum : -sum;
      const auto column = static_cast<std::int64_t>(i) % columns;
      const std::int64_t seven = column - 7;
      const std::int64_t quotient = seven >= 0 ? seven / 3 : -((-seven + 2) / 3);
      wrong += y[i].bits != to_bf16(chosen).bits || half[i].bits != to_f16(chosen).bits ||
               positive[i] != (chosen > 0 ? 1 : 0) || place[i] != quotient * 10 + (seven - quotient * 3) ||
               wide[i] != static_cast<double>(chosen) * static_cast<double>(column);
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("in place, accumulate and a staged row", "[loops]") {
  for (const auto& machine : machines()) {
    const NestKernel kernel = compile_nest(staged_nest(), machine);
    CHECK(kernel.scratch_bytes == 832);
    const std::vector<float> m0 = numbers(600), p0 = numbers(600, 2);
    std::vector<float> m1 = m0, p1 = p0;
    std::vector<bf16> totals(3, to_bf16(1));
    run_nest(kernel, launch_rows(3, 200, {m1.data(), p1.data(), totals.data()}, 3), 2);
    INFO(kernel.text);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 600; ++i) {
      const float next = m0[i] + 2 * m0[i];
      wrong += m1[i] != next || p1[i] != p0[i] - next;
    }
    CHECK(wrong == 0);
    for (std::size_t row = 0; row < 3; ++row) {
      double expected = 1;
      for (std::size_t i = 0; i < 200; ++i) expected += 2 * static_cast<double>(m0[row * 200 + i]);
      CHECK(static_cast<double>(to_f32(totals[row])) == Approx(expected).epsilon(0.005).margin(1e-4));
    }
  }
}

TEST_CASE("parts share out one partition range", "[loops]") {
  const NestKernel kernel = compile_nest(parts_nest(), machines()[0]);
  for (const std::int64_t step : {0, 1, 2, 3, 5}) {
    std::vector<float> x0(50, -1), y0(50, -1);
    NestLaunch launch = launch_rows(5, 10, {x0.data(), y0.data()}, 2);
    launch.partitions = {2, 3};
    run_nest(kernel, launch, step);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 50; ++i) {
      const float value = static_cast<float>((i / 10) * 1000 + i % 10);
      wrong += x0[i] != value || y0[i] != value + 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a monoid that does not commute is folded in index order", "[loops]") {
  everywhere(affine_nest(), [](const NestKernel& kernel, std::int64_t columns) {
    const std::vector<float> x = numbers(static_cast<std::size_t>(2 * columns));
    std::vector<float> y(2, -1);
    run_nest(kernel, launch_rows(2, columns, {const_cast<float*>(x.data()), y.data()}, 1));
    for (std::int64_t row = 0; row < 2; ++row) {
      float shift = 0;
      for (std::int64_t i = 0; i < columns; ++i)
        shift = std::fma(0.5F, shift, x[static_cast<std::size_t>(row * columns + i)]);
      CHECK(y[static_cast<std::size_t>(row)] == shift);
    }
  });
}

TEST_CASE("branches by row, unrolled loops and scalar folds", "[loops]") {
  const NestKernel kernel = compile_nest(branches_nest(), machines()[0]);
  INFO(kernel.text);
  const std::vector<float> x0 = numbers(40);
  std::vector<std::int32_t> targets = {0, -1000000000, 5, 7};
  std::vector<float> y0(4, 0);
  run_nest(kernel, launch_rows(4, 10, {targets.data(), const_cast<float*>(x0.data()), y0.data()}, 2));
  for (std::size_t row = 0; row < 4; ++row) {
    const float* v = x0.data() + row * 10;
    const float expected =
        targets[row] < 0 ? -5.0F : ((v[targets[row]] + v[targets[row] + 1]) + v[targets[row] + 2]) + 0.0F;
    CHECK(y0[row] == expected);
  }
}

TEST_CASE("rows of constant length write nothing behind their end", "[loops]") {
  // LLVM 22.1.8 turns a masked store of narrowed numbers under a constant mask of one lane into a store of the wide
  // number: a known rest of 1 must not be masked.
  for (const std::int64_t columns : {1, 2, 3, 5, 17, 33, 40, 65, 72}) {
    Rows rows("narrow", columns);
    auto& b = rows.builder;
    const auto x = rows.matrix("x");
    const auto y = rows.matrix("y", DType::bf16, Access::write);
    const auto flag = rows.matrix("flag", DType::boolean, Access::write);
    const auto total = rows.vector_of(rows.row_axis, "total", DType::f32, Access::write);
    const auto sum = b.fold("sum", builtin(b, dsl::BuiltinMonoid::sum), DType::f32);
    rows.rows_part([&](Block& body, ExprId row) {
      Loop lanes = rows.lanes();
      lanes.folds = {sum};
      const ExprId i = rows.index(lanes);
      const ExprId v = b.load(x, {row, i});
      lanes.body.push_back(loops::store(y, {row, i}, b.cast(DType::bf16, v)));
      lanes.body.push_back(loops::store(flag, {row, i}, b.less(b.number(DType::f32, 0), v)));
      lanes.body.push_back(loops::update(sum, {v}));
      body.push_back(statement(lanes));
      body.push_back(loops::store(total, {row}, b.finish(sum, 0)));
    });
    for (const auto& machine : machines()) {
      const NestKernel kernel = compile_nest(b.nest, machine);
      INFO(label(machine, columns) << "\n" << kernel.text);
      const auto size = static_cast<std::size_t>(columns);
      std::vector<float> data = numbers(size), totals(2, 9);
      std::vector<bf16> narrow(size + 16, bf16{0x5a5a});
      std::vector<std::uint8_t> flags(size + 16, 9);
      run_nest(kernel, launch_rows(1, columns, {data.data(), narrow.data(), flags.data(), totals.data()}, 1));
      std::size_t wrong = 0;
      double expected = 0;
      for (std::size_t i = 0; i < size; ++i) {
        expected += static_cast<double>(data[i]);
        wrong += narrow[i].bits != to_bf16(data[i]).bits || flags[i] != (data[i] > 0 ? 1 : 0);
      }
      for (std::size_t i = size; i < size + 16; ++i) wrong += narrow[i].bits != 0x5a5a || flags[i] != 9;
      CHECK(wrong == 0);
      CHECK(static_cast<double>(totals[0]) == Approx(expected).margin(1e-5));
      CHECK(totals[1] == 9);
    }
  }
}

TEST_CASE("lanes that merge into one element are merged with each other", "[loops]") {
  Rows rows("one_place");
  auto& b = rows.builder;
  const auto x = rows.matrix("x");
  const auto smallest = rows.vector_of(rows.row_axis, "smallest", DType::f32, Access::read_write);
  const auto count = rows.vector_of(rows.row_axis, "count", DType::f32, Access::read_write);
  const auto least = static_cast<std::uint32_t>(builtin(b, dsl::BuiltinMonoid::min));
  const auto sum = static_cast<std::uint32_t>(builtin(b, dsl::BuiltinMonoid::sum));
  rows.rows_part([&](Block& body, ExprId row) {
    Loop lanes = rows.lanes();
    const ExprId v = b.load(x, {row, rows.index(lanes)});
    lanes.body.push_back({loops::StoreState{least, {smallest}, {row}, {v}, StoreMode::accumulate}});
    lanes.body.push_back({loops::StoreState{sum, {count}, {row}, {b.number(DType::f32, 1)}, StoreMode::accumulate}});
    body.push_back(statement(lanes));
  });
  everywhere(b.nest, [](const NestKernel& kernel, std::int64_t columns) {
    std::vector<float> data = numbers(static_cast<std::size_t>(3 * columns));
    std::vector<float> least_of(3, 0.5F), counts(3, 0);
    run_nest(kernel, launch_rows(3, columns, {data.data(), least_of.data(), counts.data()}, 1));
    for (std::size_t row = 0; row < 3; ++row) {
      float expected = 0.5F;
      for (std::size_t i = 0; i < static_cast<std::size_t>(columns); ++i)
        expected = std::min(expected, data[row * static_cast<std::size_t>(columns) + i]);
      CHECK(least_of[row] == expected);
      CHECK(counts[row] == static_cast<float>(columns));
    }
  });
}
