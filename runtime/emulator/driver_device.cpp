// The emulated driver's functions about devices, contexts, errors and function addresses.
#include <algorithm>
#include <cstring>

#include "runtime/emulator/driver.hpp"

namespace tigon::emulator::driver {

namespace {

Result initialize(unsigned int flags) {
  auto& driver = Driver::instance();
  const std::lock_guard lock(driver.mutex);
  if (flags != 0) return driver.fail(invalid_value, "cuInit takes no flags");
  if (driver.unknown_device) {
    std::string known;
    for (const auto& row : device_table()) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.key);
    return driver.fail(invalid_device, fmt::format("TIGON_EMULATED_GPU names no device that is known: {}", known));
  }
  driver.initialized = true;
  return success;
}

Result driver_version(int* version) {
  if (version == nullptr) return invalid_value;
  *version = 13000;
  return success;
}

Result error_name(Result result, const char** name) {
  if (name == nullptr) return invalid_value;
  *name = result_name(result);
  return *name == nullptr ? invalid_value : success;
}

// The text of an error that a kernel caused tells which, where: the ordinary path of messages carries it.
Result error_string(Result result, const char** text) {
  if (text == nullptr) return invalid_value;
  *text = result_text(result);
  if (*text == nullptr) return invalid_value;
  auto& driver = Driver::instance();
  const std::lock_guard lock(driver.mutex);
  if (result != success && !driver.error.empty()) {
    static thread_local std::string whole;
    whole = fmt::format("{} (emulated device: {})", *text, driver.error);
    *text = whole.c_str();
  }
  return success;
}

Result device_count(int* count) {
  return guarded([&](Driver&) {
    *count = 1;
    return success;
  });
}

Result device_get(Device* device, int ordinal) {
  return guarded([&](Driver& driver) {
    if (ordinal != 0) return driver.fail(invalid_device, "there is one device, 0");
    *device = 0;
    return success;
  });
}

Result device_name(char* name, int length, Device device) {
  return guarded([&](Driver& driver) {
    if (device != 0 || length < 1) return driver.fail(invalid_device, "there is one device, 0");
    const auto count = std::min(static_cast<std::size_t>(length - 1), driver.facts->name.size());
    std::memcpy(name, driver.facts->name.data(), count);
    name[count] = 0;
    return success;
  });
}

Result device_uuid(Uuid* uuid, Device device) {
  return guarded([&](Driver& driver) {
    if (device != 0) return driver.fail(invalid_device, "there is one device, 0");
    std::memset(uuid->bytes, 0, sizeof uuid->bytes);
    std::memcpy(uuid->bytes, "emulated", 8);
    std::memcpy(uuid->bytes + 8, driver.facts->key.data(), std::min<std::size_t>(8, driver.facts->key.size()));
    return success;
  });
}

Result device_memory(std::size_t* bytes, Device device) {
  return guarded([&](Driver& driver) {
    if (device != 0) return driver.fail(invalid_device, "there is one device, 0");
    *bytes = driver.facts->memory_bytes;
    return success;
  });
}

int attribute_of(const DeviceFacts& facts, int attribute) {
  switch (attribute) {
    case 1:  // threads of a block
    case 2:
    case 3:
      return 1024;
    case 4:
      return 64;
    case 5:
      return 0x7fffffff;
    case 6:
    case 7:
      return 65535;
    case 8:  // shared memory of a block without opting in
      return 48 * 1024;
    case 9:  // constant memory
      return 65536;
    case 10:  // lanes of a warp
      return 32;
    case 11:  // pitch of two-dimensional copies
      return 0x7fffffff;
    case 12:  // registers of a block
    case 82:  // registers of a multiprocessor
      return 65536;
    case 13:
      return facts.clock_khz;
    case 14:  // texture alignment
      return 512;
    case 16:
      return facts.multiprocessors;
    case 19:   // host memory can be mapped
    case 31:   // kernels run concurrently
    case 41:   // unified addresses
    case 78:   // priorities of streams
    case 95:   // cooperative launch
    case 115:  // pools of memory
      return 1;
    case 32:  // error correction
      return facts.memory_bus_bits >= 1024 ? 1 : 0;
    case 36:
      return facts.memory_clock_khz;
    case 37:
      return facts.memory_bus_bits;
    case 38:
      return facts.l2_bytes;
    case 39:
      return facts.threads_per_multiprocessor;
    case 40:  // copy engines
      return 3;
    case 75:
      return facts.major;
    case 76:
      return facts.minor;
    case 81:
      return facts.shared_per_multiprocessor;
    case 97:
      return facts.shared_per_block;
    case 106:
      return facts.blocks_per_multiprocessor;
    case 111:  // shared memory of a block that the driver keeps
      return 1024;
    case 120:  // clusters
      return facts.major >= 9 ? 1 : 0;
    default:
      return 0;
  }
}

Result device_attribute(int* value, int attribute, Device device) {
  return guarded([&](Driver& driver) {
    if (device != 0) return driver.fail(invalid_device, "there is one device, 0");
    if (attribute < 1 || attribute > 200)
      return driver.fail(invalid_value, fmt::format("no device attribute {}", attribute));
    *value = attribute_of(*driver.facts, attribute);
    return success;
  });
}

Result compute_capability(int* major, int* minor, Device device) {
  return guarded([&](Driver& driver) {
    if (device != 0) return driver.fail(invalid_device, "there is one device, 0");
    *major = driver.facts->major;
    *minor = driver.facts->minor;
    return success;
  });
}

Result retain_primary(Context** context, Device device) {
  return guarded([&](Driver& driver) {
    if (device != 0) return driver.fail(invalid_device, "there is one device, 0");
    ++driver.primary.references;
    *context = &driver.primary;
    return success;
  });
}

Result release_primary(Device device) {
  return guarded([&](Driver& driver) {
    if (device != 0) return driver.fail(invalid_device, "there is one device, 0");
    if (driver.primary.references == 0) return driver.fail(invalid_context, "the primary context is not retained");
    --driver.primary.references;
    return success;
  });
}

Result primary_state(Device device, unsigned int* flags, int* active) {
  return guarded([&](Driver& driver) {
    if (device != 0) return driver.fail(invalid_device, "there is one device, 0");
    *flags = 0;
    *active = driver.primary.references > 0 ? 1 : 0;
    return success;
  });
}

Result get_current(Context** context) {
  return guarded([&](Driver& driver) {
    *context = driver.current;
    return success;
  });
}

Result set_current(Context* context) {
  return guarded([&](Driver& driver) {
    if (context != nullptr && context != &driver.primary) return driver.fail(invalid_context, "no such context");
    driver.current = context;
    return success;
  });
}

Result push_current(Context* context) { return set_current(context); }
Result pop_current(Context** context) {
  return guarded([&](Driver& driver) {
    if (context != nullptr) *context = driver.current;
    driver.current = nullptr;
    return success;
  });
}

Result current_device(Device* device) {
  return guarded([&](Driver& driver) {
    if (driver.current == nullptr) return driver.fail(invalid_context, "no context is current");
    *device = 0;
    return success;
  });
}

Result synchronize() {
  return guarded([&](Driver& driver) {
    if (driver.capturing()) return driver.fail(stream_capture_unsupported, "a stream is being captured");
    driver.drain_all();
    return driver.status();
  });
}

// Names may carry the version of their signature; the plain name is the newest one, as for a request of version 12.
Result get_address(const char* name, void** function, int, std::uint64_t, int* found) {
  if (name == nullptr || function == nullptr) return invalid_value;
  *function = find_entry_point(name);
  if (found != nullptr) *found = *function == nullptr ? 1 : 0;
  return *function == nullptr ? not_found : success;
}

struct ResultRow {
  Result result;
  const char* name;
  const char* text;
};
constexpr ResultRow result_rows[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {no_binary_for_gpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {invalid_ptx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {not_found, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {not_ready, "CUDA_ERROR_NOT_READY", "device not ready"},
    {illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {launch_out_of_resources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {misaligned_address, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {launch_failed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {not_supported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {stream_capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {stream_capture_invalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {stream_capture_unmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not initiated in this stream"},
    {stream_capture_implicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {captured_event, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {invalid_cluster_size, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster configuration is invalid"},
    {unknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

}  // namespace

const char* result_name(Result result) {
  for (const auto& row : result_rows) {
    if (row.result == result) return row.name;
  }
  return nullptr;
}

const char* result_text(Result result) {
  for (const auto& row : result_rows) {
    if (row.result == result) return row.text;
  }
  return nullptr;
}

std::vector<EntryPoint> device_entry_points() {
  return {
      {"cuInit", address_of(initialize)},
      {"cuDriverGetVersion", address_of(driver_version)},
      {"cuGetProcAddress", address_of(get_address)},
      {"cuGetProcAddress_v2", address_of(get_address)},
      {"cuGetErrorName", address_of(error_name)},
      {"cuGetErrorString", address_of(error_string)},
      {"cuDeviceGetCount", address_of(device_count)},
      {"cuDeviceGet", address_of(device_get)},
      {"cuDeviceGetName", address_of(device_name)},
      {"cuDeviceGetUuid", address_of(device_uuid)},
      {"cuDeviceGetUuid_v2", address_of(device_uuid)},
      {"cuDeviceTotalMem", address_of(device_memory)},
      {"cuDeviceTotalMem_v2", address_of(device_memory)},
      {"cuDeviceGetAttribute", address_of(device_attribute)},
      {"cuDeviceComputeCapability", address_of(compute_capability)},
      {"cuDevicePrimaryCtxRetain", address_of(retain_primary)},
      {"cuDevicePrimaryCtxRelease", address_of(release_primary)},
      {"cuDevicePrimaryCtxRelease_v2", address_of(release_primary)},
      {"cuDevicePrimaryCtxGetState", address_of(primary_state)},
      {"cuCtxGetCurrent", address_of(get_current)},
      {"cuCtxSetCurrent", address_of(set_current)},
      {"cuCtxPushCurrent", address_of(push_current)},
      {"cuCtxPushCurrent_v2", address_of(push_current)},
      {"cuCtxPopCurrent", address_of(pop_current)},
      {"cuCtxPopCurrent_v2", address_of(pop_current)},
      {"cuCtxGetDevice", address_of(current_device)},
      {"cuCtxSynchronize", address_of(synchronize)},
  };
}

}  // namespace tigon::emulator::driver
