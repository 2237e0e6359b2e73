// The `tigon` command's subcommands, each a function from what was asked to an exit code.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tigon::tools {

enum ExitCode : int {
  exit_ok = 0,
  exit_failed = 1,   // a check found a wrong result, or the cache a damaged entry
  exit_usage = 2,    // the command line asks for something that does not exist
  exit_missing = 3,  // a library, a device, a folder or memory is missing or refused, or output cannot be written
  exit_fault = 4,    // a kernel did not compile, or Tigon contradicts itself: please report it
};

// What the subcommands that take an op were asked, as text; choose() turns it into an op and its graph.
struct Asked {
  std::string op{};
  std::vector<std::string> axes{};  // "tokens=8192,vocab=128256"
  std::string dtype{};              // empty: the op's first
  std::vector<std::string> options{};
  std::string target = "cpu";
  std::string budget{};  // "1GiB"; empty: no limit
  bool gradient = false;
  bool exact = false;
  bool unfused = false;
};

int list_ops();
int describe_op(const std::string& name);
int explain(const Asked& asked, bool json);
int emit(const Asked& asked, const std::string& what, const std::string& kernel, bool json);
int check(const Asked& asked, std::int64_t seed, const std::string& device = "cpu");
int bench(const Asked& asked, int runs, int threads);
// No ops: those that the quality bar names, and their gradients.
int bench_emulated(const Asked& asked, const std::vector<std::string>& ops, bool json);
int cache_list();
int cache_verify();
int cache_clear();
int doctor();

}  // namespace tigon::tools
