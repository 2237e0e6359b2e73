// Finds NVRTC, asks it what it supports, and compiles; every failure becomes an Error that shows the source.
#include "runtime/nvrtc/compiler.hpp"

#include <mutex>

#include "runtime/nvrtc/api.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {

struct NvrtcSession {
  Library library;
  nvrtc_c::Api api;
  std::string version;
  std::string build_id;
  std::vector<int> architectures;
};

namespace nvrtc_c {

std::string Api::bind(const Library& library) {
  const SymbolSlot slots[] = {
#define TIGON_NVRTC_SLOT(field, name, ...) {#name, true, reinterpret_cast<void**>(&field)},
      TIGON_NVRTC_API(TIGON_NVRTC_SLOT)
#undef TIGON_NVRTC_SLOT
  };
  return bind_symbols(library, slots);
}

}  // namespace nvrtc_c

namespace {

constexpr int minimum_nvrtc_major = 12;

// Contraction is explicit in the text, so that every target computes the same; no fast-math.
constexpr const char* fixed_options[] = {"--std=c++17", "--fmad=false", "--device-as-default-execution-space"};

std::string judge(const Library& library, LibrarySearch& search) {
  nvrtc_c::Api api;
  const std::string missing = api.bind(library);
  int major = 0, minor = 0;
  if (api.version != nullptr && api.version(&major, &minor) == nvrtc_c::success)
    search.version = fmt::format("{}.{}", major, minor);
  if (!missing.empty()) {
    search.missing_symbol = missing;
    return fmt::format("lacks {}; NVRTC {} or newer is needed", missing, minimum_nvrtc_major);
  }
  if (major < minimum_nvrtc_major)
    return fmt::format("is NVRTC {}; {} or newer is needed", search.version, minimum_nvrtc_major);
  return {};
}

LibraryRequest nvrtc_request(const std::string& choice) {
  LibraryRequest request{.name = "NVRTC", .environment = "TIGON_NVRTC", .choice = choice};
  for (int major = minimum_nvrtc_major + 3; major >= minimum_nvrtc_major; --major)
    request.sonames.push_back(fmt::format("libnvrtc.so.{}", major));
  request.sonames.push_back("libnvrtc.so");
  for (const char* root : {"$CUDA_HOME", "$CUDA_PATH", "/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda"}) {
    for (const char* inside : {"lib64", "lib", "targets/*/lib"})
      request.folders.push_back(fmt::format("{}/{}", root, inside));
  }
  for (const std::string& folder : python_package_folders("nvidia/*/lib")) request.folders.push_back(folder);
  for (const std::string& folder : usual_folders()) request.folders.push_back(folder);
  request.files = {"libnvrtc.so.[0-9]*"};
  request.newest_first = true;
  request.cure = fmt::format(
      "Install the CUDA toolkit {} or newer, or pip's nvidia-cuda-nvrtc package, or set TIGON_NVRTC to a libnvrtc "
      "file, a folder or a version",
      minimum_nvrtc_major);
  request.accept = judge;
  return request;
}

std::shared_ptr<const NvrtcSession> open_nvrtc(const std::string& choice) {
  static std::mutex mutex;
  // Never destroyed: other threads may compile while static objects are being destroyed.
  static auto& sessions = *new std::map<std::string, std::shared_ptr<const NvrtcSession>>;
  std::lock_guard lock(mutex);
  LibrarySearch search;
  Library library = find_library(nvrtc_request(choice), search);
  if (!library) throw search.error();
  std::shared_ptr<const NvrtcSession>& known = sessions[library.path()];
  if (known) return known;
  auto session = std::make_shared<NvrtcSession>();
  session->library = library;
  session->api.bind(library);
  session->version = search.version;
  session->build_id = library.build_id();
  int count = 0;
  if (session->api.architecture_count(&count) == nvrtc_c::success && count > 0) {
    session->architectures.resize(static_cast<std::size_t>(count));
    session->api.architectures(session->architectures.data());
    std::sort(session->architectures.begin(), session->architectures.end());
  }
  known = std::move(session);
  return known;
}

// The line of the first error in a log of lines such as "name.cu(12): error: ..."; 0 where there is none.
std::size_t error_line(const std::string& log) {
  const std::size_t error = log.find("): error");
  if (error == std::string::npos) return 0;
  const std::size_t open = log.rfind('(', error);
  return open == std::string::npos ? 0 : static_cast<std::size_t>(std::atoi(log.c_str() + open + 1));
}

std::string numbered_source(std::string_view text, std::size_t line) {
  constexpr std::size_t radius = 6, head = 40;
  const std::size_t first = line > radius ? line - radius : 1;
  const std::size_t last = line > 0 ? line + radius : head;
  std::string result;
  std::size_t number = 1;
  for (std::size_t start = 0; start < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (number >= first && number <= last)
      result += fmt::format("{}{:5} | {}\n", number == line ? '>' : ' ', number, text.substr(start, end - start));
    start = end + 1;
  }
  return result;
}

// Destroys the program on every way out.
struct ProgramOwner {
  const nvrtc_c::Api& api;
  nvrtc_c::Program* program = nullptr;
  explicit ProgramOwner(const nvrtc_c::Api& functions) : api(functions) {}
  ~ProgramOwner() {
    if (program != nullptr) api.program_destroy(&program);
  }
  ProgramOwner(const ProgramOwner&) = delete;
  ProgramOwner& operator=(const ProgramOwner&) = delete;
};

}  // namespace

NvrtcCompiler::NvrtcCompiler(std::shared_ptr<const NvrtcSession> session) : session_(std::move(session)) {}

const NvrtcCompiler& NvrtcCompiler::get() {
  static const auto& compiler = *new std::shared_ptr<const NvrtcCompiler>(load({}));
  return *compiler;
}

std::shared_ptr<const NvrtcCompiler> NvrtcCompiler::load(const std::string& choice) {
  return std::make_shared<const NvrtcCompiler>(open_nvrtc(choice));
}

LibrarySearch NvrtcCompiler::search(const std::string& choice) {
  LibrarySearch search;
  find_library(nvrtc_request(choice), search);
  return search;
}

const std::string& NvrtcCompiler::version() const { return session_->version; }
const std::string& NvrtcCompiler::path() const { return session_->library.path(); }
const std::vector<int>& NvrtcCompiler::architectures() const { return session_->architectures; }

std::string NvrtcCompiler::identity() const {
  return fmt::format("NVRTC {} build {} options {}", session_->version, session_->build_id,
                     fmt::join(fixed_options, " "));
}

bool NvrtcCompiler::supports(std::string_view architecture) const {
  if (!architecture.starts_with("sm_")) return false;
  const int number = std::atoi(std::string(architecture.substr(3)).c_str());
  return std::binary_search(session_->architectures.begin(), session_->architectures.end(), number);
}

NvrtcBinary NvrtcCompiler::compile(const std::string& text, const std::string& name,
                                   const NvrtcSettings& settings) const {
  const nvrtc_c::Api& api = session_->api;
  if (!supports(settings.architecture)) {
    throw Error({.kind = ErrorKind::compile,
                 .function = "NVRTC " + session_->version,
                 .found = settings.architecture,
                 .expected = fmt::format("sm_ and one of {}", fmt::join(session_->architectures, ", ")),
                 .cure = "Choose another target, or a newer NVRTC by TIGON_NVRTC"},
                "this NVRTC does not compile for the architecture");
  }
  std::vector<std::string> options{"--gpu-architecture=" + settings.architecture};
  for (const char* option : fixed_options) options.emplace_back(option);
  if (settings.line_info) options.emplace_back("--generate-line-info");
  std::vector<const char*> spelled;
  for (const std::string& option : options) spelled.push_back(option.c_str());

  ProgramOwner owner(api);
  const auto check = [&](nvrtc_c::Result result, const char* what, const std::string& log = {}) {
    if (result == nvrtc_c::success) return;
    throw Error({.kind = ErrorKind::compile,
                 .function = "NVRTC " + session_->version,
                 .log = fmt::format("{}: {}\noptions: {}\n{}\n{}", what, api.error_string(result),
                                    fmt::join(options, " "), log, numbered_source(text, error_line(log)))},
                fmt::format("the generated kernel {} did not compile", name));
  };
  check(api.program_create(&owner.program, text.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr), "create");
  const nvrtc_c::Result compiled = api.program_compile(owner.program, static_cast<int>(spelled.size()), spelled.data());
  NvrtcBinary binary;
  std::size_t size = 0;
  if (api.log_size(owner.program, &size) == nvrtc_c::success && size > 1) {
    binary.log.resize(size);
    api.log(owner.program, binary.log.data());
    while (!binary.log.empty() && (binary.log.back() == '\0' || binary.log.back() == '\n')) binary.log.pop_back();
  }
  check(compiled, "compile", binary.log);
  if (settings.warnings_are_errors && !binary.log.empty())
    check(nvrtc_c::error_compilation, "warnings are errors here", binary.log);

  check(api.ptx_size(owner.program, &size), "PTX");
  binary.ptx.resize(size);
  check(api.ptx(owner.program, binary.ptx.data()), "PTX");
  while (!binary.ptx.empty() && binary.ptx.back() == '\0') binary.ptx.pop_back();
  check(api.cubin_size(owner.program, &size), "cubin");
  binary.cubin.resize(size);
  check(api.cubin(owner.program, reinterpret_cast<char*>(binary.cubin.data())), "cubin");
  return binary;
}

}  // namespace tigon::runtime
