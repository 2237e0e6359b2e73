// Devices, streams and memory: the CPU, whose streams are synchronous, and CUDA devices.
#include "tigon/device.hpp"

#include <sys/mman.h>

#include <new>

#include "runtime/cuda/program.hpp"
#include "runtime/nvrtc/compiler.hpp"
#include "tigon/buffer.hpp"
#include "tigon/error.hpp"

namespace tigon {

Device Device::best() {
  static const bool gpu = runtime::CudaDriver::present() && runtime::NvrtcCompiler::search().found();
  return gpu ? cuda(0) : cpu();
}

std::string Device::name() const {
  switch (kind_) {
    case Kind::best:
      return "best";
    case Kind::cpu:
      return "cpu";
    case Kind::cuda:
      return fmt::format("cuda:{}", ordinal_);
  }
  return "unknown";
}

namespace {

using runtime::CudaDevice;
using runtime::CudaDriver;
using runtime::CurrentContext;

const CudaDevice& cuda_device(Device device) { return CudaDriver::get().device(device.ordinal()); }
runtime::cuda_c::Pointer address(const void* pointer) { return reinterpret_cast<runtime::cuda_c::Pointer>(pointer); }

Device resolved(Device device) { return device.kind() == Device::Kind::best ? Device::best() : device; }

}  // namespace

Stream::Stream(Device device) : device_(resolved(device)) {
  if (device_.kind() != Device::Kind::cuda) return;
  const CudaDriver& driver = CudaDriver::get();
  const CudaDevice& gpu = cuda_device(device_);
  const CurrentContext context(gpu);
  runtime::cuda_c::Stream made = nullptr;
  driver.check(driver.api().stream_create(&made, runtime::cuda_c::stream_non_blocking), "cuStreamCreate");
  native_ = made;
  owner_ = {made, [&gpu](runtime::cuda_c::Stream stream) {
              const CurrentContext current(gpu);
              CudaDriver::get().api().stream_destroy(stream);
            }};
}

Stream Stream::wrap(Device device, void* native) {
  Stream stream;
  stream.device_ = resolved(device);
  if (stream.device_.kind() == Device::Kind::cuda) cuda_device(stream.device_);
  stream.native_ = native;
  return stream;
}

void Stream::synchronize() const {
  if (device_.kind() != Device::Kind::cuda) return;
  const CudaDriver& driver = CudaDriver::get();
  const CudaDevice& gpu = cuda_device(device_);
  const CurrentContext context(gpu);
  driver.check(driver.api().stream_synchronize(static_cast<runtime::cuda_c::Stream>(native_)), "cuStreamSynchronize");
  runtime::ErrorFlag::report(gpu);
}

namespace detail {

std::size_t dense_bytes(DType dtype, AxisRefs axes, std::span<const std::int64_t> extents) {
  // Offsets within a row are 32-bit numbers on some targets; addresses have 48 bits.
  constexpr std::int64_t longest = (std::int64_t{1} << 31) - 1;
  constexpr std::int64_t most_bytes = std::int64_t{1} << 48;
  const auto refuse = [](const AxisRef* axis, std::string found, std::string expected, const std::string& sentence) {
    throw Error({.function = "allocate",
                 .axis = axis == nullptr ? "" : std::string(axis->name),
                 .found = std::move(found),
                 .expected = std::move(expected)},
                sentence);
  };
  std::int64_t bytes = size_of(dtype);
  std::string shape;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const AxisRef& axis = axes.first[i];
    const std::int64_t extent = extents[i];
    shape += fmt::format("{}{} = {}", shape.empty() ? "" : ", ", axis.name, extent);
    if (extent < 0 || extent > longest) {
      refuse(&axis, std::to_string(extent), fmt::format("0 to {}", longest), "the extent is negative or too large");
    }
    if (axis.fixed >= 0 && extent != axis.fixed) {
      refuse(&axis, std::to_string(extent), std::to_string(axis.fixed), "the axis' type fixes another extent");
    }
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > most_bytes) {
      refuse(nullptr, shape + fmt::format(" of {}", tigon::name(dtype)), fmt::format("at most {} bytes", most_bytes),
             "a buffer of these extents cannot be addressed");
    }
  }
  return static_cast<std::size_t>(bytes);
}

}  // namespace detail

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

// Large buffers begin at a huge page and ask for such pages: fewer misses of the address cache when they are streamed.
std::align_val_t host_alignment(std::size_t bytes) {
  return std::align_val_t{bytes >= 2 * huge_page ? huge_page : cache_line};
}

void* host_memory(std::size_t bytes) {
  void* memory = ::operator new(std::max<std::size_t>(bytes, 1), host_alignment(bytes), std::nothrow);
  // Where the system has no such pages this changes nothing.
  if (memory != nullptr && bytes >= 2 * huge_page) ::madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

Storage::Storage(std::size_t bytes, Device device) : bytes_(bytes), device_(resolved(device)) {
  constexpr std::size_t most = std::size_t{1} << 48;  // addresses have no more bits
  if (bytes > most) {
    throw Error({.function = "Storage", .found = std::to_string(bytes), .expected = fmt::format("at most {}", most)},
                "more bytes are wanted than memory can have");
  }
  if (device_.kind() == Device::Kind::cuda) {
    const CurrentContext context(cuda_device(device_));
    const CudaDriver& driver = CudaDriver::get();
    runtime::cuda_c::Pointer pointer = 0;
    const runtime::cuda_c::Result result = driver.api().allocate(&pointer, std::max<std::size_t>(bytes, 1));
    if (result != runtime::cuda_c::out_of_memory) driver.check(result, "cuMemAlloc");
    data_ = reinterpret_cast<void*>(pointer);
  } else {
    data_ = host_memory(bytes);
  }
  if (data_ == nullptr) {
    throw Error(
        {.kind = ErrorKind::device, .function = "Storage", .cure = "Use a smaller memory budget or smaller extents"},
        fmt::format("{} bytes of memory on {} could not be had", bytes, device_.name()));
  }
}

namespace {
void release(void* data, std::size_t bytes, Device device) {
  if (data == nullptr) return;
  if (device.kind() == Device::Kind::cuda) {
    const CurrentContext context(cuda_device(device));
    CudaDriver::get().api().release(address(data));
  } else {
    ::operator delete(data, host_alignment(bytes));
  }
}
}  // namespace

Storage::~Storage() { release(data_, bytes_, device_); }

Storage::Storage(Storage&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), device_(other.device_) {}

Storage& Storage::operator=(Storage&& other) noexcept {
  if (this != &other) {
    release(data_, bytes_, device_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    device_ = other.device_;
  }
  return *this;
}

}  // namespace tigon
