// docs/reading-the-cuda.md shows what `tigon emit` prints, all of it.
#include <fstream>
#include <sstream>

#include "run_command.hpp"

using namespace tigon::test;

namespace {

// Without what differs from one checkout to the next: the folder of a source, the hash in a kernel's name, blank lines.
std::string comparable(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (const std::size_t at = line.find("Written at "), end = line.find("ops/", at);
        at != std::string::npos && end != std::string::npos)
      line.erase(at + 11, end - at - 11);
    const std::string name = "softmax_y_bf16_row128_";
    if (line.starts_with(name)) line.erase(name.size(), 6);
    result += line + "\n";
  }
  return result;
}

struct Shown {
  std::vector<std::string> command;
  std::string text;  // of all blocks up to the next command
};

std::vector<Shown> blocks_of(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  std::vector<Shown> all;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("<!-- ")) {
      std::istringstream words(line.substr(5, line.size() - 9));
      all.emplace_back();
      for (std::string word; words >> word;) all.back().command.push_back(word);
    } else if (line.starts_with("```")) {
      inside = !inside;
    } else if (inside) {
      REQUIRE_FALSE(all.empty());
      all.back().text += line + "\n";
    }
  }
  return all;
}

}  // namespace

TEST_CASE("the guide to reading CUDA shows what is printed today") {
  const std::vector<Shown> all = blocks_of(std::string(TIGON_SOURCE_DIR) + "/docs/reading-the-cuda.md");
  REQUIRE(all.size() == 3);
  for (const Shown& shown : all) {
    const Ran ran = run_tigon(shown.command);
    INFO(ran.err);
    REQUIRE(ran.code == 0);
    CHECK(comparable(shown.text) == comparable(ran.out));
  }
}
