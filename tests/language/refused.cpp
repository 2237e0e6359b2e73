// Programs that must not compile: each in tests/language/refused says its first error in its first line.
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

struct Outcome {
  bool compiled = false;
  std::string first_error;  // the first line that reports an error, without the place
  std::string text;
};

Outcome compile(const std::string& compiler, const std::string& file) {
  const std::string command = compiler + " -std=c++20 -fsyntax-only -I" TIGON_SOURCE_DIR "/include " + file + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> piece;
  while (std::fgets(piece.data(), piece.size(), pipe) != nullptr) outcome.text += piece.data();
  outcome.compiled = pclose(pipe) == 0;
  const std::size_t error = outcome.text.find("error: ");
  if (error != std::string::npos) {
    outcome.first_error = outcome.text.substr(error + 7, outcome.text.find('\n', error) - error - 7);
  }
  return outcome;
}

bool works(const std::string& compiler) { return std::system((compiler + " --version > /dev/null 2>&1").c_str()) == 0; }

void check_all(const std::string& compiler) {
  if (!works(compiler)) {
    WARN(compiler << " was not found: its messages are not checked");
    return;
  }
  const std::string folder = TIGON_SOURCE_DIR "/tests/language/refused/";
  // One file, one program for each value of CASE; the list of programs is their messages.
  std::ifstream file(folder + "programs.inc");
  REQUIRE(file.good());
  std::string line;
  int programs = 0;
  while (std::getline(file, line)) {
    const std::size_t mark = line.find("// expect ");
    if (mark == std::string::npos) continue;
    const std::string number = line.substr(mark + 10, line.find(':', mark) - mark - 10);
    const std::string sentence = line.substr(line.find(": ", mark) + 2);
    INFO(compiler << ", program " << number);
    const Outcome outcome = compile(compiler, "-DCASE=" + number + " -x c++ " + folder + "programs.inc");
    INFO(outcome.text);
    CHECK_FALSE(outcome.compiled);
    CHECK_THAT(outcome.first_error, Catch::Contains(sentence));
    if (number == "2") CHECK_THAT(outcome.text, Catch::Contains("Vocab"));
    ++programs;
  }
  CHECK(programs >= 39);
  const Outcome good = compile(compiler, "-DCASE=0 -x c++ " + folder + "programs.inc");
  INFO(good.text);
  CHECK(good.compiled);
}

}  // namespace

TEST_CASE("the first error line of g++ is a sentence") { check_all("g++"); }
TEST_CASE("the first error line of clang is a sentence") { check_all("clang++-19"); }
