// A full disk, a folder that cannot be written and one that belongs to somebody else: one warning, and work goes on.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "support.hpp"

using namespace tigon::runtime;
using namespace cache_test;

namespace {

constexpr uid_t nobody = 65534;

CacheEntry large_entry(int i) {
  CacheEntry entry = entry_number(i);
  entry.binary.resize(40'000);
  return entry;
}

// Asks for five kernels twice and tells in bits what went wrong: 1 a wrong entry, 2 a wrong number of compiles,
// 4 not exactly one warning, 8 a warning without the reason, 16 a part or lock file left, 32 an entry not whole.
// The trouble ends before the folder is looked at when `end_trouble` is given.
int use_in_trouble(const std::string& folder, const std::string& reason, void (*end_trouble)() = nullptr) {
  const Warnings warnings;
  KernelCache cache({.folder = folder});
  int faults = 0;
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (int i = 0; i < 5; ++i) {
      const auto entry = cache.get(key_number(i), [&] { return large_entry(i); });
      if (*entry != large_entry(i)) faults |= 1;
    }
  }
  if (end_trouble != nullptr) end_trouble();
  const CacheCounters counters = cache.counters();
  if (counters.compiled != 5 || counters.from_memory != 5) faults |= 2;
  if (warnings.all().size() != 1) faults |= 4;
  if (warnings.all().empty() || warnings.all()[0].find(reason) == std::string::npos) faults |= 8;
  if (!names_ending(folder, ".part").empty() || !names_ending(folder, ".lock").empty()) faults |= 16;
  if (!cache.verify().faults.empty()) faults |= 32;
  return faults;
}

// Mounts a small file system that only the calling child sees; false where this user may not.
bool mount_private(const std::string& folder, const char* options) {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", folder.c_str(), "tmpfs", 0, options) == 0;
}

constexpr int not_permitted = 77;

bool limit_descriptors(rlim_t count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = count;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace

TEST_CASE("a full disk is one warning, and no half entry stays", "[cache][trouble]") {
  ScratchFolder scratch;
  const int status = run_child([&] {
    // Two of the five entries fit.
    if (!mount_private(scratch.path(), "size=100k,mode=700")) return not_permitted;
    const int faults = use_in_trouble(scratch.path(), "No space left on device");
    if (faults != 0) return faults;
    // What did fit is used.
    KernelCache cache({.folder = scratch.path()});
    const std::size_t whole = cache.verify().sound;
    if (whole == 0 || whole >= 5) return 64;
    cache.get(key_number(0), [] { return CacheEntry{}; });
    return cache.counters().from_disk == 1 ? 0 : 65;
  });
  if (status == not_permitted) WARN("no mount permitted: only the file size limit stands for a full disk");
  CHECK((status == 0 || status == not_permitted));
}

TEST_CASE("a limit on file sizes is met as a full disk is", "[cache][trouble]") {
  ScratchFolder scratch;
  CHECK(run_child([&] {
          ::signal(SIGXFSZ, SIG_IGN);
          const rlimit limit{20'000, 20'000};
          if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 64;
          const int faults = use_in_trouble(scratch / "cache", "File too large");
          if (faults != 0) return faults;
          return KernelCache({.folder = scratch / "cache"}).list().empty() ? 0 : 65;
        }) == 0);
  // The next process, with room, starts from a clean folder.
  KernelCache cache({.folder = scratch / "cache"});
  cache.get(key_number(0), [] { return large_entry(0); });
  CHECK(cache.verify().sound == 1);
}

TEST_CASE("a process out of descriptors compiles and leaves the entries alone", "[cache][trouble]") {
  ScratchFolder scratch;
  KernelCache first({.folder = scratch.path()});
  for (int i = 0; i < 5; ++i) first.get(key_number(i), [&] { return large_entry(i); });
  CHECK(run_child([&] {
          // UBSan looks at a type that it meets for the first time through a pipe, so it meets this one before.
          static_cast<void>(error_text(EMFILE));
          // No number is free below the limit, so every open fails.
          if (!limit_descriptors(3)) return 64;
          return use_in_trouble(scratch.path(), "Too many open files", [] { limit_descriptors(256); });
        }) == 0);
  CHECK(first.verify().sound == 5);
}

TEST_CASE("a read-only folder is one warning, and its entries are used", "[cache][trouble]") {
  ScratchFolder scratch;
  const std::string folder = scratch / "cache";
  REQUIRE(::mkdir(folder.c_str(), 0700) == 0);
  REQUIRE(::chmod(scratch.path().c_str(), 0755) == 0);
  const bool root = ::geteuid() == 0;
  if (root) REQUIRE(::chown(folder.c_str(), nobody, nobody) == 0);
  CHECK(run_child([&] {
          // Modes do not bind root.
          if (root && ::setuid(nobody) != 0) return 64;
          KernelCache writable({.folder = folder});
          writable.get(key_number(9), [] { return entry_number(9); });
          if (::chmod(folder.c_str(), 0500) != 0) return 65;
          const std::size_t names = names_in(folder).size();
          const int faults = use_in_trouble(folder, "Permission denied");
          if (faults != 0) return faults;
          if (names_in(folder).size() != names) return 66;
          KernelCache cache({.folder = folder});
          cache.get(key_number(9), [] { return CacheEntry{}; });
          return cache.counters().from_disk == 1 ? 0 : 67;
        }) == 0);
  ::chmod(folder.c_str(), 0700);
}

TEST_CASE("a read-only file system is one warning", "[cache][trouble]") {
  ScratchFolder scratch;
  const int status = run_child([&] {
    if (!mount_private(scratch.path(), "size=1m,mode=700")) return not_permitted;
    KernelCache writable({.folder = scratch.path()});
    writable.get(key_number(9), [] { return entry_number(9); });
    if (::mount("none", scratch.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, "size=1m,mode=700") != 0) {
      return not_permitted;
    }
    const int faults = use_in_trouble(scratch.path(), "Read-only file system");
    if (faults != 0) return faults;
    KernelCache cache({.folder = scratch.path()});
    cache.get(key_number(9), [] { return CacheEntry{}; });
    return cache.counters().from_disk == 1 ? 0 : 67;
  });
  if (status == not_permitted) WARN("no mount permitted: the read-only file system is not tested");
  CHECK((status == 0 || status == not_permitted));
}

TEST_CASE("a folder that cannot be made is one warning", "[cache][trouble]") {
  ScratchFolder scratch;
  write_text(scratch / "file", "not a folder");
  CHECK(use_in_trouble(scratch / "file/cache", "Not a directory") == 0);
  CHECK(use_in_trouble(scratch / "file", "Not a directory") == 0);
  CHECK(read_text(scratch / "file") == "not a folder");
}

TEST_CASE("a folder of another user's is not used", "[cache][trouble]") {
  ScratchFolder scratch;
  // Entries that would be taken if the owner did not matter.
  KernelCache owner({.folder = scratch.path()});
  for (int i = 0; i < 5; ++i) owner.get(key_number(i), [&] { return large_entry(i); });
  const std::size_t names = names_in(scratch.path()).size();
  if (::geteuid() == 0) {
    REQUIRE(::chown(scratch.path().c_str(), nobody, nobody) == 0);
    CHECK(use_in_trouble(scratch.path(), "belongs to user 65534") == 0);
    CHECK(names_in(scratch.path()).size() == names);
  } else {
    CHECK(use_in_trouble("/", "belongs to user 0") == 0);
  }
}

TEST_CASE("a folder that others may write is not used", "[cache][trouble]") {
  ScratchFolder scratch;
  REQUIRE(::chmod(scratch.path().c_str(), GENERATE(0777, 0770, 01777, 0702)) == 0);
  CHECK(use_in_trouble(scratch.path(), "can be written by other users") == 0);
  CHECK(names_in(scratch.path()).empty());
}
