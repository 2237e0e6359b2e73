// Finds a kernel in memory, else on disk, else has it compiled, once per key.
#include "runtime/cache/cache.hpp"

#include <unistd.h>

#include <climits>
#include <exception>
#include <thread>

#include "tigon/error.hpp"

namespace tigon::runtime {

// A future for one key. The result is written before `ready`, and only read after it.
struct KernelCache::Slot {
  std::atomic<bool> ready = false;
  std::shared_ptr<const CacheEntry> entry{};
  std::exception_ptr failure{};
  std::thread::id owner = std::this_thread::get_id();
  pid_t process = ::getpid();
  bool rebuilt = false;  // set once, before the slot is seen by others

  // The process that forked this one was about to fill it; here nobody will.
  [[nodiscard]] bool orphaned() const { return !ready.load(std::memory_order_acquire) && process != ::getpid(); }
};

namespace {

std::string absolute(const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  char here[PATH_MAX];
  return ::getcwd(here, sizeof here) != nullptr ? std::string(here) + "/" + path : std::string{};
}

}  // namespace

KernelCache::KernelCache(CacheOptions options) : options_(std::move(options)) {
  if (!options_.disk) return;
  std::string path = absolute(options_.folder.empty() ? environment_cache_folder() : options_.folder);
  if (path.empty()) {
    warn(
        "no folder for the kernel cache: neither TIGON_CACHE_DIR, XDG_CACHE_HOME nor HOME names one; kernels are "
        "compiled in every process");
    return;
  }
  folder_ = std::make_unique<CacheFolder>(std::move(path), options_.byte_limit);
}

KernelCache::~KernelCache() = default;

std::shared_ptr<const CacheEntry> KernelCache::get(const CacheKey& key, const Compile& compile) {
  std::shared_ptr<Slot> slot;
  bool mine = false;
  {
    const std::lock_guard guard(mutex_);
    std::shared_ptr<Slot>& place = slots_[key];
    if (!place || place->orphaned()) {
      place = std::make_shared<Slot>();
      mine = true;
    }
    slot = place;
  }
  if (!mine) return wait(key, *slot);
  return fill(key, slot, [&] { return produce(key, nullptr, compile); });
}

std::shared_ptr<const CacheEntry> KernelCache::replace(const CacheKey& key,
                                                       const std::shared_ptr<const CacheEntry>& failed,
                                                       const Compile& compile) {
  std::shared_ptr<Slot> slot;
  bool mine = false;
  {
    const std::lock_guard guard(mutex_);
    std::shared_ptr<Slot>& place = slots_[key];
    const bool busy = place && !place->ready.load(std::memory_order_acquire) && !place->orphaned();
    if (!busy && (!place || place->orphaned() || place->entry == failed)) {
      if (place && place->rebuilt) {
        throw Error({.kind = ErrorKind::compile,
                     .function = "KernelCache::replace",
                     .cure = "See whether the compiler and the driver or processor fit each other"},
                    fmt::format("kernel {} was compiled anew once and its binary still does not load", key.hex()));
      }
      place = std::make_shared<Slot>();
      place->rebuilt = true;
      mine = true;
    }
    slot = place;
  }
  if (!mine) return wait(key, *slot);
  return fill(key, slot, [&] { return produce(key, failed.get(), compile); });
}

std::shared_ptr<const CacheEntry> KernelCache::wait(const CacheKey& key, const Slot& slot) {
  if (!slot.ready.load(std::memory_order_acquire) && slot.owner == std::this_thread::get_id()) {
    throw Error({.kind = ErrorKind::internal, .function = "KernelCache::get"},
                fmt::format("the compile of kernel {} asks for the same kernel", key.hex()));
  }
  slot.ready.wait(false, std::memory_order_acquire);
  if (slot.failure) std::rethrow_exception(slot.failure);
  ++from_memory_;
  return slot.entry;
}

std::shared_ptr<const CacheEntry> KernelCache::fill(const CacheKey& key, const std::shared_ptr<Slot>& slot,
                                                    const Produce& produce) {
  const auto finish = [&] {
    slot->ready.store(true, std::memory_order_release);
    slot->ready.notify_all();
  };
  try {
    slot->entry = produce();
  } catch (...) {
    slot->failure = std::current_exception();
    {
      const std::lock_guard guard(mutex_);
      const auto place = slots_.find(key);
      if (place != slots_.end() && place->second == slot) slots_.erase(place);
    }
    finish();
    throw;
  }
  finish();
  return slot->entry;
}

std::shared_ptr<const CacheEntry> KernelCache::produce(const CacheKey& key, const CacheEntry* failed,
                                                       const Compile& compile) {
  using State = CacheFolder::State;
  std::optional<KeyLock> lock;
  CacheFolder::Found found;
  if (folder_) {
    const auto usable = [&] { return found.state == State::sound && (failed == nullptr || *found.entry != *failed); };
    const auto take = [&] {
      ++from_disk_;
      return std::make_shared<const CacheEntry>(std::move(*found.entry));
    };
    found = folder_->read(key);
    if (usable()) return take();
    // Under the lock, or after waiting for it in vain, another process may have published.
    lock = folder_->lock(key, options_.lock_timeout);
    found = folder_->read(key);
    if (usable()) return take();
    if (found.state == State::wrong) {
      ++rejected_;
      // Without the lock another process may just be putting a sound one in its place.
      if (lock) folder_->remove(key);
    }
  }
  auto entry = std::make_shared<const CacheEntry>(compile());
  ++compiled_;
  if (folder_) {
    folder_->log_compile(key);
    const bool replace = found.state == State::wrong || found.state == State::sound;
    if (found.state != State::unreadable) folder_->publish(key, *entry, replace);
  }
  return entry;
}

CacheCounters KernelCache::counters() const {
  return {compiled_, from_disk_, from_memory_, rejected_, folder_ ? folder_->evicted() : 0};
}

std::string KernelCache::folder() const { return folder_ ? folder_->path() : std::string{}; }

std::uint64_t KernelCache::bytes() const {
  std::uint64_t total = 0;
  if (folder_) {
    for (const CacheListing& listing : folder_->list(false)) total += listing.bytes;
  }
  return total;
}

std::vector<CacheListing> KernelCache::list() const {
  return folder_ ? folder_->list(true) : std::vector<CacheListing>{};
}

CacheVerification KernelCache::verify() const { return folder_ ? folder_->verify() : CacheVerification{}; }

std::vector<CacheKey> KernelCache::compile_log() const {
  return folder_ ? folder_->compile_log() : std::vector<CacheKey>{};
}

std::size_t KernelCache::clear() {
  {
    const std::lock_guard guard(mutex_);
    std::erase_if(slots_, [](const auto& slot) { return slot.second->ready.load(std::memory_order_acquire); });
  }
  return folder_ ? folder_->clear() : 0;
}

KernelCache& kernel_cache() {
  static KernelCache& cache = *new KernelCache();
  return cache;
}

}  // namespace tigon::runtime
