// Expands a search list into candidate files, opens them in order and records each attempt.
#include "runtime/library.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <glob.h>
#include <link.h>
#include <sys/stat.h>

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace tigon::runtime {
namespace {

std::string real_path(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result = resolved;
  std::free(resolved);
  return result;
}

bool is_folder(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// Replaces a leading `~` and every `$NAME`. An unset or empty variable makes the whole pattern void.
std::string expand_variables(const std::string& pattern) {
  std::string result;
  for (size_t i = 0; i < pattern.size();) {
    std::string variable;
    size_t end = i + 1;
    if (pattern[i] == '~' && i == 0) {
      variable = "HOME";
    } else if (pattern[i] == '$') {
      while (end < pattern.size() && (std::isalnum(static_cast<unsigned char>(pattern[end])) || pattern[end] == '_'))
        ++end;
      variable = pattern.substr(i + 1, end - i - 1);
    } else {
      result += pattern[i++];
      continue;
    }
    const char* value = std::getenv(variable.c_str());
    if (value == nullptr || *value == '\0') return {};
    result += value;
    i = end;
  }
  return result;
}

// Equal versions keep their order. (std::stable_sort would do, but its buffer is deprecated in C++20.)
void sort_newest_first(std::vector<std::string>& paths) {
  std::vector<std::pair<std::vector<int>, size_t>> keys;
  for (size_t i = 0; i < paths.size(); ++i) keys.emplace_back(version_in_name(paths[i]), paths.size() - i);
  std::sort(keys.rbegin(), keys.rend());
  std::vector<std::string> sorted;
  for (const auto& [version, from_end] : keys) sorted.push_back(std::move(paths[paths.size() - from_end]));
  paths = std::move(sorted);
}

void append_unique(std::vector<std::string>& paths, const std::string& path) {
  if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
}

std::vector<std::string> files_in(const std::string& folder, const LibraryRequest& request) {
  std::vector<std::string> result;
  for (const std::string& pattern : request.files) {
    std::vector<std::string> matches;
    for (const std::string& match : existing_paths(folder + "/" + pattern)) append_unique(matches, real_path(match));
    sort_newest_first(matches);
    for (const std::string& match : matches) append_unique(result, match);
  }
  return result;
}

std::vector<std::string> candidate_files(const LibraryRequest& request, LibrarySearch& search) {
  std::vector<std::string> result;
  for (const std::string& pattern : request.folders) {
    bool any = false;
    for (const std::string& folder : existing_paths(pattern)) {
      for (const std::string& file : files_in(folder, request)) {
        append_unique(result, file);
        any = true;
      }
    }
    const std::string folder = expand_variables(pattern);
    if (any || folder.empty()) continue;  // an empty one names a variable that is not set
    search.attempts.push_back({fmt::format("{}/{{{}}}", folder, fmt::join(request.files, ",")), "no such file"});
  }
  if (request.newest_first) sort_newest_first(result);
  return result;
}

// "19" chooses 19.1; "19.1" does not choose 19.2.
bool version_matches(const std::string& path, const std::string& wanted) {
  std::vector<int> numbers = version_in_name(path);
  std::vector<int> needed;
  for (size_t i = 0; i < wanted.size();) {
    needed.push_back(std::atoi(wanted.c_str() + i));
    size_t dot = wanted.find('.', i);
    if (dot == std::string::npos) break;
    i = dot + 1;
  }
  return needed.size() <= numbers.size() && std::equal(needed.begin(), needed.end(), numbers.begin());
}

Library try_candidate(const std::string& path, int flags, const LibraryRequest& request, LibrarySearch& search) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  if (handle == nullptr) {
    const char* message = ::dlerror();
    if ((flags & RTLD_NOLOAD) != 0) message = "not loaded in this process";
    search.attempts.push_back({path, message != nullptr ? message : "dlopen failed without a message"});
    return {};
  }
  Library library(handle);
  std::string refusal = request.accept ? request.accept(library, search) : std::string{};
  if (!refusal.empty()) {
    search.attempts.push_back({library.path(), std::move(refusal)});
    return {};  // stays open: closing a large C++ library with static state is less safe than keeping it
  }
  search.path = library.path();
  search.missing_symbol.clear();
  search.attempts.push_back({library.path(), "used"});
  return library;
}

}  // namespace

std::string LibrarySearch::describe() const {
  std::string text =
      found() ? fmt::format("{} {} from {}", name, version, path) : fmt::format("{} was not found", name);
  if (!found() && !version.empty()) text += fmt::format("; version met: {}", version);
  if (!found() && !missing_symbol.empty()) text += fmt::format("; missing symbol: {}", missing_symbol);
  for (const Attempt& attempt : attempts) text += fmt::format("\n  {}: {}", attempt.path, attempt.message);
  if (!found() && !cure.empty()) text += "\n  cure: " + cure;
  return text;
}

Error LibrarySearch::error() const {
  ErrorDetails details{.kind = ErrorKind::device, .cure = cure, .log = describe()};
  if (!version.empty()) details.found = fmt::format("{} {}", name, version);
  std::string sentence = fmt::format("no usable {} library was found", name);
  if (!missing_symbol.empty()) sentence += fmt::format(" (a candidate lacks the symbol {})", missing_symbol);
  return Error(std::move(details), sentence);
}

Library::Library(void* handle) : handle_(handle) {
  link_map* map = nullptr;
  if (handle != nullptr && ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map->l_name != nullptr) {
    path_ = real_path(map->l_name);
  }
}

void* Library::symbol(const char* name) const { return handle_ == nullptr ? nullptr : ::dlsym(handle_, name); }

std::string Library::build_id() const {
  struct Visit {
    ElfW(Addr) base;
    std::string id;
  } visit{};
  link_map* map = nullptr;
  if (handle_ == nullptr || ::dlinfo(handle_, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) return {};
  visit.base = map->l_addr;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& state = *static_cast<Visit*>(data);
        if (info->dlpi_addr != state.base) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type != PT_NOTE) continue;
          const char* note = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
          const char* end = note + header.p_memsz;
          while (note + sizeof(ElfW(Nhdr)) <= end) {
            ElfW(Nhdr) head;
            std::memcpy(&head, note, sizeof(head));
            const char* owner = note + sizeof(head);
            const char* bytes = owner + ((head.n_namesz + 3) & ~3u);
            if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(owner, "GNU", 4) == 0) {
              for (unsigned byte = 0; byte < head.n_descsz; ++byte) {
                state.id += fmt::format("{:02x}", static_cast<unsigned char>(bytes[byte]));
              }
              return 1;
            }
            note = bytes + ((head.n_descsz + 3) & ~3u);
          }
        }
        return 1;
      },
      &visit);
  if (!visit.id.empty()) return visit.id;
  struct stat status{};
  return ::stat(path_.c_str(), &status) == 0 ? fmt::format("size{}", status.st_size) : std::string{};
}

std::string bind_symbols(const Library& library, std::span<const SymbolSlot> slots) {
  std::string missing;
  for (const SymbolSlot& slot : slots) {
    *slot.address = library.symbol(slot.name);
    if (*slot.address == nullptr && slot.required && missing.empty()) missing = slot.name;
  }
  return missing;
}

Library find_library(const LibraryRequest& request, LibrarySearch& search) {
  search = LibrarySearch{.name = request.name, .cure = request.cure};
  std::string choice = request.choice;
  if (choice.empty() && !request.environment.empty()) {
    if (const char* value = std::getenv(request.environment.c_str())) choice = value;
  }

  if (choice.find('/') != std::string::npos) {
    const std::vector<std::string> files =
        is_folder(choice) ? files_in(choice, request) : std::vector<std::string>{choice};
    if (files.empty()) search.attempts.push_back({choice, "no such library in this folder"});
    for (const std::string& file : files) {
      if (Library library = try_candidate(file, 0, request, search)) return library;
    }
    return {};
  }

  const auto loaded = [&]() -> Library {
    for (const std::string& soname : request.sonames) {
      if (!choice.empty() && !version_matches(soname, choice)) continue;
      if (Library library = try_candidate(soname, RTLD_NOLOAD, request, search)) return library;
    }
    return {};
  };
  if (request.prefer_loaded) {
    if (Library library = loaded()) return library;
  }
  for (const std::string& file : candidate_files(request, search)) {
    if (!choice.empty() && !version_matches(file, choice)) {
      search.attempts.push_back({file, fmt::format("is not the version asked for, {}", choice)});
      continue;
    }
    if (Library library = try_candidate(file, 0, request, search)) return library;
  }
  for (const std::string& soname : request.sonames) {
    if (!choice.empty() && !version_matches(soname, choice)) continue;
    if (Library library = try_candidate(soname, 0, request, search)) return library;
  }
  return {};
}

std::vector<std::string> usual_folders() {
  std::vector<std::string> folders;
  if (const char* value = std::getenv("LD_LIBRARY_PATH")) {
    for (const char* start = value; *start != '\0';) {
      const char* end = std::strchr(start, ':');
      if (end == nullptr) end = start + std::strlen(start);
      if (end != start) folders.emplace_back(start, end);
      start = *end == ':' ? end + 1 : end;
    }
  }
  for (const char* folder : {"$CONDA_PREFIX/lib", "/usr/local/lib", "/usr/local/lib64",
#if defined(__x86_64__)
                             "/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
                             "/usr/lib/aarch64-linux-gnu",
#endif
                             "/usr/lib64", "/usr/lib"}) {
    folders.emplace_back(folder);
  }
  return folders;
}

std::vector<std::string> python_package_folders(const std::string& inside) {
  std::vector<std::string> folders;
  for (const char* root : {"$VIRTUAL_ENV", "$CONDA_PREFIX", "~/.local", "/usr/local", "/usr"}) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      folders.push_back(fmt::format("{}/lib/python3*/{}/{}", root, packages, inside));
    }
  }
  return folders;
}

std::vector<std::string> existing_paths(const std::string& pattern) {
  std::vector<std::string> paths;
  const std::string expanded = expand_variables(pattern);
  if (expanded.empty()) return paths;
  glob_t found{};
  if (::glob(expanded.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  return paths;
}

std::vector<int> version_in_name(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  size_t start = std::min(name.find('-'), name.find(".so"));
  std::vector<int> numbers;
  for (size_t i = start; i < name.size();) {
    if (!std::isdigit(static_cast<unsigned char>(name[i]))) {
      ++i;
      continue;
    }
    int number = 0;
    for (; i < name.size() && std::isdigit(static_cast<unsigned char>(name[i])); ++i)
      number = number * 10 + (name[i] - '0');
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace tigon::runtime
