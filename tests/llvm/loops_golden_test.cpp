// The printed forms of two nests are the stored ones. TESTS_UPDATE_GOLDEN=1 in the environment writes them anew.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "codegen/loops/print.hpp"
#include "loops_nests.hpp"
#include "loops_run.hpp"

using namespace tigon;
using namespace tigon::testing;

namespace {

void is_golden(const std::string& file, const std::string& text) {
  const std::string path = std::string(TIGON_SOURCE_DIR) + "/tests/golden/" + file;
  if (std::getenv("TESTS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream stream(path);
  std::stringstream stored;
  stored << stream.rdbuf();
  INFO(path);
  CHECK(stored.str() == text);
}

}  // namespace

TEST_CASE("nests print as their golden text, as loops and as LLVM IR", "[loops]") {
  is_golden("norm.loops", loops::print(norm_nest()));
  is_golden("softmax.loops", loops::print(softmax_nest()));
  is_golden("norm_avx512.ll", nest_text(norm_nest(), lower::cpu_machine(64)));
  is_golden("softmax_avx2.ll", nest_text(softmax_nest(), lower::cpu_machine(32)));
}
