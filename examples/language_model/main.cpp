// Trains a small language model over bytes, every operation of it a compiled Tigon function: the command line.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "options.hpp"

int main(int argc, char** argv) {
  language_model::Options options;
  CLI::App app(
      "Trains a small Llama-style language model over bytes; forward, gradient and update run in compiled "
      "kernels.\nExit codes: 0 done, 1 failed, 2 wrong use, 5 the loss became infinite or NaN,\n6 the goal was "
      "missed.");
  app.add_option("--text", options.text, "file to learn (default: the licence texts of this system)");
  app.add_option("--steps", options.steps, "updates")->check(CLI::Range(1, 10'000'000))->capture_default_str();
  app.add_option("--seconds", options.seconds, "end training after this long (0: after --steps)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--batch", options.batch, "windows per update")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--context", options.context, "bytes per window")->check(CLI::Range(2, 4095))->capture_default_str();
  app.add_option("--learning-rate", options.learning_rate, "largest learning rate")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the first weights, the batches and the sampling")->capture_default_str();
  app.add_flag("--unfused", options.unfused, "one kernel per operation, every value stored");
  app.add_flag("--compare-unfused", options.compare_unfused, "also time the gradient unfused");
  app.add_option("--budget", options.budget_mebibytes, "MiB of workspace for each function (0: no limit)")
      ->capture_default_str();
  app.add_option("--goal", options.goal, "largest share of the byte model's bits per byte that counts as success")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--prompt", options.prompt, "text to continue")->capture_default_str();
  app.add_option("--generate", options.generate, "bytes to generate")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--temperature", options.temperature, "of sampling")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--forms", options.forms, "folder for graphs, plans, loop nests and LLVM text (\"\": none)")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? language_model::done : language_model::bad_usage;
  }
  try {
    return language_model::run(options);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "language_model: %s\n", error.what());
    return language_model::failed;
  }
}
