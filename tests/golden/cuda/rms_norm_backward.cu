// rms_norm · backward · step 1 of 2
//
//   d_x = rstd * (d_y * weight - x * rstd^2 * mean<hidden>(d_y * weight * x))  bf16[tokens, hidden]
//   partial d_weight = sum over the block's tokens (d_y * x * rstd)            f32[partition, hidden]
//
//   hidden = 4096 fixed, tokens at run time. Row + column: one block of 256 threads per row at a time, 2 vectors of 8
//   values per thread; the row and the block's share of d_weight stay in registers. Reads x and d_y once, weight from
//   L2, writes d_x once and 16 KiB per block: 24 KiB per row. Step 2 adds the partial sums in the order of the blocks.
//   Written at model/norm.cpp:31
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

static_assert(4096 == 256 * 2 * 8, "host planned: threads x vectors x width covers hidden");

extern "C" __global__ void __launch_bounds__(256)
rms_norm_backward_bf16_row_column256(const bf16* __restrict__ x,        // [tokens, hidden], 16-byte aligned, dense
                                     const bf16* __restrict__ d_y,      // [tokens, hidden], 16-byte aligned, dense
                                     const bf16* __restrict__ weight,   // [hidden], 16-byte aligned
                                     const float* __restrict__ rstd,    // [tokens], from the forward
                                     bf16* __restrict__ d_x,            // [tokens, hidden], 16-byte aligned, dense
                                     float* __restrict__ d_weight,      // [partition, hidden], partial sums
                                     int tokens, int partitions)
{
  __shared__ float total_by_warp[8];
  const int thread = threadIdx.x;
  const i64 first = static_cast<i64>(blockIdx.x) * tokens / partitions;  // this block's rows
  const i64 last = (static_cast<i64>(blockIdx.x) + 1) * tokens / partitions;

  float d_weight_held[2][8];
  #pragma unroll
  for (int i = 0; i < 2; ++i) {
    #pragma unroll
    for (int k = 0; k < 8; ++k) d_weight_held[i][k] = -0.0f;
  }

  for (i64 token = first; token < last; ++token) {
    const bf16* const x_row = x + token * 4096;
    const bf16* const d_y_row = d_y + token * 4096;
    bf16* const d_x_row = d_x + token * 4096;
    const float rstd_here = rstd[token];

    pack<bf16, 8> x_held[2], d_y_held[2];
    float total = -0.0f;  // sum<hidden>
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int hidden = 8 * (thread + 256 * i);
      x_held[i] = *reinterpret_cast<const pack<bf16, 8>*>(x_row + hidden);
      d_y_held[i] = *reinterpret_cast<const pack<bf16, 8>*>(d_y_row + hidden);
      const auto weight_8 = *reinterpret_cast<const pack<bf16, 8>*>(weight + hidden);
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float x = float(x_held[i].at[k]);
        const float d_y = float(d_y_held[i].at[k]);
        total = __fmaf_rn(d_y * float(weight_8.at[k]), x, total);
        d_weight_held[i][k] = __fmaf_rn(d_y * rstd_here, x, d_weight_held[i][k]);
      }
    }
    total = block_sum<8>(total, total_by_warp);

    const float pull = (total + 0.0f) / 4096.0f * rstd_here * rstd_here;
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int hidden = 8 * (thread + 256 * i);
      const auto weight_8 = *reinterpret_cast<const pack<bf16, 8>*>(weight + hidden);
      pack<bf16, 8> d_x_8;
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float straight = float(d_y_held[i].at[k]) * float(weight_8.at[k]);
        d_x_8.at[k] = bf16(rstd_here * __fmaf_rn(-float(x_held[i].at[k]), pull, straight));
      }
      *reinterpret_cast<pack<bf16, 8>*>(d_x_row + hidden) = d_x_8;
    }
  }

  float* const d_weight_row = d_weight + static_cast<i64>(blockIdx.x) * 4096;
  #pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int hidden = 8 * (thread + 256 * i);
    #pragma unroll
    for (int k = 0; k < 8; k += 4) {
      pack<float, 4> d_weight_4;
      #pragma unroll
      for (int j = 0; j < 4; ++j) d_weight_4.at[j] = d_weight_held[i][k + j];
      *reinterpret_cast<pack<float, 4>*>(d_weight_row + hidden + k) = d_weight_4;
    }
  }
}
