// A matmul's bits for any number of threads, and one prepared matmul executed by several threads at once.
#include <catch2/catch.hpp>
#include <thread>

#include "matmul_problem.hpp"
#include "runtime/cpu/parallel.hpp"

namespace tigon::runtime::test {
namespace {

std::vector<MatmulSpec> suite_shapes() {
  std::vector<MatmulSpec> shapes;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const auto& [m, n, k] : std::vector<std::array<i64, 3>>{{64, 64, 8000},
                                                                   {16, 16, 8000},
                                                                   {1, 64, 5000},
                                                                   {64, 1, 5000},
                                                                   {7, 3, 4096},
                                                                   {300, 300, 300},
                                                                   {512, 512, 512},
                                                                   {33, 257, 1000},
                                                                   {2048, 64, 64},
                                                                   {100, 1000, 300}}) {
        shapes.push_back(matrix_product(m, n, k, transpose_a, transpose_b, transpose_a));
        // Padded rows of C take the library's other kernel.
        if (m <= 64 || n <= 64) {
          shapes.push_back(shapes.back());
          for (MatmulAxis& axis : shapes.back().axes) {
            if (axis.role == MatmulClass::m) axis.c += 3;
          }
        }
      }
    }
  }
  shapes.push_back(matrix_product(128, 128, 16, false, true, false, 64));
  shapes.push_back(attention_scores(2, 128, 128, 8, 64));
  shapes.push_back(attention_values(2, 128, 128, 8, 64));
  return shapes;
}

}  // namespace

TEST_CASE("a matmul has the same bits on any number of threads", "[matmul][threads]") {
  std::mt19937 random(3);
  int shared = 0;
  for (const MatmulSpec& spec : suite_shapes()) {
    const Problem problem(spec, random);
    for (const int cores : {1, 2, 8}) {
      Operand reference;
      std::size_t scratch = 0;
      for (const int threads : {1, 2, 5}) {
        // Prepared anew: the kernels' blocking must not depend on the threads of the moment either.
        const OpenMPThreads limit(threads);
        const auto matmul = prepare_matmul(spec, cores);
        INFO(matmul->description() << " on " << threads << " threads");
        shared += matmul->partitions() > 1;
        Operand got = run(*matmul, problem);
        if (threads == 1) {
          reference = std::move(got);
          scratch = matmul->scratch_bytes();
        } else {
          REQUIRE(equal_bits(reference, got));
          REQUIRE(matmul->scratch_bytes() == scratch);
        }
      }
    }
  }
  CHECK(shared > 100);
}

TEST_CASE("two threads execute one prepared matmul at once", "[matmul][threads]") {
  std::mt19937 random(9);
  for (const MatmulSpec& spec : {matrix_product(40, 48, 56), matrix_product(200, 190, 180, true, true, true),
                                 attention_scores(2, 33, 47, 4, 16)}) {
    const auto matmul = prepare_matmul(spec, 4);
    const Problem first(spec, random);
    const Problem second(spec, random);
    const Operand expected_first = run(*matmul, first);
    const Operand expected_second = run(*matmul, second);
    std::array<int, 2> wrong = {0, 0};
    const auto repeat = [&](const Problem& problem, const Operand& expected, int& count) {
      for (int i = 0; i < 40; ++i) count += !equal_bits(run(*matmul, problem), expected);
    };
    std::thread other([&] { repeat(first, expected_first, wrong[0]); });
    repeat(second, expected_second, wrong[1]);
    other.join();
    CHECK(wrong[0] == 0);
    CHECK(wrong[1] == 0);
  }
}

TEST_CASE("standard threads give the pool's bits", "[matmul][threads]") {
  std::mt19937 random(13);
  const Problem problem(matrix_product(300, 200, 100), random);
  const auto matmul = prepare_matmul(problem.spec, 4);
  REQUIRE(matmul->partitions() > 1);
  const ThreadSource previous = thread_source();
  const Operand pooled = run(*matmul, problem, 2);
  set_thread_source(ThreadSource::standard);
  const Operand standard = run(*matmul, problem, 2);
  set_thread_source(previous);
  CHECK(equal_bits(pooled, standard));
}

}  // namespace tigon::runtime::test
