// Copies with the widest non-temporal stores of the CPU at hand, chosen at run time.
#include "benchmarks/plain_copy.hpp"

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/cpu/parallel.hpp"

namespace tigon::benchmarks {
namespace {

using CopyPiece = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);
constexpr std::size_t step = 256;  // bytes of one round: four cache lines

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void copy_avx512(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += step) {
    const auto* source = reinterpret_cast<const __m512i*>(from + i);
    auto* target = reinterpret_cast<__m512i*>(to + i);
    const __m512i a = _mm512_load_si512(source), b = _mm512_load_si512(source + 1);
    const __m512i c = _mm512_load_si512(source + 2), d = _mm512_load_si512(source + 3);
    _mm512_stream_si512(target, a);
    _mm512_stream_si512(target + 1, b);
    _mm512_stream_si512(target + 2, c);
    _mm512_stream_si512(target + 3, d);
  }
}

__attribute__((target("avx2"))) void copy_avx2(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += step / 2) {
    const auto* source = reinterpret_cast<const __m256i*>(from + i);
    auto* target = reinterpret_cast<__m256i*>(to + i);
    const __m256i a = _mm256_load_si256(source), b = _mm256_load_si256(source + 1);
    const __m256i c = _mm256_load_si256(source + 2), d = _mm256_load_si256(source + 3);
    _mm256_stream_si256(target, a);
    _mm256_stream_si256(target + 1, b);
    _mm256_stream_si256(target + 2, c);
    _mm256_stream_si256(target + 3, d);
  }
}

void copy_sse2(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
}
#else
void copy_plain(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
#endif

struct Choice {
  CopyPiece copy;
  const char* name;
};

Choice choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {copy_avx512, "AVX-512 non-temporal stores"};
  if (__builtin_cpu_supports("avx2")) return {copy_avx2, "AVX2 non-temporal stores"};
  return {copy_sse2, "SSE2 non-temporal stores"};
#else
  return {copy_plain, "memcpy"};
#endif
}

struct Task {
  CopyPiece copy;
  std::byte* to;
  const std::byte* from;
  std::size_t piece_bytes;
};

}  // namespace

PlainCopy::PlainCopy(double moved)
    : piece_bytes_((static_cast<std::size_t>(moved / 2 / pieces) + step - 1) / step * step),
      from_(piece_bytes_ * pieces),
      to_(piece_bytes_ * pieces) {
  std::memset(from_.data(), 1, from_.bytes());
  std::memset(to_.data(), 2, to_.bytes());
}

const char* PlainCopy::instructions() { return choose().name; }

void PlainCopy::run() {
  Task task{choose().copy, static_cast<std::byte*>(to_.data()), static_cast<const std::byte*>(from_.data()),
            piece_bytes_};
  runtime::parallel_partitions(
      pieces, 0,
      [](void* context, i64 first, i64 last, int) {
        const auto& given = *static_cast<const Task*>(context);
        const std::size_t begin = static_cast<std::size_t>(first) * given.piece_bytes;
        given.copy(given.to + begin, given.from + begin, static_cast<std::size_t>(last - first) * given.piece_bytes);
      },
      &task, runtime::ShareEnd::store_fence);
}

}  // namespace tigon::benchmarks
