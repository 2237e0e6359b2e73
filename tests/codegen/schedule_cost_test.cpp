// A shape's predicted time counts serial folds as often as they run: again for each row where they stand in its loop,
// one by one where the axis that they fold is otherwise the lanes'.
#include <catch2/catch.hpp>

#include "codegen/schedule/shape.hpp"
#include "dsl/build.hpp"

using namespace tigon;
using dsl::AxisId;
using dsl::NodeId;

namespace {

constexpr std::int64_t rows_extent = 1000, columns_extent = 64, table_extent = 512;

struct Kernel {
  dsl::Builder builder{"kernel"};
  AxisId rows = builder.axis(nullptr, "rows"), columns = builder.axis(nullptr, "columns"),
         table = builder.axis(nullptr, "table");
  NodeId x = builder.input("x", DType::f32, {rows, columns});

  // x + addend, on rows and columns.
  schedule::KernelRequest adding(NodeId addend) {
    const NodeId sum = builder.map(ScalarOp::add, {x, builder.broadcast(addend, builder.node(x).axes)});
    builder.output({.name = "y", .node = sum, .dtype = DType::f32, .axes = {rows, columns}});
    schedule::KernelRequest request;
    request.graph = std::move(builder).finish();
    request.extents.assign(request.graph.axes.size(), 1);
    request.extents[rows] = rows_extent;
    request.extents[columns] = columns_extent;
    request.extents[table] = table_extent;
    request.fixed = dsl::AxisSet::of(columns);
    request.in_place = {-1};
    request.streaming = {false};
    request.parts = {{0}};
    return request;
  }
};

double cost(const schedule::KernelRequest& request, AxisId rows, AxisId columns) {
  schedule::Shape shape;
  shape.rows = {rows};
  shape.columns = {columns};
  const auto offer = schedule::analyse(request, {0}, shape, {});
  if (const auto* refusal = std::get_if<schedule::Refusal>(&offer)) FAIL(refusal->reason);
  return std::get<schedule::Analysis>(offer).cost_ns;
}

double looked_up_sum(dsl::IndexPolicy policy) {
  Kernel k;
  const NodeId index = k.builder.input("index", DType::i64, {k.table});
  const NodeId values = k.builder.input("values", DType::f32, {k.table});
  const NodeId found = k.builder.gather(values, index, k.table, policy);
  return cost(k.adding(k.builder.sum(found, {k.table})), k.rows, k.columns);
}

}  // namespace

TEST_CASE("a serial fold that notes wrong indices is paid for by every row") {
  const schedule::DeviceModel device;
  const double once = looked_up_sum(dsl::IndexPolicy::clamp), always = looked_up_sum(dsl::IndexPolicy::checked);
  // The loads and the additions of all rows but one, of which a shape with many rows costs half.
  const double more = 0.5 * (rows_extent - 1) * table_extent * 2 * device.scalar_op_ns;
  CHECK(always - once >= more);
  CHECK(always - once <= 3 * more);
}

TEST_CASE("a serial fold over the lanes' axis is paid for element by element") {
  Kernel k;
  const schedule::DeviceModel device;
  const AxisId rows = k.rows, columns = k.columns, table = k.table;
  const NodeId matrix = k.builder.input("matrix", DType::f32, {table, columns});
  const NodeId index = k.builder.input("index", DType::i64, {rows});
  const NodeId sums = k.builder.sum(matrix, {columns});  // on the table's axis, looked up once for each row
  const NodeId found = k.builder.gather(sums, index, table, dsl::IndexPolicy::clamp);
  const double total = cost(k.adding(found), rows, columns);
  Kernel plain;
  const NodeId given = plain.builder.input("given", DType::f32, {plain.rows});
  const double without = cost(plain.adding(given), plain.rows, plain.columns);
  CHECK(total - without >= 0.5 * rows_extent * columns_extent * 2 * device.scalar_op_ns);
}
