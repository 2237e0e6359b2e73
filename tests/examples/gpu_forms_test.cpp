// The forms for a large GPU: there without a GPU and without an NVRTC, whose absence is told.
#include <algorithm>
#include <sstream>

#include "runtime/nvrtc/compiler.hpp"
#include "tests/tools/run_command.hpp"

namespace {

using namespace tigon::test;

Ran write_forms_into(const Folder& folder, const Variables& environment) {
  write_text(folder.path() + "/text", std::string(45000, 'a'));
  return run_program(command_path("examples/language_model"),
                     {"--device", "cpu", "--text", folder.path() + "/text", "--steps", "1", "--layers", "1", "--hidden",
                      "8", "--context", "64", "--batch", "64", "--generate", "0", "--forms", folder.path() + "/forms"},
                     environment);
}

}  // namespace

TEST_CASE(
    "plans and CUDA texts at the shapes of a large model need no NVRTC, and what it would tell is named missing") {
  const Folder folder;
  const Ran ran = write_forms_into(folder, {{"TIGON_NVRTC", "/nowhere/libnvrtc.so"}});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const std::string own = folder.path() + "/forms/llama_3_8b_sm_90a";
  CHECK(contains(ran.out, "kernels as CUDA text: " + own + "/"));
  CHECK(contains(ran.out, "registers, stack and shared memory of each are missing: there is no usable NVRTC library"));
  CHECK(contains(read_text(own + "/resources.txt"), "missing: "));
  const std::vector<std::string> files = folder.files();
  for (const char* function : {"rotation", "total_loss", "training_loss_value_and_grad", "update", "next_byte"}) {
    const std::string start = std::string("forms/llama_3_8b_sm_90a/") + function + "/";
    INFO(start);
    CHECK(contains(read_text(folder.path() + "/" + start + "plan.txt"), "sm_90"));
    const auto count = [&](const std::string& end) {
      return std::count_if(files.begin(), files.end(),
                           [&](const std::string& file) { return file.starts_with(start) && file.ends_with(end); });
    };
    CHECK(count(".cu") > 0);
    CHECK(count(".cu") == count(".loops"));
  }
  const auto text = std::find_if(files.begin(), files.end(), [](const std::string& file) {
    return file.starts_with("forms/llama_3_8b_sm_90a/total_loss/") && file.ends_with(".cu");
  });
  REQUIRE(text != files.end());
  CHECK(contains(read_text(folder.path() + "/" + *text), "__global__"));
}

TEST_CASE("every kernel at the shapes of a large model compiles for sm_90a and keeps its registers", "[.full]") {
  const tigon::runtime::LibrarySearch search = tigon::runtime::NvrtcCompiler::search();
  if (!search.found() || !tigon::runtime::NvrtcCompiler::get().supports("sm_90a")) {
    WARN("skipped: " + search.describe());
    return;
  }
  const Folder folder;
  const Ran ran = write_forms_into(folder, {});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  std::istringstream table(read_text(folder.path() + "/forms/llama_3_8b_sm_90a/resources.txt"));
  std::string line;
  std::getline(table, line);
  int threads = 0, registers = 0, stack = 0, spilled = 0, shared = 0, rows = 0;
  for (std::string name; table >> threads >> registers >> stack >> spilled >> shared >> name; ++rows) {
    INFO(name);
    CHECK(threads > 0);
    CHECK(registers > 0);
    CHECK(registers * threads <= 65536);
    CHECK(spilled == 0);
    CHECK(shared <= 228 * 1024);
  }
  CHECK(rows > 50);
}
