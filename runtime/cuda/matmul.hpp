// Matrix products on a GPU through cuBLASLt, found at run time: preparation off the hot path, then calls on a stream.
#pragma once
#include <memory>

#include "runtime/cuda/driver.hpp"
#include "runtime/matmul_layout.hpp"

namespace tigon::runtime {

// How a search for cuBLASLt went. A driver that brings its functions along is asked first.
LibrarySearch search_cublas();
// Whether it is there; looked for once.
bool has_cublas();

// One contraction with its descriptors and the library's chosen algorithms, immutable. The algorithms add in a fixed
// order, so equal versions of the library give equal bits.
class CudaMatmul {
 public:
  // Throws Error{device} without cuBLASLt, Error{usage} for a contraction that it cannot do.
  CudaMatmul(const MatmulSpec& spec, const CudaDevice& device);
  ~CudaMatmul();
  CudaMatmul(const CudaMatmul&) = delete;
  CudaMatmul& operator=(const CudaMatmul&) = delete;

  [[nodiscard]] std::size_t workspace_bytes() const;
  // Enqueues the product. The device's context is current.
  void execute(cuda_c::Pointer a, cuda_c::Pointer b, cuda_c::Pointer c, void* workspace, cuda_c::Stream stream) const;

  struct Parts;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace tigon::runtime
