// A plan's kernels as binaries on a CUDA device: compiled by NVRTC, kept in the cache, loaded through the driver.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/cuda/printer.hpp"
#include "codegen/lower/cuda.hpp"
#include "codegen/plan/plan.hpp"
#include "runtime/build_kernels.hpp"
#include "runtime/cache/entry.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/device_program.hpp"

namespace tigon::runtime {

struct CudaKernel {
  cuda_c::Library library = nullptr;
  cuda_c::Function function = nullptr;
  int threads = 0;  // of a block
  ~CudaKernel();
};

// Where kernels say that a checked index is out of range: memory of the host that the device writes to.
class ErrorFlag {
 public:
  ErrorFlag(const CudaDevice& device, std::string function);
  ~ErrorFlag();
  ErrorFlag(const ErrorFlag&) = delete;
  ErrorFlag& operator=(const ErrorFlag&) = delete;
  [[nodiscard]] cuda_c::Pointer address() const { return address_; }

  // Throws Error{usage} naming the function whose flag is up on the device, and takes the flag down.
  static void report(const CudaDevice& device);

 private:
  const CudaDevice& device_;
  std::string function_;
  volatile std::int32_t* host_ = nullptr;
  cuda_c::Pointer address_ = 0;
};

struct CudaProgram {
  plan::Plan plan;
  const CudaDevice* device = nullptr;
  std::string architecture;
  std::unique_ptr<ErrorFlag> error;

  // The kernel for buffers of this class. Compiles at the first need; throws Error{usage} if the stream is being
  // captured then, for neither compiling nor loading may happen within a capture.
  const CudaKernel& kernel(std::uint32_t number, const lower::CudaClass& buffers, cuda_c::Stream stream) const;

  static constexpr std::size_t classes = 4;
  // By kernel and class; never replaced once set.
  mutable std::vector<std::array<std::atomic<const CudaKernel*>, classes>> kernels;
  mutable std::mutex mutex;  // guards making one
  ~CudaProgram();
};

// PTX and machine code for an architecture ("sm_90a"), compiled or found in the cache. Needs no device.
std::shared_ptr<const CacheEntry> cuda_binary(const cuda::CudaText& text, const std::string& architecture);

// Compiles (or finds in the cache) every kernel for aligned buffers without gaps, on all cores.
std::shared_ptr<const DeviceProgram> build_cuda_program(plan::Plan plan, const CudaDevice& device,
                                                        const Progress& progress = {});

}  // namespace tigon::runtime
