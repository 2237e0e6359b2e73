// Two kernels over rows, with faults that a definition plants: BUG_PAST_END, BUG_MISALIGNED, BUG_NO_SYNC_AFTER_STORE,
// BUG_NO_SYNC_BEFORE_REUSE, BUG_TOO_MANY_PARTIALS (scale_rows) and BUG_NO_SYNC_BEFORE_BROADCAST (exp_rows).
#include "prelude.cuh"

#define WARPS 8

// y = x / sqrt(mean(x^2)) * w, rows of `vectors` times eight bf16; the sum of the row goes to `sums`.
extern "C" __global__ void __launch_bounds__(256)
    scale_rows(const uint4* x, const uint4* w, uint4* y, float* sums, int vectors, float epsilon) {
  __shared__ float partial[WARPS];
  __shared__ float guard[4];
  const uint4* row = x + static_cast<long long>(blockIdx.x) * vectors;
  uint4* out = y + static_cast<long long>(blockIdx.x) * vectors;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x < 4) guard[threadIdx.x] = epsilon;
  float squares = 0.0f;
  float sum = 0.0f;
#ifdef BUG_PAST_END
  for (int i = threadIdx.x; i <= vectors; i += blockDim.x) {
#else
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
#endif
#ifdef BUG_MISALIGNED
    const uint4 v = *reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(row + i) + (i == 0 ? 8 : 0));
#else
    const uint4 v = row[i];
#endif
    const word part[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float low = low_of(part[k]);
      const float high = high_of(part[k]);
      squares = __fmaf_rn(low, low, squares);
      squares = __fmaf_rn(high, high, squares);
      sum += low + high;
    }
  }
  squares = warp_sum(squares);
  if (lane == 0) partial[warp] = squares;
#ifndef BUG_NO_SYNC_AFTER_STORE
  __syncthreads();
#endif
  float total = 0.0f;
#ifdef BUG_TOO_MANY_PARTIALS
  for (int k = 0; k < WARPS; ++k) total += partial[k];
#else
  for (int k = 0; k < static_cast<int>(blockDim.x) / 32; ++k) total += partial[k];
#endif
  const float scale = rsqrtf(total / (vectors * 8) + guard[0] * 0.0f + epsilon);
#ifndef BUG_NO_SYNC_BEFORE_REUSE
  __syncthreads();
#endif
  sum = warp_sum(sum);
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0.0f;
    for (int k = 0; k < static_cast<int>(blockDim.x) / 32; ++k) all += partial[k];
    sums[blockIdx.x] = all;
  }
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const uint4 v = row[i];
    const uint4 u = w[i];
    uint4 r;
    r.x = pack(low_of(v.x) * scale * low_of(u.x), high_of(v.x) * scale * high_of(u.x));
    r.y = pack(low_of(v.y) * scale * low_of(u.y), high_of(v.y) * scale * high_of(u.y));
    r.z = pack(low_of(v.z) * scale * low_of(u.z), high_of(v.z) * scale * high_of(u.z));
    r.w = pack(low_of(v.w) * scale * low_of(u.w), high_of(v.w) * scale * high_of(u.w));
    out[i] = r;
  }
}

// In place: x becomes exp(x - max) / sum of a row; any width, so vectors have a head and a tail.
extern "C" __global__ void __launch_bounds__(256) exp_rows(bf16* x, float* logs, int width) {
  __shared__ float partial[WARPS][2];
  __shared__ float result[2];
  bf16* row = x + static_cast<long long>(blockIdx.x) * width;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int head = static_cast<int>((8 - (reinterpret_cast<unsigned long long>(row) / 2) % 8) % 8);
  const int vectors = (width - head) / 8;
  const int tail = head + vectors * 8;
  const float log2_e = 1.4426950408889634f;
  float largest = negative_infinity();
  float sum = 0.0f;
  auto absorb = [&](float value) {
    const float next = fmaxf(largest, value);
    if (next == negative_infinity()) return;
    sum = sum * exp2_approximate((largest - next) * log2_e) + exp2_approximate((value - next) * log2_e);
    largest = next;
  };
  for (int i = threadIdx.x; i < head; i += blockDim.x) absorb(widen(row[i]));
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const uint4 v = *reinterpret_cast<const uint4*>(row + head + i * 8);
    absorb(low_of(v.x)), absorb(high_of(v.x)), absorb(low_of(v.y)), absorb(high_of(v.y));
    absorb(low_of(v.z)), absorb(high_of(v.z)), absorb(low_of(v.w)), absorb(high_of(v.w));
  }
  for (int i = tail + threadIdx.x; i < width; i += blockDim.x) absorb(widen(row[i]));
  const float most = warp_max(largest);
  sum = warp_sum(most == negative_infinity() ? 0.0f : sum * exp2_approximate((largest - most) * log2_e));
  if (lane == 0) {
    partial[warp][0] = most;
    partial[warp][1] = sum;
  }
  __syncthreads();
  if (warp == 0) {
    const bool there = lane < static_cast<int>(blockDim.x) / 32;
    const float m = there ? partial[lane][0] : negative_infinity();
    const float all = warp_max(m);
    const float s = warp_sum(there && all != negative_infinity() ? partial[lane][1] * exp2_approximate((m - all) * log2_e) : 0.0f);
    if (lane == 0) {
      result[0] = all;
      result[1] = s;
      logs[blockIdx.x] = all + __logf(s);
    }
  }
#ifndef BUG_NO_SYNC_BEFORE_BROADCAST
  __syncthreads();
#endif
  const float m = result[0];
  const float factor = 1.0f / result[1];
  auto finish = [&](float value) { return exp2_approximate((value - m) * log2_e) * factor; };
  for (int i = threadIdx.x; i < head; i += blockDim.x) row[i] = narrow(finish(widen(row[i])));
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    uint4* at = reinterpret_cast<uint4*>(row + head + i * 8);
    uint4 v = *at;
    v.x = pack(finish(low_of(v.x)), finish(high_of(v.x)));
    v.y = pack(finish(low_of(v.y)), finish(high_of(v.y)));
    v.z = pack(finish(low_of(v.z)), finish(high_of(v.z)));
    v.w = pack(finish(low_of(v.w)), finish(high_of(v.w)));
    *at = v;
  }
  for (int i = tail + threadIdx.x; i < width; i += blockDim.x) row[i] = narrow(finish(widen(row[i])));
}
