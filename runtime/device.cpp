// Devices, streams and memory: only the CPU for now, whose streams are synchronous.
#include "tigon/device.hpp"

#include <new>

#include "tigon/buffer.hpp"
#include "tigon/error.hpp"

namespace tigon {

Device Device::best() { return cpu(); }

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
void require_cpu(Device device) {
  if (device.kind() == Device::Kind::cuda) {
    throw Error({.kind = ErrorKind::device, .found = device.name(), .expected = "cpu", .cure = "Use Device::cpu()"},
                "this build has no CUDA device");
  }
}
}  // namespace

Stream::Stream(Device device) : device_(device.kind() == Device::Kind::best ? Device::best() : device) {
  require_cpu(device_);
}

Stream Stream::wrap(Device device, void* native) {
  Stream stream(device);
  stream.native_ = native;
  return stream;
}

void Stream::synchronize() const {}

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

Storage::Storage(std::size_t bytes, Device device)
    : bytes_(bytes), device_(device.kind() == Device::Kind::best ? Device::best() : device) {
  require_cpu(device_);
  data_ = ::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t{64}, std::nothrow);
  if (data_ == nullptr) {
    throw Error(
        {.kind = ErrorKind::device, .function = "Storage", .cure = "Use a smaller memory budget or smaller extents"},
        fmt::format("{} bytes of memory could not be had", bytes));
  }
}

Storage::~Storage() { ::operator delete(data_, std::align_val_t{64}); }

Storage::Storage(Storage&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), device_(other.device_) {}

Storage& Storage::operator=(Storage&& other) noexcept {
  if (this != &other) {
    ::operator delete(data_, std::align_val_t{64});
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    device_ = other.device_;
  }
  return *this;
}

}  // namespace tigon
