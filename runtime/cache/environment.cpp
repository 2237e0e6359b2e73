// Where the environment puts the cache's folder.
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/cache/folder.hpp"

namespace tigon::runtime {
namespace {

// Not read in a process with more rights than its caller, who must not choose what code it loads.
std::string variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value != nullptr ? value : "";
}

std::string home_folder() {
  if (std::string home = variable("HOME"); home.starts_with('/')) return home;
  std::vector<char> buffer(1 << 14);
  passwd record{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &record, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
  const std::string home = found->pw_dir != nullptr ? found->pw_dir : "";
  return home.starts_with('/') ? home : std::string{};
}

}  // namespace

std::string environment_cache_folder() {
  if (std::string folder = variable("TIGON_CACHE_DIR"); !folder.empty()) return folder;
  // The XDG specification says to ignore a relative path here.
  if (std::string caches = variable("XDG_CACHE_HOME"); caches.starts_with('/')) return caches + "/tigon";
  if (std::string home = home_folder(); !home.empty()) return home + "/.cache/tigon";
  return {};
}

}  // namespace tigon::runtime
