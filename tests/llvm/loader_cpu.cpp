// The host's CPU: the floor, vector widths, caches, and the named targets.
#include <cstdlib>

#include "runtime/cpu_features.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

TEST_CASE("the floor names what a CPU lacks") {
  CHECK(below_floor({.avx2 = true, .fma = true, .f16c = true, .bmi = true}).empty());
  CHECK(below_floor({.neon = true}).empty());
  CHECK(below_floor({.avx2 = true, .f16c = true, .bmi = true}).find("lacks FMA") != std::string::npos);
  CHECK(below_floor({}).find("lacks AVX2, FMA, F16C, BMI1 and BMI2") != std::string::npos);
  CHECK(below_floor(detect_cpu_features()).empty());  // else nothing of this suite could run
  CHECK_NOTHROW(require_cpu_floor());
}

TEST_CASE("named targets have widths, and an unknown name is an error that lists the known ones") {
  CHECK(vector_bytes(named_target("x86-64-v3")) == 32);
  CHECK(vector_bytes(named_target("x86-64-v4")) == 64);
  CHECK(vector_bytes(named_target("aarch64")) == 16);
  CHECK(vector_bytes({"x86_64-pc-linux-gnu", "znver4", "+avx2,+avx512f,+avx512vl,+avx512bw,+avx512dq"}) == 64);
  CHECK(vector_bytes({"x86_64-pc-linux-gnu", "other", "+avx2,+avx512f,-avx512vl,+avx512bw,+avx512dq"}) == 32);
  try {
    static_cast<void>(named_target("pentium"));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(std::string(error.what()).find("x86-64-v3, x86-64-v4, aarch64") != std::string::npos);
  }
}

TEST_CASE("the machine is measured, and TIGON_CPU narrows it") {
  ::unsetenv("TIGON_CPU");
  const Machine host = machine();
  CHECK((host.vector_bytes == 16 || host.vector_bytes == 32 || host.vector_bytes == 64));
  CHECK(host.cores >= 1);
  CHECK(host.l1_bytes >= 8 * 1024);
  CHECK(host.l2_bytes > host.l1_bytes);
#if defined(__x86_64__)
  CHECK((host.vector_bytes == 64) == (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")));
  ::setenv("TIGON_CPU", "x86-64-v3", 1);
  CHECK(machine().vector_bytes == 32);
#endif
  ::setenv("TIGON_CPU", "pentium", 1);
  CHECK_THROWS_AS(machine(), Error);
  ::unsetenv("TIGON_CPU");
}

}  // namespace
}  // namespace tigon::runtime
