// The emulated driver's functions about memory: allocation, copies, fills, facts about pointers.
#include <algorithm>
#include <cstring>

#include "runtime/emulator/driver.hpp"

namespace tigon::emulator::driver {

namespace {

Result allocate(Pointer* pointer, std::size_t bytes) {
  return guarded([&](Driver& driver) {
    if (pointer == nullptr || bytes == 0) return driver.fail(invalid_value, "an allocation of no bytes");
    if (driver.capturing()) return driver.fail(stream_capture_unsupported, "an allocation while a stream is captured");
    auto& memory = driver.machine->memory;
    if (bytes > driver.facts->memory_bytes - std::min(driver.facts->memory_bytes, memory.bytes_in_use())) {
      return driver.fail(out_of_memory, fmt::format("{} bytes where {} of {} are in use", bytes, memory.bytes_in_use(),
                                                    driver.facts->memory_bytes));
    }
    *pointer = memory.allocate(bytes, fmt::format("allocation of {} bytes", bytes)).address;
    return success;
  });
}

Result allocate_async(Pointer* pointer, std::size_t bytes, Stream* stream) {
  return guarded([&](Driver& driver) {
    if (!driver.known(stream)) return driver.fail(invalid_handle, "the stream does not exist");
    return allocate(pointer, bytes);
  });
}

Result release(Pointer pointer) {
  return guarded([&](Driver& driver) {
    if (pointer == 0) return success;
    driver.drain_all();
    if (!driver.machine->memory.release(pointer)) return driver.fail(invalid_value, "no such allocation to free");
    return success;
  });
}

Result release_async(Pointer pointer, Stream* stream) {
  return guarded([&](Driver& driver) {
    if (pointer == 0) return success;
    if (driver.machine->memory.find(pointer, 1) == nullptr)
      return driver.fail(invalid_value, "no such allocation to free");
    return driver.enqueue(stream, [&driver, pointer] { driver.machine->memory.release(pointer); });
  });
}

Result memory_info(std::size_t* free_bytes, std::size_t* total) {
  return guarded([&](Driver& driver) {
    *total = driver.facts->memory_bytes;
    *free_bytes =
        driver.facts->memory_bytes - std::min(driver.facts->memory_bytes, driver.machine->memory.bytes_in_use());
    return success;
  });
}

Result allocate_host(void** pointer, std::size_t bytes) {
  return guarded([&](Driver& driver) {
    auto storage = std::make_unique<std::uint8_t[]>(std::max<std::size_t>(bytes, 1) + 16);
    *pointer = storage.get();
    driver.machine->memory.adopt_host(*pointer, bytes);
    driver.pinned[*pointer] = std::move(storage);
    return success;
  });
}
Result allocate_host_flags(void** pointer, std::size_t bytes, unsigned int) { return allocate_host(pointer, bytes); }

Result release_host(void* pointer) {
  return guarded([&](Driver& driver) {
    driver.drain_all();
    const auto at = driver.pinned.find(pointer);
    if (at == driver.pinned.end()) return driver.fail(invalid_value, "no such pinned memory to free");
    driver.machine->memory.release(reinterpret_cast<std::uint64_t>(pointer));
    driver.pinned.erase(at);
    return success;
  });
}

Result host_pointer(Pointer* device, void* host, unsigned int) {
  return guarded([&](Driver& driver) {
    if (driver.machine->memory.find(reinterpret_cast<std::uint64_t>(host), 1) == nullptr) {
      return driver.fail(invalid_value, "no pinned memory is there");
    }
    *device = reinterpret_cast<Pointer>(host);
    return success;
  });
}

// A place in device memory, pinned memory, or plain host memory.
struct Place {
  Buffer* buffer = nullptr;
  std::uint8_t* bytes = nullptr;
  std::uint8_t* state = nullptr;
};

bool locate(Driver& driver, std::uint64_t address, std::size_t count, bool device_only, Place& place) {
  place.buffer = driver.machine->memory.find(address, count);
  if (place.buffer != nullptr) {
    place.bytes = place.buffer->data + (address - place.buffer->address);
    place.state = place.buffer->state.data() + (address - place.buffer->address);
    return true;
  }
  const auto* nearest = driver.machine->memory.nearest(address);
  const bool on_device = address >= heap_begin && nearest != nullptr && !nearest->on_host &&
                         address < heap_begin + (std::uint64_t{1} << 44);
  if (device_only || on_device) return false;
  place.bytes = reinterpret_cast<std::uint8_t*>(address);
  return true;
}

void set_state(std::uint8_t* state, std::size_t count, std::uint8_t value) {
  for (std::size_t i = 0; i < count; ++i) {
    state[i] = static_cast<std::uint8_t>((state[i] & state_forbidden) | value);
  }
}

void move_bytes(const Place& to, const Place& from, std::size_t count) {
  std::memmove(to.bytes, from.bytes, count);
  if (to.state == nullptr) return;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = from.state == nullptr ? state_initialized : from.state[i] & state_initialized;
    to.state[i] = static_cast<std::uint8_t>((to.state[i] & state_forbidden) | value);
  }
}

// Copies of memory that moved or went away in the meantime do nothing but fail.
Result copy_when_due(Driver& driver, std::uint64_t to, std::uint64_t from, std::size_t count, bool to_device,
                     bool from_device) {
  Place target;
  Place source;
  if (!locate(driver, to, count, to_device, target) || !locate(driver, from, count, from_device, source)) {
    return driver.fail(invalid_value,
                       fmt::format("a copy of {} bytes from {:#x} to {:#x} leaves an allocation", count, from, to));
  }
  move_bytes(target, source, count);
  return success;
}

Result copy(std::uint64_t to, std::uint64_t from, std::size_t count, Stream* stream, bool to_device, bool from_device,
            bool asynchronous) {
  return guarded([&](Driver& driver) {
    if (count == 0) return success;
    Place target;
    Place source;
    if (!locate(driver, to, count, to_device, target) || !locate(driver, from, count, from_device, source)) {
      return driver.fail(invalid_value,
                         fmt::format("a copy of {} bytes from {:#x} to {:#x} leaves an allocation", count, from, to));
    }
    if (!asynchronous) {
      if (driver.capturing()) return driver.fail(stream_capture_unsupported, "a copy while a stream is captured");
      driver.drain_blocking();
      if (driver.status() != success) return driver.status();
      return copy_when_due(driver, to, from, count, to_device, from_device);
    }
    const bool captured = driver.known(stream) && driver.resolve(stream).capture != nullptr;
    // Pageable memory is read before the call returns, and written before it returns.
    if (source.buffer == nullptr && !captured) {
      auto bytes = std::make_shared<std::vector<std::uint8_t>>(source.bytes, source.bytes + count);
      return driver.enqueue(stream, [&driver, to, count, bytes] {
        Place place;
        if (!locate(driver, to, count, true, place)) return;
        std::memcpy(place.bytes, bytes->data(), count);
        set_state(place.state, count, state_initialized);
      });
    }
    const auto result = driver.enqueue(stream, [&driver, to, from, count, to_device, from_device] {
      copy_when_due(driver, to, from, count, to_device, from_device);
    });
    if (result != success) return result;
    if (target.buffer == nullptr && !captured) {
      driver.drain(driver.resolve(stream));
      return driver.status();
    }
    return success;
  });
}

std::uint64_t host(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

Result to_device(Pointer to, const void* from, std::size_t n) {
  return copy(to, host(from), n, nullptr, true, false, false);
}
Result to_host(void* to, Pointer from, std::size_t n) { return copy(host(to), from, n, nullptr, false, true, false); }
Result on_device(Pointer to, Pointer from, std::size_t n) { return copy(to, from, n, nullptr, true, true, false); }
Result any_way(Pointer to, Pointer from, std::size_t n) { return copy(to, from, n, nullptr, false, false, false); }
Result to_device_async(Pointer to, const void* from, std::size_t n, Stream* stream) {
  return copy(to, host(from), n, stream, true, false, true);
}
Result to_host_async(void* to, Pointer from, std::size_t n, Stream* stream) {
  return copy(host(to), from, n, stream, false, true, true);
}
Result on_device_async(Pointer to, Pointer from, std::size_t n, Stream* stream) {
  return copy(to, from, n, stream, true, true, true);
}
Result any_way_async(Pointer to, Pointer from, std::size_t n, Stream* stream) {
  return copy(to, from, n, stream, false, false, true);
}

template <class T>
Result fill_async(Pointer to, T value, std::size_t count, Stream* stream) {
  return guarded([&](Driver& driver) {
    if (count == 0) return success;
    Place place;
    if (to % sizeof(T) != 0 || !locate(driver, to, count * sizeof(T), true, place)) {
      return driver.fail(invalid_value,
                         fmt::format("a fill of {} bytes at {:#x} leaves an allocation", count * sizeof(T), to));
    }
    return driver.enqueue(stream, [&driver, to, value, count] {
      Place due;
      if (!locate(driver, to, count * sizeof(T), true, due)) return;
      for (std::size_t i = 0; i < count; ++i) std::memcpy(due.bytes + i * sizeof(T), &value, sizeof(T));
      set_state(due.state, count * sizeof(T), state_initialized);
    });
  });
}
Result fill_8_async(Pointer to, unsigned char value, std::size_t n, Stream* s) { return fill_async(to, value, n, s); }
Result fill_16_async(Pointer to, unsigned short value, std::size_t n, Stream* s) { return fill_async(to, value, n, s); }
Result fill_32_async(Pointer to, unsigned int value, std::size_t n, Stream* s) { return fill_async(to, value, n, s); }

// `height` rows of `width` elements, `pitch` bytes apart.
template <class T>
Result fill_rows(Pointer to, std::size_t pitch, T value, std::size_t width, std::size_t height, Stream* stream) {
  if (height > 1 && pitch < width * sizeof(T)) {
    return guarded([&](Driver& driver) {
      return driver.fail(invalid_value, fmt::format("rows of {} bytes lie {} apart", width * sizeof(T), pitch));
    });
  }
  for (std::size_t row = 0; row < height; ++row) {
    const Result result = fill_async(to + row * pitch, value, width, stream);
    if (result != success) return result;
  }
  return success;
}
Result fill_rows_8(Pointer to, std::size_t pitch, unsigned char value, std::size_t w, std::size_t h, Stream* s) {
  return fill_rows(to, pitch, value, w, h, s);
}
Result fill_rows_16(Pointer to, std::size_t pitch, unsigned short value, std::size_t w, std::size_t h, Stream* s) {
  return fill_rows(to, pitch, value, w, h, s);
}
Result fill_rows_32(Pointer to, std::size_t pitch, unsigned int value, std::size_t w, std::size_t h, Stream* s) {
  return fill_rows(to, pitch, value, w, h, s);
}
Result fill_8(Pointer to, unsigned char value, std::size_t n) { return fill_async(to, value, n, nullptr); }
Result fill_16(Pointer to, unsigned short value, std::size_t n) { return fill_async(to, value, n, nullptr); }
Result fill_32(Pointer to, unsigned int value, std::size_t n) { return fill_async(to, value, n, nullptr); }

Result pointer_attribute(void* data, int attribute, Pointer pointer) {
  return guarded([&](Driver& driver) {
    const auto* buffer = driver.machine->memory.find(pointer, 0);
    if (buffer == nullptr) return driver.fail(invalid_value, "the pointer belongs to no allocation");
    switch (attribute) {
      case 1:
        *static_cast<Context**>(data) = &driver.primary;
        return success;
      case 2:  // host memory is 1, device memory 2
        *static_cast<unsigned int*>(data) = buffer->on_host ? 1 : 2;
        return success;
      case 3:
        *static_cast<Pointer*>(data) = pointer;
        return success;
      case 4:
        if (!buffer->on_host) return driver.fail(invalid_value, "device memory has no host address");
        *static_cast<void**>(data) = reinterpret_cast<void*>(pointer);
        return success;
      case 7:
        *static_cast<unsigned long long*>(data) = buffer->address;
        return success;
      case 8:  // managed
        *static_cast<unsigned int*>(data) = 0;
        return success;
      case 9:  // the device's number
        *static_cast<int*>(data) = 0;
        return success;
      case 11:
        *static_cast<Pointer*>(data) = buffer->address;
        return success;
      case 12:
        *static_cast<std::size_t*>(data) = buffer->size;
        return success;
      default:
        return driver.fail(not_supported, fmt::format("pointer attribute {}", attribute));
    }
  });
}

Result address_range(Pointer* base, std::size_t* size, Pointer pointer) {
  return guarded([&](Driver& driver) {
    const auto* buffer = driver.machine->memory.find(pointer, 0);
    if (buffer == nullptr) return driver.fail(not_found, "the pointer belongs to no allocation");
    if (base != nullptr) *base = buffer->address;
    if (size != nullptr) *size = buffer->size;
    return success;
  });
}

// Pools only keep freed memory, which the emulated device never reuses.
Result default_pool(void** pool, Device) {
  return guarded([&](Driver& driver) {
    *pool = &driver.primary;
    return success;
  });
}
Result pool_attribute(void*, int, void*) {
  return guarded([](Driver&) { return success; });
}

}  // namespace

std::vector<EntryPoint> memory_entry_points() {
  return {
      {"cuMemAlloc", address_of(allocate)},
      {"cuMemAlloc_v2", address_of(allocate)},
      {"cuMemAllocAsync", address_of(allocate_async)},
      {"cuMemFree", address_of(release)},
      {"cuMemFree_v2", address_of(release)},
      {"cuMemFreeAsync", address_of(release_async)},
      {"cuMemGetInfo", address_of(memory_info)},
      {"cuMemGetInfo_v2", address_of(memory_info)},
      {"cuMemAllocHost", address_of(allocate_host)},
      {"cuMemAllocHost_v2", address_of(allocate_host)},
      {"cuMemHostAlloc", address_of(allocate_host_flags)},
      {"cuMemFreeHost", address_of(release_host)},
      {"cuMemHostGetDevicePointer", address_of(host_pointer)},
      {"cuMemHostGetDevicePointer_v2", address_of(host_pointer)},
      {"cuMemcpy", address_of(any_way)},
      {"cuMemcpyAsync", address_of(any_way_async)},
      {"cuMemcpyHtoD", address_of(to_device)},
      {"cuMemcpyHtoD_v2", address_of(to_device)},
      {"cuMemcpyDtoH", address_of(to_host)},
      {"cuMemcpyDtoH_v2", address_of(to_host)},
      {"cuMemcpyDtoD", address_of(on_device)},
      {"cuMemcpyDtoD_v2", address_of(on_device)},
      {"cuMemcpyHtoDAsync", address_of(to_device_async)},
      {"cuMemcpyHtoDAsync_v2", address_of(to_device_async)},
      {"cuMemcpyDtoHAsync", address_of(to_host_async)},
      {"cuMemcpyDtoHAsync_v2", address_of(to_host_async)},
      {"cuMemcpyDtoDAsync", address_of(on_device_async)},
      {"cuMemcpyDtoDAsync_v2", address_of(on_device_async)},
      {"cuMemsetD8", address_of(fill_8)},
      {"cuMemsetD8_v2", address_of(fill_8)},
      {"cuMemsetD16", address_of(fill_16)},
      {"cuMemsetD16_v2", address_of(fill_16)},
      {"cuMemsetD32", address_of(fill_32)},
      {"cuMemsetD32_v2", address_of(fill_32)},
      {"cuMemsetD2D8Async", address_of(fill_rows_8)},
      {"cuMemsetD2D16Async", address_of(fill_rows_16)},
      {"cuMemsetD2D32Async", address_of(fill_rows_32)},
      {"cuMemsetD8Async", address_of(fill_8_async)},
      {"cuMemsetD16Async", address_of(fill_16_async)},
      {"cuMemsetD32Async", address_of(fill_32_async)},
      {"cuPointerGetAttribute", address_of(pointer_attribute)},
      {"cuMemGetAddressRange", address_of(address_range)},
      {"cuMemGetAddressRange_v2", address_of(address_range)},
      {"cuDeviceGetDefaultMemPool", address_of(default_pool)},
      {"cuDeviceGetMemPool", address_of(default_pool)},
      {"cuMemPoolSetAttribute", address_of(pool_attribute)},
  };
}

}  // namespace tigon::emulator::driver
