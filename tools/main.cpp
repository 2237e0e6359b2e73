// The `tigon` command: reads the command line, calls the subcommand, turns errors into messages and exit codes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <new>

#include "command.hpp"
#include "paint.hpp"
#include "runtime/environment.hpp"
#include "runtime/nearest.hpp"
#include "tigon/error.hpp"

namespace tigon::tools {
namespace {

constexpr const char* exit_code_text =
    "exit codes: 0 done; 1 a check failed; 2 the command line or the environment asks for what does not exist;\n"
    "            3 a library, device, folder or memory is missing, or output cannot be written;\n"
    "            4 a fault of Tigon or of a compiler";

constexpr const char* op_help = "an op of the catalogue; `tigon ops` lists them";

// What can be said about an op, besides its name.
void op_details(CLI::App& command, Asked& asked, bool with_gradient) {
  command
      .add_option("--axes", asked.axes, "extents by axis, as in tokens=8192,vocab=128256; the op's defaults otherwise")
      ->allow_extra_args(false)
      ->option_text("AXIS=EXTENT,...");
  command.add_option("--dtype", asked.dtype, "element type of the op's float arguments: f32, bf16 or f16")
      ->option_text("DTYPE");
  command.add_option("--option", asked.options, "an option of the op, as in smoothing=0.1; may be repeated")
      ->allow_extra_args(false)
      ->option_text("NAME=VALUE");
  command
      .add_option("--target", asked.target,
                  "cpu (this machine), x86-64-v3, x86-64-v4, aarch64; a GPU to read about: h200, sm_90a ...")
      ->option_text("TARGET");
  command.add_option("--budget", asked.budget, "most memory for intermediate values, as in 1GiB")->option_text("BYTES");
  if (with_gradient) command.add_flag("--gradient", asked.gradient, "the op's gradient instead of the op");
  command.add_flag("--exact", asked.exact, "large contractions keep f32 operands and results");
  command.add_flag("--unfused", asked.unfused, "one kernel per operation, for comparison");
}

void op_options(CLI::App& command, Asked& asked, bool with_gradient) {
  command.add_option("OP", asked.op, op_help)->required()->option_text(" ");
  op_details(command, asked, with_gradient);
}

// Everything the parser found, and what to call afterwards.
struct CommandLine {
  Asked asked;
  std::string name, what = "loops", kernel, device = "cpu";
  bool json = false, emulate = false;
  std::vector<std::string> ops;
  std::int64_t seed = 1;
  int runs = 15, threads = 0;
  std::function<int()> call;

  void define(CLI::App& app) {
    app.set_help_flag("-h,--help", "this text");
    app.require_subcommand(1);
    app.footer(std::string("examples:\n"
                           "  tigon ops                                   what can be asked of the commands below\n"
                           "  tigon explain softmax --axes tokens=4096,vocab=32768 --gradient\n"
                           "  tigon check rms_norm --dtype bf16           compiled results against the reference\n"
                           "  tigon doctor                                when something does not work\n\n") +
               exit_code_text);

    CLI::App* listed = app.add_subcommand("ops", "list the ops, or show one op's formula, axes, dtypes and options");
    listed->add_option("NAME", name, "an op")->option_text(" ");
    listed->footer("examples:\n  tigon ops\n  tigon ops cross_entropy");
    listed->callback([this] { call = [this] { return name.empty() ? list_ops() : describe_op(name); }; });

    CLI::App* explained = app.add_subcommand("explain", "an op's plan: its kernels, what they fuse and move, and why");
    op_options(*explained, asked, true);
    explained->add_flag("--json", json, "the same facts as JSON, for programs");
    explained->footer(
        "examples:\n"
        "  tigon explain softmax --axes tokens=4096,vocab=32768\n"
        "  tigon explain rms_norm --gradient --dtype bf16 --axes hidden=4096\n"
        "  tigon explain linear_cross_entropy --gradient --budget 512MiB --option smoothing=0.1\n"
        "  tigon explain layer_norm --json | jq '.steps[].fused'\n\n"
        "reading it: bytes \"touched\" count each buffer once per sweep of a kernel's text, the minimum counts it "
        "once;\n"
        "times are the planner's prediction; `refused` says which fusions were not made.");
    explained->callback([this] { call = [this] { return explain(asked, json); }; });

    CLI::App* emitted =
        app.add_subcommand("emit", "an op on its way to machine code: graph, plan, loop nests, LLVM or CUDA");
    op_options(*emitted, asked, true);
    emitted->add_option("--what", what, "graph, plan, loops or llvm; for a GPU: cuda, ptx, sass or resources")
        ->option_text("FORM")
        ->capture_default_str();
    emitted->add_option("--kernel", kernel, "only kernels whose name contains this")->option_text("TEXT");
    emitted->add_flag("--json", json, "resources as JSON, for programs");
    emitted->footer(
        "examples:\n"
        "  tigon emit softmax --what graph\n"
        "  tigon emit softmax --gradient --what loops\n"
        "  tigon emit softmax --what cuda --target sm_90a\n"
        "  tigon emit softmax --what llvm --target x86-64-v3 > softmax.ll\n"
        "  tigon emit rms_norm --dtype bf16 --what resources --target sm_90a\n\n"
        "ptx and resources need NVRTC; sass also nvdisasm or cuobjdump, which `tigon doctor` looks for. Nothing of it\n"
        "needs a GPU. Resources are read from the machine code: threads, shared memory and barriers of a block;\n"
        "registers, bytes of stack, of spills (stores / loads) and of all accesses to local memory of a thread. From\n"
        "sm_90 on shared memory counts 1024 reserved bytes in. Wide loads and stores move 16 bytes of global "
        "memory.\n\n"
        "TIGON_DUMP=folder makes any program write all of these for each function that it compiles.");
    emitted->callback([this] { call = [this] { return emit(asked, what, kernel, json); }; });

    CLI::App* checked = app.add_subcommand("check", "compiled results against the reference, forward and gradient");
    op_options(*checked, asked, false);
    checked->add_option("--device", device, "where to run: cpu, cuda or cuda:1")
        ->option_text("DEVICE")
        ->capture_default_str();
    checked->add_option("--seed", seed, "of the random arguments")->option_text("NUMBER")->capture_default_str();
    checked->footer(
        "examples:\n"
        "  tigon check softmax\n"
        "  tigon check cross_entropy --dtype bf16 --axes tokens=33,vocab=1000 --option smoothing=0.1\n"
        "  tigon check rms_norm --device cuda\n"
        "  TIGON_CUDA_DRIVER=emulated tigon check rms_norm --device cuda    where there is no GPU\n\n"
        "The reference evaluates in f64 and bounds the error of each element; error/allowed is the error as a\n"
        "share of twice that bound. Extents that are not given are small, since the reference is slow.");
    checked->callback([this] { call = [this] { return check(asked, seed, device); }; });

    CLI::App* benched = app.add_subcommand("bench", "an op's time beside a plain copy; or its traffic, by emulation");
    benched->add_option("OP", ops, op_help)->option_text(" ");
    op_details(*benched, asked, true);
    CLI::Option* run_count = benched->add_option("--runs", runs, "how many runs to take the median of")
                                 ->option_text("N")
                                 ->capture_default_str();
    CLI::Option* thread_count =
        benched->add_option("--threads", threads, "worker threads; OpenMP's own number otherwise")->option_text("N");
    benched->add_flag("--emulate", emulate, "count what GPU kernels do instead; without OP, of a standard list of ops")
        ->excludes(run_count)
        ->excludes(thread_count);
    benched->add_flag("--json", json, "with --emulate: the same facts as JSON, for programs");
    benched->footer(
        "examples:\n"
        "  tigon bench rms_norm --dtype bf16 --axes tokens=8192,hidden=4096\n"
        "  tigon bench softmax --gradient --threads 1\n"
        "  tigon bench --emulate\n"
        "  tigon bench --emulate swiglu --dtype f32 --axes tokens=32,hidden=2048\n\n"
        "The share is (bytes of arguments and results once / time) over the bandwidth of a copy with non-temporal\n"
        "stores that runs between the op's runs. Above 100 % the op's data stayed in cache.\n\n"
        "--emulate needs NVRTC and no GPU. Bars: bytes at most 1.05 times the minimum, 95 % of them in accesses of 16\n"
        "bytes, bank conflicts below 5 %, exponentials as few as can be, no spills on six architectures. It is a\n"
        "report: a bar that is not met (SHORT) changes no exit code. Ops run in bf16 where they have it, at extents\n"
        "that take the emulator seconds, and are compiled for registers and spills at the catalogue's.\n"
        "TIGON_EMULATED_GPU chooses the device that counts.");
    benched->callback([this] {
      call = [this] {
        if (emulate) return bench_emulated(asked, ops, json);
        if (ops.size() != 1 || json) {
          throw Error({.argument = json ? "--json" : "OP",
                       .found = json ? "no --emulate" : fmt::format("{} ops", ops.size()),
                       .expected = json ? "--emulate" : "one",
                       .cure = "`tigon bench --help` shows what can be asked"},
                      json ? "times are printed as text" : "one op is timed at a time");
        }
        asked.op = ops.front();
        return bench(asked, runs, threads);
      };
    });

    CLI::App* cache = app.add_subcommand("cache", "the kernels kept on disk: list, verify or clear them");
    cache->require_subcommand(1);
    cache->footer(
        "examples:\n  tigon cache list\n  tigon cache verify\n  TIGON_CACHE_DIR=/tmp/kernels tigon cache clear\n\n"
        "verify reads every file; a damaged one is a failed check.");
    cache->add_subcommand("list", "key, size, last use and title of each kernel")->callback([this] {
      call = cache_list;
    });
    cache->add_subcommand("verify", "read and check every kernel")->callback([this] { call = cache_verify; });
    cache->add_subcommand("clear", "remove every kernel")->callback([this] { call = cache_clear; });

    CLI::App* doctored = app.add_subcommand("doctor", "what was found where, what is missing, and the cure");
    doctored->footer("examples:\n  tigon doctor\n  TIGON_LLVM=19 tigon doctor");
    doctored->callback([this] { call = doctor; });

    for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      command->footer(command->get_footer() + "\n\n" + exit_code_text);
  }
};

void say_error(const std::string& message) { err(paint_error(Colour::red, "tigon: ") + message + "\n"); }

// The most deeply nested subcommand that was named.
const CLI::App* innermost(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

// Words that stand where a subcommand's name belongs must be one.
void check_commands(const CLI::App& app, int argc, char** argv) {
  const CLI::App* command = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(sub->get_name());
      if (names.back() == argv[i]) next = sub;
    }
    if (names.empty()) return;
    if (next == nullptr) {
      std::string all;
      for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
      throw Error({.found = "`" + std::string(argv[i]) + "`",
                   .expected = "one of " + all,
                   .cure = runtime::suggestion(argv[i], names)},
                  "there is no command of this name");
    }
    command = next;
  }
}

// The first option on the command line that the command does not have, as a sentence; empty if there is none.
std::string unknown_option(const CLI::App& command, int argc, char** argv) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& long_name : option->get_lnames()) words.push_back("--" + long_name);
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    if (!word.starts_with("--") || std::find(words.begin(), words.end(), word) != words.end()) continue;
    const std::string meant = runtime::suggestion(word, words);
    return "there is no option `" + word + "`" + (meant.empty() ? "" : ". " + meant);
  }
  return "";
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return exit_usage;
    case ErrorKind::io:
    case ErrorKind::device:
      return exit_missing;
    case ErrorKind::compile:
    case ErrorKind::internal:
      break;
  }
  return exit_fault;
}

int run(int argc, char** argv) {
  CommandLine line;
  CLI::App app("tigon shows, checks and times the kernels that Tigon makes", "tigon");
  app.set_version_flag("--version", "tigon " TIGON_VERSION, "print the version and exit");
  line.define(app);
  check_commands(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const CLI::App* command = innermost(&app);
    const std::string option = unknown_option(*command, argc, argv);
    say_error(option.empty() ? error.what() : option);
    std::string path;
    for (const CLI::App* at = command; at != nullptr; at = at->get_parent()) {
      path = at->get_name() + (path.empty() ? "" : " ") + path;
    }
    err("`" + path + " --help` shows what can be asked.\n");
    return exit_usage;
  }
  const bool diagnoses = app.got_subcommand("doctor");  // which reports a wrong environment itself
  if (!diagnoses) runtime::check_environment();
  return line.call();
}

}  // namespace
}  // namespace tigon::tools

int main(int argc, char** argv) {
  using namespace tigon;
  try {
    const int code = tools::run(argc, argv);
    const std::string trouble = tools::finish_output();
    if (trouble.empty()) return code;
    tools::say_error("standard output could not be written: " + trouble);
    return tools::exit_missing;
  } catch (const Error& error) {
    tools::say_error(error.what());
    return tools::exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    tools::say_error("there is not enough memory for this; ask for smaller extents with --axes");
    return tools::exit_missing;
  } catch (const std::exception& error) {
    tools::say_error(std::string("unexpected: ") + error.what());
    return tools::exit_fault;
  }
}
