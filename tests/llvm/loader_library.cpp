// The library finder: what it finds, in which order, and what it says when it finds nothing.
#include "runtime/library.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace tigon::runtime {
namespace {

// A folder that is removed with all its files at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char pattern[] = "/tmp/tigon-library-XXXXXX";
    REQUIRE(::mkdtemp(pattern) != nullptr);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    for (auto entry = made_.rbegin(); entry != made_.rend(); ++entry) ::remove(entry->c_str());
    ::rmdir(path_.c_str());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string folder(const std::string& name) {
    const std::string path = path_ + "/" + name;
    REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    made_.push_back(path);
    return path;
  }
  std::string link(const std::string& target, const std::string& name) {
    const std::string path = path_ + "/" + name;
    REQUIRE(::symlink(target.c_str(), path.c_str()) == 0);
    made_.push_back(path);
    return path;
  }
  std::string text(const std::string& name) {
    const std::string path = path_ + "/" + name;
    std::FILE* file = std::fopen(path.c_str(), "w");
    REQUIRE(file != nullptr);
    std::fputs("this is no library", file);
    std::fclose(file);
    made_.push_back(path);
    return path;
  }

 private:
  std::string path_;
  std::vector<std::string> made_;
};

// A real shared library that every Linux process has: the C++ runtime.
std::string some_library() {
  Dl_info info{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(&std::set_terminate), &info) != 0);
  return info.dli_fname;
}

bool mentions(const LibrarySearch& search, const std::string& path, const std::string& message) {
  return std::any_of(search.attempts.begin(), search.attempts.end(), [&](const Attempt& attempt) {
    return attempt.path.find(path) != std::string::npos && attempt.message.find(message) != std::string::npos;
  });
}

TEST_CASE("a missing library is reported with every path tried and the cure") {
  TemporaryFolder folder;
  folder.text("libtigon-nothing.so.3");
  LibrarySearch search;
  const LibraryRequest request{.name = "Nothing",
                               .environment = "TIGON_TEST_NOTHING",
                               .sonames = {"libtigon-nothing.so.9"},
                               .folders = {folder.path(), folder.path() + "/absent", "$TIGON_TEST_UNSET/lib"},
                               .files = {"libtigon-nothing.so*"},
                               .cure = "Install nothing"};
  CHECK_FALSE(find_library(request, search));
  CHECK_FALSE(search.found());
  CHECK(mentions(search, folder.path() + "/libtigon-nothing.so.3", "libtigon-nothing.so.3"));  // the loader's own words
  CHECK(mentions(search, folder.path() + "/absent/{libtigon-nothing.so*}", "no such file"));
  CHECK(mentions(search, "libtigon-nothing.so.9", "cannot open shared object file"));
  const Error error = search.error();
  CHECK(error.kind() == ErrorKind::device);
  const std::string text = error.what();
  for (const std::string part :
       {"Nothing", "Install nothing", "libtigon-nothing.so.3", "/absent", "libtigon-nothing.so.9"}) {
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("candidates come by folder or by version, and a symbolic link counts once") {
  TemporaryFolder folder;
  const std::string first = folder.folder("first"), second = folder.folder("second");
  folder.text("first/libnumbered.so.3");
  folder.text("first/libnumbered.so.12.1");
  folder.link(first + "/libnumbered.so.3", "first/libnumbered.so");
  folder.text("second/libnumbered.so.20");
  LibraryRequest request{.name = "Numbered", .folders = {folder.path() + "/f*", second}, .files = {"libnumbered.so*"}};
  const auto order = [&] {
    LibrarySearch search;
    CHECK_FALSE(find_library(request, search));
    std::vector<std::string> names;
    for (const Attempt& attempt : search.attempts)
      names.push_back(attempt.path.substr(attempt.path.find_last_of('/') + 1));
    return names;
  };
  CHECK(order() == std::vector<std::string>{"libnumbered.so.12.1", "libnumbered.so.3", "libnumbered.so.20"});
  request.newest_first = true;
  CHECK(order() == std::vector<std::string>{"libnumbered.so.20", "libnumbered.so.12.1", "libnumbered.so.3"});
  request.choice = "12";
  LibrarySearch search;
  CHECK_FALSE(find_library(request, search));
  CHECK(mentions(search, "libnumbered.so.20", "not the version asked for, 12"));
  CHECK_FALSE(mentions(search, "libnumbered.so.12.1", "not the version"));
}

TEST_CASE("the environment variable names a file or a folder and overrules the list") {
  TemporaryFolder folder;
  const std::string alias = folder.link(some_library(), "libalias.so.7");
  LibraryRequest request{
      .name = "Alias", .environment = "TIGON_TEST_ALIAS", .folders = {"/nowhere"}, .files = {"libalias.so*"}};
  for (const std::string& value : {alias, folder.path()}) {
    ::setenv("TIGON_TEST_ALIAS", value.c_str(), 1);
    LibrarySearch search;
    const Library library = find_library(request, search);
    CHECK(library);
    CHECK(search.attempts.size() == 1);
    CHECK(search.path == library.path());
    CHECK(library.symbol("_ZSt13set_terminatePFvvE") != nullptr);
    CHECK_FALSE(library.build_id().empty());
  }
  ::setenv("TIGON_TEST_ALIAS", "/nowhere/libalias.so", 1);
  LibrarySearch search;
  CHECK_FALSE(find_library(request, search));
  CHECK(search.attempts.size() == 1);
  ::unsetenv("TIGON_TEST_ALIAS");
}

TEST_CASE("a library that the process has loaded is reused, and a refusal says why") {
  LibraryRequest request{
      .name = "C++ runtime", .sonames = {"libtigon-absent.so.1", "libstdc++.so.6"}, .prefer_loaded = true};
  LibrarySearch search;
  CHECK(find_library(request, search));
  CHECK(mentions(search, "libtigon-absent.so.1", "not loaded in this process"));
  CHECK(search.attempts.back().message == "used");

  request.accept = [](const Library& library, LibrarySearch& state) {
    void* address = nullptr;
    const SymbolSlot slots[] = {{"tigon_optional", false, &address}, {"tigon_required", true, &address}};
    state.missing_symbol = bind_symbols(library, slots);
    state.version = "6";
    return "lacks " + state.missing_symbol;
  };
  CHECK_FALSE(find_library(request, search));
  CHECK(search.missing_symbol == "tigon_required");
  CHECK(search.describe().find("version met: 6; missing symbol: tigon_required") != std::string::npos);
  CHECK(std::string(search.error().what()).find("tigon_required") != std::string::npos);
}

TEST_CASE("folder patterns reach into Python's packages") {
  TemporaryFolder folder;
  for (const char* part :
       {"lib", "lib/python3.11", "lib/python3.11/site-packages", "lib/python3.11/site-packages/nvidia",
        "lib/python3.11/site-packages/nvidia/cuda_nvrtc", "lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib"}) {
    folder.folder(part);
  }
  folder.link(some_library(), "lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libtigon-nvrtc.so.12");
  const char* before = std::getenv("VIRTUAL_ENV");
  const std::string saved = before != nullptr ? before : "";
  ::setenv("VIRTUAL_ENV", folder.path().c_str(), 1);
  LibrarySearch search;
  CHECK(find_library(
      {.name = "NVRTC", .folders = python_package_folders("nvidia/*/lib"), .files = {"libtigon-nvrtc.so*"}}, search));
  before != nullptr ? ::setenv("VIRTUAL_ENV", saved.c_str(), 1) : ::unsetenv("VIRTUAL_ENV");
}

TEST_CASE("versions are read from file names") {
  CHECK(version_in_name("/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1") == std::vector<int>{15, 1});
  CHECK(version_in_name("/usr/lib/libLLVM.so.19.1") == std::vector<int>{19, 1});
  CHECK(version_in_name("libLLVM-14.0.6.so.1") == std::vector<int>{14, 0, 6, 1});
  CHECK(version_in_name("libcuda.so").empty());
}

}  // namespace
}  // namespace tigon::runtime
