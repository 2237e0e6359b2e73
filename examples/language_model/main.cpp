// Trains a small language model over bytes, every operation of it a compiled Tigon function: the command line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <system_error>

#include "options.hpp"
#include "tigon/error.hpp"

namespace {

// Numbers from low to high; NaN is none.
CLI::Validator between(double low, double high) {
  return {[low, high](const std::string& text) {
            double value = NAN;
            const bool number = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
            return number ? std::string()
                          : fmt::format("found {}, expected a number from {:g} to {:g}", text, low, high);
          },
          fmt::format("{:g} to {:g}", low, high), "between"};
}

int refuse(const char* message, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "language_model: %s\n", message);
  return code;
}

// The exit code, unless standard output did not take everything.
int written(int code) {
  std::cout.flush();  // the parser's help goes there
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return code;
  return refuse("the output could not be written", language_model::failed);
}

}  // namespace

int main(int argc, char** argv) {
  language_model::Options options;
  CLI::App app(
      "Trains a small Llama-style language model over bytes; forward, gradient and update run in compiled kernels.");
  app.footer(
      "exit codes: 0 done; 1 failed; 2 what was asked for does not exist or cannot be done;\n"
      "            5 the loss became infinite or NaN; 6 the goal was missed");
  app.add_option("--text", options.text, "file to learn (default: the licence texts of this system)");
  app.add_option("--steps", options.steps, "updates")->check(between(1, 1e7))->capture_default_str();
  app.add_option("--seconds", options.seconds, "end training after this long (0: after --steps)")
      ->check(between(0, 1e7))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "windows per update")->check(between(1, 4096))->capture_default_str();
  app.add_option("--context", options.context, "bytes per window")->check(between(2, 4095))->capture_default_str();
  app.add_option("--layers", options.layers, "layers of the model")->check(between(1, 64))->capture_default_str();
  app.add_option("--hidden", options.hidden, "numbers per position, a multiple of 8")
      ->check(between(8, 4096))
      ->capture_default_str();
  app.add_option("--learning-rate", options.learning_rate, "largest learning rate")
      ->check(between(1e-9, 10))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the first weights, the batches and the sampling")
      ->check(between(0, 9e15))
      ->capture_default_str();
  app.add_option(
         "--device", options.device,
         "cpu; cuda: the first CUDA device, which may be the emulated one; best: a GPU that works, else the cpu")
      ->check(CLI::IsMember({"cpu", "cuda", "best"}))
      ->capture_default_str();
  app.add_flag("--unfused", options.unfused, "one kernel per operation, every value stored");
  app.add_flag("--compare-unfused", options.compare_unfused, "also time the gradient unfused");
  app.add_option("--budget", options.budget_mebibytes, "MiB of workspace for each function (0: no limit)")
      ->check(between(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--goal", options.goal, "largest share of the byte model's bits per byte that counts as success")
      ->check(between(0, 1000))
      ->capture_default_str();
  app.add_option("--prompt", options.prompt, "text to continue")->capture_default_str();
  app.add_option("--generate", options.generate, "bytes to generate")->check(between(0, 1e6))->capture_default_str();
  app.add_option("--temperature", options.temperature, "of sampling")->check(between(1e-3, 1e3))->capture_default_str();
  app.add_option(
         "--forms", options.forms,
         "folder for graphs, plans, loop nests and kernels' text, and for the same at the shapes of Llama 3 8B on "
         "an sm_90a GPU, with each kernel's registers, stack and shared memory if there is an NVRTC (\"\": none)")
      ->capture_default_str();
  app.add_option("--losses", options.losses, "file that the loss of every update is written to, one a line");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    app.exit(help);
    return written(language_model::done);
  } catch (const CLI::ParseError& error) {
    return refuse((std::string(error.what()) + " (--help lists what can be asked)").c_str(), language_model::bad_usage);
  }
  try {
    return written(language_model::run(options));
  } catch (const language_model::UsageError& error) {
    return refuse(error.what(), language_model::bad_usage);
  } catch (const tigon::Error& error) {
    return refuse(error.what(),
                  error.kind() == tigon::ErrorKind::usage ? language_model::bad_usage : language_model::failed);
  } catch (const std::system_error&) {
    return refuse("the output could not be written", language_model::failed);
  } catch (const std::bad_alloc&) {
    return refuse("there is not enough memory for this", language_model::failed);
  } catch (const std::exception& error) {
    return refuse(error.what(), language_model::failed);
  }
}
