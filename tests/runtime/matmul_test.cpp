// Matmuls over random axes, strides and extents against a plain double loop; refusals; zero extents; chosen forms.
#include <catch2/catch.hpp>

#include "matmul_problem.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime::test {
namespace {

int pick(std::mt19937& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

// Dense strides in a random order of the axes an operand has, sometimes with gaps.
void assign_strides(MatmulSpec& spec, i64 MatmulAxis::* stride, MatmulClass missing, std::mt19937& random) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < spec.axes.size(); ++i) {
    if (spec.axes[i].role != missing) order.push_back(i);
  }
  std::shuffle(order.begin(), order.end(), random);
  i64 step = pick(random, 0, 9) == 0 ? 2 : 1;
  for (const std::size_t i : order) {
    spec.axes[i].*stride = step;
    step *= std::max<i64>(1, spec.axes[i].extent);
    if (pick(random, 0, 3) == 0) step += pick(random, 1, 5);
  }
}

MatmulSpec random_spec(std::mt19937& random) {
  constexpr std::array<i64, 8> extents = {0, 1, 2, 3, 7, 16, 33, 64};
  constexpr i64 most_products = 300000;
  while (true) {
    MatmulSpec spec;
    for (const MatmulClass role : {MatmulClass::batch, MatmulClass::m, MatmulClass::n, MatmulClass::k}) {
      const int count = pick(random, 0, 2);
      for (int i = 0; i < count; ++i) {
        // A zero extent hides everything else, so it is drawn rarely.
        const int index = pick(random, 0, 19) == 0 ? 0 : pick(random, 1, 7);
        spec.axes.push_back({role, extents[static_cast<std::size_t>(index)], 0, 0, 0});
      }
    }
    std::shuffle(spec.axes.begin(), spec.axes.end(), random);
    i64 products = 1;
    for (const MatmulAxis& axis : spec.axes) products *= std::max<i64>(1, axis.extent);
    if (products > most_products) continue;
    assign_strides(spec, &MatmulAxis::a, MatmulClass::n, random);
    assign_strides(spec, &MatmulAxis::b, MatmulClass::m, random);
    assign_strides(spec, &MatmulAxis::c, MatmulClass::k, random);
    // An axis of C may be missing in an operand: a broadcast, or with neither operand a copy of the same product.
    for (MatmulAxis& axis : spec.axes) {
      if (axis.role == MatmulClass::k) continue;
      if (pick(random, 0, 7) == 0) axis.a = 0;
      if (pick(random, 0, 7) == 0) axis.b = 0;
    }
    spec.accumulate = pick(random, 0, 1) == 1;
    return spec;
  }
}

std::string print(const MatmulSpec& spec) {
  std::string text = spec.accumulate ? "+=" : "=";
  for (const MatmulAxis& axis : spec.axes) {
    text += fmt::format(" [{} extent {} strides {} {} {}]", "bmnk"[static_cast<int>(axis.role)], axis.extent, axis.a,
                        axis.b, axis.c);
  }
  return text;
}

bool bf16_supported() {
  MatmulSpec spec = matrix_product(16, 16, 16);
  spec.a = spec.b = DType::bf16;
  return static_cast<bool>(supports_matmul(spec));
}

}  // namespace

TEST_CASE("random f32 matmuls stay within the bound of a sum of K products", "[matmul]") {
  std::mt19937 random(20240611);
  int with_loops = 0;
  int with_summed_loops = 0;
  int with_batch = 0;
  int transposed = 0;
  for (int i = 0; i < 600; ++i) {
    const Problem problem(random_spec(random), random);
    INFO(i << ": " << print(problem.spec));
    const MatmulSupport support = supports_matmul(problem.spec);
    INFO(support.refusal);
    REQUIRE(support);
    const MatmulLayout layout = layout_matmul(problem.spec);
    with_loops += !layout.loops.empty();
    with_summed_loops += !layout.k_loops.empty();
    with_batch += !layout.batch.empty();
    transposed += layout.swapped;
    const Comparison comparison = compare(problem, run(*prepare_matmul(problem.spec), problem));
    REQUIRE(comparison.worst <= 1.0);
    REQUIRE(comparison.untouched);
  }
  CHECK(with_loops >= 50);
  CHECK(with_summed_loops >= 50);
  CHECK(with_batch >= 100);
  CHECK(transposed >= 50);
}

TEST_CASE("random bf16 matmuls round once, or are refused with a sentence", "[matmul]") {
  std::mt19937 random(7);
  int computed = 0;
  for (int i = 0; i < 300; ++i) {
    MatmulSpec spec = random_spec(random);
    spec.a = spec.b = DType::bf16;
    spec.c = i % 2 == 0 ? DType::bf16 : DType::f32;
    INFO(i << ": " << print(spec));
    const MatmulSupport support = supports_matmul(spec);
    if (!support) {
      const bool rounds_between = support.refusal.find("round between") != std::string::npos;
      const bool no_kernel = support.refusal.find("no fast bf16 kernel") != std::string::npos;
      REQUIRE((rounds_between || (no_kernel && !bf16_supported())));
      REQUIRE_THROWS_AS(prepare_matmul(spec), Error);
      continue;
    }
    ++computed;
    const Problem problem(std::move(spec), random);
    const Comparison comparison = compare(problem, run(*prepare_matmul(problem.spec), problem));
    REQUIRE(comparison.worst <= 1.0);
    REQUIRE(comparison.untouched);
  }
  if (bf16_supported()) CHECK(computed >= 150);
}

TEST_CASE("products cut into many pieces agree with the plain loop", "[matmul]") {
  std::mt19937 random(11);
  struct Case {
    MatmulSpec spec;
    i64 pieces;
  };
  MatmulSpec looped = matrix_product(64, 64, 64);
  looped.axes.push_back({MatmulClass::m, 9, 0, 0, 64 * 64});
  looped.axes.push_back({MatmulClass::k, 2, 70 * 64, 80 * 64, 0});
  const std::vector<Case> cases = {
      {looped, 8},
      {matrix_product(100, 129, 300, false, true), 4},
      {matrix_product(129, 200, 200, false, false), 6},
      {matrix_product(400, 40, 300, true, false, true), 4},
      {matrix_product(50, 70, 64, false, false, true, 37), 8},
      {attention_scores(3, 200, 300, 1, 32), 6},
      {attention_scores(2, 140, 190, 6, 32), 6},
      {attention_values(2, 140, 190, 6, 32), 6},
  };
  for (const Case& one : cases) {
    const Problem problem(one.spec, random);
    const auto matmul = prepare_matmul(problem.spec, 8);
    INFO(matmul->description());
    CHECK(matmul->partitions() >= one.pieces);
    const Operand got = run(*matmul, problem, 1);
    const Comparison comparison = compare(problem, got);
    CHECK(comparison.worst <= 1.0);
    CHECK(comparison.untouched);
    for (const int threads : {2, 5}) CHECK(equal_bits(run(*matmul, problem, threads), got));
  }
}

TEST_CASE("scratch stays small for a padded bf16 destination", "[matmul]") {
  std::mt19937 random(17);
  MatmulSpec spec = matrix_product(600, 1500, 16);
  spec.a = spec.b = spec.c = DType::bf16;
  spec.axes[0].c += 5;
  if (!supports_matmul(spec)) return;
  const auto matmul = prepare_matmul(spec, 2);
  INFO(matmul->description());
  CHECK(matmul->scratch_bytes() <= (std::size_t{4} << 20));
  const Problem problem(spec, random);
  const Comparison comparison = compare(problem, run(*matmul, problem));
  CHECK(comparison.worst <= 1.0);
  CHECK(comparison.untouched);
}

TEST_CASE("axes collapse and layouts need no loops for the usual forms", "[matmul]") {
  SECTION("tokens as batch and sequence are one m axis") {
    MatmulSpec spec;
    spec.axes = {{MatmulClass::m, 4, 128 * 64, 0, 128 * 32},
                 {MatmulClass::m, 128, 64, 0, 32},
                 {MatmulClass::n, 32, 0, 1, 1},
                 {MatmulClass::k, 64, 1, 32, 0}};
    const MatmulLayout layout = layout_matmul(spec);
    CHECK(layout.m.extent == 512);
    CHECK(layout.batch.empty());
    CHECK(layout.loops.empty());
  }
  SECTION("strided heads are two batch axes of one call") {
    for (const MatmulSpec& spec : {attention_scores(2, 16, 24, 4, 8), attention_values(2, 16, 24, 4, 8)}) {
      const MatmulLayout layout = layout_matmul(spec);
      CHECK(layout.batch.size() == 2);
      CHECK(layout.loops.empty());
      CHECK(layout.k_loops.empty());
      CHECK(prepare_matmul(spec)->description().find("batch none") == std::string::npos);
    }
  }
  SECTION("a destination whose unit step runs along m is computed transposed") {
    MatmulSpec spec = matrix_product(8, 9, 10);
    spec.axes[0].c = 1;
    spec.axes[1].c = 8;
    const MatmulLayout layout = layout_matmul(spec);
    CHECK(layout.swapped);
    CHECK(layout.m.extent == 9);
    CHECK(layout.n.extent == 8);
  }
  SECTION("a summed axis that does not collapse is a loop that adds") {
    MatmulSpec spec = matrix_product(8, 8, 8);
    spec.axes.push_back({MatmulClass::k, 3, 100, 1000, 0});
    CHECK(layout_matmul(spec).k_loops.size() == 1);
    spec.a = spec.b = spec.c = DType::bf16;
    CHECK(supports_matmul(spec).refusal.find("round between") != std::string::npos);
  }
}

TEST_CASE("zero extents are handled without the library", "[matmul]") {
  std::mt19937 random(5);
  for (const bool accumulate : {false, true}) {
    const Problem problem(matrix_product(5, 7, 0, false, false, accumulate), random);
    const auto matmul = prepare_matmul(problem.spec);
    CHECK(matmul->partitions() == 0);
    const Operand got = run(*matmul, problem);
    for (i64 i = 0; i < got.count(); ++i) CHECK(got.get(i) == (accumulate ? problem.c.get(i) : 0.0));
  }
  const Problem none(matrix_product(0, 7, 3), random);
  CHECK(equal_bits(run(*prepare_matmul(none.spec), none), none.c));
}

TEST_CASE("what the library cannot do well is refused with a sentence", "[matmul]") {
  const auto refusal = [](MatmulSpec spec) { return supports_matmul(spec).refusal; };
  for (const DType dtype : {DType::f64, DType::f16, DType::i32, DType::i64, DType::boolean}) {
    MatmulSpec spec = matrix_product(4, 4, 4);
    spec.a = spec.b = spec.c = dtype;
    CHECK(refusal(spec).find(std::string(name(dtype))) != std::string::npos);
  }
  MatmulSpec mixed = matrix_product(4, 4, 4);
  mixed.b = DType::bf16;
  CHECK(refusal(mixed).find("not f32 by bf16 into f32") != std::string::npos);

  MatmulSpec shared = matrix_product(4, 4, 4);
  shared.axes[0].c = 0;
  CHECK(refusal(shared).find("share one element") != std::string::npos);
  MatmulSpec fold = matrix_product(4, 4, 4);
  fold.axes[2].b = 0;
  CHECK(refusal(fold).find("not a contraction") != std::string::npos);
  MatmulSpec negative = matrix_product(4, 4, 4);
  negative.axes[0].a = -4;
  CHECK(refusal(negative).find("negative stride") != std::string::npos);
  MatmulSpec misplaced = matrix_product(4, 4, 4);
  misplaced.axes[0].b = 3;
  CHECK(refusal(misplaced).find("class m moves through B") != std::string::npos);
  CHECK_THROWS_WITH(prepare_matmul(misplaced), Catch::Contains("class m moves through B"));
}

}  // namespace tigon::runtime::test
