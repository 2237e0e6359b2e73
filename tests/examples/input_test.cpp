// The example's command line: every mistake ends with exit code 2 and one line that names it, before anything is
// compiled or trained.
#include "tests/tools/run_command.hpp"

namespace {

using namespace tigon::test;

Ran run_model(std::vector<std::string> words) {
  words.insert(words.end(), {"--generate", "0"});
  return run_program(command_path("examples/language_model"), words);
}

}  // namespace

TEST_CASE("what the example cannot do is named in one line, with exit code 2") {
  const Folder folder;
  const std::string file = folder.path() + "/text", small = folder.path() + "/small";
  write_text(file, std::string(50000, 'a'));
  write_text(small, "too little");
  struct Mistake {
    std::vector<std::string> words;
    std::vector<std::string> said;
  };
  const std::vector<Mistake> mistakes = {
      {{"--text", "/dev/zero"}, {"/dev/zero has more than 256 MiB, or no end"}},
      {{"--text", "/"}, {"/ is a folder; give a file"}},
      {{"--text", "/nowhere/text"}, {"cannot read /nowhere/text: No such file or directory"}},
      {{"--text", small}, {"the text has 10 bytes; at least 40960 are needed"}},
      {{"--text", "/dev/null"}, {"the text has 0 bytes; at least 40960 are needed"}},
      {{"--temperature", "nan"}, {"--temperature: found nan, expected a number from 0.001 to 1000"}},
      {{"--temperature", "0"}, {"--temperature: found 0"}},
      {{"--temperature", "hot"}, {"--temperature", "hot"}},
      {{"--learning-rate", "inf"}, {"--learning-rate: found inf"}},
      {{"--learning-rate", "nan"}, {"--learning-rate: found nan"}},
      {{"--seconds", "nan"}, {"--seconds: found nan"}},
      {{"--goal", "-1"}, {"--goal: found -1"}},
      {{"--steps", "0"}, {"--steps: found 0, expected a number from 1 to 1e+07"}},
      {{"--steps", "1e300"}, {"--steps: found 1e300"}},
      {{"--steps", "2.5"}, {"--steps", "2.5"}},
      {{"--batch", "99999"}, {"--batch: found 99999, expected a number from 1 to 4096"}},
      {{"--seed", "-1"}, {"--seed: found -1"}},
      {{"--hidden", "20"}, {"hidden", "20", "multiple of 8"}},
      {{"--budget", "lots"}, {"--budget", "lots"}},
      {{"--budget", "-1"}, {"--budget: found -1"}},
      {{"--budget", "nan"}, {"--budget: found nan"}},
      {{"--budget", "99999999999"}, {"--budget: found 99999999999"}},
      {{"--forms", "/proc/nothing/here"}, {"cannot write to the folder /proc/nothing/here (--forms)"}},
      {{"--forms", file + "/below"}, {"cannot write to the folder " + file + "/below (--forms): Not a directory"}},
      {{"--forms", file}, {"cannot write to the folder " + file + " (--forms)"}},
      {{"--losses", "/nowhere/losses"}, {"cannot write /nowhere/losses: No such file or directory"}},
      {{"--losses", file}, {"--losses would overwrite the text, " + file}},
      {{"--hidden", "4096", "--layers", "64"}, {"running means need ", "GiB, and this machine has ", "--hidden"}},
      {{"--unfuse"}, {"--unfuse", "--help"}},
  };
  for (const Mistake& mistake : mistakes) {
    std::vector<std::string> words = mistake.words;
    if (words.front() != "--text") words.insert(words.end(), {"--text", file});
    if (words.front() != "--forms") words.insert(words.end(), {"--forms", ""});
    const Ran ran = run_model(words);
    INFO(words[0] << " " << words[1] << "\n" << ran.out << ran.err);
    CHECK(ran.code == 2);
    CHECK(ran.err.starts_with("language_model: "));
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    CHECK_FALSE(contains(ran.out, "compiling"));
    for (const std::string& part : mistake.said) {
      INFO("should say: " << part);
      CHECK(contains(ran.err, part));
    }
  }
}

TEST_CASE("output that cannot be written is named, with exit code 1") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"},
        {"--steps", "1", "--layers", "1", "--hidden", "8", "--context", "8", "--generate", "0", "--forms", ""}}) {
    const Ran ran = run_program(command_path("examples/language_model"), words, {}, "/dev/full");
    INFO(words[0] << "\n" << ran.err);
    CHECK(ran.code == 1);
    CHECK(ran.err == "language_model: the output could not be written\n");
  }
}

TEST_CASE("the help lists every exit code") {
  const Ran ran = run_program(command_path("examples/language_model"), {"--help"});
  CHECK(ran.code == 0);
  for (const char* code : {"0 done", "1 failed", "2 what was asked", "5 the loss became", "6 the goal"})
    CHECK(contains(ran.out, code));
}
