// The element types: storage types, their tags, names, sizes and the one promotion table.
#pragma once
#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tigon {

enum class DType : std::uint8_t { boolean, i32, i64, f16, bf16, f32, f64 };
inline constexpr int dtype_count = 7;

// Storage and tag of the 16-bit floats; arithmetic on them is done by kernels, in f32.
struct bf16 {
  std::uint16_t bits;
};
struct f16 {
  std::uint16_t bits;
};
using f32 = float;
using f64 = double;
using i32 = std::int32_t;
using i64 = std::int64_t;

struct DTypeInfo {
  std::string_view name;
  int size;  // bytes
  bool floating;
  int mantissa;  // bits of precision with the hidden one; 0 for integers
};

constexpr DTypeInfo info(DType dtype) {
  constexpr DTypeInfo table[dtype_count] = {
      {"bool", 1, false, 0}, {"i32", 4, false, 0}, {"i64", 8, false, 0}, {"f16", 2, true, 11},
      {"bf16", 2, true, 8},  {"f32", 4, true, 24}, {"f64", 8, true, 53},
  };
  return table[static_cast<int>(dtype)];
}
constexpr std::string_view name(DType dtype) { return info(dtype).name; }
constexpr int size_of(DType dtype) { return info(dtype).size; }
constexpr bool is_floating(DType dtype) { return info(dtype).floating; }
constexpr bool is_16_bit_float(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

// The dtype that arithmetic on one value of this dtype yields: 16-bit floats widen to f32, booleans count as i32.
constexpr DType arithmetic(DType dtype) {
  if (is_16_bit_float(dtype)) return DType::f32;
  return dtype == DType::boolean ? DType::i32 : dtype;
}
// The dtype that arithmetic on two values yields: f64 > f32 > i64 > i32 after widening.
constexpr DType promote(DType a, DType b) {
  const DType x = arithmetic(a);
  const DType y = arithmetic(b);
  return static_cast<int>(x) > static_cast<int>(y) ? x : y;
}

template <class T>
struct dtype_of;
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct dtype_of<i32> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of<i64> {
  static constexpr DType value = DType::i64;
};
template <>
struct dtype_of<f16> {
  static constexpr DType value = DType::f16;
};
template <>
struct dtype_of<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct dtype_of<f32> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<f64> {
  static constexpr DType value = DType::f64;
};
template <class T>
inline constexpr DType dtype_v = dtype_of<T>::value;

// Rounds to nearest even, keeps infinities, quietens NaN.
constexpr bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bf16{static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return bf16{static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
constexpr float to_f32(bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

f16 to_f16(float value);  // round to nearest even, subnormals kept
float to_f32(f16 value);

}  // namespace tigon
