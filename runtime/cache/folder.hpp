// The cache's folder on disk: one file per kernel, published whole or not at all, shared by processes.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cache/entry.hpp"
#include "runtime/cache/file.hpp"
#include "runtime/cache/key.hpp"

namespace tigon::runtime {

struct CacheListing {
  CacheKey key{};
  std::uint64_t bytes = 0;
  std::int64_t last_used = 0;  // seconds since 1970
  std::string title{};         // the source's first line
};

struct CacheFault {
  std::string file{};
  std::string reason{};
};

struct CacheVerification {
  std::size_t sound = 0;
  std::vector<CacheFault> faults{};
};

// $TIGON_CACHE_DIR, else $XDG_CACHE_HOME/tigon, else ~/.cache/tigon; empty where not even a home is known.
std::string environment_cache_folder();

// Every call opens the folder anew, so it may be removed and made again at any time. No call throws for the disk's
// sake: the first trouble is one warning, and the caller compiles.
class CacheFolder {
 public:
  CacheFolder(std::string path, std::uint64_t byte_limit);

  enum class State {
    absent,
    sound,
    wrong,       // its content is not what was published: to be deleted
    unreadable,  // the disk refused: to be left alone
  };
  struct Found {
    State state = State::absent;
    std::optional<CacheEntry> entry{};
  };
  Found read(const CacheKey& key);  // marks a sound entry as just used

  // Waits until no other process compiles this key; empty after the timeout and where the folder takes no locks.
  std::optional<KeyLock> lock(const CacheKey& key, std::chrono::milliseconds timeout);
  void remove(const CacheKey& key);
  // Without `replace` an entry that another process has published meanwhile stands.
  void publish(const CacheKey& key, const CacheEntry& entry, bool replace);
  void log_compile(const CacheKey& key);

  std::vector<CacheListing> list(bool titles);  // by key
  CacheVerification verify();                   // reads every entry, changes nothing
  std::size_t clear();                          // how many entries were removed; what other processes hold stays
  std::vector<CacheKey> compile_log();          // each compile by any process since the log began

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t evicted() const { return evicted_; }

 private:
  File open_folder(bool create);
  Found read_entry(const File& folder, const std::string& name, const CacheKey& key, bool use, std::string& fault);
  int write_entry(const File& folder, const std::string& name, const std::string& content, bool replace);
  bool tidy(const File& folder, const std::string& kept);  // false where it could not be done now
  bool evict(const File& folder, const std::string& name, std::int64_t last_used);
  void complain(const std::string& sentence);

  std::string path_;
  std::uint64_t byte_limit_;
  std::atomic<std::uint64_t> known_bytes_ = 0;  // at the last tidying, plus what was published since
  std::atomic<std::uint64_t> publications_ = 0;
  std::atomic<std::uint64_t> evicted_ = 0;
  std::atomic<bool> tidy_due_ = false;
  std::atomic<bool> complained_ = false, complained_of_wait_ = false;
};

}  // namespace tigon::runtime
