// What a launch is given: Buffer, a typed view of memory that it does not own; Owned, which does; Gradient.
#pragma once
#include <array>
#include <memory>
#include <span>

#include "tigon/detail/compiled.hpp"
#include "tigon/detail/signature.hpp"

namespace tigon {

// Extents and strides in elements, outermost axis first, in the signature's order.
template <int rank>
using Index = std::array<std::int64_t, rank>;

template <int rank>
constexpr Index<rank> dense_strides(const Index<rank>& extents) {
  Index<rank> strides{};
  std::uint64_t step = 1;  // wraps for extents that no memory has; whoever takes the buffer refuses those
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = static_cast<std::int64_t>(step);
    step *= static_cast<std::uint64_t>(extents[i]);
  }
  return strides;
}

namespace detail {
// Of a list in braces, which names every extent: one that is left out would be 0.
template <int rank, std::size_t count>
constexpr tigon::Index<rank> index_of(const std::int64_t (&list)[count]) {
  static_assert(count == static_cast<std::size_t>(rank),
                "tigon: a buffer takes one extent, and one stride, for each axis of its signature, outermost first.");
  tigon::Index<rank> index{};
  for (std::size_t i = 0; i < index.size() && i < count; ++i) index[i] = list[i];
  return index;
}
}  // namespace detail

// Null means absent, which only maybe<...> slots may be.
template <class S>
class Buffer {
 public:
  using tigon_slot = S;
  using Plain = typename detail::Signature<S>::plain;
  using dtype = typename detail::Signature<S>::dtype;
  static constexpr int rank = detail::Signature<S>::axes::size;
  static_assert((detail::check_stored<detail::Signature<S>>(), true));

  Buffer() = default;
  Buffer(dtype* pointer, const Index<rank>& shape, Device where = Device::cpu())
      : Buffer(pointer, shape, dense_strides<rank>(shape), where) {}
  Buffer(dtype* pointer, const Index<rank>& shape, const Index<rank>& pitch, Device where = Device::cpu())
      : data(pointer), extents(shape), strides(pitch), device(where) {}
  template <std::size_t count>
  Buffer(dtype* pointer, const std::int64_t (&shape)[count], Device where = Device::cpu())
      : Buffer(pointer, detail::index_of<rank>(shape), where) {}
  template <std::size_t count, std::size_t strided>
  Buffer(dtype* pointer, const std::int64_t (&shape)[count], const std::int64_t (&pitch)[strided],
         Device where = Device::cpu())
      : Buffer(pointer, detail::index_of<rank>(shape), detail::index_of<rank>(pitch), where) {}
  template <class T>
    requires(!std::is_same_v<S, T>)
  Buffer(const Buffer<T>& other) {
    constexpr bool same = std::is_same_v<typename detail::Signature<T>::plain, Plain>;
    static_assert(same,
                  "tigon: a buffer is given where one of other axes, another order of axes or another dtype goes.");
    if constexpr (same) {
      data = other.data;
      extents = other.extents;
      strides = other.strides;
      device = other.device;
    }
  }

  explicit operator bool() const { return data != nullptr; }
  [[nodiscard]] detail::RawBuffer raw() const {
    detail::RawBuffer raw{data, dtype_v<dtype>, static_cast<std::uint8_t>(rank), device, {}, {}};
    for (int i = 0; i < rank; ++i) {
      raw.extents[i] = extents[i];
      raw.strides[i] = strides[i];
    }
    return raw;
  }
  void set(const detail::RawBuffer& raw, const std::shared_ptr<void>&) {
    data = static_cast<dtype*>(raw.pointer);
    device = raw.device;
    for (int i = 0; i < rank; ++i) {
      extents[i] = raw.extents[i];
      strides[i] = raw.strides[i];
    }
  }

  dtype* data = nullptr;
  Index<rank> extents{};
  Index<rank> strides{};
  Device device = Device::cpu();
};

// A number of the host.
template <class D>
class Buffer<scalar<D>> {
 public:
  using tigon_slot = scalar<D>;
  Buffer() = default;
  Buffer(D number) : value(number), given(true) {}
  D value{};
  bool given = false;
};

// A buffer together with its memory: what the returning form of a launch gives, and `allocate`.
template <class S>
class Owned : public Buffer<typename detail::Signature<S>::plain> {
 public:
  using tigon_slot = S;
  Owned() = default;
  Owned(const Buffer<typename detail::Signature<S>::plain>& view, std::shared_ptr<void> memory)
      : Buffer<typename detail::Signature<S>::plain>(view), owner(std::move(memory)) {}
  void set(const detail::RawBuffer& raw, const std::shared_ptr<void>& memory) {
    Buffer<typename detail::Signature<S>::plain>::set(raw, memory);
    owner = memory;
  }
  std::shared_ptr<void> owner;
};

// A gradient in Args<Gradient>: empty where it was not asked for; its dtype is the input's or what grad_dtype asked.
template <class S>
class Gradient {
 public:
  using tigon_slot = S;
  using Axes = typename detail::Signature<S>::axes;

  Gradient() = default;
  template <class T>
  Gradient(const Buffer<T>& buffer) : raw_(buffer.raw()) {
    static_assert(std::is_same_v<typename detail::Signature<T>::axes, Axes>,
                  "tigon: a gradient has the axes of its input, in the same order.");
  }
  explicit operator bool() const { return raw_.pointer != nullptr; }
  // The gradient as a buffer; throws Error if it was not asked for or has another dtype.
  template <class D = typename detail::Signature<S>::dtype>
  [[nodiscard]] Owned<detail::MakeSignature<D, Axes>> buffer() const {
    detail::check_gradient(raw_, dtype_v<D>);
    Owned<detail::MakeSignature<D, Axes>> typed;
    typed.set(raw_, owner_);
    return typed;
  }
  [[nodiscard]] detail::RawBuffer raw() const { return raw_; }
  void set(const detail::RawBuffer& raw, const std::shared_ptr<void>& memory) {
    raw_ = raw;
    if (raw.pointer != nullptr) owner_ = memory;
  }

 private:
  detail::RawBuffer raw_{};
  std::shared_ptr<void> owner_;
};
template <class D>
class Gradient<scalar<D>> {
 public:
  using tigon_slot = scalar<D>;
  explicit operator bool() const { return false; }
  [[nodiscard]] detail::RawBuffer raw() const { return {}; }
  void set(const detail::RawBuffer&, const std::shared_ptr<void>&) {}
};

// Memory of a device, aligned to 64 bytes, freed with the object.
class Storage {
 public:
  Storage() = default;
  explicit Storage(std::size_t bytes, Device device = Device::cpu());
  ~Storage();
  Storage(Storage&& other) noexcept;
  Storage& operator=(Storage&& other) noexcept;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] Device device() const { return device_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_ = Device::cpu();
};

namespace detail {
void copy_buffer(const Stream& stream, const RawBuffer& to, const RawBuffer& from);
// Throws Error naming the axis of an extent that is negative, too large or not the one that the axis' type fixes.
std::size_t dense_bytes(DType dtype, AxisRefs axes, std::span<const std::int64_t> extents);
}  // namespace detail

// allocate<bf16(Tokens, Hidden)>({8192, 4096}): a dense buffer with memory of its own.
template <class S>
Owned<S> allocate(const Index<Buffer<S>::rank>& extents, Device device = Device::cpu()) {
  const std::size_t bytes = detail::dense_bytes(dtype_v<typename Buffer<S>::dtype>,
                                                detail::refs<typename detail::Signature<S>::axes>(), extents);
  const auto storage = std::make_shared<Storage>(bytes, device);
  auto* data = static_cast<typename Buffer<S>::dtype*>(storage->data());
  return {Buffer<typename Buffer<S>::Plain>(data, extents, storage->device()), storage};
}

template <class S, std::size_t count>
Owned<S> allocate(const std::int64_t (&extents)[count], Device device = Device::cpu()) {
  return allocate<S>(detail::index_of<Buffer<S>::rank>(extents), device);
}

// Copies every element, between devices as well: in the stream's order, which is of the device (on one of both sides).
// Between devices neither side has gaps. Host memory must stay as it is until the stream has come to the copy.
// Throws Error for extents that differ, naming the dimension.
template <class S, class T>
void copy(const Stream& stream, const Buffer<S>& to, const Buffer<T>& from) {
  static_assert(
      std::is_same_v<typename Buffer<S>::dtype, typename Buffer<T>::dtype> && Buffer<S>::rank == Buffer<T>::rank,
      "tigon: a copy has the dtype and the number of axes of its source.");
  detail::copy_buffer(stream, to.raw(), from.raw());
}

}  // namespace tigon
