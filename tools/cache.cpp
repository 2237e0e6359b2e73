// `tigon cache`: what the kernel cache holds, whether it is sound, and a way to empty it.
#include <fmt/format.h>

#include <ctime>

#include "codegen/plan/print.hpp"
#include "command.hpp"
#include "paint.hpp"
#include "runtime/cache/cache.hpp"
#include "tigon/error.hpp"

namespace tigon::tools {
namespace {

runtime::KernelCache& cache_on_disk() {
  runtime::KernelCache& cache = runtime::kernel_cache();
  if (cache.folder().empty()) {
    throw Error({.kind = ErrorKind::io, .cure = "Set TIGON_CACHE_DIR to a folder that can be written"},
                "the kernel cache has no folder on disk");
  }
  return cache;
}

std::string date_text(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32] = "?";
  if (::localtime_r(&time, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

}  // namespace

int cache_list() {
  const runtime::KernelCache& cache = cache_on_disk();
  const std::vector<runtime::CacheListing> entries = cache.list();
  for (const runtime::CacheListing& entry : entries) {
    out(fmt::format("{}  {:>9}  {}  {}\n", entry.key.hex(), plan::memory_text(static_cast<double>(entry.bytes)),
                    date_text(entry.last_used), entry.title));
  }
  out(fmt::format("{}: {} kernel{}, {}\n", cache.folder(), entries.size(), entries.size() == 1 ? "" : "s",
                  plan::memory_text(static_cast<double>(cache.bytes()))));
  return exit_ok;
}

int cache_verify() {
  const runtime::KernelCache& cache = cache_on_disk();
  const runtime::CacheVerification verification = cache.verify();
  for (const runtime::CacheFault& fault : verification.faults) {
    out(fmt::format("{} {}: {}\n", paint(Colour::red, "damaged"), fault.file, fault.reason));
  }
  out(fmt::format("{}: {} sound, {} damaged\n", cache.folder(), verification.sound, verification.faults.size()));
  if (verification.faults.empty()) return exit_ok;
  out("A damaged kernel is deleted and compiled anew when it is next needed; `tigon cache clear` removes all.\n");
  return exit_failed;
}

int cache_clear() {
  runtime::KernelCache& cache = cache_on_disk();
  const std::size_t removed = cache.clear();
  out(fmt::format("{}: {} kernel{} removed\n", cache.folder(), removed, removed == 1 ? "" : "s"));
  return exit_ok;
}

}  // namespace tigon::tools
