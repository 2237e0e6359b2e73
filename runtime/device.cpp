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
