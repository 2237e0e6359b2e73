// Several processes on one folder: each kernel is compiled once, and a dead or stopped process holds nobody up.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include "support.hpp"

using namespace tigon::runtime;
using namespace cache_test;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A gate that children wait at until all are there.
class Gate {
 public:
  Gate() { REQUIRE(::pipe(ends_) == 0); }
  void wait() const {
    ::close(ends_[1]);
    char byte = 0;
    while (::read(ends_[0], &byte, 1) < 0) {
    }
  }
  void open() const {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

 private:
  int ends_[2] = {-1, -1};
};

// Starts a child that begins to compile key 1 and never ends; returns once it holds the lock.
pid_t start_stuck_child(const std::string& folder, const std::string& log) {
  const pid_t child = start_child([&] {
    KernelCache cache({.folder = folder});
    cache.get(key_number(1), [&]() -> CacheEntry {
      append_line(log, "begun");
      while (true) ::pause();
    });
    return 1;
  });
  wait_until([&] { return !lines_of(log).empty(); });
  return child;
}

}  // namespace

TEST_CASE("processes that start at once compile each kernel once", "[cache][process]") {
  const int processes = GENERATE(2, 8);
  constexpr int keys = 12;
  ScratchFolder scratch;
  const std::string folder = scratch / "cache";
  const std::string log = scratch / "log";
  const std::string counts = scratch / "counts";
  const Gate gate;
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    children.push_back(start_child([&, p] {
      gate.wait();
      KernelCache cache({.folder = folder});
      for (int step = 0; step < keys; ++step) {
        // Half of them in the same order, for the most contention, half from different places.
        const int i = p % 2 == 0 ? step : (step + p) % keys;
        const auto entry = cache.get(key_number(i), [&] {
          append_line(log, key_number(i).hex());
          std::this_thread::sleep_for(std::chrono::milliseconds(4));
          return entry_number(i);
        });
        if (*entry != entry_number(i)) return 1;
      }
      const CacheCounters counters = cache.counters();
      append_line(counts, std::to_string(counters.compiled));
      return counters.compiled + counters.from_disk == keys && counters.rejected == 0 ? 0 : 2;
    }));
  }
  gate.open();
  for (const pid_t child : children) CHECK(wait_child(child) == 0);

  std::map<std::string, int> by_log, by_counter;
  for (const std::string& line : lines_of(log)) ++by_log[line];
  KernelCache cache({.folder = folder});
  for (const CacheKey& key : cache.compile_log()) ++by_counter[key.hex()];
  CHECK(by_log.size() == keys);
  for (const auto& [key, count] : by_log) CHECK(count == 1);
  CHECK(by_log == by_counter);
  int total = 0;
  for (const std::string& line : lines_of(counts)) total += std::stoi(line);
  CHECK(total == keys);
  CHECK(cache.verify().sound == keys);
  CHECK(cache.verify().faults.empty());
  CHECK(names_ending(folder, ".lock").empty());
  CHECK(names_ending(folder, ".part").empty());
}

TEST_CASE("processes with several threads each compile each kernel once", "[cache][process]") {
  constexpr int keys = 6;
  ScratchFolder scratch;
  const std::string folder = scratch / "cache";
  const std::string log = scratch / "log";
  std::vector<pid_t> children;
  for (int p = 0; p < 3; ++p) {
    children.push_back(start_child([&] {
      KernelCache cache({.folder = folder});
      std::atomic<int> wrong = 0;
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          for (int step = 0; step < keys; ++step) {
            const int i = (step + t) % keys;
            const auto entry = cache.get(key_number(i), [&] {
              append_line(log, std::to_string(i));
              std::this_thread::sleep_for(std::chrono::milliseconds(3));
              return entry_number(i);
            });
            if (*entry != entry_number(i)) ++wrong;
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      return wrong == 0 ? 0 : 1;
    }));
  }
  for (const pid_t child : children) CHECK(wait_child(child) == 0);
  CHECK(lines_of(log).size() == keys);
  CHECK(KernelCache({.folder = folder}).compile_log().size() == keys);
}

TEST_CASE("a dead lock holder blocks nobody", "[cache][process]") {
  ScratchFolder scratch;
  const std::string folder = scratch / "cache";
  const pid_t child = start_stuck_child(folder, scratch / "log");
  CHECK(names_ending(folder, ".lock").size() == 1);
  ::kill(child, SIGKILL);
  CHECK(wait_child(child) == 1000 + SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  KernelCache cache({.folder = folder, .lock_timeout = std::chrono::seconds(60)});
  const auto entry = cache.get(key_number(1), [] { return entry_number(1); });
  CHECK(*entry == entry_number(1));
  CHECK(seconds_since(start) < 10);
  CHECK(cache.counters().compiled == 1);
  CHECK(names_ending(folder, ".lock").empty());
}

TEST_CASE("whoever waited for a lock file that its holder removed locks the new one", "[cache][process]") {
  ScratchFolder scratch;
  const File folder(::open(scratch.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto acquire = [&](std::chrono::milliseconds timeout) {
    bool timed_out = false;
    auto lock = KeyLock::acquire(folder, "a.lock", timeout, timed_out);
    return std::pair{std::move(lock), timed_out};
  };
  auto first = acquire(std::chrono::milliseconds(0));
  REQUIRE(first.first);
  std::pair<std::optional<KeyLock>, bool> second;
  std::thread waiting([&] { second = acquire(std::chrono::seconds(20)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it has opened the first one's file by now
  first.first.reset();
  waiting.join();
  REQUIRE(second.first);
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"a.lock"});
  const auto third = acquire(std::chrono::milliseconds(20));
  CHECK_FALSE(third.first);
  CHECK(third.second);
  second.first.reset();
  CHECK(names_in(scratch.path()).empty());
  CHECK(acquire(std::chrono::milliseconds(0)).first);
}

TEST_CASE("a holder that dies while others wait lets one of them in at once", "[cache][process]") {
  ScratchFolder scratch;
  const std::string folder = scratch / "cache";
  const pid_t stuck = start_stuck_child(folder, scratch / "log");
  std::vector<pid_t> waiting;
  for (int p = 0; p < 4; ++p) {
    waiting.push_back(start_child([&] {
      KernelCache cache({.folder = folder});
      append_line(scratch / "log", "asks");
      const auto entry = cache.get(key_number(1), [&] {
        append_line(scratch / "compiles", "one");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return entry_number(1);
      });
      return *entry == entry_number(1) ? 0 : 1;
    }));
  }
  wait_until([&] { return lines_of(scratch / "log").size() >= 5; });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(lines_of(scratch / "compiles").empty());
  ::kill(stuck, SIGKILL);
  wait_child(stuck);
  for (const pid_t child : waiting) CHECK(wait_child(child) == 0);
  CHECK(lines_of(scratch / "compiles").size() == 1);
}

TEST_CASE("a stopped lock holder holds others up no longer than the timeout", "[cache][process]") {
  ScratchFolder scratch;
  const Warnings warnings;
  const std::string folder = scratch / "cache";
  const pid_t child = start_stuck_child(folder, scratch / "log");
  ::kill(child, SIGSTOP);
  const auto start = std::chrono::steady_clock::now();
  KernelCache cache({.folder = folder, .lock_timeout = std::chrono::milliseconds(150)});
  const auto entry = cache.get(key_number(1), [] { return entry_number(1); });
  CHECK(seconds_since(start) >= 0.15);
  CHECK(seconds_since(start) < 10);
  CHECK(*entry == entry_number(1));
  REQUIRE(warnings.all().size() == 1);
  CHECK(warnings.all()[0].find("more than 150 ms") != std::string::npos);
  CHECK(cache.verify().sound == 1);
  // Its lock file stays, for its owner lives; other keys and later calls are not concerned.
  CHECK(names_ending(folder, ".lock").size() == 1);
  KernelCache later({.folder = folder});
  later.get(key_number(1), [] { return CacheEntry{}; });
  CHECK(later.counters().from_disk == 1);
  ::kill(child, SIGKILL);
  wait_child(child);
}

TEST_CASE("an entry that is already published is not replaced by a slow process", "[cache][process]") {
  ScratchFolder scratch;
  const Warnings warnings;
  const std::string folder = scratch / "cache";
  const std::string file = folder + "/" + key_number(1).hex() + ".tigon";
  const pid_t slow = start_child([&] {
    KernelCache cache({.folder = folder});
    cache.get(key_number(1), [&] {
      append_line(scratch / "log", "begun");
      wait_until([&] { return lines_of(scratch / "log").size() >= 2; });
      return entry_number(2);
    });
    return 0;
  });
  wait_until([&] { return !lines_of(scratch / "log").empty(); });
  KernelCache cache({.folder = folder, .lock_timeout = std::chrono::milliseconds(10)});
  cache.get(key_number(1), [] { return entry_number(1); });
  const std::string first = read_text(file);
  append_line(scratch / "log", "published");
  CHECK(wait_child(slow) == 0);
  CHECK(read_text(file) == first);
  CHECK(names_ending(folder, ".part").empty());
  CHECK(names_ending(folder, ".lock").empty());
}
