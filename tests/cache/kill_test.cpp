// kill -9 at random moments: what was published stays whole, what was in flight is compiled again, nothing else is.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "runtime/cache/entry.hpp"
#include "support.hpp"

using namespace tigon::runtime;
using namespace cache_test;

namespace {

// Large enough that the kill also meets a file that is half written.
CacheEntry large_entry(int i) {
  CacheEntry entry = entry_number(i);
  entry.binary.assign(200'000, static_cast<std::byte>(i));
  return entry;
}

}  // namespace

TEST_CASE("a process killed at a hundred random moments costs at most what it had in flight", "[cache][kill]") {
  constexpr int rounds = 100;
  ScratchFolder scratch;
  const std::string folder = scratch / "cache";
  const std::string log = scratch / "log";  // "begin I": a compile starts; "have I": get has returned
  std::mt19937 random(20240607);
  std::uniform_int_distribution<int> moment(0, 6000);  // microseconds

  std::set<int> have;
  std::set<CacheKey> published;  // by the end of the previous round
  std::map<int, int> begun;
  int next = 0;  // the first key that no process has had
  int killed_in_flight = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t logged = lines_of(log).size();
    const int first = std::max(0, next - 2);  // two from disk, then new ones
    const pid_t child = start_child([&] {
      KernelCache cache({.folder = folder});
      append_line(log, "start");
      for (int i = first;; ++i) {
        const auto entry = cache.get(key_number(i), [&] {
          append_line(log, "begin " + std::to_string(i));
          return large_entry(i);
        });
        if (*entry != large_entry(i)) append_line(log, "wrong " + std::to_string(i));
        append_line(log, "have " + std::to_string(i));
      }
      return 0;
    });
    // Counted from its start, or from the start of its first compile, however slow the machine.
    const std::string sign = round % 2 == 0 ? "start" : "begin";
    const auto begins = [&](const std::string& line) { return line.starts_with(sign); };
    wait_until([&] {
      const std::vector<std::string> lines = lines_of(log);
      return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(logged), lines.end(), begins);
    });
    std::this_thread::sleep_for(std::chrono::microseconds(round % 2 == 0 ? moment(random) : moment(random) / 4));
    ::kill(child, SIGKILL);
    REQUIRE(wait_child(child) == 1000 + SIGKILL);

    const std::vector<std::string> lines = lines_of(log);
    int in_flight = -1;
    for (std::size_t line = logged; line < lines.size(); ++line) {
      const std::string word = lines[line].substr(0, lines[line].find(' '));
      if (word == "start") continue;
      const int i = std::stoi(lines[line].substr(word.size() + 1));
      REQUIRE(word != "wrong");
      if (word == "begin") {
        ++begun[i];
        // Whatever a process once had, or published as it died, is never compiled again.
        CHECK(have.count(i) == 0);
        CHECK(published.count(key_number(i)) == 0);
        in_flight = i;
      } else {
        have.insert(i);
        next = std::max(next, i + 1);
        in_flight = -1;
      }
    }
    if (in_flight >= 0) ++killed_in_flight;
    // All that was had lies there, whole; and nothing that is not whole bears an entry's name.
    KernelCache cache({.folder = folder});
    const CacheVerification verification = cache.verify();
    CHECK(verification.faults.empty());
    CHECK(verification.sound >= have.size());
    CHECK(verification.sound <= have.size() + static_cast<std::size_t>(killed_in_flight));
    for (const CacheListing& listing : cache.list()) published.insert(listing.key);
  }

  KernelCache cache({.folder = folder});
  for (const int i : have) CHECK(*cache.get(key_number(i), [] { return CacheEntry{}; }) == large_entry(i));
  CHECK(cache.counters().compiled == 0);
  CHECK(cache.counters().from_disk == have.size());
  int compiles = 0;
  for (const auto& [i, count] : begun) compiles += count;
  CHECK(compiles <= static_cast<int>(have.size()) + killed_in_flight);
  CHECK(cache.compile_log().size() <= static_cast<std::size_t>(compiles));
  CHECK(cache.compile_log().size() >= have.size());
  INFO(have.size() << " kernels, " << killed_in_flight << " kills in flight");
  CHECK(killed_in_flight >= 20);  // else the moments miss what they are meant to hit

  // The next publication of a new process sweeps away what the dead ones left.
  cache.get(key_number(-1), [] { return entry_number(-1); });
  CHECK(names_ending(folder, ".part").empty());
  CHECK(names_ending(folder, ".lock").empty());
}

TEST_CASE("leftovers of the dead are swept, those of the living are not", "[cache][kill]") {
  ScratchFolder scratch;
  const std::string folder = scratch.path();
  const std::string dead_part = key_number(7).hex() + ".0123456789abcdef.part";
  write_text(scratch / dead_part, "half an ent");
  write_text(scratch / key_number(7).hex() + ".lock", "");
  const pid_t living = start_child([&] {
    KernelCache cache({.folder = folder});
    cache.get(key_number(8), [&]() -> CacheEntry {
      append_line(scratch / "log", "begun");
      while (true) ::pause();
    });
    return 1;
  });
  wait_until([&] { return !lines_of(scratch / "log").empty(); });
  KernelCache cache({.folder = folder});
  cache.get(key_number(1), [] { return entry_number(1); });
  CHECK(names_ending(folder, ".part").empty());
  CHECK(names_ending(folder, ".lock") == std::vector<std::string>{key_number(8).hex() + ".lock"});
  CHECK(cache.clear() == 1);
  CHECK(names_ending(folder, ".lock").size() == 1);
  ::kill(living, SIGKILL);
  wait_child(living);
  CHECK(cache.clear() == 0);
  CHECK(names_in(folder) == std::vector<std::string>{"log"});
}
