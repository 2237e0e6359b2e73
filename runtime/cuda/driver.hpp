// The CUDA driver found at run time, and its devices, each with the context that every program in a process shares.
#pragma once
#include <string>

#include "codegen/schedule/kernel.hpp"
#include "runtime/cuda/api.hpp"
#include "runtime/library.hpp"

namespace tigon::runtime {

struct CudaDevice {
  int ordinal = 0;
  cuda_c::Device handle = 0;
  cuda_c::Context context = nullptr;  // the primary one, retained until the process ends
  std::string name;                   // "NVIDIA H200"
  int major = 0, minor = 0;           // compute capability
  int multiprocessors = 0;
  int resident_threads = 0;  // of one multiprocessor
  std::size_t memory_bytes = 0;
};

class CudaDriver {
 public:
  // Loaded and initialised at the first call: libcuda, or what $TIGON_CUDA_DRIVER names. Throws Error{device} that
  // lists where it was looked for.
  static const CudaDriver& get();
  // What a search meets, without an exception.
  static LibrarySearch search();
  // Whether there is a driver with a device; never throws.
  static bool present();

  [[nodiscard]] const cuda_c::Api& api() const { return api_; }
  [[nodiscard]] const Library& library() const { return library_; }
  [[nodiscard]] bool emulated() const;                    // it runs kernels without a GPU
  [[nodiscard]] int version() const { return version_; }  // 12080 is 12.8
  [[nodiscard]] int device_count() const { return device_count_; }
  // Throws Error{device} for an ordinal that no device has.
  [[nodiscard]] const CudaDevice& device(int ordinal) const;

  // Throws Error{device} with the driver's words unless the result is success. `call` is the driver's function.
  void check(cuda_c::Result result, const char* call) const {
    if (result != cuda_c::success) [[unlikely]]
      refuse(result, call);
  }
  [[nodiscard]] std::string words(cuda_c::Result result) const;

 private:
  CudaDriver();
  [[noreturn]] void refuse(cuda_c::Result result, const char* call) const;
  Library library_;
  cuda_c::Api api_;
  int version_ = 0, device_count_ = 0;
};

// Makes a device's context the thread's current one, and gives the caller's back at the end.
class CurrentContext {
 public:
  explicit CurrentContext(const CudaDevice& device);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  cuda_c::Context before_ = nullptr;
  bool changed_ = false;
};

// The architecture that kernels for the device are compiled for, as NVRTC names it: "sm_90a", "sm_89".
std::string architecture_of(const CudaDevice& device);

// The planner's model of the device: rates of its architecture, counts of its own.
schedule::DeviceModel cuda_model(const CudaDevice& device);

}  // namespace tigon::runtime
