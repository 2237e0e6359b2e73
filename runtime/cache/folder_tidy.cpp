// Keeps the cache's folder small: evicts by last use, removes what killed processes left, lists and clears.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <thread>

#include "runtime/cache/folder.hpp"
#include "runtime/cache/folder_names.hpp"

namespace tigon::runtime {
namespace {

constexpr std::uint64_t log_limit = 1 << 20;      // bytes, some 20,000 compiles; then the log begins anew
constexpr std::int64_t abandoned_seconds = 3600;  // age of a leftover where the file system takes no locks
constexpr std::chrono::seconds longest_turn(1);   // that another process' tidying is waited for

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// Removes a part or lock file whose owner is dead, which shows by its lock being free.
void remove_leftover(const File& folder, const std::string& name) {
  const File file(::openat(folder.descriptor(), name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return;
  const LockResult lock = try_lock(file, true);
  if (lock == LockResult::busy || !names_file(folder, name, file)) return;
  if (lock == LockResult::unsupported) {
    struct stat status{};
    if (::fstat(file.descriptor(), &status) != 0) return;
    if (std::int64_t{::time(nullptr)} - std::int64_t{status.st_mtim.tv_sec} < abandoned_seconds) return;
  }
  ::unlinkat(folder.descriptor(), name.c_str(), 0);
}

struct Resident {
  std::string name;
  std::uint64_t bytes;
  std::int64_t last_used;  // nanoseconds since 1970
};

}  // namespace

bool CacheFolder::evict(const File& folder, const std::string& name, std::int64_t last_used) {
  const File file(::openat(folder.descriptor(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file || try_lock(file, true) == LockResult::busy) return false;
  struct stat status{};
  if (::fstat(file.descriptor(), &status) != 0 || nanoseconds(status.st_mtim) != last_used) return false;
  if (!names_file(folder, name, file)) return false;
  if (::unlinkat(folder.descriptor(), name.c_str(), 0) != 0) return false;
  ++evicted_;
  return true;
}

bool CacheFolder::tidy(const File& folder, const std::string& kept) {
  // One process at a time, by a lock on the folder itself, through a descriptor of this call's own. Waiting a little
  // matters: whoever is at it may have listed the folder before `kept` was there, and nobody would look again.
  const File turn(::openat(folder.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!turn) return false;
  const auto deadline = std::chrono::steady_clock::now() + longest_turn;
  while (try_lock(turn, true) == LockResult::busy) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::vector<std::string> names;
  if (list_folder(folder, names) != 0) return false;

  std::vector<Resident> residents;
  std::uint64_t total = 0;
  for (const std::string& name : names) {
    if (is_part_name(name) || is_lock_name(name)) remove_leftover(folder, name);
    struct stat status{};
    if (::fstatat(folder.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    if (name == log_name && bytes > log_limit) ::unlinkat(folder.descriptor(), log_name, 0);
    if (!key_of_entry(name) || !S_ISREG(status.st_mode)) continue;
    total += bytes;
    if (name != kept) residents.push_back({name, bytes, nanoseconds(status.st_mtim)});
  }
  if (total > byte_limit_) {
    // A tenth below the limit, so that a full cache is not scanned at every publication.
    const std::uint64_t target = byte_limit_ - byte_limit_ / 10;
    std::sort(residents.begin(), residents.end(), [](const Resident& a, const Resident& b) {
      return a.last_used != b.last_used ? a.last_used < b.last_used : a.name < b.name;
    });
    for (const Resident& oldest : residents) {
      if (total <= target) break;
      if (evict(folder, oldest.name, oldest.last_used)) total -= oldest.bytes;
    }
  }
  known_bytes_ = total;
  return true;
}

std::vector<CacheListing> CacheFolder::list(bool titles) {
  std::vector<CacheListing> listings;
  const File folder = open_folder(false);
  std::vector<std::string> names;
  if (!folder || list_folder(folder, names) != 0) return listings;
  for (const std::string& name : names) {
    const auto key = key_of_entry(name);
    struct stat status{};
    if (!key || ::fstatat(folder.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    CacheListing listing{*key, static_cast<std::uint64_t>(status.st_size), std::int64_t{status.st_mtim.tv_sec}, {}};
    if (titles) {
      const File file(::openat(folder.descriptor(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
      std::string start;
      if (file && read_file(file, 4096, start) == 0) listing.title = entry_title(start);
    }
    listings.push_back(std::move(listing));
  }
  return listings;
}

CacheVerification CacheFolder::verify() {
  CacheVerification verification;
  const File folder = open_folder(false);
  std::vector<std::string> names;
  if (!folder || list_folder(folder, names) != 0) return verification;
  for (const std::string& name : names) {
    const auto key = key_of_entry(name);
    if (!key) continue;
    std::string fault;
    const Found found = read_entry(folder, name, *key, false, fault);
    if (found.state == State::sound) ++verification.sound;
    if (!fault.empty()) verification.faults.push_back({name, std::move(fault)});
  }
  return verification;
}

std::size_t CacheFolder::clear() {
  const File folder = open_folder(false);
  std::vector<std::string> names;
  if (!folder || list_folder(folder, names) != 0) return 0;
  std::size_t removed = 0;
  for (const std::string& name : names) {
    if (is_part_name(name) || is_lock_name(name)) remove_leftover(folder, name);
    if (name == log_name) ::unlinkat(folder.descriptor(), log_name, 0);
    if (key_of_entry(name) && ::unlinkat(folder.descriptor(), name.c_str(), 0) == 0) ++removed;
  }
  sync_file(folder);
  known_bytes_ = 0;
  return removed;
}

std::vector<CacheKey> CacheFolder::compile_log() {
  std::vector<CacheKey> keys;
  const File folder = open_folder(false);
  if (!folder) return keys;
  const File log(::openat(folder.descriptor(), log_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status{};
  std::string content;
  if (!log || ::fstat(log.descriptor(), &status) != 0) return keys;
  if (read_file(log, static_cast<std::uint64_t>(status.st_size), content) != 0) return keys;
  const std::string_view lines = content;
  for (std::size_t start = 0; start < lines.size();) {
    const std::size_t end = lines.find('\n', start);
    if (end == std::string_view::npos) break;  // cut short by a full disk
    if (const auto key = parse_key(lines.substr(start, std::min<std::size_t>(32, end - start)))) keys.push_back(*key);
    start = end + 1;
  }
  return keys;
}

}  // namespace tigon::runtime
