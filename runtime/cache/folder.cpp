// Reads, locks and publishes the entries of the cache's folder.
#include "runtime/cache/folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "runtime/cache/folder_names.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

// A name that no living or dead writer uses; O_EXCL settles what chance does not.
std::string part_name(const CacheKey& key) {
  static std::atomic<std::uint64_t> counter = 0;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::string seed = fmt::format("{} {} {} {}", ::getpid(), now.tv_sec, now.tv_nsec, ++counter);
  return fmt::format("{}.{:016x}{}", key.hex(), hash_bytes(seed).low, part_suffix);
}

// Both times to the nanosecond: the kernel's own stamp moves in steps of milliseconds, too coarse for an order of use.
void mark_used(const File& file) {
  timespec times[2];
  ::clock_gettime(CLOCK_REALTIME, &times[0]);
  times[1] = times[0];
  ::futimens(file.descriptor(), times);
}

}  // namespace

CacheFolder::CacheFolder(std::string path, std::uint64_t byte_limit)
    : path_(std::move(path)), byte_limit_(byte_limit) {}

void CacheFolder::complain(const std::string& sentence) {
  if (!complained_.exchange(true)) warn(sentence);
}

File CacheFolder::open_folder(bool create) {
  const auto open = [&] { return File(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); };
  File folder = open();
  int error = folder ? 0 : errno;
  if (error == ENOENT && !create) return {};
  if (error == ENOENT) {
    error = make_folders(path_);
    if (error == 0) {
      folder = open();
      error = folder ? 0 : errno;
    }
  }
  struct stat status{};
  const bool known = folder && ::fstat(folder.descriptor(), &status) == 0;
  if (folder && !known) error = errno;
  if (!known) {
    complain(fmt::format("the kernel cache folder {} cannot be used: {}; kernels are compiled in every process", path_,
                         error_text(error)));
    return {};
  }
  // Whoever may write here may put machine code into this process.
  if (status.st_uid != ::geteuid()) {
    complain(
        fmt::format("the kernel cache folder {} belongs to user {}, not to {}, and is not used; set "
                    "TIGON_CACHE_DIR to a folder of your own",
                    path_, status.st_uid, ::geteuid()));
    return {};
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    complain(
        fmt::format("the kernel cache folder {} can be written by other users and is not used; `chmod 700` it", path_));
    return {};
  }
  return folder;
}

CacheFolder::Found CacheFolder::read_entry(const File& folder, const std::string& name, const CacheKey& key, bool use,
                                           std::string& fault) {
  // Not blocking, or a pipe of that name would hold us for ever.
  const File file(::openat(folder.descriptor(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    if (errno == ENOENT) return {};
    fault = error_text(errno);
    return {State::unreadable, {}};
  }
  try_lock(file, false);  // keeps eviction away; without it the open file would still be read whole
  struct stat status{};
  if (::fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) {
    fault = "not a regular file";
    return {State::unreadable, {}};
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > entry_largest_size) {
    fault = fmt::format("too long: {} bytes", size);
    return {State::wrong, {}};
  }
  std::string content;
  if (const int error = read_file(file, size, content); error != 0) {
    fault = error_text(error);
    return {State::unreadable, {}};
  }
  DecodedEntry decoded = decode_entry(key, content);
  if (!decoded.entry) {
    fault = std::move(decoded.fault);
    return {State::wrong, {}};
  }
  if (use) mark_used(file);
  return {State::sound, std::move(decoded.entry)};
}

CacheFolder::Found CacheFolder::read(const CacheKey& key) {
  const File folder = open_folder(false);
  if (!folder) return {};
  std::string fault;
  Found found = read_entry(folder, entry_name(key), key, true, fault);
  if (found.state == State::unreadable) {
    complain(fmt::format("the cached kernel {}/{} cannot be read: {}; it is left as it is and the kernel is compiled",
                         path_, entry_name(key), fault));
  }
  return found;
}

std::optional<KeyLock> CacheFolder::lock(const CacheKey& key, std::chrono::milliseconds timeout) {
  const File folder = open_folder(true);
  if (!folder) return std::nullopt;
  bool timed_out = false;
  auto lock = KeyLock::acquire(folder, key.hex() + std::string(lock_suffix), timeout, timed_out);
  if (timed_out && !complained_of_wait_.exchange(true)) {
    warn(fmt::format("another process has been compiling kernel {} for more than {} ms; it is compiled here as well",
                     key.hex(), timeout.count()));
  }
  return lock;
}

void CacheFolder::remove(const CacheKey& key) {
  const File folder = open_folder(false);
  if (folder) ::unlinkat(folder.descriptor(), entry_name(key).c_str(), 0);
}

int CacheFolder::write_entry(const File& folder, const std::string& name, const std::string& content, bool replace) {
  const CacheKey key = *key_of_entry(name);
  for (int attempt = 0; attempt < 16; ++attempt) {
    const std::string part = part_name(key);
    const int at = folder.descriptor();
    const File file(::openat(at, part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file && errno == EEXIST) continue;
    if (!file) return errno;
    // The lock tells a tidying process that the writer lives; one that came first has taken the file away.
    if (try_lock(file, true) == LockResult::busy || !names_file(folder, part, file)) continue;
    int error = write_file(file, content);
    mark_used(file);
    if (error == 0) error = sync_file(file);
    if (error == 0 && !replace) {
      if (::linkat(at, part.c_str(), at, name.c_str(), 0) != 0) error = errno;
      if (error == EEXIST) error = 0;
      // No hard links on this file system: both contents are sound, so it does not matter whose stands.
      if (error == EPERM || error == ENOTSUP || error == ENOSYS || error == EMLINK) {
        error = 0;
        replace = true;
      }
    }
    if (error == 0 && replace && ::renameat(at, part.c_str(), at, name.c_str()) != 0) error = errno;
    ::unlinkat(at, part.c_str(), 0);
    if (error == 0) sync_file(folder);
    return error;
  }
  return EEXIST;
}

void CacheFolder::publish(const CacheKey& key, const CacheEntry& entry, bool replace) {
  const std::string content = encode_entry(key, entry);
  if (content.size() > std::min(byte_limit_, entry_largest_size)) return;
  const File folder = open_folder(true);
  if (!folder) return;
  const std::string name = entry_name(key);
  if (const int error = write_entry(folder, name, content, replace); error != 0) {
    complain(fmt::format("the kernel cache folder {} cannot be written: {}; kernels are compiled in every process",
                         path_, error_text(error)));
    return;
  }
  // Other processes publish too: a look at the whole folder now and then keeps the estimate honest.
  const std::uint64_t known = known_bytes_ += content.size();
  const bool now_and_then = publications_++ % 64 == 0;
  if (now_and_then || known > byte_limit_ || tidy_due_) tidy_due_ = !tidy(folder, name);
}

void CacheFolder::log_compile(const CacheKey& key) {
  const File folder = open_folder(true);
  if (!folder) return;
  const File log(::openat(folder.descriptor(), log_name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (log) write_file(log, fmt::format("{} {}\n", key.hex(), ::getpid()));
}

}  // namespace tigon::runtime
