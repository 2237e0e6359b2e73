// Device memory of the emulated GPU: allocations in an address space of their own, each exact in size, never reused.
#include "runtime/emulator/memory.hpp"

#include <bit>
#include <cstring>

namespace tigon::emulator {

namespace {
// As cuMemAlloc does; at least one empty stretch of this size follows every allocation, as a red zone.
constexpr std::uint64_t alignment = 512;
}  // namespace

Buffer& DeviceMemory::allocate(std::uint64_t size, std::string name) {
  auto buffer = std::make_unique<Buffer>();
  buffer->address = next_;
  buffer->size = size;
  // Vector moves of a whole access never cross the end, and an empty allocation still has an address.
  buffer->storage.reset(new std::uint8_t[size + 16]);
  buffer->data = buffer->storage.get();
  std::memset(buffer->data, 0xff, size + 16);
  buffer->state.assign(size, 0);
  buffer->shadow.reset(size);
  buffer->name = std::move(name);
  next_ += (size + alignment - 1) / alignment * alignment + alignment;
  bytes_in_use_ += size;
  return *(buffers_[buffer->address] = std::move(buffer));
}

Buffer& DeviceMemory::adopt_host(void* data, std::uint64_t size) {
  auto buffer = std::make_unique<Buffer>();
  buffer->address = reinterpret_cast<std::uint64_t>(data);
  buffer->size = size;
  buffer->data = static_cast<std::uint8_t*>(data);
  buffer->state.assign(size, state_initialized);
  buffer->shadow.reset(size);
  buffer->on_host = true;
  buffer->name = "pinned host memory";
  return *(buffers_[buffer->address] = std::move(buffer));
}

bool DeviceMemory::release(std::uint64_t address) {
  const auto at = buffers_.find(address);
  if (at == buffers_.end() || at->second->freed) return false;
  if (at->second->on_host) {
    buffers_.erase(at);  // the host may be given the same address again
    return true;
  }
  auto& buffer = *at->second;
  bytes_in_use_ -= buffer.size;
  buffer.freed = true;
  buffer.data = nullptr;
  buffer.storage.reset();
  buffer.state = {};
  buffer.shadow.reset(0);
  return true;
}

Buffer* DeviceMemory::nearest(std::uint64_t address) {
  auto at = buffers_.upper_bound(address);
  return at == buffers_.begin() ? nullptr : std::prev(at)->second.get();
}

Buffer* DeviceMemory::find(std::uint64_t address, std::uint64_t size) {
  auto* buffer = nearest(address);
  if (buffer == nullptr || buffer->freed || address - buffer->address > buffer->size ||
      size > buffer->size - (address - buffer->address)) {
    return nullptr;
  }
  return buffer;
}

std::uint64_t DeviceMemory::live_allocations() const {
  std::uint64_t count = 0;
  for (const auto& [address, buffer] : buffers_) count += !buffer->freed;
  return count;
}

unsigned Buffer::touch_sector(std::uint64_t launch, std::uint64_t offset, bool reads, bool writes) {
  constexpr unsigned shift = 5;
  const std::uint64_t first = address >> shift;
  if (sectors_of != launch) {
    sectors_of = launch;
    sectors.assign(((address + size - 1) >> shift) - first + 1, 0);
  }
  std::uint8_t& touched = sectors[((address + offset) >> shift) - first];
  const auto added = static_cast<std::uint8_t>(((reads ? 1u : 0u) | (writes ? 2u : 0u)) & ~unsigned{touched});
  touched = static_cast<std::uint8_t>(touched | added);
  return static_cast<unsigned>(std::popcount(added));
}

void DeviceMemory::forget_stamps() {
  for (const auto& [address, buffer] : buffers_) {
    buffer->shadow.reset(buffer->size);
    buffer->sectors_of = 0;
  }
}

}  // namespace tigon::emulator
