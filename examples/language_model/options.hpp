// What the command line may say.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace language_model {

struct Options {
  std::string text;  // a file; empty: the licence texts
  std::int64_t steps = 700;
  double seconds = 0;  // 0: no limit; else training ends by then, and the learning rate's schedule with it
  std::int64_t batch = 16;
  std::int64_t context = 128;
  std::int64_t layers = 4;
  std::int64_t hidden = 64;  // 4 heads; the perceptron's inside is 11/4 of it
  double learning_rate = 4e-3;
  std::uint64_t seed = 1;
  std::string device = "best";  // "cpu", "cuda" or "best"
  bool unfused = false;
  bool compare_unfused = false;
  std::uint64_t budget_mebibytes = 0;  // of workspace for each function; 0: no limit
  double goal = 0;                     // largest share of the byte model's bits that counts as success; 0: any
  std::string prompt = "This License ";
  std::int64_t generate = 300;  // bytes
  double temperature = 0.7;
  std::string forms = "language_model_forms";  // folder for graphs, plans, nests and kernels' text; empty: none
  std::string losses{};                        // file for the loss of every update; empty: none
};

enum ExitCode : int { done = 0, failed = 1, bad_usage = 2, diverged = 5, goal_missed = 6 };

// What was asked for cannot be done: the program ends with bad_usage.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Trains, measures and generates; prints what it does.
ExitCode run(const Options& options);

}  // namespace language_model
