// Tensors as memory: doubles into a dtype's bytes and back, and arguments of any size for benchmarks.
#pragma once
#include "choice.hpp"
#include "tigon/buffer.hpp"

namespace tigon::tools {

// Memory of the host or a device, with a dense layout.
struct Tensor {
  Storage memory;
  detail::RawBuffer raw;
};
Tensor allocate(DType dtype, const std::vector<std::int64_t>& extents, Device device = Device::cpu());
// Fills the host's tensor with these values, repeated as often as it takes.
void fill(const Tensor& tensor, const std::vector<double>& values);
std::vector<double> read(const detail::RawBuffer& raw);  // memory of the host
// A copy on the stream's device, or on the host, made before it returns.
Tensor to_device(const Stream& stream, const Tensor& tensor);
Tensor to_host(const Stream& stream, const detail::RawBuffer& raw);

std::int64_t element_count(const detail::RawBuffer& raw);
std::vector<std::int64_t> extents_of(const std::vector<dsl::AxisId>& axes, const dsl::Extents& extents);

}  // namespace tigon::tools
