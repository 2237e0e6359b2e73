// Finds the driver, takes its functions at the version that is required, and keeps one record per device.
#include "runtime/cuda/driver.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <mutex>

#include "codegen/schedule/gpu.hpp"
#include "runtime/environment.hpp"
#include "runtime/nvrtc/compiler.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

constexpr const char* emulated_file = "libtigon_emulated_cuda.so";
constexpr int minimum_version = 12000;  // cuLibrary* is new in it

using GetAddress = cuda_c::Result (*)(const char* name, void** address, int version, std::uint64_t flags, int* status);

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// Fills the table through the driver's own look-up, which picks the variants of the required version. Returns the first
// missing function, or "".
std::string bind(const Library& library, cuda_c::Api& api) {
  const auto get = reinterpret_cast<GetAddress>(library.symbol("cuGetProcAddress_v2"));
  if (get == nullptr) return "cuGetProcAddress_v2";
  const SymbolSlot slots[] = {
#define TIGON_CUDA_SLOT(field, name, ...) {#name, true, reinterpret_cast<void**>(&api.field)},
      TIGON_CUDA_API(TIGON_CUDA_SLOT)
#undef TIGON_CUDA_SLOT
  };
  for (const SymbolSlot& slot : slots) {
    int status = 0;
    if (get(slot.name, slot.address, minimum_version, 0, &status) != cuda_c::success || *slot.address == nullptr)
      return slot.name;
  }
  return {};
}

std::string judge(const Library& library, LibrarySearch& search) {
  cuda_c::Api api;
  const std::string missing = bind(library, api);
  int version = 0;
  if (api.driver_version != nullptr && api.driver_version(&version) == cuda_c::success)
    search.version = version_text(version);
  if (!missing.empty()) {
    search.missing_symbol = missing;
    return fmt::format("lacks {}; a driver for CUDA {} or newer is needed", missing, version_text(minimum_version));
  }
  if (version < minimum_version)
    return fmt::format("is for CUDA {}; {} or newer is needed", search.version, version_text(minimum_version));
  return {};
}

// The folder of the file that this code was loaded from.
std::string own_folder() {
  Dl_info info{};
  std::string path;
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) != 0 && info.dli_fname != nullptr)
    path = info.dli_fname;
  if (path.find('/') == std::string::npos) {  // a program found through $PATH
    std::array<char, 4096> link{};
    const ssize_t length = ::readlink("/proc/self/exe", link.data(), link.size());
    if (length > 0) path.assign(link.data(), static_cast<std::size_t>(length));
  }
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

LibraryRequest driver_request() {
  LibraryRequest request{.name = "CUDA driver"};
  if (environment_value("TIGON_CUDA_DRIVER") == "emulated") {
    constexpr const char* file = emulated_file;
    request.name = "emulated CUDA driver";
    request.sonames = {file};
    for (const char* folder : {"", "/lib", "/../lib", "/..", "/../.."})
      request.folders.push_back(own_folder() + folder);
#ifdef TIGON_BUILD_FOLDER
    request.folders.emplace_back(TIGON_BUILD_FOLDER);
#endif
    request.files = {file};
    request.cure =
        fmt::format("Build it (target tigon_emulated_cuda), or set TIGON_CUDA_DRIVER to the path of {}", file);
  } else {
    request.environment = "TIGON_CUDA_DRIVER";
    request.sonames = {"libcuda.so.1", "libcuda.so"};
    request.folders = usual_folders();
    request.files = {"libcuda.so.1", "libcuda.so"};
    request.cure = fmt::format(
        "Install NVIDIA's driver for CUDA {} or newer; without one, TIGON_CUDA_DRIVER=emulated runs kernels on an "
        "emulated device",
        version_text(minimum_version));
  }
  request.prefer_loaded = true;
  request.accept = judge;
  return request;
}

int attribute(const cuda_c::Api& api, int which, cuda_c::Device device) {
  int value = 0;
  return api.device_attribute(&value, which, device) == cuda_c::success ? value : 0;
}

}  // namespace

CudaDriver::CudaDriver() {
  LibrarySearch search;
  library_ = find_library(driver_request(), search);
  if (!library_) throw search.error();
  bind(library_, api_);
  api_.driver_version(&version_);
  check(api_.init(0), "cuInit");
  check(api_.device_count(&device_count_), "cuDeviceGetCount");
}

const CudaDriver& CudaDriver::get() {
  // Never destroyed: streams and memory may outlive static objects.
  static const CudaDriver& driver = *new CudaDriver();
  return driver;
}

LibrarySearch CudaDriver::search() {
  LibrarySearch search;
  find_library(driver_request(), search);
  return search;
}

bool CudaDriver::present() {
  try {
    return get().device_count() > 0;
  } catch (const Error&) {
    return false;
  }
}

bool CudaDriver::emulated() const { return library_.path().find(emulated_file) != std::string::npos; }

std::string CudaDriver::words(cuda_c::Result result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api_.error_name(result, &name) != cuda_c::success || name == nullptr) return fmt::format("error {}", result);
  api_.error_text(result, &text);
  return fmt::format("{}: {}", name, text == nullptr ? "" : text);
}

void CudaDriver::refuse(cuda_c::Result result, const char* call) const {
  throw Error({.kind = ErrorKind::device,
               .function = call,
               .found = words(result),
               .cure = "The driver's state may be lost: start the process again if further calls fail"},
              fmt::format("the CUDA driver {} refused a call", version_text(version_)));
}

const CudaDevice& CudaDriver::device(int ordinal) const {
  if (ordinal < 0 || ordinal >= device_count_) {
    throw Error({.kind = ErrorKind::device,
                 .found = fmt::format("cuda:{}", ordinal),
                 .expected = device_count_ == 0 ? "cpu: there is no CUDA device"
                                                : fmt::format("cuda:0 to cuda:{}", device_count_ - 1)},
                "there is no such device");
  }
  static std::mutex mutex;
  static auto& devices = *new std::array<std::unique_ptr<const CudaDevice>, 64>();
  if (static_cast<std::size_t>(ordinal) >= devices.size())
    throw Error({.kind = ErrorKind::device, .expected = "at most 64 devices"}, "the device's number is too large");
  const std::lock_guard lock(mutex);
  std::unique_ptr<const CudaDevice>& place = devices[static_cast<std::size_t>(ordinal)];
  if (place != nullptr) return *place;
  auto made = std::make_unique<CudaDevice>();
  made->ordinal = ordinal;
  check(api_.device_get(&made->handle, ordinal), "cuDeviceGet");
  std::array<char, 256> name{};
  check(api_.device_name(name.data(), static_cast<int>(name.size()), made->handle), "cuDeviceGetName");
  made->name = name.data();
  made->major = attribute(api_, cuda_c::attribute_capability_major, made->handle);
  made->minor = attribute(api_, cuda_c::attribute_capability_minor, made->handle);
  made->multiprocessors = attribute(api_, cuda_c::attribute_multiprocessors, made->handle);
  made->resident_threads = attribute(api_, cuda_c::attribute_threads_per_multiprocessor, made->handle);
  api_.device_memory(&made->memory_bytes, made->handle);
  check(api_.context_retain(&made->context, made->handle), "cuDevicePrimaryCtxRetain");
  place = std::move(made);
  return *place;
}

CurrentContext::CurrentContext(const CudaDevice& device) {
  const CudaDriver& driver = CudaDriver::get();
  driver.check(driver.api().context_get(&before_), "cuCtxGetCurrent");
  if (before_ == device.context) return;
  driver.check(driver.api().context_set(device.context), "cuCtxSetCurrent");
  changed_ = true;
}

CurrentContext::~CurrentContext() {
  if (changed_) CudaDriver::get().api().context_set(before_);
}

std::string architecture_of(const CudaDevice& device) {
  const NvrtcCompiler& compiler = NvrtcCompiler::get();
  const int number = device.major * 10 + device.minor;
  const std::string exact = fmt::format("sm_{}", number);
  // From 9.0 on, the `a` architectures have the instructions that no other device will.
  if (compiler.supports(exact)) return device.major >= 9 ? exact + "a" : exact;
  int below = 0;
  for (const int known : compiler.architectures()) {
    if (known <= number) below = std::max(below, known);
  }
  if (below == 0) {
    throw Error({.kind = ErrorKind::device,
                 .found = fmt::format("{} ({})", device.name, exact),
                 .expected = fmt::format("one of sm_{}", fmt::join(compiler.architectures(), ", sm_")),
                 .cure = "Use an NVRTC that supports it: set TIGON_NVRTC"},
                fmt::format("NVRTC {} compiles for no architecture that the device runs", compiler.version()));
  }
  return fmt::format("sm_{}", below);  // the driver compiles its PTX for newer devices
}

schedule::DeviceModel cuda_model(const CudaDevice& device) {
  const int number = device.major * 10 + device.minor;
  std::optional<schedule::DeviceModel> model;
  int closest = 0;
  for (const std::string_view name : schedule::gpu_names()) {
    if (!name.starts_with("sm_")) continue;
    const int known = std::atoi(std::string(name.substr(3)).c_str());
    if (known > number || known <= closest) continue;
    closest = known;
    model = schedule::gpu_model(name);
  }
  if (!model) {
    throw Error({.kind = ErrorKind::device,
                 .found = fmt::format("{} (compute capability {}.{})", device.name, device.major, device.minor),
                 .expected = "8.0 or newer",
                 .cure = "Compile for Device::cpu()"},
                "the device is older than any that Tigon plans for");
  }
  model->partition_limit = model->partition_limit / model->multiprocessors * device.multiprocessors;
  model->multiprocessors = device.multiprocessors;
  model->resident_threads = device.resident_threads;
  return *model;
}

}  // namespace tigon::runtime
