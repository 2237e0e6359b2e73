// Threads, vectors and values held in lanes: what the verifier allows, and how nests with them print.
#include "codegen/loops/builder.hpp"
#include "codegen/loops/print.hpp"
#include "codegen/loops/verify.hpp"
#include "dsl/monoid.hpp"

using namespace tigon;
using Catch::Matchers::Contains;
using loops::Bind;
using loops::ExprId;
using loops::Loop;
using loops::NestBuilder;

namespace {

// y[row, :] = x[row, :] through a stage in lanes, by 128 threads a row, one vector of 8 each.
struct Held {
  NestBuilder b;
  loops::ParameterId x, y;
  loops::StageId stage;
  Loop rows, first, second;
  int threads = 128, group = 128;

  Held() {
    b.nest.name = "held";
    const auto row_axis = b.axis("row");
    const auto axis = b.axis("column", 1024);
    x = b.parameter({"x", DType::f32, {row_axis, axis}, {1024, 1}, loops::Access::read, ""});
    y = b.parameter({"y", DType::f32, {row_axis, axis}, {1024, 1}, loops::Access::write, ""});
    stage = b.stage({.name = "kept", .dtype = DType::f32, .extents = {1024}, .keep = loops::Keep::lane});
    b.part("rows");
    rows = b.loop("row", Bind::rows, b.integer(0), b.extent(row_axis));
    for (Loop* loop : {&first, &second}) {
      *loop = b.loop("column", Bind::lanes, b.integer(0), b.extent(axis));
      loop->width = 8;
      loop->vectors = 1;
    }
  }
  loops::Nest nest() {
    const ExprId row = b.loop_index(rows.id);
    const ExprId i = b.loop_index(first.id);
    const ExprId j = b.loop_index(second.id);
    first.body = {loops::stage_store(stage, {i}, b.load(x, {row, i}))};
    if (second.body.empty()) second.body = {loops::store(y, {row, j}, b.stage_load(stage, {j}))};
    rows.body = {loops::statement(first), loops::statement(second)};
    loops::Nest result = b.nest;
    result.parts[0].threads = threads;
    result.parts[0].group = group;
    result.parts[0].grid.body.push_back(loops::statement(rows));
    return result;
  }
  std::string faults() {
    std::string text;
    for (const std::string& sentence : loops::faults(nest())) text += sentence + "\n";
    return text;
  }
};

}  // namespace

TEST_CASE("a row kept in lanes is legal, and prints its threads and vectors", "[nest]") {
  Held held;
  CHECK(held.faults() == "");
  const std::string text = loops::print(held.nest());
  CHECK_THAT(text, Contains("128 threads, 128 for a row"));
  CHECK_THAT(text, Contains("loop column by lanes(128, 1, 8) in [0, 1024)"));
}

TEST_CASE("each rule on threads and lanes has its sentence", "[nest]") {
  Held held;
  SECTION("threads are a power of two") {
    held.threads = held.group = 96;
    CHECK_THAT(held.faults(), Contains("both are powers of two"));
  }
  SECTION("a group is a part of a warp or the whole block") {
    held.group = 64;
    CHECK_THAT(held.faults(), Contains("at most 32, or all 128"));
  }
  SECTION("counted vectors hold the row") {
    held.first.vectors = held.second.vectors = 1;
    held.first.width = held.second.width = 4;
    CHECK_THAT(held.faults(), Contains("128 x 1 x 4 places for 1024 elements"));
  }
  SECTION("another geometry would meet other elements") {
    held.second.vectors = 2;
    CHECK_THAT(held.faults(), Contains("loops of different geometry"));
  }
  SECTION("another lane's element lies in another thread") {
    const ExprId row = held.b.loop_index(held.rows.id);
    const ExprId j = held.b.loop_index(held.second.id);
    const ExprId other = held.b.sub(held.b.integer(1023), j);
    held.second.body = {loops::store(held.y, {row, j}, held.b.stage_load(held.stage, {other}))};
    CHECK_THAT(held.faults(), Contains("an element of another lane"));
  }
  SECTION("vectors that are not counted hold nothing") {
    held.second.vectors = 0;
    CHECK_THAT(held.faults(), Contains("outside a loop of counted vectors"));
  }
}
