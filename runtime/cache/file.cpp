// POSIX calls of the kernel cache, each retried when a signal interrupts it and closed on exec.
#include "runtime/cache/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

namespace tigon::runtime {

int File::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor < 0 || ::close(descriptor) == 0 || errno == EINTR) return 0;  // after EINTR Linux has closed it
  return errno;
}

int read_file(const File& file, std::uint64_t size, std::string& content) {
  content.resize(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::pread(file.descriptor(), content.data() + done, size - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  content.resize(done);
  return 0;
}

int write_file(const File& file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(file.descriptor(), content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ENOSPC;
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

int sync_file(const File& file) {
  while (::fsync(file.descriptor()) != 0) {
    if (errno == EINTR) continue;
    return errno == EINVAL || errno == ENOSYS || errno == ENOTSUP || errno == EBADF ? 0 : errno;
  }
  return 0;
}

int make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    struct stat status{};
    if (::stat(part.c_str(), &status) != 0) {
      // Another process may make it first; whether it is a folder shows when it is opened.
      if (errno != ENOENT) return errno;
      if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return errno;
    }
    if (end == std::string::npos) return 0;
  }
}

std::string error_text(int error) { return std::generic_category().message(error); }

LockResult try_lock(const File& file, bool exclusive) {
  while (::flock(file.descriptor(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? LockResult::busy : LockResult::unsupported;
  }
  return LockResult::held;
}

bool names_file(const File& folder, const std::string& name, const File& file) {
  struct stat named{}, open{};
  return ::fstatat(folder.descriptor(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(file.descriptor(), &open) == 0 && named.st_ino == open.st_ino && named.st_dev == open.st_dev;
}

int list_folder(const File& folder, std::vector<std::string>& names) {
  names.clear();
  // A second descriptor with its own reading position; closedir closes it.
  const int descriptor = ::openat(folder.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  DIR* stream = ::fdopendir(descriptor);
  if (stream == nullptr) {
    const int error = errno;
    ::close(descriptor);
    return error;
  }
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) {
    names.emplace_back(entry->d_name);
    errno = 0;
  }
  const int error = errno;
  ::closedir(stream);
  std::sort(names.begin(), names.end());
  return error;
}

std::optional<KeyLock> KeyLock::acquire(const File& folder, const std::string& name, std::chrono::milliseconds timeout,
                                        bool& timed_out) {
  timed_out = false;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  auto pause = std::chrono::microseconds(200);
  while (true) {
    // Writable, because network file systems ask that of an exclusive lock.
    File file(::openat(folder.descriptor(), name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return std::nullopt;
    LockResult result = try_lock(file, true);
    while (result == LockResult::busy) {
      if (std::chrono::steady_clock::now() >= deadline) {
        timed_out = true;
        return std::nullopt;
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(10000));
      result = try_lock(file, true);
    }
    if (result == LockResult::unsupported) return std::nullopt;
    if (!names_file(folder, name, file)) continue;
    File own_folder(::openat(folder.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return KeyLock(std::move(own_folder), name, std::move(file));
  }
}

KeyLock::~KeyLock() {
  if (!file_) return;
  if (folder_ && names_file(folder_, name_, file_)) ::unlinkat(folder_.descriptor(), name_.c_str(), 0);
  // Said outright, for a child forked meanwhile shares the lock and would keep it.
  ::flock(file_.descriptor(), LOCK_UN);
}

}  // namespace tigon::runtime
