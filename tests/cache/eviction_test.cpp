// The byte limit: least recently used goes first, never what is being read.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "runtime/cache/entry.hpp"
#include "support.hpp"

using namespace tigon::runtime;
using namespace cache_test;

namespace {

CacheEntry sized_entry(int i) {
  CacheEntry entry = entry_number(i);
  entry.binary.assign(2000, static_cast<std::byte>(i));
  entry.source.resize(100, ' ');
  entry.options.resize(100, ' ');
  return entry;
}

const std::uint64_t entry_bytes = encode_entry(key_number(0), sized_entry(0)).size();

void use(const std::string& folder, std::uint64_t limit, int i) {
  KernelCache cache({.folder = folder, .byte_limit = limit});
  CHECK(*cache.get(key_number(i), [&] { return sized_entry(i); }) == sized_entry(i));
}

std::set<int> residents(const std::string& folder, int up_to) {
  std::set<CacheKey> keys;
  for (const CacheListing& listing : KernelCache({.folder = folder}).list()) keys.insert(listing.key);
  std::set<int> numbers;
  for (int i = 0; i < up_to; ++i) {
    if (keys.count(key_number(i)) != 0) numbers.insert(i);
  }
  CHECK(numbers.size() == keys.size());
  return numbers;
}

}  // namespace

TEST_CASE("the least recently used entries go first", "[cache][eviction]") {
  ScratchFolder scratch;
  const std::uint64_t limit = 10 * entry_bytes + entry_bytes / 2;
  for (int i = 0; i < 10; ++i) use(scratch.path(), limit, i);
  CHECK(residents(scratch.path(), 20).size() == 10);
  use(scratch.path(), limit, 0);  // from disk: now the youngest
  use(scratch.path(), limit, 2);
  use(scratch.path(), limit, 10);
  // 11 entries are over the limit; evicted down to nine tenths of it, 9.45 entries.
  CHECK(residents(scratch.path(), 20) == std::set<int>{0, 2, 4, 5, 6, 7, 8, 9, 10});
  use(scratch.path(), limit, 11);
  use(scratch.path(), limit, 12);
  CHECK(residents(scratch.path(), 20) == std::set<int>{0, 2, 6, 7, 8, 9, 10, 11, 12});
}

TEST_CASE("one process stays under the limit too and counts what it evicts", "[cache][eviction]") {
  ScratchFolder scratch;
  const std::uint64_t limit = 20 * entry_bytes;
  KernelCache cache({.folder = scratch.path(), .byte_limit = limit});
  for (int i = 0; i < 60; ++i) {
    cache.get(key_number(i), [&] { return sized_entry(i); });
    REQUIRE(cache.bytes() <= limit);
  }
  CHECK(cache.bytes() > limit / 2);
  CHECK(cache.counters().evicted == 60 - cache.list().size());
  CHECK(cache.verify().faults.empty());
  CHECK(residents(scratch.path(), 60).count(59) == 1);
}

TEST_CASE("an entry that is being read is not evicted", "[cache][eviction]") {
  ScratchFolder scratch;
  const std::uint64_t limit = 4 * entry_bytes;
  for (int i = 0; i < 4; ++i) use(scratch.path(), limit, i);
  const std::string oldest = scratch / key_number(0).hex() + ".tigon";
  const int reader = ::open(oldest.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(reader >= 0);
  REQUIRE(::flock(reader, LOCK_SH) == 0);
  use(scratch.path(), limit, 4);
  CHECK(residents(scratch.path(), 10) == std::set<int>{0, 3, 4});
  ::close(reader);
  use(scratch.path(), limit, 5);
  use(scratch.path(), limit, 6);
  CHECK(residents(scratch.path(), 10).count(0) == 0);
}

TEST_CASE("an entry larger than the limit is not kept, and costs no other its place", "[cache][eviction]") {
  ScratchFolder scratch;
  use(scratch.path(), 3 * entry_bytes, 0);
  KernelCache cache({.folder = scratch.path(), .byte_limit = 3 * entry_bytes});
  CacheEntry large = sized_entry(1);
  large.binary.resize(4 * entry_bytes);
  CHECK(*cache.get(key_number(1), [&] { return large; }) == large);
  CHECK(residents(scratch.path(), 10) == std::set<int>{0});
  // One that only just fits stands alone.
  large.binary.resize(3 * entry_bytes - 500);
  cache.get(key_number(2), [&] { return large; });
  CHECK(residents(scratch.path(), 10) == std::set<int>{2});
}

TEST_CASE("eviction under many readers and writers loses and mixes nothing up", "[cache][eviction]") {
  ScratchFolder scratch;
  const std::uint64_t limit = 8 * entry_bytes;
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p) {
    children.push_back(start_child([&, p] {
      const Warnings warnings;
      for (int step = 0; step < 30; ++step) {
        KernelCache cache({.folder = scratch.path(), .byte_limit = limit});
        const int i = (step * (p + 3)) % 17;
        if (*cache.get(key_number(i), [&] { return sized_entry(i); }) != sized_entry(i)) return 1;
        if (cache.counters().rejected != 0) return 2;
      }
      return warnings.all().empty() ? 0 : 3;
    }));
  }
  for (const pid_t child : children) CHECK(wait_child(child) == 0);
  KernelCache cache({.folder = scratch.path(), .byte_limit = limit});
  CHECK(cache.verify().faults.empty());
  CHECK(cache.bytes() <= limit + 4 * entry_bytes);
  CHECK(names_ending(scratch.path(), ".part").empty());
}
