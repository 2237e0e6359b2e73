// Compiles the model's functions, prints a line for each, writes their forms and counts what the cache had.
#pragma once
#include <fmt/format.h>

#include "clock.hpp"
#include "forms.hpp"
#include "model.hpp"
#include "options.hpp"
#include "runtime/cache/cache.hpp"

namespace language_model {

class Compiler {
 public:
  Compiler(const Options& options, tigon::Device device) : options_(options), device_(device) {}

  template <template <template <class> class> class Args, class R>
  auto operator()(const tigon::Function<Args, R>& function, const Args<tigon::Shape>& shape,
                  const tigon::Extents& extents, bool unfused) {
    const auto before = tigon::runtime::kernel_cache().counters();
    const Clock clock;
    auto compiled =
        tigon::compile(function, shape, extents,
                       {.device = device_, .memory_budget = options_.budget_mebibytes << 20, .unfused = unfused});
    const double seconds = clock.seconds();
    const auto after = tigon::runtime::kernel_cache().counters();
    seconds_ += seconds;
    compiled_ += after.compiled - before.compiled;
    found_ += after.from_disk - before.from_disk;
    shared_ += after.from_memory - before.from_memory;

    const Calls calls = count_calls(compiled.core());
    fmt::print("  {:<30} {:4} kernels, {:4} launches, {:4} matmuls, {:6.2f} s{}\n", function.name(), calls.kernels,
               calls.launches, calls.matmuls, seconds, unfused ? "  (unfused)" : "");
    if (!options_.forms.empty() && unfused == options_.unfused) write_forms(options_.forms, compiled.core());
    return compiled;
  }
  void report() const {
    const char* start = compiled_ == 0 ? "warm" : (found_ == 0 ? "cold" : "partly warm");
    fmt::print("kernels: {} compiled, {} from cache, {} equal to one of them; {} start {:.2f} s\n", compiled_, found_,
               shared_, start, seconds_);
  }

 private:
  const Options& options_;
  tigon::Device device_;
  double seconds_ = 0;
  std::uint64_t compiled_ = 0, found_ = 0, shared_ = 0;  // compiled here, read from disk, of the same text
};

}  // namespace language_model
