// The command's exit codes and messages, by running it.
#include <sstream>

#include "run_command.hpp"
#include "runtime/cache/entry.hpp"

using namespace tigon::test;

namespace {

struct Mistake {
  std::vector<std::string> words;
  std::vector<std::string> said;  // parts of the message
};

}  // namespace

TEST_CASE("each subcommand teaches by examples") {
  const Ran top = run_tigon({"--help"});
  CHECK(top.code == 0);
  CHECK(contains(top.out, "exit codes: 0 done; 1 a check failed; 2 "));
  for (const char* name : {"ops", "explain", "emit", "check", "bench", "cache", "doctor"}) {
    CHECK(contains(top.out, std::string("\n  ") + name));
    const Ran ran = run_tigon({name, "--help"});
    INFO(ran.out);
    CHECK(ran.code == 0);
    CHECK(contains(ran.out, "examples:"));
    CHECK(contains(ran.out, std::string("  tigon ") + name));
  }
}

TEST_CASE("the examples work") {
  int tried = 0;
  for (const char* name : {"ops", "explain", "emit"}) {
    std::istringstream lines(run_tigon({name, "--help"}).out);
    const std::string start = std::string("  tigon ") + name;
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(start, 0) != 0) continue;
      std::istringstream words(line.substr(0, line.find_first_of("|>")).substr(8));
      std::vector<std::string> arguments;
      for (std::string word; words >> word;) arguments.push_back(word);
      const Ran ran = run_tigon(arguments);
      INFO(line << "\n" << ran.err);
      CHECK((ran.code == 0 || (ran.code == 3 && contains(ran.err, "NVRTC was not found"))));
      ++tried;
    }
  }
  CHECK(tried >= 9);
}

TEST_CASE("ops are listed with a line each, and shown in full") {
  const Ran list = run_tigon({"ops"});
  CHECK(list.code == 0);
  CHECK(contains(lines_with(list.out, "softmax  "), "softmax over the vocabulary"));
  const Ran one = run_tigon({"ops", "cross_entropy"});
  CHECK(one.code == 0);
  CHECK(contains(one.out, "loss = mean(logsumexp(x) - x[target])"));
  CHECK(contains(lines_with(one.out, "vocab "), "at least 1"));
  CHECK(contains(lines_with(one.out, "smoothing"), "0, 0.1, or a number in [0, 1)"));
  CHECK(contains(one.out, "f32, bf16, f16"));
}

TEST_CASE("a mistake is named, with what may have been meant") {
  const std::vector<Mistake> mistakes = {
      {{}, {"subcommand is required"}},
      {{"explian"}, {"`explian`", "Did you mean `explain`?", "doctor"}},
      {{"cache", "lst"}, {"`lst`", "Did you mean `list`?"}},
      {{"explain"}, {"OP is required", "`tigon explain --help`"}},
      {{"explain", "sofmax"}, {"`sofmax`", "Did you mean `softmax`?", "rms_norm"}},
      {{"ops", "sofmax"}, {"Did you mean `softmax`?"}},
      {{"explain", "softmax", "--axis", "tokens=4"}, {"`--axis`", "Did you mean `--axes`?"}},
      {{"explain", "softmax", "--axes", "token=4"}, {"axis `token`", "tokens, vocab", "Did you mean `tokens`?"}},
      {{"explain", "softmax", "--axes", "tokens=4,tokens=5"}, {"axis `tokens`", "found 5", "expected 4"}},
      {{"explain", "softmax", "--axes", "tokens=abc"}, {"axis `tokens`", "`abc`", "not a number"}},
      {{"explain", "softmax", "--axes", "tokens=4.5"}, {"axis `tokens`", "`4.5`", "not a number"}},
      {{"explain", "softmax", "--axes", "tokens="}, {"axis `tokens`", "found nothing"}},
      {{"explain", "softmax", "--axes", "tokens=-4"}, {"axis `tokens`", "found -4", "negative"}},
      {{"explain", "softmax", "--axes", "tokens=99999999999999999999"}, {"axis `tokens`", "too large"}},
      {{"explain", "softmax", "--axes", "tokens=9000000000000000000,vocab=9000000000000000000"},
       {"argument `x` is too large", "8.1e+37", "--axes"}},
      {{"explain", "softmax", "--axes", "tokens"}, {"`tokens`", "NAME=EXTENT"}},
      {{"explain", "softmax", "--axes", "=5"}, {"`=5`", "NAME=EXTENT"}},
      {{"explain", "cross_entropy", "--axes", "vocab=0"}, {"axis `vocab`", "found 0", "1 or more"}},
      {{"explain", "rope", "--axes", "channels=3"}, {"axis `channels`", "found 3", "multiple of 2"}},
      {{"explain", "softmax", "--dtype", "bf61"}, {"`bf61`", "Did you mean `bf16`?"}},
      {{"explain", "softmax", "--dtype", "i32"}, {"softmax", "found i32", "f32, bf16, f16"}},
      {{"explain", "cross_entropy", "--option", "smothing=1"}, {"`smothing`", "Did you mean `smoothing`?"}},
      {{"explain", "cross_entropy", "--option", "smoothing=lots"}, {"`smoothing`", "found lots", "a number"}},
      {{"explain", "cross_entropy", "--option", "smoothing=nan"}, {"`smoothing`", "found nan", "a number in [0, 1)"}},
      {{"explain", "cross_entropy", "--option", "smoothing=inf"}, {"`smoothing`", "found inf", "a number in [0, 1)"}},
      {{"explain", "cross_entropy", "--option", "smoothing=1.5"}, {"`smoothing`", "found 1.5", "a number in [0, 1)"}},
      {{"check", "cross_entropy", "--option", "smoothing=1"}, {"`smoothing`", "found 1", "a number in [0, 1)"}},
      {{"check", "cross_entropy", "--option", "smoothing=-1"}, {"`smoothing`", "found -1", "a number in [0, 1)"}},
      {{"check", "linear_cross_entropy", "--option", "z_loss=-1"}, {"`z_loss`", "found -1", "a number, 0 or more"}},
      {{"check", "cross_entropy", "--option", "softcap=-2"}, {"`softcap`", "found -2", "a number, 0 or more"}},
      {{"check", "cross_entropy", "--option", "ignore_index=0.5"}, {"`ignore_index`", "found 0.5", "a whole number"}},
      {{"check", "embedding", "--option", "padding=1.5"}, {"`padding`", "found 1.5", "none, or a whole number"}},
      {{"check", "rms_norm", "--option", "epsilon=-1e-6"}, {"`epsilon`", "found -1e-6", "a number, 0 or more"}},
      {{"check", "rms_norm", "--option", "offset=inf"}, {"`offset`", "found inf", "a finite number"}},
      {{"check", "layer_norm", "--option", "epsilon=nan"}, {"`epsilon`", "found nan", "a number, 0 or more"}},
      {{"check", "rope", "--option", "base=0"}, {"`base`", "found 0", "a number above 0"}},
      {{"check", "attention", "--option", "first_query=-1"},
       {"`first_query`", "found -1", "a whole number, 0 or more"}},
      {{"check", "swiglu", "--option", "gate_multiplier=1e999"},
       {"`gate_multiplier`", "found 1e999", "a finite number"}},
      {{"explain", "cross_entropy", "--option", "reduction=maen"}, {"`reduction`", "`maen`", "Did you mean `mean`?"}},
      {{"explain", "cross_entropy", "--option", "smoothing"}, {"`smoothing`", "NAME=VALUE"}},
      {{"explain", "adamw", "--gradient"}, {"adamw", "no gradient"}},
      {{"explain", "softmax", "--budget", "1GIB"}, {"`1GIB`", "1GiB"}},
      {{"explain", "softmax", "--budget", "-3"}, {"found -3"}},
      {{"explain", "softmax", "--budget", "nan"}, {"`nan`"}},
      {{"explain", "softmax", "--target", "x86-64-v5"}, {"`x86-64-v5`", "Did you mean `x86-64-v3` or `x86-64-v4`?"}},
      {{"emit", "softmax", "--what", "loop"}, {"`loop`", "Did you mean `loops`?"}},
      {{"emit", "softmax", "--kernel", "zebra"}, {"`zebra`", "softmax_y"}},
      {{"bench", "softmax", "--runs", "0"}, {"`--runs`", "found 0"}},
      {{"bench", "softmax", "--runs", "abc"}, {"--runs", "abc"}},
      {{"check", "softmax", "--seed", "-1"}, {"seed is negative"}},
      {{"check", "softmax", "--axes", "tokens=99999999,vocab=9999"}, {"too much memory", "--axes"}},
      {{"ops", "softmax", "rope"}, {"rope"}},
  };
  for (const Mistake& mistake : mistakes) {
    const Ran ran = run_tigon(mistake.words);
    std::string words;
    for (const std::string& word : mistake.words) words += word + " ";
    INFO("tigon " << words << "\n" << ran.out << ran.err);
    CHECK(ran.code == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err.rfind("tigon: ", 0) == 0);
    for (const std::string& part : mistake.said) {
      INFO("should say: " << part);
      CHECK(contains(ran.err, part));
    }
  }
}

TEST_CASE("extents that are not given are told") {
  const Ran ran = run_tigon({"explain", "softmax", "--axes", "tokens=5"});
  CHECK(ran.code == 0);
  CHECK(contains(ran.err, "not given with --axes, so taken: vocab = 32768"));
  CHECK(contains(ran.out, "tokens 5 (run time), vocab = 32768"));
}

TEST_CASE("an unknown option in the environment lists the valid ones") {
  const Ran ran = run_tigon({"ops"}, {{"TIGON_DUPM", "x"}});
  CHECK(ran.code == 2);
  for (const char* part : {"TIGON_DUPM", "TIGON_CACHE_DIR, TIGON_LLVM, TIGON_CPU, TIGON_THREADS, TIGON_DUMP",
                           "Did you mean `TIGON_DUMP`"}) {
    CHECK(contains(ran.err, part));
  }
  CHECK(run_tigon({"ops"}, {{"TIGON_THREADS", "many"}}).code == 2);
  const Ran cpu = run_tigon({"ops"}, {{"TIGON_CPU", "z80"}});
  CHECK(cpu.code == 2);
  CHECK(contains(cpu.err, "x86-64-v3"));
}

TEST_CASE("output that cannot be written is exit code 3 with one line") {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"ops"},
                                                {"--help"},
                                                {"ops", "softmax"},
                                                {"emit", "softmax", "--what", "llvm", "--axes", "tokens=4,vocab=8"},
                                                {"explain", "softmax", "--axes", "tokens=4,vocab=8", "--json"}}) {
    const Ran ran = run_program(command_path("tigon"), words, {}, "/dev/full");
    INFO(words.front() << ": " << ran.err);
    CHECK(ran.code == 3);
    CHECK(ran.err == "tigon: standard output could not be written: No space left on device\n");
  }
}

TEST_CASE("kernels for a CPU that this machine is not are refused before they run") {
  const char* other = run_tigon({"emit", "softmax", "--what", "llvm"}).out.find("aarch64") != std::string::npos
                          ? "x86-64-v3"
                          : "aarch64";
  for (const char* command : {"check", "bench"}) {
    const Ran named = run_tigon({command, "softmax"}, {{"TIGON_CPU", other}});
    INFO(named.out << named.err);
    CHECK(named.code == 3);
    CHECK(contains(named.err, "this machine cannot run kernels made for this CPU (argument `TIGON_CPU`): found " +
                                  std::string(other)));
    CHECK(contains(named.err, "tigon emit"));
    const Ran asked = run_tigon({command, "softmax", "--target", other});
    CHECK(asked.code == 3);
    CHECK(contains(asked.err, "(argument `--target`): found " + std::string(other)));
  }
  CHECK(run_tigon({"emit", "softmax", "--what", "llvm"}, {{"TIGON_CPU", other}}).code == 0);
}

TEST_CASE("every help lists every exit code") {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"},
                                                {"ops", "--help"},
                                                {"check", "--help"},
                                                {"cache", "--help"},
                                                {"bench", "--help"}}) {
    const std::string help = run_tigon(words).out;
    for (const char* code : {"0 done", "1 a check failed", "2 the command line", "3 a library", "4 a fault"})
      CHECK(contains(help, code));
  }
}

TEST_CASE("a missing library is exit code 3, with what was tried and the cure") {
  const Ran ran = run_tigon({"check", "softmax"}, {{"TIGON_LLVM", "/nowhere/libLLVM.so"}});
  CHECK(ran.code == 3);
  CHECK(contains(ran.err, "/nowhere/libLLVM.so"));
  CHECK(contains(ran.err, "TIGON_LLVM"));
  const Ran doctor = run_tigon({"doctor"}, {{"TIGON_LLVM", "/nowhere/libLLVM.so"}});
  CHECK(doctor.code == 3);
  CHECK(contains(lines_with(doctor.out, "tried"), "/nowhere/libLLVM.so"));
  CHECK(contains(lines_with(doctor.out, "missing"), "no usable LLVM"));
  CHECK(contains(lines_with(doctor.out, "cure"), "Install LLVM"));
  // What needs no library works without it.
  const Ran text = run_tigon({"emit", "softmax", "--what", "llvm"}, {{"TIGON_LLVM", "/nowhere/libLLVM.so"}});
  CHECK(text.code == 0);
  CHECK(contains(text.out, "define void @softmax_y"));
}

TEST_CASE("doctor finds this machine in order, and a wrong environment") {
  const Ran ran = run_tigon({"doctor"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(lines_with(ran.out, "in use"), "libLLVM"));
  CHECK(contains(lines_with(ran.out, "vectors"), "bytes"));
  CHECK(contains(ran.out, "TIGON_CACHE_DIR"));
  CHECK(contains(ran.out, "everything works"));
  const Ran wrong = run_tigon({"doctor"}, {{"TIGON_DUPM", "x"}});
  CHECK(wrong.code == 3);
  CHECK(contains(lines_with(wrong.out, "missing"), "TIGON_DUPM"));
}

TEST_CASE("every form is emitted, for any target") {
  const auto emit = [](const char* what, const char* target) {
    const Ran ran = run_tigon({"emit", "softmax", "--axes", "tokens=8,vocab=64", "--what", what, "--target", target});
    INFO(ran.err);
    CHECK(ran.code == 0);
    return ran.out;
  };
  CHECK(contains(emit("graph", "cpu"), "return y = "));
  CHECK(contains(emit("plan", "cpu"), "softmax on cpu"));
  CHECK(contains(emit("loops", "cpu"), "loop vocab by lanes"));
  CHECK(contains(emit("llvm", "x86-64-v4"), "<16 x float>"));
  CHECK_FALSE(contains(emit("llvm", "x86-64-v3"), "<16 x float>"));
  CHECK(contains(emit("llvm", "x86-64-v3"), "<8 x float>"));
  CHECK(contains(emit("llvm", "aarch64"), "<4 x float>"));
}

TEST_CASE("check holds an op to the reference, forward and gradient") {
  const Ran ran = run_tigon({"check", "rms_norm", "--dtype", "bf16", "--axes", "tokens=5,hidden=70"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "tokens = 5, hidden = 70"));
  for (const char* part : {"forward", "gradient", "grad.weight", "error/allowed: worst", "ok: 3 results"}) {
    CHECK(contains(ran.out, part));
  }
}

TEST_CASE("check fails with exit code 1 on a kernel that computes something else") {
  using namespace tigon::runtime;
  // The same op with other angles: same names, same parameters, other numbers.
  Folder right, wrong;
  const auto check = [](const Folder& cache, const char* base) {
    return run_tigon({"check", "rope", "--axes", "tokens=9,heads=2,channels=8", "--option", "angles=computed",
                      "--option", std::string("base=") + base},
                     {{"TIGON_CACHE_DIR", cache.path()}});
  };
  REQUIRE(check(right, "10000").code == 0);
  REQUIRE(check(wrong, "500").code == 0);
  const auto entries = [](const Folder& folder) {
    std::vector<std::pair<std::string, CacheEntry>> found;
    for (const std::string& file : folder.files()) {
      const std::optional<CacheKey> key = parse_key(file.substr(0, file.find('.')));
      if (!key || file.substr(file.find('.')) != ".tigon") continue;
      DecodedEntry decoded = decode_entry(*key, read_text(folder.path() + "/" + file));
      REQUIRE(decoded.entry);
      found.emplace_back(file, std::move(*decoded.entry));
    }
    return found;
  };
  const auto kernel_name = [](const CacheEntry& entry) {
    const std::size_t at = entry.source.find("define void @");
    return entry.source.substr(at, entry.source.find('(', at) - at);
  };
  int swapped = 0;
  for (auto& [file, entry] : entries(right)) {
    for (const auto& [other_file, other] : entries(wrong)) {
      if (kernel_name(entry) != kernel_name(other) || entry.source == other.source) continue;
      entry.binary = other.binary;
      const CacheKey key = *parse_key(file.substr(0, file.find('.')));
      write_text(right.path() + "/" + file, encode_entry(key, entry));
      ++swapped;
    }
  }
  REQUIRE(swapped > 0);
  const Ran ran = check(right, "10000");
  INFO(ran.out << ran.err);
  CHECK(ran.code == 1);
  CHECK(contains(ran.out, "FAILED"));
  CHECK(contains(ran.out, "outside their bounds"));
}

TEST_CASE("bench says how long, and what share of a copy that is") {
  const Ran ran = run_tigon({"bench", "rms_norm", "--axes", "tokens=64,hidden=256", "--runs", "3", "--threads", "1"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "1 thread ·"));
  CHECK(contains(lines_with(ran.out, "time"), "the median of 3 runs"));
  CHECK(contains(lines_with(ran.out, "minimum"), "132.1 kB"));
  CHECK(contains(lines_with(ran.out, "minimum"), "% of a plain copy"));
  CHECK(contains(lines_with(ran.out, "copy  "), "GB/s"));
}

TEST_CASE("the cache is listed, verified and cleared") {
  Folder folder;
  const Variables here = {{"TIGON_CACHE_DIR", folder.path()}};
  CHECK(contains(run_tigon({"cache", "list"}, here).out, ": 0 kernels, 0 B"));
  REQUIRE(run_tigon({"check", "softmax", "--axes", "tokens=3,vocab=20"}, here).code == 0);
  const Ran list = run_tigon({"cache", "list"}, here);
  CHECK(list.code == 0);
  CHECK(contains(list.out, "softmax_y"));
  const Ran sound = run_tigon({"cache", "verify"}, here);
  CHECK(sound.code == 0);
  CHECK(contains(sound.out, ", 0 damaged"));
  std::string damaged;
  for (const std::string& file : folder.files()) {
    if (file.size() > 6 && file.substr(file.size() - 6) == ".tigon") damaged = file;
  }
  std::string text = read_text(folder.path() + "/" + damaged);
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  write_text(folder.path() + "/" + damaged, text);
  const Ran verify = run_tigon({"cache", "verify"}, here);
  CHECK(verify.code == 1);
  CHECK(contains(verify.out, damaged));
  CHECK(contains(verify.out, ", 1 damaged"));
  CHECK(run_tigon({"cache", "clear"}, here).code == 0);
  CHECK(contains(run_tigon({"cache", "list"}, here).out, ": 0 kernels"));
}

TEST_CASE("a dump holds what emit shows") {
  Folder folder;
  const std::vector<std::string> op = {"softmax", "--axes", "tokens=3,vocab=20"};
  REQUIRE(run_tigon({"check", op[0], op[1], op[2]}, {{"TIGON_DUMP", folder.path() + "/a/b"}}).code == 0);
  std::string forward;
  for (const std::string& file : folder.files()) {
    if (contains(file, "/softmax_y") && contains(file, ".ll")) forward = file.substr(0, file.size() - 3);
  }
  REQUIRE_FALSE(forward.empty());
  const auto emitted = [&](const char* what) { return run_tigon({"emit", op[0], op[1], op[2], "--what", what}).out; };
  const std::string base = folder.path() + "/" + forward, inside = base.substr(0, base.rfind('/'));
  CHECK(read_text(base + ".ll") == emitted("llvm"));
  CHECK(read_text(base + ".loops") == emitted("loops"));
  CHECK(contains(read_text(base + ".graph"), "return y"));
  CHECK(read_text(inside + "/plan.txt") == emitted("plan"));
  CHECK(read_text(inside + "/plan.json") == run_tigon({"explain", op[0], op[1], op[2], "--json"}).out);
  // A folder that cannot be made.
  write_text(folder.path() + "/file", "");
  const Ran refused = run_tigon({"check", op[0], op[1], op[2]}, {{"TIGON_DUMP", folder.path() + "/file"}});
  CHECK(refused.code == 3);
  CHECK(contains(refused.err, "TIGON_DUMP"));
}

TEST_CASE("the version is one line") {
  const Ran ran = run_tigon({"--version"});
  CHECK(ran.code == 0);
  CHECK(ran.out.starts_with("tigon "));
  CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') == 1);
}

TEST_CASE("colour is for terminals, and not where NO_COLOR is set") {
  CHECK_FALSE(contains(run_tigon({"ops"}, {{"TERM", "xterm"}}).out, "\x1b["));
  CHECK(contains(run_on_terminal({"ops"}, {{"TERM", "xterm"}}).out, "\x1b[1msoftmax"));
  CHECK_FALSE(contains(run_on_terminal({"ops"}, {{"TERM", "xterm"}, {"NO_COLOR", "1"}}).out, "\x1b["));
  CHECK_FALSE(contains(run_on_terminal({"ops"}, {{"TERM", "dumb"}}).out, "\x1b["));
}
