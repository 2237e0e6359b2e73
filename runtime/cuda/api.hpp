// The part of the CUDA driver API that Tigon uses, written by hand: one row per function, no CUDA header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tigon::runtime::cuda_c {

using Result = int;
inline constexpr Result success = 0;
inline constexpr Result out_of_memory = 2;
inline constexpr Result no_binary_for_gpu = 209;

using Pointer = unsigned long long;  // into a device's memory
using Device = int;
struct ContextState;
struct StreamState;
struct LibraryState;
struct KernelState;
struct FunctionState;
struct EventState;
using Context = ContextState*;
using Stream = StreamState*;
using Library = LibraryState*;
using Kernel = KernelState*;
using Function = FunctionState*;
using Event = EventState*;

// As in cuda.h; launch attributes are not used.
struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  void* attributes = nullptr;
  unsigned attribute_count = 0;
};

inline constexpr int attribute_multiprocessors = 16;
inline constexpr int attribute_threads_per_multiprocessor = 39;
inline constexpr int attribute_capability_major = 75;
inline constexpr int attribute_capability_minor = 76;
inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned host_portable_and_mapped = 3;

// ROW(field, name in the driver, type). Names without version suffixes: cuGetProcAddress finds those of driver 12.0.
#define TIGON_CUDA_API(ROW)                                                                                 \
  ROW(init, cuInit, Result(unsigned))                                                                       \
  ROW(driver_version, cuDriverGetVersion, Result(int*))                                                     \
  ROW(error_name, cuGetErrorName, Result(Result, const char**))                                             \
  ROW(error_text, cuGetErrorString, Result(Result, const char**))                                           \
  ROW(device_count, cuDeviceGetCount, Result(int*))                                                         \
  ROW(device_get, cuDeviceGet, Result(Device*, int ordinal))                                                \
  ROW(device_name, cuDeviceGetName, Result(char*, int length, Device))                                      \
  ROW(device_attribute, cuDeviceGetAttribute, Result(int*, int attribute, Device))                          \
  ROW(device_memory, cuDeviceTotalMem, Result(std::size_t*, Device))                                        \
  ROW(context_retain, cuDevicePrimaryCtxRetain, Result(Context*, Device))                                   \
  ROW(context_get, cuCtxGetCurrent, Result(Context*))                                                       \
  ROW(context_set, cuCtxSetCurrent, Result(Context))                                                        \
  ROW(context_synchronize, cuCtxSynchronize, Result())                                                      \
  ROW(allocate, cuMemAlloc, Result(Pointer*, std::size_t))                                                  \
  ROW(release, cuMemFree, Result(Pointer))                                                                  \
  ROW(allocate_async, cuMemAllocAsync, Result(Pointer*, std::size_t, Stream))                               \
  ROW(release_async, cuMemFreeAsync, Result(Pointer, Stream))                                               \
  ROW(host_allocate, cuMemHostAlloc, Result(void**, std::size_t, unsigned))                                 \
  ROW(host_release, cuMemFreeHost, Result(void*))                                                           \
  ROW(host_pointer, cuMemHostGetDevicePointer, Result(Pointer*, void*, unsigned))                           \
  ROW(to_device_async, cuMemcpyHtoDAsync, Result(Pointer, const void*, std::size_t, Stream))                \
  ROW(to_host_async, cuMemcpyDtoHAsync, Result(void*, Pointer, std::size_t, Stream))                        \
  ROW(on_device_async, cuMemcpyDtoDAsync, Result(Pointer, Pointer, std::size_t, Stream))                    \
  ROW(fill_8_async, cuMemsetD8Async, Result(Pointer, unsigned char, std::size_t, Stream))                   \
  ROW(fill_16_async, cuMemsetD16Async, Result(Pointer, unsigned short, std::size_t, Stream))                \
  ROW(fill_32_async, cuMemsetD32Async, Result(Pointer, unsigned, std::size_t, Stream))                      \
  ROW(fill_rows_8_async, cuMemsetD2D8Async,                                                                 \
      Result(Pointer, std::size_t pitch, unsigned char, std::size_t width, std::size_t height, Stream))     \
  ROW(fill_rows_16_async, cuMemsetD2D16Async,                                                               \
      Result(Pointer, std::size_t pitch, unsigned short, std::size_t width, std::size_t height, Stream))    \
  ROW(fill_rows_32_async, cuMemsetD2D32Async,                                                               \
      Result(Pointer, std::size_t pitch, unsigned, std::size_t width, std::size_t height, Stream))          \
  ROW(stream_create, cuStreamCreate, Result(Stream*, unsigned flags))                                       \
  ROW(stream_destroy, cuStreamDestroy, Result(Stream))                                                      \
  ROW(stream_synchronize, cuStreamSynchronize, Result(Stream))                                              \
  ROW(stream_capturing, cuStreamIsCapturing, Result(Stream, int*))                                          \
  ROW(event_create, cuEventCreate, Result(Event*, unsigned flags))                                          \
  ROW(event_destroy, cuEventDestroy, Result(Event))                                                         \
  ROW(event_record, cuEventRecord, Result(Event, Stream))                                                   \
  ROW(event_synchronize, cuEventSynchronize, Result(Event))                                                 \
  ROW(event_elapsed, cuEventElapsedTime, Result(float* milliseconds, Event, Event))                         \
  ROW(library_load, cuLibraryLoadData,                                                                      \
      Result(Library*, const void* code, int* options, void** values, unsigned count, int* library_options, \
             void** library_values, unsigned library_count))                                                \
  ROW(library_unload, cuLibraryUnload, Result(Library))                                                     \
  ROW(library_kernel, cuLibraryGetKernel, Result(Kernel*, Library, const char*))                            \
  ROW(kernel_function, cuKernelGetFunction, Result(Function*, Kernel))                                      \
  ROW(launch, cuLaunchKernelEx, Result(const LaunchConfig*, Function, void** parameters, void** extra))

struct Api {
#define TIGON_CUDA_FIELD(field, name, ...) std::add_pointer_t<__VA_ARGS__> field = nullptr;
  TIGON_CUDA_API(TIGON_CUDA_FIELD)
#undef TIGON_CUDA_FIELD
};

}  // namespace tigon::runtime::cuda_c
