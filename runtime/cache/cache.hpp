// The kernel cache: every binary is compiled once, by one thread of one process, and found again by all others.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cache/entry.hpp"
#include "runtime/cache/folder.hpp"
#include "runtime/cache/key.hpp"

namespace tigon::runtime {

struct CacheOptions {
  std::string folder{};  // empty: from the environment, read once when the cache is made
  std::uint64_t byte_limit = std::uint64_t{2} << 30;
  bool disk = true;
  std::chrono::milliseconds lock_timeout{60'000};  // then a kernel that another process compiles is compiled here too
};

struct CacheCounters {
  std::uint64_t compiled = 0;     // compiles that succeeded
  std::uint64_t from_disk = 0;    // found in the folder
  std::uint64_t from_memory = 0;  // found in this process, or compiled meanwhile by another of its threads
  std::uint64_t rejected = 0;     // files whose content was wrong
  std::uint64_t evicted = 0;      // files removed to stay under the byte limit
};

class KernelCache {
 public:
  using Compile = std::function<CacheEntry()>;

  explicit KernelCache(CacheOptions options = {});
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;
  ~KernelCache();

  // Memory, else disk, else `compile`, which runs with no lock of this process held. What it throws reaches every
  // thread that waits for this key; the next call tries again. `compile` may ask for other keys.
  std::shared_ptr<const CacheEntry> get(const CacheKey& key, const Compile& compile);

  // For a binary that would not load: compiles anew in place of `failed`, unless another thread or process has done so.
  // Once per key: a second call for the same key with the rebuilt entry throws.
  std::shared_ptr<const CacheEntry> replace(const CacheKey& key, const std::shared_ptr<const CacheEntry>& failed,
                                            const Compile& compile);

  [[nodiscard]] CacheCounters counters() const;
  [[nodiscard]] std::string folder() const;   // empty without a disk
  [[nodiscard]] std::uint64_t bytes() const;  // of all entries on disk
  [[nodiscard]] std::vector<CacheListing> list() const;
  [[nodiscard]] CacheVerification verify() const;
  [[nodiscard]] std::vector<CacheKey> compile_log() const;  // compiles by every process that shares the folder
  std::size_t clear();  // forgets all entries, in memory and on disk; returns how many files were removed

 private:
  struct Slot;
  using Produce = std::function<std::shared_ptr<const CacheEntry>()>;
  std::shared_ptr<const CacheEntry> wait(const CacheKey& key, const Slot& slot);
  std::shared_ptr<const CacheEntry> fill(const CacheKey& key, const std::shared_ptr<Slot>& slot,
                                         const Produce& produce);
  std::shared_ptr<const CacheEntry> produce(const CacheKey& key, const CacheEntry* failed, const Compile& compile);

  CacheOptions options_;
  std::unique_ptr<CacheFolder> folder_;  // null without a disk
  std::mutex mutex_;                     // guards slots_ only
  std::map<CacheKey, std::shared_ptr<Slot>> slots_;
  std::atomic<std::uint64_t> compiled_ = 0, from_disk_ = 0, from_memory_ = 0, rejected_ = 0;
};

// The process' one cache, never destroyed: a thread may still use it while the process ends.
KernelCache& kernel_cache();

}  // namespace tigon::runtime
