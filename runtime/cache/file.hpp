// Small POSIX helpers of the kernel cache: an owned descriptor, whole reads and writes, advisory locks, folders.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tigon::runtime {

class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }

  [[nodiscard]] int descriptor() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  int close();  // 0 or the error's number; some file systems report a full disk only here

 private:
  int descriptor_ = -1;
};

// Each returns 0 or the error's number.
int read_file(const File& file, std::uint64_t size, std::string& content);  // stops early at the file's end
int write_file(const File& file, std::string_view content);
int sync_file(const File& file);            // also folders; what cannot be synced is no error
int make_folders(const std::string& path);  // mode 0700 for each one made

std::string error_text(int error);

enum class LockResult { held, busy, unsupported };
LockResult try_lock(const File& file, bool exclusive);

// Whether the folder's name still leads to this open file.
bool names_file(const File& folder, const std::string& name, const File& file);

// Names in the folder, sorted.
int list_folder(const File& folder, std::vector<std::string>& names);

// An exclusive lock held through a file in the folder. The kernel drops it when its holder dies; the holder removes the
// file before it lets go, and whoever locks a removed file notices and takes the new one.
class KeyLock {
 public:
  // Empty when `timeout` passed (timed_out is set) or the folder takes no locks.
  static std::optional<KeyLock> acquire(const File& folder, const std::string& name, std::chrono::milliseconds timeout,
                                        bool& timed_out);
  KeyLock(KeyLock&&) = default;
  KeyLock& operator=(KeyLock&& other) noexcept {
    std::swap(folder_, other.folder_);
    std::swap(name_, other.name_);
    std::swap(file_, other.file_);
    return *this;
  }
  ~KeyLock();

 private:
  KeyLock(File folder, std::string name, File file)
      : folder_(std::move(folder)), name_(std::move(name)), file_(std::move(file)) {}
  File folder_;
  std::string name_;
  File file_;
};

}  // namespace tigon::runtime
