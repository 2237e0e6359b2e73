// `tigon_benchmarks`: measures against limits timed in the same run, prints one table, writes JSON if asked.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "benchmarks/suites.hpp"
#include "runtime/cache/cache.hpp"
#include "tigon/error.hpp"

namespace tigon::benchmarks {
namespace {

// Kernels are cached in a folder that is made for this run and goes with it, so that cold means cold.
class TemporaryCache {
 public:
  TemporaryCache() {
    std::string path = (std::filesystem::temp_directory_path() / "tigon-benchmarks-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      throw Error({.kind = ErrorKind::device, .found = path, .cure = "Set TMPDIR to a folder that can be written"},
                  "no temporary folder for the kernel cache");
    }
    folder_ = path;
    setenv("TIGON_CACHE_DIR", path.c_str(), 1);
  }
  ~TemporaryCache() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TemporaryCache(const TemporaryCache&) = delete;
  TemporaryCache& operator=(const TemporaryCache&) = delete;

 private:
  std::filesystem::path folder_;
};

int run(int argc, char** argv) {
  CLI::App app{"Measures Tigon's kernels against limits that are timed in turns with them."};
  Settings settings;
  std::string json;
  bool once = false;
  app.add_flag("--quick", settings.quick, "small arrays and few pairs, to see that everything runs");
  app.add_option("--only", settings.only, "rows whose name contains this")->option_text("NAME");
  app.add_option("--json", json, "also write the rows to this file")->option_text("FILE");
  app.add_flag("--compile-once", once, "compile one function, print its time, and end")->group("");
  app.footer(
      "The number of threads is OpenMP's: OMP_NUM_THREADS. Exit code 1: a goal is not met (never with --quick).");
  CLI11_PARSE(app, argc, argv);
  if (once) {
    compile_once();
    return 0;
  }
  if (settings.quick) settings.pairs = 3;
  settings.program = std::filesystem::read_symlink("/proc/self/exe").string();
  const TemporaryCache cache;
  Report report(settings);
  report.print_head();
  measure_memory_bound(report, settings);
  measure_linear_loss(report, settings);
  measure_latency(report, settings);
  if (report.empty()) {
    throw Error({.argument = "--only", .found = settings.only, .cure = "Leave it out to see every row's name"},
                "no row's name contains this");
  }
  if (!json.empty()) report.write_json(json);
  return report.all_met() || settings.quick ? 0 : 1;
}

}  // namespace
}  // namespace tigon::benchmarks

int main(int argc, char** argv) {
  try {
    return tigon::benchmarks::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
