// The cache's folder: what lies in it, and what happens when its content is not what was published.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/cache/entry.hpp"
#include "support.hpp"

using namespace tigon::runtime;
using namespace cache_test;

namespace {

unsigned mode_of(const std::string& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

// Gets key 1 by a new cache, as a new process would; true where it had to compile.
bool compiles(const std::string& folder, CacheCounters* counters = nullptr) {
  KernelCache cache({.folder = folder});
  const auto entry = cache.get(key_number(1), [] { return entry_number(1); });
  CHECK(*entry == entry_number(1));
  if (counters != nullptr) *counters = cache.counters();
  return cache.counters().compiled == 1;
}

}  // namespace

TEST_CASE("a second process finds the entry on disk", "[cache][disk]") {
  ScratchFolder scratch;
  const Warnings warnings;
  const std::string folder = scratch / "deep/er/cache";
  CHECK(compiles(folder));
  CHECK_FALSE(compiles(folder));
  CHECK(names_in(folder) == std::vector<std::string>{key_number(1).hex() + ".tigon", "compiles.log"});
  CHECK(mode_of(folder) == 0700);
  CHECK(mode_of(scratch / "deep") == 0700);
  CHECK(mode_of(folder + "/" + key_number(1).hex() + ".tigon") == 0600);
  CHECK(mode_of(folder + "/compiles.log") == 0600);
  CHECK(warnings.all().empty());

  KernelCache cache({.folder = folder});
  REQUIRE(cache.list().size() == 1);
  CHECK(cache.list()[0].key == key_number(1));
  CHECK(cache.list()[0].title == "// kernel number 1");
  CHECK(cache.list()[0].bytes == encode_entry(key_number(1), entry_number(1)).size());
  CHECK(cache.bytes() == cache.list()[0].bytes);
  CHECK(cache.compile_log() == std::vector<CacheKey>{key_number(1)});
  cache.get(key_number(1), [] { return CacheEntry{}; });
  CHECK(cache.clear() == 1);
  CHECK(names_in(folder).empty());
  cache.get(key_number(1), [] { return entry_number(1); });
  CHECK(cache.counters().compiled == 1);
}

TEST_CASE("truncated entries are deleted and compiled again", "[cache][disk]") {
  ScratchFolder scratch;
  const std::string file = scratch / key_number(1).hex() + ".tigon";
  REQUIRE(compiles(scratch.path()));
  const std::string whole = read_text(file);
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{63}, std::size_t{64},
        std::size_t{79}, std::size_t{80}, std::size_t{100}, std::size_t{130}, whole.size() / 2, whole.size() - 17,
        whole.size() - 16, whole.size() - 1}) {
    write_text(file, whole.substr(0, length));
    INFO("length " << length);
    KernelCache cache({.folder = scratch.path()});
    REQUIRE(cache.verify().faults.size() == 1);
    CHECK(cache.verify().faults[0].reason.find("truncated") == 0);
    CacheCounters counters;
    CHECK(compiles(scratch.path(), &counters));
    CHECK(counters.rejected == 1);
    CHECK(read_text(file) == whole);
    CHECK_FALSE(compiles(scratch.path()));
  }
}

TEST_CASE("entries with flipped bits are deleted and compiled again", "[cache][disk]") {
  ScratchFolder scratch;
  const std::string file = scratch / key_number(1).hex() + ".tigon";
  REQUIRE(compiles(scratch.path()));
  const std::string whole = read_text(file);
  for (std::size_t position = 0; position < whole.size(); position += 9) {
    std::string flipped = whole;
    flipped[position] = static_cast<char>(flipped[position] ^ (1 << (position % 8)));
    write_text(file, flipped);
    INFO("byte " << position);
    CacheCounters counters;
    CHECK(compiles(scratch.path(), &counters));
    CHECK(counters.rejected == 1);
    CHECK(read_text(file) == whole);
  }
}

TEST_CASE("a foreign key, a future version, junk and surplus bytes are wrong content", "[cache][disk]") {
  ScratchFolder scratch;
  const std::string file = scratch / key_number(1).hex() + ".tigon";
  const std::string whole = encode_entry(key_number(1), entry_number(1));
  std::string future = whole;
  future[8] = 77;
  for (const std::string& wrong :
       {encode_entry(key_number(2), entry_number(2)), future, std::string(5000, 'j'), whole + whole}) {
    write_text(file, wrong);
    CacheCounters counters;
    CHECK(compiles(scratch.path(), &counters));
    CHECK(counters.rejected == 1);
    CHECK(read_text(file) == whole);
  }
  // Wrong content goes even when the compile fails.
  write_text(file, future);
  KernelCache cache({.folder = scratch.path()});
  CHECK_THROWS(cache.get(key_number(1), []() -> CacheEntry { throw std::runtime_error("no"); }));
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("what cannot be read is left alone", "[cache][disk]") {
  ScratchFolder scratch;
  const Warnings warnings;
  const std::string file = scratch / key_number(1).hex() + ".tigon";
  const std::string kind = GENERATE("folder", "pipe", "link");
  if (kind == "folder") REQUIRE(::mkdir(file.c_str(), 0700) == 0);
  if (kind == "pipe") REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  if (kind == "link") REQUIRE(::symlink("/nowhere", file.c_str()) == 0);
  CHECK(compiles(scratch.path()));
  CHECK(compiles(scratch.path()));
  struct stat status{};
  REQUIRE(::lstat(file.c_str(), &status) == 0);
  CHECK(S_ISDIR(status.st_mode) == (kind == "folder"));
  CHECK(S_ISFIFO(status.st_mode) == (kind == "pipe"));
  CHECK(S_ISLNK(status.st_mode) == (kind == "link"));
  REQUIRE(warnings.all().size() == 2);  // one per cache
  CHECK(warnings.all()[0].find("cannot be read") != std::string::npos);
  CHECK(names_ending(scratch.path(), ".part").empty());
}

TEST_CASE("files that are not the cache's are never touched", "[cache][disk]") {
  ScratchFolder scratch;
  const std::vector<std::string> foreign = {"notes.tigon", "x.part", key_number(1).hex() + ".txt", "y.lock"};
  for (const std::string& name : foreign) write_text(scratch / name, "mine");
  compiles(scratch.path());
  KernelCache cache({.folder = scratch.path()});
  CHECK(cache.verify().sound == 1);
  CHECK(cache.verify().faults.empty());
  CHECK(cache.clear() == 1);
  CHECK(names_in(scratch.path()).size() == foreign.size());
}

TEST_CASE("the folder may vanish while the cache is in use", "[cache][disk]") {
  ScratchFolder scratch;
  const Warnings warnings;
  KernelCache cache({.folder = scratch / "cache"});
  cache.get(key_number(1), [] { return entry_number(1); });
  std::filesystem::remove_all(scratch / "cache");
  cache.get(key_number(2), [] { return entry_number(2); });
  cache.get(key_number(3), [&] {
    std::filesystem::remove_all(scratch / "cache");
    return entry_number(3);
  });
  CHECK(cache.verify().sound == 1);
  CHECK(cache.counters().compiled == 3);
  CHECK(warnings.all().empty());
}

namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    if (value != nullptr) {
      ::setenv(name, value, 1);
    } else {
      ::unsetenv(name);
    }
  }
  ~Variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("the environment names the folder, read once", "[cache][disk]") {
  ScratchFolder scratch;
  const Variable home("HOME", (scratch / "home").c_str());
  const Variable no_caches("XDG_CACHE_HOME", nullptr);
  const Variable no_folder("TIGON_CACHE_DIR", nullptr);
  CHECK(KernelCache().folder() == scratch / "home/.cache/tigon");
  {
    const Variable relative("XDG_CACHE_HOME", "not/absolute");
    CHECK(KernelCache().folder() == scratch / "home/.cache/tigon");
  }
  const Variable caches("XDG_CACHE_HOME", (scratch / "xdg").c_str());
  CHECK(KernelCache().folder() == scratch / "xdg/tigon");
  {
    const Variable empty("TIGON_CACHE_DIR", "");
    CHECK(KernelCache().folder() == scratch / "xdg/tigon");
  }
  const Variable folder("TIGON_CACHE_DIR", (scratch / "own").c_str());
  CHECK(KernelCache({.folder = "/elsewhere"}).folder() == "/elsewhere");
  KernelCache cache;
  CHECK(cache.folder() == scratch / "own");
  CHECK(names_in(scratch.path()).empty());  // nothing is made before it is needed
  {
    const Variable changed("TIGON_CACHE_DIR", (scratch / "late").c_str());
    cache.get(key_number(1), [] { return entry_number(1); });
    CHECK(cache.folder() == scratch / "own");
  }
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"own"});
  const Variable relative("TIGON_CACHE_DIR", "some/place");
  CHECK(KernelCache().folder() == std::filesystem::current_path().string() + "/some/place");
  CHECK(KernelCache({.disk = false}).folder().empty());
}

TEST_CASE("without any home the cache lives in memory, with one warning", "[cache][disk]") {
  CHECK(run_child([] {
          // A user that the system does not know, so that neither HOME nor the user table helps.
          if (::geteuid() != 0) return 0;
          if (::setuid(54321) != 0) return 1;
          ::unsetenv("HOME");
          ::unsetenv("XDG_CACHE_HOME");
          ::unsetenv("TIGON_CACHE_DIR");
          const Warnings warnings;
          KernelCache cache;
          const auto entry = cache.get(key_number(1), [] { return entry_number(1); });
          cache.get(key_number(1), [] { return entry_number(1); });
          return cache.folder().empty() && *entry == entry_number(1) && cache.counters().from_memory == 1 &&
                         warnings.all().size() == 1
                     ? 0
                     : 2;
        }) == 0);
}

TEST_CASE("the process has one cache", "[cache][disk]") { CHECK(&kernel_cache() == &kernel_cache()); }
