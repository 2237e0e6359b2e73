// The verifier: a legal nest passes, and each broken rule is told in a sentence.
#include "codegen/loops/builder.hpp"
#include "codegen/loops/verify.hpp"
#include "dsl/monoid.hpp"
#include "tigon/error.hpp"

using namespace tigon;
using loops::Bind;
using loops::ExprId;
using loops::NestBuilder;
using loops::StoreMode;

namespace {

// total[row] = sum of x[row, :], in parts that a test may break.
struct Sum {
  NestBuilder b;
  std::uint16_t row_axis, axis;
  loops::ParameterId x, y;
  loops::FoldId fold;
  loops::Loop lanes, rows;
  ExprId row, i;
  loops::Block after;  // statements behind the lanes loop

  Sum() {
    b.nest.name = "sum";
    row_axis = b.axis("row");
    axis = b.axis("column", 1024);
    x = b.parameter({"x", DType::f32, {row_axis, axis}, {1024, 1}, loops::Access::read, ""});
    y = b.parameter({"y", DType::f32, {row_axis}, {1}, loops::Access::write, ""});
    fold = b.fold("total", b.monoid(dsl::builtin_monoid(dsl::BuiltinMonoid::sum)), DType::f32);
    b.part("rows");
    rows = b.loop("row", Bind::rows, b.integer(0), b.extent(row_axis));
    lanes = b.loop("column", Bind::lanes, b.integer(0), b.extent(axis));
    row = b.loop_index(rows.id);
    i = b.loop_index(lanes.id);
    lanes.folds = {fold};
    lanes.body.push_back(loops::update(fold, {b.load(x, {row, i})}));
    after.push_back(loops::store(y, {row}, b.finish(fold, 0)));
  }
  std::string faults() {
    loops::Loop all = rows;
    all.body.push_back(loops::statement(lanes));
    for (const auto& s : after) all.body.push_back(s);
    loops::Nest nest = b.nest;
    nest.parts[0].grid.body.push_back(loops::statement(all));
    std::string text;
    for (const std::string& sentence : loops::faults(nest)) text += sentence + "\n";
    return text;
  }
};

}  // namespace

TEST_CASE("a legal nest has no faults", "[nest]") { CHECK(Sum().faults() == ""); }

TEST_CASE("each broken rule has its sentence", "[nest]") {
  Sum s;
  SECTION("a fold read too early") {
    s.lanes.body.push_back(loops::let("early", s.b.fold_state(s.fold)));
    CHECK(s.faults() == "fold total is read where it is not complete\n");
  }
  SECTION("a fold updated outside its loop") {
    s.after.push_back(loops::update(s.fold, {s.b.number(DType::f32, 1)}));
    CHECK(s.faults() == "fold total is updated outside its loop\n");
  }
  SECTION("an index outside its loop") {
    s.after.push_back(loops::let("late", s.i));
    CHECK(s.faults().find("is read outside it") != std::string::npos);
  }
  SECTION("lanes inside lanes") {
    loops::Loop inner = s.b.loop("inner", Bind::lanes, s.b.integer(0), s.b.integer(4));
    s.lanes.body.push_back(loops::statement(inner));
    CHECK(s.faults() == "lanes loop inner stands inside lanes loop column\n");
  }
  SECTION("a store to what is read-only") {
    s.lanes.body.push_back(loops::store(s.x, {s.row, s.i}, s.b.number(DType::f32, 0)));
    CHECK(s.faults() == "x is read-only and is stored to\n");
  }
  SECTION("in place without being updated") {
    s.after.push_back(loops::store(s.y, {s.row}, s.b.number(DType::f32, 0), StoreMode::in_place));
    CHECK(s.faults() == "y is stored in place but is not declared as updated\n");
  }
  SECTION("a dtype that does not fit") {
    s.after.push_back(loops::store(s.y, {s.row}, s.row));
    CHECK(s.faults() == "y holds f32 and is given i64\n");
  }
  SECTION("index counts") {
    s.after.push_back(loops::store(s.y, {s.row, s.row}, s.b.number(DType::f32, 0)));
    CHECK(s.faults() == "y has 1 dimensions and is indexed by 2 numbers\n");
  }
  SECTION("operand counts") {
    s.lanes.body.push_back(loops::update(s.fold, {}));
    CHECK(s.faults() == "fold total takes 1 operands and is given 0\n");
  }
  SECTION("depth of a sum") {
    s.b.nest.folds[s.fold].depth = loops::allowed_depth(1024);
    CHECK(s.faults() == "");
    s.b.nest.folds[s.fold].depth = loops::allowed_depth(1024) + 1;
    CHECK(s.faults() == "fold total has depth 81, above the 80 that the contract allows for 1024 elements\n");
  }
  SECTION("a stage of run-time extent") {
    s.b.stage({"held", DType::f32, {loops::at_run_time}, loops::Keep::scratch, 1});
    CHECK(s.faults() == "stage held has an extent that is not constant\n");
  }
  SECTION("no grid loop") {
    s.b.nest.parts[0].grid.bind = Bind::serial;
    CHECK(s.faults() == "part rows has no grid loop\n");
  }
  SECTION("a fold at the grid loop") {
    s.b.nest.parts[0].grid.folds = {s.b.fold("all", 0, DType::f32)};
    CHECK(s.faults() == "part rows declares a fold at its grid loop, which no one partition completes\n");
  }
}
