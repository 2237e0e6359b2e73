// rms_norm · forward · step 1 of 1
//
//   y = x * rsqrt(mean<hidden>(x^2) + eps) * weight                           bf16[tokens, hidden]
//
//   hidden = 4096 fixed, tokens at run time. One block of 128 threads per row; the row stays in registers: 4 vectors of
//   8 values per thread. Reads x once, weight from L2, writes y once: 16 KiB per row, the minimum. Written at
//   model/norm.cpp:31
//
using i64 = long long;

struct bf16 {
  unsigned short bits;
  bf16() = default;
  explicit bf16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  explicit operator float() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
};
template <class T, int N>
struct alignas(16) pack {
  T at[N];
};

float merge_sum(float earlier, float later) { return earlier + later; }
// The sum over a block, in every thread: lanes of a warp first, then the warps, always in the same order.
template <int warps>
float block_sum(float total, float* by_warp) {
  const int lane = threadIdx.x % 32;
  for (int step = 1; step < 32; step *= 2) total = merge_sum(total, __shfl_down_sync(0xffffffffu, total, step));
  if (lane == 0) by_warp[threadIdx.x / 32] = total;
  __syncthreads();
  total = by_warp[lane % warps];
  for (int step = 1; step < warps; step *= 2) total = merge_sum(total, __shfl_down_sync(0xffffffffu, total, step));
  total = __shfl_sync(0xffffffffu, total, 0);
  __syncthreads();  // `by_warp` may be written again
  return total;
}

static_assert(4096 == 128 * 4 * 8, "host planned: threads x vectors x width covers hidden");

extern "C" __global__ void __launch_bounds__(128)
rms_norm_forward_bf16_row128(const bf16* __restrict__ x,       // [tokens, hidden], 16-byte aligned, dense
                             const bf16* __restrict__ weight,  // [hidden], 16-byte aligned
                             bf16* __restrict__ y,             // [tokens, hidden], 16-byte aligned, dense
                             float* __restrict__ rstd,         // [tokens], kept for the gradient
                             int tokens, int partitions, float eps)
{
  __shared__ float total_by_warp[4];
  const int thread = threadIdx.x;
  const i64 first = static_cast<i64>(blockIdx.x) * tokens / partitions;  // this block's rows
  const i64 last = (static_cast<i64>(blockIdx.x) + 1) * tokens / partitions;

  for (i64 token = first; token < last; ++token) {
    const bf16* const x_row = x + token * 4096;
    bf16* const y_row = y + token * 4096;

    pack<bf16, 8> x_held[4];
    float total = -0.0f;  // sum<hidden>
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      x_held[i] = *reinterpret_cast<const pack<bf16, 8>*>(x_row + 8 * (thread + 128 * i));
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float x = float(x_held[i].at[k]);
        total = __fmaf_rn(x, x, total);
      }
    }
    total = block_sum<4>(total, total_by_warp);

    const float r = rsqrtf((total + 0.0f) / 4096.0f + eps);
    if (thread == 0) rstd[token] = r;

    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int hidden = 8 * (thread + 128 * i);
      const auto weight_8 = *reinterpret_cast<const pack<bf16, 8>*>(weight + hidden);
      pack<bf16, 8> y_8;
      #pragma unroll
      for (int k = 0; k < 8; ++k) y_8.at[k] = bf16(float(x_held[i].at[k]) * r * float(weight_8.at[k]));
      *reinterpret_cast<pack<bf16, 8>*>(y_row + hidden) = y_8;
    }
  }
}
