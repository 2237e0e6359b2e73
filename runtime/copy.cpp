// Copies between buffers, on and between devices.
#include <cstring>

#include "runtime/cuda/driver.hpp"
#include "tigon/buffer.hpp"
#include "tigon/error.hpp"

namespace tigon::detail {
namespace {

using runtime::CudaDriver;

[[noreturn]] void refuse(std::string found, std::string expected, std::string cure, const std::string& sentence) {
  throw Error({.function = "copy", .found = std::move(found), .expected = std::move(expected), .cure = std::move(cure)},
              sentence);
}

bool is_gpu(const RawBuffer& buffer) { return buffer.device.kind() == Device::Kind::cuda; }

bool is_dense(const RawBuffer& buffer) {
  std::int64_t step = 1;
  for (std::size_t d = buffer.rank; d-- > 0; step *= buffer.extents[d]) {
    if (buffer.extents[d] > 1 && buffer.strides[d] != step) return false;
  }
  return true;
}

// Elements along the innermost dimension lie side by side in both.
void copy_rows(const RawBuffer& to, const RawBuffer& from, std::size_t dimension, std::byte* target,
               const std::byte* source, std::int64_t size) {
  if (dimension == to.rank) {
    std::memcpy(target, source, static_cast<std::size_t>(size));
    return;
  }
  const bool side_by_side = to.strides[dimension] == 1 && from.strides[dimension] == 1;
  if (dimension + 1 == to.rank && side_by_side) {
    std::memmove(target, source, static_cast<std::size_t>(to.extents[dimension] * size));
    return;
  }
  for (std::int64_t i = 0; i < to.extents[dimension]; ++i) {
    copy_rows(to, from, dimension + 1, target + i * to.strides[dimension] * size,
              source + i * from.strides[dimension] * size, size);
  }
}

void copy_with_gpu(const Stream& stream, const RawBuffer& to, const RawBuffer& from, std::size_t bytes) {
  const Device device = is_gpu(to) ? to.device : from.device;
  if (is_gpu(to) && is_gpu(from) && !(to.device == from.device))
    refuse(from.device.name(), to.device.name(), "Copy through the host", "a copy goes from one GPU to another");
  if (!(stream.device() == device))
    refuse(stream.device().name(), device.name(), "Give a stream of that device", "the stream is of another device");
  for (const RawBuffer* one : {&to, &from}) {
    if (!is_dense(*one)) {
      refuse("rows with gaps", "rows that follow each other", "Copy into a buffer without gaps first",
             "a buffer of a copy to or from a GPU has gaps");
    }
  }
  const CudaDriver& driver = CudaDriver::get();
  const runtime::CurrentContext context(driver.device(device.ordinal()));
  const auto native = static_cast<runtime::cuda_c::Stream>(stream.native());
  const auto target = reinterpret_cast<runtime::cuda_c::Pointer>(to.pointer);
  const auto source = reinterpret_cast<runtime::cuda_c::Pointer>(from.pointer);
  if (is_gpu(to) && is_gpu(from)) {
    driver.check(driver.api().on_device_async(target, source, bytes, native), "cuMemcpyDtoDAsync");
  } else if (is_gpu(to)) {
    driver.check(driver.api().to_device_async(target, from.pointer, bytes, native), "cuMemcpyHtoDAsync");
  } else {
    driver.check(driver.api().to_host_async(to.pointer, source, bytes, native), "cuMemcpyDtoHAsync");
  }
}

}  // namespace

void copy_buffer(const Stream& stream, const RawBuffer& to, const RawBuffer& from) {
  std::int64_t count = 1;
  for (std::size_t d = 0; d < to.rank; ++d) {
    if (to.extents[d] != from.extents[d]) {
      refuse(fmt::format("{} along dimension {}", from.extents[d], d), std::to_string(to.extents[d]),
             "Give buffers of equal extents", "the extents of a copy's buffers differ");
    }
    count *= to.extents[d];
  }
  if (count == 0) return;
  if (to.pointer == nullptr || from.pointer == nullptr) {
    refuse(to.pointer == nullptr ? "no memory to copy to" : "no memory to copy from", "a buffer", "Give it a buffer",
           "a buffer of a copy is null");
  }
  const std::int64_t size = size_of(to.dtype);
  if (is_gpu(to) || is_gpu(from)) return copy_with_gpu(stream, to, from, static_cast<std::size_t>(count * size));
  copy_rows(to, from, 0, static_cast<std::byte*>(to.pointer), static_cast<const std::byte*>(from.pointer), size);
}

}  // namespace tigon::detail
