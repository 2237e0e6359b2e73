// Looks for nvdisasm and cuobjdump, hands one a cubin in a file of its own, and takes the text.
#include "disassembler.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "child.hpp"
#include "runtime/cache/file.hpp"
#include "runtime/library.hpp"
#include "tigon/error.hpp"

namespace tigon::tools {
namespace {

constexpr const char* nvdisasm = "nvdisasm";
constexpr const char* cuobjdump = "cuobjdump";

bool is_program(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> program_folders() {
  std::vector<std::string> folders;
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) folders.emplace_back(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  std::vector<std::string> patterns = {"$CUDA_HOME/bin", "$CUDA_PATH/bin", "/usr/local/cuda/bin",
                                       "/usr/local/cuda-*/bin", "/opt/cuda/bin"};
  for (const std::string& pattern : runtime::python_package_folders("nvidia/*/bin")) patterns.push_back(pattern);
  for (const std::string& pattern : patterns) {
    for (const std::string& folder : runtime::existing_paths(pattern)) folders.push_back(folder);
  }
  std::vector<std::string> unique;
  for (const std::string& folder : folders) {
    if (std::find(unique.begin(), unique.end(), folder) == unique.end()) unique.push_back(folder);
  }
  return unique;
}

// A file that only this user can read, gone with the object.
class CubinFile {
 public:
  explicit CubinFile(std::span<const std::byte> bytes) {
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(ignored);
    path_ = ((folder.empty() ? "/tmp" : folder) / "tigon-XXXXXX.cubin").string();
    constexpr int suffix = 6;  // ".cubin"
    const int file = ::mkstemps(path_.data(), suffix);
    if (file < 0) refuse();
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        const int error = errno;
        ::close(file);
        ::unlink(path_.c_str());
        errno = error;
        refuse();
      }
      done += static_cast<std::size_t>(count);
    }
    ::close(file);
  }
  ~CubinFile() { ::unlink(path_.c_str()); }
  CubinFile(const CubinFile&) = delete;
  CubinFile& operator=(const CubinFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;

  [[noreturn]] void refuse() const {
    throw Error({.kind = ErrorKind::io,
                 .found = path_ + ": " + runtime::error_text(errno),
                 .cure = "Set TMPDIR to a folder that can be written to"},
                "the cubin for the disassembler could not be written");
  }
};

}  // namespace

DisassemblerSearch find_disassembler() {
  DisassemblerSearch search;
  search.tried = program_folders();
  search.cure = fmt::format(
      "Install pip's nvidia-cuda-{0} package (its {0} lies in nvidia/*/bin of site-packages) or the CUDA "
      "toolkit's cuda-{0}; what is on PATH, in CUDA_HOME or in an active virtual environment is found",
      nvdisasm);
  for (const char* program : {nvdisasm, cuobjdump}) {
    for (const std::string& folder : search.tried) {
      if (std::string path = folder + "/" + program; is_program(path)) {
        search.path = std::move(path);
        return search;
      }
    }
  }
  return search;
}

std::string disassembler_version(const std::string& path) {
  const std::string text = run_child({path, "--version"}).out;  // "Cuda compilation tools, release 13.0, V13.0.85"
  const std::size_t at = text.find(", V");
  if (at == std::string::npos) return {};
  return text.substr(at + 3, text.find_first_not_of("0123456789.", at + 3) - at - 3);
}

std::string disassemble(std::span<const std::byte> cubin) {
  const DisassemblerSearch search = find_disassembler();
  if (!search.found()) {
    throw Error({.kind = ErrorKind::device,
                 .argument = "--what sass",
                 .found = fmt::format("neither {} nor {} in {}", nvdisasm, cuobjdump, fmt::join(search.tried, ", ")),
                 .cure = search.cure},
                "machine code is turned into text by a program of NVIDIA's that is not installed");
  }
  const CubinFile file(cubin);
  const bool plain = search.path.ends_with(nvdisasm);
  // Without --print-code nvdisasm also writes every data section out.
  const ChildResult ran = run_child({search.path, plain ? "--print-code" : "--dump-sass", file.path()});
  if (ran.code != 0 || ran.out.empty()) {
    const std::string version = disassembler_version(search.path);
    throw Error(
        {.kind = ErrorKind::compile,
         .function = search.path + (version.empty() ? "" : " " + version),
         .cure = "It may be older than the architecture, and cuobjdump needs nvdisasm beside it. " + search.cure,
         .log = ran.err + ran.out},
        fmt::format("the disassembler refused the cubin (exit code {})", ran.code));
  }
  return ran.out;
}

}  // namespace tigon::tools
