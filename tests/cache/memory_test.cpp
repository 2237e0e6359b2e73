// The cache inside one process: one compile per key, whatever the threads do, and failures that do not stick.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "support.hpp"
#include "tigon/error.hpp"

using namespace tigon::runtime;
using namespace cache_test;

TEST_CASE("eight threads that ask for one key compile once", "[cache][memory]") {
  const bool disk = GENERATE(false, true);
  ScratchFolder scratch;
  KernelCache cache({.folder = scratch / "cache", .disk = disk});
  std::atomic<int> compiles = 0, arrived = 0;
  std::vector<std::shared_ptr<const CacheEntry>> got(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      ++arrived;
      while (arrived < 8) std::this_thread::yield();
      got[static_cast<std::size_t>(t)] = cache.get(key_number(1), [&] {
        ++compiles;
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        return entry_number(1);
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(compiles == 1);
  for (const auto& entry : got) CHECK(entry == got[0]);
  CHECK(*got[0] == entry_number(1));
  CHECK(cache.counters().compiled == 1);
  CHECK(cache.counters().from_memory == 7);
  CHECK(cache.counters().from_disk == 0);
}

TEST_CASE("different keys compile at the same time, with no lock held", "[cache][memory]") {
  KernelCache cache({.disk = false});
  // Each compile waits until the other has begun: only possible if both run at once.
  std::atomic<int> begun = 0;
  const auto compile = [&](int i) {
    return [&begun, i] {
      ++begun;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (begun < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      if (begun < 2) throw std::runtime_error("the other compile was kept out");
      return entry_number(i);
    };
  };
  std::atomic<int> succeeded = 0;
  const auto ask = [&](int i) {
    try {
      succeeded += *cache.get(key_number(i), compile(i)) == entry_number(i) ? 1 : 0;
    } catch (const std::runtime_error&) {
      // The count below shows it; Catch's macros belong to the main thread.
    }
  };
  std::thread other([&] { ask(1); });
  ask(2);
  other.join();
  CHECK(succeeded == 2);
  CHECK(cache.counters().compiled == 2);
}

TEST_CASE("a compile may ask for other keys, but not for its own", "[cache][memory]") {
  ScratchFolder scratch;
  KernelCache cache({.folder = scratch / "cache"});
  const auto entry = cache.get(key_number(1), [&] {
    cache.get(key_number(2), [] { return entry_number(2); });
    return entry_number(1);
  });
  CHECK(*entry == entry_number(1));
  CHECK(cache.counters().compiled == 2);
  CHECK_THROWS_AS(cache.get(key_number(3), [&] { return *cache.get(key_number(3), [] { return entry_number(3); }); }),
                  tigon::Error);
}

TEST_CASE("a failed compile reaches every waiter and is tried again", "[cache][memory]") {
  const bool disk = GENERATE(false, true);
  ScratchFolder scratch;
  KernelCache cache({.folder = scratch / "cache", .disk = disk});
  std::atomic<int> compiles = 0, failures = 0, inside = 0;
  const auto ask = [&] {
    try {
      ++inside;
      cache.get(key_number(1), [&]() -> CacheEntry {
        ++compiles;
        while (inside < 8) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        throw tigon::Error({.kind = tigon::ErrorKind::compile}, "no such register");
      });
    } catch (const tigon::Error& error) {
      if (std::string(error.what()) == "no such register") ++failures;
    }
  };
  // A thread that the system holds up for those 50 ms asks after the failure and rightly compiles again: then once
  // more.
  for (int attempt = 0; attempt < 10 && compiles != 1; ++attempt) {
    compiles = failures = inside = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) threads.emplace_back(ask);
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(failures == 8);
  CHECK(compiles == 1);
  CHECK(cache.counters().compiled == 0);
  CHECK(cache.list().empty());
  CHECK(cache.compile_log().empty());
  CHECK(names_ending(cache.folder(), ".lock").empty());
  const auto entry = cache.get(key_number(1), [] { return entry_number(1); });
  CHECK(*entry == entry_number(1));
  CHECK(cache.counters().compiled == 1);
}

TEST_CASE("a process forked during a compile does not wait for its parent's thread", "[cache][memory]") {
  KernelCache cache({.disk = false});
  std::atomic<bool> begun = false, release = false;
  std::thread compiler([&] {
    cache.get(key_number(1), [&] {
      begun = true;
      while (!release) std::this_thread::yield();
      return entry_number(1);
    });
  });
  while (!begun) std::this_thread::yield();
  const pid_t child = start_child([&] {
    const auto entry = cache.get(key_number(1), [] { return entry_number(1); });
    return *entry == entry_number(1) && cache.counters().compiled == 1 ? 0 : 1;
  });
  CHECK(wait_child(child) == 0);
  release = true;
  compiler.join();
}

TEST_CASE("a binary that will not load is rebuilt once", "[cache][memory]") {
  const bool disk = GENERATE(false, true);
  ScratchFolder scratch;
  KernelCache cache({.folder = scratch / "cache", .disk = disk});
  CacheEntry bad = entry_number(1);
  bad.binary.resize(5);
  const auto failed = cache.get(key_number(1), [&] { return bad; });
  std::atomic<int> compiles = 0;
  std::vector<std::shared_ptr<const CacheEntry>> got(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      got[static_cast<std::size_t>(t)] = cache.replace(key_number(1), failed, [&] {
        ++compiles;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return entry_number(1);
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(compiles == 1);
  for (const auto& entry : got) CHECK(*entry == entry_number(1));
  CHECK(*cache.get(key_number(1), [] { return CacheEntry{}; }) == entry_number(1));
  CHECK_THROWS_WITH(cache.replace(key_number(1), got[0], [] { return entry_number(1); }),
                    Catch::Contains("compiled anew once"));
  if (disk) {
    CHECK(cache.verify().sound == 1);
    // Another process that met the bad binary takes the rebuilt one from disk.
    KernelCache other({.folder = scratch / "cache"});
    CHECK(*other.replace(key_number(1), failed, [] { return CacheEntry{}; }) == entry_number(1));
    CHECK(other.counters().compiled == 0);
    CHECK(other.counters().from_disk == 1);
  }
}
