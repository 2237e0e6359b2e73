// Searches for LLVM, initialises it once per library file and installs the throwing fatal-error handler.
#include "runtime/llvm/session.hpp"

#include "runtime/cpu_features.hpp"

namespace tigon::runtime {
namespace {

thread_local LlvmSession* current_session = nullptr;

// LLVM gives its handler no user data, so the calling thread says which session is at work. Without one the library is
// being used by code that is not ours: returning leaves that code its default, which is to exit.
void on_fatal_error(const char* reason) {
  if (current_session == nullptr) return;
  current_session->set_fatal_reason(reason != nullptr ? reason : "no reason given");
  throw LlvmFatalError{};
}

std::string version_of(const Library& library, const llvm_c::Api& api) {
  if (api.get_version != nullptr) {
    unsigned major = 0, minor = 0, patch = 0;
    api.get_version(&major, &minor, &patch);
    return fmt::format("{}.{}.{}", major, minor, patch);
  }
  const std::vector<int> numbers = version_in_name(library.path());
  return numbers.empty() ? std::string("older than 16") : std::to_string(numbers.front());
}

std::string judge(const Library& library, LibrarySearch& search) {
  llvm_c::Api api;
  const std::string missing = api.bind(library);
  if (api.context_create == nullptr) {
    search.missing_symbol = missing;
    return "is no LLVM library with the C API: it lacks " + missing;
  }
  search.version = version_of(library, api);
  if (!missing.empty()) {
    search.missing_symbol = missing;
    return fmt::format("LLVM {} lacks {}; LLVM {} or newer is needed", search.version, missing, minimum_llvm_version);
  }
#if defined(__x86_64__)
  if (api.x86_printer == nullptr || api.x86_target == nullptr) return "was built without the X86 target";
#elif defined(__aarch64__)
  if (api.aarch64_printer == nullptr || api.aarch64_target == nullptr) return "was built without the AArch64 target";
#endif
  return {};
}

LibraryRequest llvm_request(const std::string& choice) {
  LibraryRequest request{.name = "LLVM", .environment = "TIGON_LLVM", .choice = choice};
  for (int version = 30; version >= minimum_llvm_version; --version) {
    request.sonames.push_back(version >= 18 ? fmt::format("libLLVM.so.{}.1", version)
                                            : fmt::format("libLLVM-{}.so.1", version));
  }
  request.sonames.push_back("libLLVM.so");
  request.folders = usual_folders();
  request.folders.insert(request.folders.end(), {"/usr/lib/llvm-*/lib", "/usr/lib/llvm*/lib64", "/usr/lib/llvm/*/lib64",
                                                 "/usr/lib64/llvm*/lib", "/opt/llvm*/lib"});
  request.files = {"libLLVM.so*", "libLLVM-*.so*"};
  request.newest_first = true;
  request.cure = fmt::format(
      "Install LLVM {} or newer (Debian: apt-get install libllvm19), or set TIGON_LLVM to a libLLVM file, a folder or "
      "a version",
      minimum_llvm_version);
  request.accept = judge;
  return request;
}

void call_all(std::initializer_list<void (*)()> functions) {
  for (auto function : functions) {
    if (function != nullptr) function();
  }
}

}  // namespace

void LlvmSession::set_fatal_reason(std::string reason) {
  std::lock_guard lock(mutex_);
  if (!unusable.exchange(true)) fatal_reason_ = std::move(reason);
}

std::string LlvmSession::fatal_reason() const {
  std::lock_guard lock(mutex_);
  return fatal_reason_;
}

void LlvmSession::require_usable() const {
  if (!unusable.load()) return;
  throw Error(
      {.kind = ErrorKind::compile,
       .cure = "Restart the process; please report the kernel that caused it. TIGON_LLVM can choose another version",
       .log = "the fatal error: " + fatal_reason()},
      fmt::format("LLVM {} met a fatal error earlier and is not used again in this process", version));
}

std::string LlvmSession::take(char* message) const {
  if (message == nullptr) return {};
  std::string text = message;
  api.dispose_message(message);
  return text;
}

std::string LlvmSession::take(llvm_c::Failure* failure) const {
  if (failure == nullptr) return {};
  char* message = api.failure_message(failure);  // consumes the failure
  std::string text = message;
  api.failure_dispose_message(message);
  return text;
}

LlvmCall::LlvmCall(LlvmSession& session) : previous_(current_session) { current_session = &session; }
LlvmCall::~LlvmCall() { current_session = previous_; }

LibrarySearch search_llvm(const std::string& choice) {
  LibrarySearch search;
  find_library(llvm_request(choice), search);
  return search;
}

std::shared_ptr<LlvmSession> open_llvm(const std::string& choice) {
  require_cpu_floor();
  static std::mutex mutex;
  // Never destroyed: kernels may still run while static objects are.
  static auto& sessions = *new std::map<std::string, std::shared_ptr<LlvmSession>>;
  std::lock_guard lock(mutex);

  LibrarySearch search;
  Library library = find_library(llvm_request(choice), search);
  if (!library) throw search.error();
  std::shared_ptr<LlvmSession>& slot = sessions[library.path()];
  if (slot) return slot;

  auto session = std::make_shared<LlvmSession>();
  session->library = library;
  session->api.bind(library);
  session->version = search.version;
  session->build_id = library.build_id();
  const llvm_c::Api& api = session->api;
  api.install_fatal_handler(on_fatal_error);
  call_all({api.x86_target_info, api.x86_target, api.x86_target_mc, api.x86_printer});
  call_all({api.aarch64_target_info, api.aarch64_target, api.aarch64_target_mc, api.aarch64_printer});
  slot = std::move(session);
  return slot;
}

}  // namespace tigon::runtime
