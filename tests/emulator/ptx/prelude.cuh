// What the test kernels share: bf16 in integer arithmetic, 16-byte accesses, and the instructions CUDA has no name for.
#pragma once
typedef unsigned short bf16;
typedef unsigned int word;

__device__ __forceinline__ float widen(bf16 value) { return __uint_as_float(static_cast<word>(value) << 16); }
__device__ __forceinline__ word pack(float low, float high) {
  word result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
__device__ __forceinline__ bf16 narrow(float value) { return static_cast<bf16>(pack(value, 0.0f) & 0xffff); }
__device__ __forceinline__ float low_of(word value) { return __uint_as_float(value << 16); }
__device__ __forceinline__ float high_of(word value) { return __uint_as_float(value & 0xffff0000u); }
__device__ __forceinline__ float exp2_approximate(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}
// NVRTC without headers does not know INFINITY.
__device__ __forceinline__ float negative_infinity() { return __uint_as_float(0xff800000u); }
__device__ __forceinline__ word shared_address(const void* pointer) {
  return static_cast<word>(__cvta_generic_to_shared(pointer));
}
__device__ __forceinline__ float warp_sum(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}
__device__ __forceinline__ float warp_max(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}
