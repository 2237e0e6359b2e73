// The cuBLASLt functions: products in every transposition against plain loops, batches, beta, and checks of memory.
#include "driver_functions.hpp"
#include "kernels.hpp"

using namespace emulator_test;

namespace {

constexpr int f32 = 0;
constexpr int bf16 = 14;

struct Problem {
  int m = 7;
  int n = 5;
  int k = 9;
  bool transpose_a = false;
  bool transpose_b = false;
  int type = bf16;
  int result_type = f32;
  float alpha = 1.5F;
  float beta = 0.5F;
  int batches = 2;
};

// Status of the product; `error` is the greatest difference to a sum in double.
int multiply(Session& session, const Problem& p, double& error, bool leave_b_short = false) {
  void* handle = nullptr;
  void* operation = nullptr;
  void* layouts[3] = {};
  call<void**>("cublasLtCreate", &handle);
  call<void**, int, int>("cublasLtMatmulDescCreate", &operation, 68, f32);
  const int yes = 1;
  const auto set = [&](int attribute, const void* value, std::size_t bytes) {
    return call<void*, int, const void*, std::size_t>("cublasLtMatmulDescSetAttribute", operation, attribute, value,
                                                      bytes);
  };
  if (p.transpose_a) set(3, &yes, 4);
  if (p.transpose_b) set(4, &yes, 4);
  const int rows[] = {p.transpose_a ? p.k : p.m, p.transpose_b ? p.n : p.k, p.m};
  const int columns[] = {p.transpose_a ? p.m : p.k, p.transpose_b ? p.k : p.n, p.n};
  std::vector<double> values[3];
  api::Pointer memory[3] = {};
  tigon::emulator::Random random(8);
  const auto element = [&](int which, int batch, int row, int column) -> double& {
    const auto leading = rows[which] + 1;
    return values[which][static_cast<std::size_t>(batch * leading * columns[which] + column * leading + row)];
  };
  for (int which = 0; which < 3; ++which) {
    const int type = which == 2 ? p.result_type : p.type;
    const std::int64_t leading = rows[which] + 1;
    const std::int64_t stride = leading * columns[which];
    call<void**, int, std::uint64_t, std::uint64_t, std::int64_t>("cublasLtMatrixLayoutCreate", &layouts[which], type,
                                                                  rows[which], columns[which], leading);
    call<void*, int, const void*, std::size_t>("cublasLtMatrixLayoutSetAttribute", layouts[which], 5, &p.batches, 4);
    call<void*, int, const void*, std::size_t>("cublasLtMatrixLayoutSetAttribute", layouts[which], 6, &stride, 8);
    const auto count = static_cast<std::size_t>(stride * p.batches);
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(from_bf16(to_bf16(static_cast<double>(random.below(2001)) / 1000 - 1)));
      values[which].push_back(value);
      const auto narrow = to_bf16(value);
      const auto* from =
          type == f32 ? reinterpret_cast<const std::uint8_t*>(&value) : reinterpret_cast<const std::uint8_t*>(&narrow);
      bytes.insert(bytes.end(), from, from + (type == f32 ? 4 : 2));
    }
    const auto present = std::max<std::size_t>(which == 1 && leave_b_short ? bytes.size() / 2 : bytes.size(), 1);
    bytes.resize(std::max(bytes.size(), present));
    memory[which] = session.allocate(present);
    session.put(memory[which], bytes.data(), present);
  }
  int found = 0;
  struct Choice {
    std::uint64_t algorithm[8];
    std::size_t workspace;
    int state;
    float waves;
    int reserved[4];
  } choice{};
  void* preference = nullptr;
  call<void**>("cublasLtMatmulPreferenceCreate", &preference);
  const std::uint64_t workspace = 32 << 20;
  call<void*, int, const void*, std::size_t>("cublasLtMatmulPreferenceSetAttribute", preference, 1, &workspace, 8);
  int status = call<void*, void*, void*, void*, void*, void*, void*, int, void*, int*>(
      "cublasLtMatmulAlgoGetHeuristic", handle, operation, layouts[0], layouts[1], layouts[2], layouts[2], preference,
      1, &choice, &found);
  if (status == 0) {
    CHECK(found == 1);
    const auto at = [&](int which) { return reinterpret_cast<void*>(memory[which]); };
    status = call<void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
                  void*, void*, const void*, void*, std::size_t, api::Stream*>(
        "cublasLtMatmul", handle, operation, &p.alpha, at(0), layouts[0], at(1), layouts[1], &p.beta, at(2), layouts[2],
        at(2), layouts[2], choice.algorithm, nullptr, 0, nullptr);
  }
  if (status == 0) {
    std::vector<std::uint8_t> bytes(values[2].size() * (p.result_type == f32 ? 4 : 2));
    session.get(bytes.data(), memory[2], bytes.size());
    error = 0;
    for (int batch = 0; batch < p.batches; ++batch) {
      for (int i = 0; i < p.m; ++i) {
        for (int j = 0; j < p.n; ++j) {
          double sum = 0;
          for (int k = 0; k < p.k; ++k) {
            sum += (p.transpose_a ? element(0, batch, k, i) : element(0, batch, i, k)) *
                   (p.transpose_b ? element(1, batch, j, k) : element(1, batch, k, j));
          }
          const auto index = static_cast<std::size_t>(batch * (p.m + 1) * p.n + j * (p.m + 1) + i);
          double got = 0;
          if (p.result_type == f32) {
            float value = 0;
            std::memcpy(&value, bytes.data() + index * 4, 4);
            got = value;
          } else {
            std::uint16_t value = 0;
            std::memcpy(&value, bytes.data() + index * 2, 2);
            got = from_bf16(value);
          }
          const double wanted = p.alpha * sum + p.beta * values[2][index];
          error = std::max(error, std::fabs(got - wanted));
        }
      }
    }
  }
  for (auto* layout : layouts) call<void*>("cublasLtMatrixLayoutDestroy", layout);
  call<void*>("cublasLtMatmulPreferenceDestroy", preference);
  call<void*>("cublasLtMatmulDescDestroy", operation);
  call<void*>("cublasLtDestroy", handle);
  return status;
}

}  // namespace

TEST_CASE("products in every transposition, with batches and padding between columns") {
  Session session;
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      for (const int type : {f32, bf16}) {
        for (const int result : {f32, bf16}) {
          if (type == f32 && result == bf16) continue;
          Problem problem;
          problem.transpose_a = a;
          problem.transpose_b = b;
          problem.type = type;
          problem.result_type = result;
          double error = INFINITY;
          CHECK(multiply(session, problem, error) == 0);
          CHECK(error < (result == f32 ? 1e-5 : 5e-2));
        }
      }
    }
  }
  CHECK(tigon::emulator::reports().empty());
}

TEST_CASE("a product of nothing is beta times what was there") {
  Session session;
  Problem problem;
  problem.k = 0;
  double error = INFINITY;
  CHECK(multiply(session, problem, error) == 0);
  CHECK(error < 1e-6);
}

TEST_CASE("an operand that leaves its allocation is reported") {
  Session session;
  double error = 0;
  CHECK(multiply(session, {}, error, true) != 0);
  CHECK_THAT(tigon::emulator::reports_text(),
             Catch::Contains("cublasLtMatmul") && Catch::Contains("operand B") && Catch::Contains("out of bounds"));
  CHECK(session.synchronize() == api::illegal_address);
}

TEST_CASE("what the library would refuse is refused") {
  Session session;
  double error = 0;
  Problem problem;
  problem.type = f32;
  problem.result_type = bf16;
  CHECK(multiply(session, problem, error) == 15);
  CHECK_THAT(std::string(entry<const char*(int)>("cublasLtGetStatusString")(15)), Catch::Contains("types"));
  void* layout = nullptr;
  CHECK(call<void**, int, std::uint64_t, std::uint64_t, std::int64_t>("cublasLtMatrixLayoutCreate", &layout, 3, 4, 4,
                                                                      4) == 15);
}
