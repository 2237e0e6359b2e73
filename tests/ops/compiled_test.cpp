// Every case of the catalogue compiled for the CPU, forward and gradient, within the reference's bounds.
#include "compiled_run.hpp"
#include "tigon/error.hpp"

using namespace tigon;
using namespace tigon::ops;

namespace {

void check_case(const OpCase& one, bool gradient, std::uint64_t seed) {
  INFO(one.name() << (gradient ? " gradient" : " forward"));
  try {
    const CompiledRun run = run_compiled(one, gradient, seed);
    INFO(run.sentence);
    CHECK(run.passed);
  } catch (const Error& error) {
    FAIL_CHECK(error.what() << "\n" << error.details().log);
  }
}

void check_op(std::string_view op, bool gradient) {
  std::uint64_t seed = 1;
  for (const OpCase& one : op_cases()) {
    ++seed;
    if (one.entry->name == op) check_case(one, gradient, seed);
  }
}

}  // namespace

#define CHECK_OP(name)                                                \
  TEST_CASE("compiled for the CPU: " name) { check_op(name, false); } \
  TEST_CASE("compiled for the CPU: " name ", gradient") { check_op(name, true); }
CHECK_OP("softmax")
CHECK_OP("log_softmax")
CHECK_OP("cross_entropy")
CHECK_OP("linear_cross_entropy")
CHECK_OP("rms_norm")
CHECK_OP("add_rms_norm")
CHECK_OP("layer_norm")
CHECK_OP("rope")
CHECK_OP("swiglu")
CHECK_OP("geglu")
CHECK_OP("embedding")
CHECK_OP("attention")
CHECK_OP("global_norm")
#undef CHECK_OP
TEST_CASE("compiled for the CPU: adamw") { check_op("adamw", false); }

TEST_CASE("every combination of options and dtypes compiled for the CPU, two draws of extents each", "[.full]") {
  std::uint64_t seed = 1000;
  for (const OpEntry* entry : catalogue()) {
    DYNAMIC_SECTION(entry->name) {
      for (const OpCase& one : op_grid(*entry, 2)) {
        for (const bool gradient : {false, true}) {
          if (!gradient || entry->has_gradient()) check_case(one, gradient, ++seed);
        }
      }
    }
  }
}
