// A kernel's text that was edited in a dump is compiled in place of its own, on the CPU and on a CUDA device.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tigon/tigon.hpp"

namespace override_test {
using namespace tigon;

struct Rows : axis<"rows"> {};
template <template <class> class Slot>
struct OverrideArgs {
  TIGON_ARGS(OverrideArgs, (Slot<f32(Rows)>, x));
};
const auto plus_one_and_a_half =
    function("plus_one_and_a_half", [](const OverrideArgs<Tensor>& in) { return in.x + 1.5; });

std::string warned;
float first_result() {
  std::vector<float> x(5, 1);
  OverrideArgs<Buffer> args;
  args.x = Buffer<f32(Rows)>(x.data(), {5});
  return compile(plus_one_and_a_half, extents<Rows>(5))(Stream(), args).value.data[0];
}

// The only file below the folder with this ending.
std::string find_file(const std::string& folder, const std::string& ending) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ending) return entry.path();
  }
  return "";
}

TEST_CASE("an edited LLVM text is compiled in the kernel's place, with a warning, until the variable is unset") {
  char pattern[] = "/tmp/tigon-override-XXXXXX";
  REQUIRE(::mkdtemp(pattern) != nullptr);
  const std::string folder = pattern;
  ::setenv("TIGON_DUMP", folder.c_str(), 1);
  CHECK(first_result() == 2.5F);
  ::unsetenv("TIGON_DUMP");

  const std::string path = find_file(folder, ".ll");
  REQUIRE_FALSE(path.empty());
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::string edited = text.str();
  const WarningSink before = set_warning_sink([](const std::string& message) { warned = message; });
  ::setenv("TIGON_OVERRIDE", folder.c_str(), 1);
  CHECK(first_result() == 2.5F);
  CHECK(warned.empty());  // nothing was edited yet
  for (std::size_t at = edited.find("float 1.5"); at != std::string::npos; at = edited.find("float 1.5"))
    edited.replace(at, 9, "float 2.5");
  REQUIRE(edited != text.str());
  std::ofstream(path) << edited;
  CHECK(first_result() == 3.5F);
  CHECK_THAT(warned, Catch::Matchers::Contains(path) && Catch::Matchers::Contains("TIGON_OVERRIDE"));
  ::unsetenv("TIGON_OVERRIDE");
  CHECK(first_result() == 2.5F);
  set_warning_sink(before);
  std::filesystem::remove_all(folder);
}

}  // namespace override_test
