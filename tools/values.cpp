// Conversions between doubles and stored values.
#include "values.hpp"

#include <cstring>

namespace tigon::tools {
namespace {

template <class Visit>
void visit_dtype(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::boolean:
      return visit(std::uint8_t{});
    case DType::i32:
      return visit(i32{});
    case DType::i64:
      return visit(i64{});
    case DType::f16:
      return visit(f16{});
    case DType::bf16:
      return visit(bf16{});
    case DType::f32:
      return visit(f32{});
    case DType::f64:
      return visit(f64{});
  }
}

template <class T>
T narrow(double value) {
  if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, f16>) {
    return to_f16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
double widen(T value) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
    return static_cast<double>(to_f32(value));
  } else {
    return static_cast<double>(value);
  }
}

}  // namespace

std::int64_t element_count(const detail::RawBuffer& raw) {
  std::int64_t count = 1;
  for (std::size_t d = 0; d < raw.rank; ++d) count *= raw.extents[d];
  return count;
}

std::vector<std::int64_t> extents_of(const std::vector<dsl::AxisId>& axes, const dsl::Extents& extents) {
  std::vector<std::int64_t> result;
  for (const dsl::AxisId axis : axes) result.push_back(extents[axis]);
  return result;
}

Tensor allocate(DType dtype, const std::vector<std::int64_t>& extents, Device device) {
  detail::RawBuffer raw;
  raw.dtype = dtype;
  raw.rank = static_cast<std::uint8_t>(extents.size());
  std::int64_t stride = 1;
  for (std::size_t d = extents.size(); d-- > 0;) {
    raw.extents[d] = extents[d];
    raw.strides[d] = stride;
    stride *= std::max<std::int64_t>(extents[d], 1);
  }
  const auto bytes = static_cast<std::size_t>(element_count(raw) * size_of(dtype));
  Tensor tensor{Storage(std::max<std::size_t>(bytes, 64), device), raw};
  tensor.raw.device = device;
  tensor.raw.pointer = tensor.memory.data();
  return tensor;
}

void fill(const Tensor& tensor, const std::vector<double>& values) {
  const auto count = static_cast<std::size_t>(element_count(tensor.raw));
  if (values.empty()) return;
  visit_dtype(tensor.raw.dtype, [&]<class T>(T) {
    auto* bytes = static_cast<std::byte*>(tensor.memory.data());
    const std::size_t drawn = std::min(count, values.size());
    for (std::size_t i = 0; i < drawn; ++i) {
      const T value = narrow<T>(values[i]);
      std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
    }
    for (std::size_t done = drawn; done < count;) {  // doubles what is there
      const std::size_t more = std::min(done / drawn * drawn, count - done);
      std::memcpy(bytes + done * sizeof(T), bytes, more * sizeof(T));
      done += more;
    }
  });
}

std::vector<double> read(const detail::RawBuffer& raw) {
  std::vector<double> values(static_cast<std::size_t>(element_count(raw)));
  visit_dtype(raw.dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, static_cast<const std::byte*>(raw.pointer) + i * sizeof(T), sizeof(T));
      values[i] = widen(value);
    }
  });
  return values;
}

Tensor to_device(const Stream& stream, const Tensor& tensor) {
  const detail::RawBuffer& raw = tensor.raw;
  Tensor there = allocate(raw.dtype, {raw.extents.begin(), raw.extents.begin() + raw.rank}, stream.device());
  detail::copy_buffer(stream, there.raw, raw);
  stream.synchronize();
  return there;
}

Tensor to_host(const Stream& stream, const detail::RawBuffer& raw) {
  Tensor here = allocate(raw.dtype, {raw.extents.begin(), raw.extents.begin() + raw.rank});
  detail::copy_buffer(stream, here.raw, raw);
  stream.synchronize();
  return here;
}

}  // namespace tigon::tools
