// Finds a shared library at run time along a written search list, and reports every path that was tried.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tigon/error.hpp"

namespace tigon::runtime {

struct Attempt {
  std::string path;
  std::string message;  // the loader's words, or why the library was refused
};

// How a search went. A value: an Error carries it as text, `tigon doctor` prints it.
struct LibrarySearch {
  std::string name;              // what was looked for, e.g. "LLVM"
  std::string path{};            // the file in use; empty when none was found
  std::string version{};         // of the file in use, or of the last one refused
  std::string missing_symbol{};  // the first symbol a candidate lacked
  std::vector<Attempt> attempts{};
  std::string cure{};

  [[nodiscard]] bool found() const { return !path.empty(); }
  [[nodiscard]] std::string describe() const;  // one line per attempt
  [[nodiscard]] Error error() const;           // for a search that found nothing
};

// An open library. Copies share the handle; it is never closed, since code and threads of it may outlive any owner.
class Library {
 public:
  Library() = default;
  explicit Library(void* handle);

  explicit operator bool() const { return handle_ != nullptr; }
  [[nodiscard]] void* symbol(const char* name) const;  // null when absent
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string build_id()
      const;  // the GNU build id in hex, else the file's size; tells patched builds apart

 private:
  void* handle_ = nullptr;
  std::string path_;
};

// One row of a function table: where the address of `name` goes.
struct SymbolSlot {
  const char* name;
  bool required;
  void** address;
};

// Fills the slots. Absent optional ones become null; returns the first absent required name, or "".
std::string bind_symbols(const Library& library, std::span<const SymbolSlot> slots);

struct LibraryRequest {
  std::string name;
  std::string environment{};  // variable naming a file, a folder or a version; nothing else is tried when it is set
  std::string choice{};       // the same, given by the program; overrules the variable
  std::vector<std::string>
      sonames{};  // in order of preference, for the loader's own search and for what is loaded already
  std::vector<std::string> folders{};  // patterns: `*`, `~` and `$VARIABLE` are expanded; in order of preference
  std::vector<std::string> files{};    // patterns inside a folder, in order of preference
  bool prefer_loaded = false;          // what the process has loaded comes first (else last)
  bool newest_first = false;           // the highest version of all folders first (else folder by folder)
  std::string cure{};
  // Judges an opened candidate: "" accepts; otherwise why not. May set the search's version and missing_symbol.
  std::function<std::string(const Library&, LibrarySearch&)> accept{};
};

// Opens with RTLD_LOCAL. On failure the library is empty and `search` says why.
Library find_library(const LibraryRequest& request, LibrarySearch& search);

// What a pattern finds: `*`, a leading `~` and `$VARIABLE` are expanded. Nothing where a variable is not set.
std::vector<std::string> existing_paths(const std::string& pattern);
// Folder patterns: the loader's usual folders with $LD_LIBRARY_PATH and conda's before them.
std::vector<std::string> usual_folders();
// `inside` (e.g. "nvidia/*/lib") below every site-packages folder of the usual Python installations.
std::vector<std::string> python_package_folders(const std::string& inside);
// The numbers in a library's file name: "libLLVM-15.so.1" -> {15, 1}, "libLLVM.so.19.1" -> {19, 1}.
std::vector<int> version_in_name(const std::string& path);

}  // namespace tigon::runtime
