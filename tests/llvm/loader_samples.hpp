// A runnable sample of every row of the IR subset: IR text and a check of what it computes against plain C++.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "codegen/llvm/subset.hpp"
#include "tigon/dtype.hpp"

namespace tigon::samples {

using Function = void (*)(const void* a, const void* b, const void* c, void* out);

struct Sample {
  std::string name;    // of the function in the module
  std::string body{};  // its instructions, from `%a %b %c %out`, all ptr; `ret void` is added
  std::vector<std::string> declarations{};
  std::function<std::string(Function)> check{};  // "" or what was wrong
  std::string globals{};                         // definitions beside the function
};

// Samples for every element type, predicate and width that the row names. Empty only if the row is unknown.
std::vector<Sample> samples_of(const llvm::SubsetRow& row);
std::vector<Sample> memory_samples(const llvm::SubsetRow& row);  // those of the forms memory and other

std::string module_of(const std::vector<Sample>& samples);

std::vector<std::string> words(std::string_view text);
std::string ir_element(std::string_view element);  // "f32" -> "float"
int element_bytes(std::string_view element);
std::string ir_type(std::string_view element, int lanes);    // "<16 x float>", or "float" for one lane
std::string ir_suffix(std::string_view element, int lanes);  // "v16f32", or "f32"
std::string ir_constant(std::string_view element, const std::vector<int>& values);  // "<i32 1, i32 2>"

// Operands and results, aligned for any vector.
struct Buffers {
  alignas(64) unsigned char a[1024] = {}, b[1024] = {}, c[1024] = {}, out[1024];
  Buffers() { std::memset(out, 0xCD, sizeof out); }
  template <class T>
  T* as(unsigned char* bytes) {
    return reinterpret_cast<T*>(bytes);
  }
};

// Calls `visit` with a value of the C++ type of an element.
template <class Visit>
auto with_number(std::string_view element, Visit visit) {
  if (element == "f32") return visit(float{});
  if (element == "f64") return visit(double{});
  if (element == "i8") return visit(std::int8_t{});
  if (element == "i16") return visit(std::int16_t{});
  if (element == "i32") return visit(std::int32_t{});
  return visit(std::int64_t{});
}
template <class Visit>
auto with_type(std::string_view element, Visit visit) {
  return element == "f16" ? visit(f16{}) : with_number(element, visit);
}

// A spread of values: specials first, then a fixed pseudo-random sequence. `which` tells operands apart.
template <class T>
T spread(int lane, int which) {
  std::uint64_t bits = (static_cast<std::uint64_t>(lane) * 3 + which + 1) * 0x9E3779B97F4A7C15ull;
  bits ^= bits >> 29;
  bits *= 0xBF58476D1CE4E5B9ull;
  bits ^= bits >> 32;
  if constexpr (std::is_floating_point_v<T>) {
    constexpr T specials[] = {T(-0.0),
                              T(2.5),
                              T(-2.5),
                              T(0.5),
                              -std::numeric_limits<T>::infinity(),
                              T(1e30),
                              T(0),
                              T(-1.5),
                              std::numeric_limits<T>::quiet_NaN(),
                              T(3.7),
                              T(-3.2),
                              std::numeric_limits<T>::denorm_min()};
    const int position = lane * (which + 1) + which;
    if (lane % 2 == 0 && position / 2 < 12) return specials[position / 2];
    return static_cast<T>(static_cast<double>(static_cast<std::int64_t>(bits)) /
                          static_cast<double>(1ull << 56));  // within +-128
  } else if constexpr (std::is_same_v<T, f16>) {
    return to_f16(
        static_cast<float>(static_cast<double>(static_cast<std::int64_t>(bits)) / static_cast<double>(1ull << 56)));
  } else {
    return static_cast<T>(bits);
  }
}

template <class T>
bool same(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x && y != y) return true;  // a NaN's payload is the hardware's business
  }
  return std::memcmp(&x, &y, sizeof x) == 0;
}

// Compares `lanes` results and the bytes behind them, which must be untouched.
template <class R, class Expected>
std::string compare(Buffers& buffers, int lanes, Expected expected) {
  for (int i = 0; i < lanes; ++i) {
    const R got = buffers.as<R>(buffers.out)[i];
    const R want = expected(i);
    if (same(got, want)) continue;
    if constexpr (std::is_same_v<R, f16>) {
      return fmt::format("lane {}: got bits {:#x}, expected {:#x}", i, got.bits, want.bits);
    } else {
      return fmt::format("lane {}: got {}, expected {}", i, got, want);
    }
  }
  for (size_t i = lanes * sizeof(R); i < sizeof buffers.out; ++i) {
    if (buffers.out[i] != 0xCD) return fmt::format("byte {} behind the result was written", i);
  }
  return {};
}

}  // namespace tigon::samples
