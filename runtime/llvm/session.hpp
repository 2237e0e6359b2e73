// One loaded LLVM library with its function table, and the guard under which each call into it is made.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/llvm/api.hpp"

namespace tigon::runtime {

inline constexpr int minimum_llvm_version = 15;

struct LlvmSession {
  Library library;
  llvm_c::Api api;
  std::string version;  // "19.1.7"; "15" where the library cannot tell more
  std::string build_id;
  std::atomic<bool> unusable{
      false};  // set for good once LLVM's fatal-error handler fired: its locks and state are in doubt

  void set_fatal_reason(std::string reason);
  [[nodiscard]] std::string fatal_reason() const;
  // Throws Error when the library is unusable.
  void require_usable() const;

  // Takes over a message that LLVM allocated.
  [[nodiscard]] std::string take(char* message) const;
  [[nodiscard]] std::string take(llvm_c::Failure* failure) const;

 private:
  mutable std::mutex mutex_;
  std::string fatal_reason_;
};

// Finds, opens and initialises an LLVM; one session per library file, kept for the life of the process.
// `choice` is a path, a folder or a version; empty means $TIGON_LLVM, else the newest. Throws Error with the search.
std::shared_ptr<LlvmSession> open_llvm(const std::string& choice);
// The search alone, for `tigon doctor`. Opens the library but does not initialise it.
LibrarySearch search_llvm(const std::string& choice);

// Thrown by the fatal-error handler through LLVM's frames; callers turn it into Error.
struct LlvmFatalError {};

// While one of these lives, a fatal error of this session's LLVM on this thread throws LlvmFatalError.
class LlvmCall {
 public:
  explicit LlvmCall(LlvmSession& session);
  ~LlvmCall();
  LlvmCall(const LlvmCall&) = delete;
  LlvmCall& operator=(const LlvmCall&) = delete;

 private:
  LlvmSession* previous_;
};

// Owns an LLVM object. After a fatal error the object leaks: freeing it would walk state that LLVM left half-changed.
template <typename T>
class LlvmOwned {
 public:
  LlvmOwned(const LlvmSession& session, void (*dispose)(T*), T* object = nullptr)
      : session_(&session), dispose_(dispose), object_(object) {}
  ~LlvmOwned() {
    if (object_ != nullptr && !session_->unusable.load()) dispose_(object_);
  }
  LlvmOwned(const LlvmOwned&) = delete;
  LlvmOwned& operator=(const LlvmOwned&) = delete;

  T* get() const { return object_; }
  T** out() { return &object_; }
  T* release() { return std::exchange(object_, nullptr); }

 private:
  const LlvmSession* session_;
  void (*dispose_)(T*);
  T* object_;
};

}  // namespace tigon::runtime
