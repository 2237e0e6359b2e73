// Scratch folders, captured warnings and forked children for the cache's tests.
#include "support.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "tigon/error.hpp"

namespace cache_test {
namespace {

std::mutex warnings_mutex;
std::vector<std::string> warnings;
tigon::WarningSink previous_sink = nullptr;

void collect(const std::string& message) {
  const std::lock_guard guard(warnings_mutex);
  warnings.push_back(message);
}

}  // namespace

ScratchFolder::ScratchFolder() {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base != nullptr ? base : "/tmp") + "/tigon-cache-test-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no scratch folder at " + path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Warnings::Warnings() {
  warnings.clear();
  previous_sink = tigon::set_warning_sink(collect);
}

Warnings::~Warnings() { tigon::set_warning_sink(previous_sink); }

std::vector<std::string> Warnings::all() const {
  const std::lock_guard guard(warnings_mutex);
  return warnings;
}

CacheKey key_number(int i) {
  return tigon::runtime::cache_key({"source " + std::to_string(i), "-O3", "compiler 1.0", "x86-64-v3"});
}

CacheEntry entry_number(int i) {
  CacheEntry entry;
  entry.source = "\n// kernel number " + std::to_string(i) + "\nvoid kernel() {}\n";
  entry.options = "-O3 --number=" + std::to_string(i);
  for (int byte = 0; byte < 200 + i % 7; ++byte) entry.binary.push_back(static_cast<std::byte>(byte * 31 + i));
  entry.sections.push_back({"ptx", std::vector<std::byte>(50, static_cast<std::byte>(i))});
  entry.sections.push_back({"empty", {}});
  return entry;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(text.data(), static_cast<std::streamsize>(text.size()));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> names_ending(const std::string& folder, const std::string& ending) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names, [&](const std::string& name) { return !name.ends_with(ending); });
  return names;
}

void append_line(const std::string& path, const std::string& line) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const std::string text = line + "\n";
  const bool whole = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) ::close(file);
  if (!whole) throw std::runtime_error("cannot append to " + path);
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

void wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("waited 30 s in vain");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

pid_t start_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    ::alarm(60);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& error) {
      const std::string text = std::string("child: ") + error.what() + "\n";
      if (::write(2, text.data(), text.size()) < 0) status = 98;
    }
    ::_exit(status);
  }
  return child;
}

int wait_child(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::runtime_error("waitpid failed");
  }
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

int run_child(const std::function<int()>& body) { return wait_child(start_child(body)); }

}  // namespace cache_test
