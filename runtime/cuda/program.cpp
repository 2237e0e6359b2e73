// Texts to binaries to loaded functions; the cache keeps PTX and machine code of one compile in one entry.
#include "runtime/cuda/program.hpp"

#include <list>

#include "runtime/cache/cache.hpp"
#include "runtime/cuda/bound.hpp"
#include "runtime/dump.hpp"
#include "runtime/nvrtc/compiler.hpp"
#include "runtime/nvrtc/text.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

std::size_t index_of(const lower::CudaClass& buffers) {
  return (buffers.aligned ? 1u : 0u) + (buffers.dense ? 2u : 0u);
}

CacheEntry compile(const cuda::CudaText& text, const std::string& architecture) {
  const NvrtcCompiler& compiler = NvrtcCompiler::get();
  // Lines are in the binary for profilers and for messages about faults; they cost nothing when it runs.
  NvrtcBinary binary = compiler.compile(text.text, text.symbol, {.architecture = architecture, .line_info = true});
  CacheEntry entry{.source = text.text, .options = compiler.identity() + " " + architecture};
  entry.binary = std::move(binary.cubin);
  const auto* ptx = reinterpret_cast<const std::byte*>(binary.ptx.data());
  entry.sections.push_back({"ptx", {ptx, ptx + binary.ptx.size() + 1}});  // with its zero: the driver takes a C string
  return entry;
}

CacheKey key_of(const cuda::CudaText& text, const std::string& architecture) {
  return cache_key({text.text, "cuda", NvrtcCompiler::get().identity(), architecture + " lines"});
}

// The machine code, or the PTX of the same compile where the device does not take the former.
cuda_c::Library load(const CacheEntry& entry) {
  const CudaDriver& driver = CudaDriver::get();
  cuda_c::Library library = nullptr;
  const auto load_from = [&](const std::vector<std::byte>& code) {
    return driver.api().library_load(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  };
  cuda_c::Result result = load_from(entry.binary);
  const CacheSection* ptx = entry.section("ptx");
  if (result == cuda_c::no_binary_for_gpu && ptx != nullptr) result = load_from(ptx->bytes);
  driver.check(result, "cuLibraryLoadData");
  return library;
}

std::unique_ptr<const CudaKernel> make_kernel(const plan::Plan& plan, const plan::Kernel& kernel,
                                              const lower::CudaClass& buffers, const std::string& architecture) {
  cuda::CudaText text = cuda_text(kernel, buffers);
  // A dump holds the texts of the best class.
  if (buffers == lower::CudaClass{}) text.text = overridden_text(plan, kernel, "cu", text.text);
  std::shared_ptr<const CacheEntry> entry = cuda_binary(text, architecture);
  auto result = std::make_unique<CudaKernel>();
  result->threads = text.threads;
  try {
    result->library = load(*entry);
  } catch (const Error&) {
    entry = kernel_cache().replace(key_of(text, architecture), entry, [&] { return compile(text, architecture); });
    result->library = load(*entry);
  }
  const CudaDriver& driver = CudaDriver::get();
  cuda_c::Kernel handle = nullptr;
  driver.check(driver.api().library_kernel(&handle, result->library, text.symbol.c_str()), "cuLibraryGetKernel");
  driver.check(driver.api().kernel_function(&result->function, handle), "cuKernelGetFunction");
  return result;
}

struct Flags {
  std::mutex mutex;
  std::list<ErrorFlag*> all;
};
Flags& flags() {
  static auto& made = *new Flags();
  return made;
}

class LoadedProgram final : public DeviceProgram {
 public:
  explicit LoadedProgram(std::shared_ptr<const CudaProgram> program) : program_(std::move(program)) {}
  [[nodiscard]] const plan::Plan& plan() const override { return program_->plan; }
  [[nodiscard]] Device device() const override { return Device::cuda(program_->device->ordinal); }
  [[nodiscard]] std::unique_ptr<const DeviceBound> bind(dsl::Extents extents, const std::vector<Strides>& input_strides,
                                                        const std::vector<Strides>& output_strides) const override {
    return bind_cuda(program_, std::move(extents), input_strides, output_strides);
  }
  [[nodiscard]] std::shared_ptr<void> allocate(const Stream& stream, std::size_t bytes) const override {
    const CudaDriver& driver = CudaDriver::get();
    const CurrentContext context(*program_->device);
    cuda_c::Pointer pointer = 0;
    const auto native = static_cast<cuda_c::Stream>(stream.native());
    driver.check(driver.api().allocate_async(&pointer, std::max<std::size_t>(bytes, 64), native), "cuMemAllocAsync");
    const CudaDevice& device = *program_->device;
    return {reinterpret_cast<void*>(pointer), [stream, &device, native](void* memory) {
              const CurrentContext current(device);
              CudaDriver::get().api().release_async(reinterpret_cast<cuda_c::Pointer>(memory), native);
            }};
  }
  void dump(const std::string& folder) const override {
    dump_plan(program_->plan, folder, "cu", [](const plan::Kernel& kernel) { return cuda_text(kernel).text; });
  }

 private:
  std::shared_ptr<const CudaProgram> program_;
};

}  // namespace

std::shared_ptr<const CacheEntry> cuda_binary(const cuda::CudaText& text, const std::string& architecture) {
  return kernel_cache().get(key_of(text, architecture), [&] { return compile(text, architecture); });
}

CudaKernel::~CudaKernel() {
  if (library != nullptr) CudaDriver::get().api().library_unload(library);
}

ErrorFlag::ErrorFlag(const CudaDevice& device, std::string function) : device_(device), function_(std::move(function)) {
  const CudaDriver& driver = CudaDriver::get();
  const CurrentContext context(device);
  void* host = nullptr;
  driver.check(driver.api().host_allocate(&host, sizeof(std::int32_t), cuda_c::host_portable_and_mapped),
               "cuMemHostAlloc");
  host_ = static_cast<volatile std::int32_t*>(host);
  *host_ = 0;
  driver.check(driver.api().host_pointer(&address_, host, 0), "cuMemHostGetDevicePointer");
  const std::lock_guard lock(flags().mutex);
  flags().all.push_back(this);
}

ErrorFlag::~ErrorFlag() {
  {
    const std::lock_guard lock(flags().mutex);
    flags().all.remove(this);
  }
  const CurrentContext context(device_);
  CudaDriver::get().api().host_release(const_cast<std::int32_t*>(host_));
}

void ErrorFlag::report(const CudaDevice& device) {
  const std::lock_guard lock(flags().mutex);
  for (ErrorFlag* flag : flags().all) {
    if (&flag->device_ != &device || *flag->host_ == 0) continue;
    *flag->host_ = 0;
    throw Error(
        {.kind = ErrorKind::usage,
         .function = flag->function_,
         .cure = "Check the index arguments against their axes' extents, or give the lookup a policy: fill or clamp"},
        "an index of a checked lookup was out of range in a launch since the last synchronization; what that launch "
        "wrote, also in place, is not to be used");
  }
}

CudaProgram::~CudaProgram() {
  if (device == nullptr) return;
  const CurrentContext context(*device);
  CudaDriver::get().api().context_synchronize();  // kernels may be running yet
  for (auto& of_kernel : kernels) {
    for (std::atomic<const CudaKernel*>& one : of_kernel) delete one.load();
  }
}

const CudaKernel& CudaProgram::kernel(std::uint32_t number, const lower::CudaClass& buffers,
                                      cuda_c::Stream stream) const {
  std::atomic<const CudaKernel*>& place = kernels[number][index_of(buffers)];
  if (const CudaKernel* known = place.load(std::memory_order_acquire)) return *known;
  const CudaDriver& driver = CudaDriver::get();
  int capturing = 0;
  if (stream != nullptr) driver.check(driver.api().stream_capturing(stream, &capturing), "cuStreamIsCapturing");
  if (capturing != 0) {
    throw Error({.kind = ErrorKind::usage,
                 .function = plan.name,
                 .cure = buffers.aligned ? "Launch it once before the capture"
                                         : "Give buffers that start at multiples of 16 bytes, or launch it once before "
                                           "the capture"},
                "a kernel would have to be compiled while the stream is captured");
  }
  const std::lock_guard lock(mutex);
  if (const CudaKernel* known = place.load(std::memory_order_acquire)) return *known;
  place.store(make_kernel(plan, plan.kernels[number], buffers, architecture).release(), std::memory_order_release);
  return *place.load(std::memory_order_relaxed);
}

std::shared_ptr<const DeviceProgram> build_cuda_program(plan::Plan plan, const CudaDevice& device,
                                                        const Progress& progress) {
  auto program = std::make_shared<CudaProgram>();
  program->plan = std::move(plan);
  program->device = &device;
  program->architecture = architecture_of(device);
  const std::size_t count = program->plan.kernels.size();
  program->kernels = std::vector<std::array<std::atomic<const CudaKernel*>, CudaProgram::classes>>(count);
  program->error = std::make_unique<ErrorFlag>(device, program->plan.name);
  build_kernels(program->plan, progress, [&](std::uint32_t i) {
    const CurrentContext context(device);
    const lower::CudaClass best;
    program->kernels[i][index_of(best)] =
        make_kernel(program->plan, program->plan.kernels[i], best, program->architecture).release();
  });
  return std::make_shared<LoadedProgram>(std::move(program));
}

}  // namespace tigon::runtime
