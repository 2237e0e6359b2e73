// What the cache's tests share: a scratch folder, captured warnings, forked children and their common log.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/cache/cache.hpp"

namespace cache_test {

using tigon::runtime::CacheEntry;
using tigon::runtime::CacheKey;
using tigon::runtime::CacheOptions;
using tigon::runtime::KernelCache;

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Collects warnings while it lives.
class Warnings {
 public:
  Warnings();
  ~Warnings();
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  [[nodiscard]] std::vector<std::string> all() const;
};

// Entry and key number `i`: every byte follows from the number, so a mixed-up entry shows.
CacheKey key_number(int i);
CacheEntry entry_number(int i);

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);
std::vector<std::string> names_in(const std::string& folder);
// Names in the folder that end so, e.g. ".part".
std::vector<std::string> names_ending(const std::string& folder, const std::string& ending);

// Appends one line with one write, so that lines of several processes stay whole.
void append_line(const std::string& path, const std::string& line);
std::vector<std::string> lines_of(const std::string& path);

// Polls until `condition` holds; throws after 30 s, so that a fault fails the test rather than hangs it.
void wait_until(const std::function<bool()>& condition);

// Runs `body` in a forked child, whose exit status is what it returns (99 for an exception). SIGALRM ends it after 60
// s.
pid_t start_child(const std::function<int()>& body);
int wait_child(pid_t child);  // exit status, or 1000 + signal
int run_child(const std::function<int()>& body);

}  // namespace cache_test
