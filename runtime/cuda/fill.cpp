// The two innermost dimensions go into one call of the driver; values of eight bytes are written as two columns of
// four.
#include "runtime/cuda/fill.hpp"

namespace tigon::runtime {
namespace {

using Dimension = PreparedFill::Dimension;

// `rows` stretches of `width` elements each.
void fill_rows(cuda_c::Pointer target, std::int64_t rows, std::int64_t pitch, std::int64_t width, std::int64_t size,
               std::uint64_t bits, cuda_c::Stream stream) {
  const CudaDriver& driver = CudaDriver::get();
  const cuda_c::Api& api = driver.api();
  const auto height = static_cast<std::size_t>(rows), step = static_cast<std::size_t>(pitch);
  const auto count = static_cast<std::size_t>(width);
  const bool one = rows == 1 || pitch == width * size;
  const std::size_t all = count * height;
  if (size == 1) {
    driver.check(one ? api.fill_8_async(target, static_cast<unsigned char>(bits), all, stream)
                     : api.fill_rows_8_async(target, step, static_cast<unsigned char>(bits), count, height, stream),
                 "cuMemsetD8Async");
  } else if (size == 2) {
    driver.check(one ? api.fill_16_async(target, static_cast<unsigned short>(bits), all, stream)
                     : api.fill_rows_16_async(target, step, static_cast<unsigned short>(bits), count, height, stream),
                 "cuMemsetD16Async");
  } else if (size == 4) {
    driver.check(one ? api.fill_32_async(target, static_cast<unsigned>(bits), all, stream)
                     : api.fill_rows_32_async(target, step, static_cast<unsigned>(bits), count, height, stream),
                 "cuMemsetD32Async");
  } else if (static_cast<unsigned>(bits) == static_cast<unsigned>(bits >> 32)) {
    fill_rows(target, rows, pitch, width * 2, 4, bits & 0xffffffffu, stream);
  } else {
    for (std::int64_t row = 0; row < rows; ++row) {
      const cuda_c::Pointer start = target + static_cast<cuda_c::Pointer>(row * pitch);
      for (unsigned half = 0; half < 2; ++half) {
        driver.check(api.fill_rows_32_async(start + cuda_c::Pointer{4} * half, 8,
                                            static_cast<unsigned>(bits >> (32 * half)), 1, count, stream),
                     "cuMemsetD2D32Async");
      }
    }
  }
}

void fill_from(std::span<const Dimension> dimensions, cuda_c::Pointer target, std::int64_t size, std::uint64_t bits,
               cuda_c::Stream stream) {
  if (dimensions.empty()) return fill_rows(target, 1, size, 1, size, bits, stream);
  const Dimension& outer = dimensions.front();
  if (dimensions.size() == 1 && outer.byte_stride == size)
    return fill_rows(target, 1, size, outer.extent, size, bits, stream);
  if (dimensions.size() == 1) return fill_rows(target, outer.extent, outer.byte_stride, 1, size, bits, stream);
  if (dimensions.size() == 2 && dimensions[1].byte_stride == size && outer.byte_stride > 0)
    return fill_rows(target, outer.extent, outer.byte_stride, dimensions[1].extent, size, bits, stream);
  for (std::int64_t i = 0; i < outer.extent; ++i)
    fill_from(dimensions.subspan(1), target + static_cast<cuda_c::Pointer>(i * outer.byte_stride), size, bits, stream);
}

}  // namespace

void fill_memory(const PreparedFill& fill, cuda_c::Pointer target, cuda_c::Stream stream) {
  for (const Dimension& dimension : fill.dimensions) {
    if (dimension.extent == 0) return;
  }
  fill_from(fill.dimensions, target, size_of(fill.dtype), scalar_bits(fill.dtype, fill.value), stream);
}

}  // namespace tigon::runtime
