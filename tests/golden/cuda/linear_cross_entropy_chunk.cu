// z_loss · value_and_grad · step 2 of 5, in the loop over chunks of tokens
//
//   row_loss = lse - logits[target] + z_scale * lse^2,  lse = logsumexp<vocab>(logits)         f32[tokens]
//   d_logits = (softmax<vocab>(logits) * (1 + 2 * z_scale * lse) - one_hot(target)) * scale    bf16[tokens, vocab]
//
//   vocab = 128256 fixed, tokens at run time. One block of 1024 threads per row, 15 or 16 vectors of 8 values per
//   thread, read twice (the second time from L2) and overwritten in place. Reads and writes logits: 751.5 KiB per row
//   with the second reading. Written at loss/z_loss.cpp:9
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

// The state of logsumexp: its maximum, and the sum of exp(x - max) over all elements but one that is maximal.
struct logsumexp_state {
  float max = __int_as_float(0xff800000), rest = 0.0f;
};
logsumexp_state merge_logsumexp(logsumexp_state a, logsumexp_state b) {
  const bool first = b.max <= a.max;
  const float small = first ? b.max : a.max;
  const float big = first ? a.max : b.max;
  const float ratio = a.max == b.max ? 1.0f : small == __int_as_float(0xff800000) ? 0.0f : expf(small - big);
  const float kept = first ? a.rest : b.rest;
  const float scaled = first ? b.rest : a.rest;
  return {big, small == __int_as_float(0xff800000) ? kept : kept + __fmaf_rn(scaled, ratio, ratio)};
}
logsumexp_state shuffle_down(logsumexp_state s, int step) {
  return {__shfl_down_sync(0xffffffffu, s.max, step), __shfl_down_sync(0xffffffffu, s.rest, step)};
}
// The merged state of a block, in every thread: lanes of a warp first, then the warps, always in the same order.
template <int warps>
logsumexp_state block_logsumexp(logsumexp_state state, logsumexp_state* by_warp) {
  const int lane = threadIdx.x % 32;
  for (int step = 1; step < 32; step *= 2) state = merge_logsumexp(state, shuffle_down(state, step));
  if (lane == 0) by_warp[threadIdx.x / 32] = state;
  __syncthreads();
  state = by_warp[lane % warps];
  for (int step = 1; step < warps; step *= 2) state = merge_logsumexp(state, shuffle_down(state, step));
  state = {__shfl_sync(0xffffffffu, state.max, 0), __shfl_sync(0xffffffffu, state.rest, 0)};
  __syncthreads();  // `by_warp` may be written again
  return state;
}

static_assert(128256 % 8 == 0, "host planned: every row starts at a multiple of 16 bytes");

extern "C" __global__ void __launch_bounds__(1024)
z_loss_value_and_grad_bf16_row1024(bf16* __restrict__ logits,        // [tokens, vocab], overwritten by d_logits
                                   const int* __restrict__ target,   // [tokens]
                                   float* __restrict__ row_loss,     // [tokens]
                                   int tokens, int partitions, float z_scale, float scale)
{
  __shared__ logsumexp_state state_by_warp[32];
  const int thread = threadIdx.x;
  const i64 first = static_cast<i64>(blockIdx.x) * tokens / partitions;  // this block's rows
  const i64 last = (static_cast<i64>(blockIdx.x) + 1) * tokens / partitions;

  for (i64 token = first; token < last; ++token) {
    bf16* const logits_row = logits + token * 128256;
    const int target_here = target[token];
    const float target_logit = float(logits_row[min(max(target_here, 0), 128255)]);

    logsumexp_state state;  // logsumexp<vocab>
    for (int i = thread; i < 128256 / 8; i += 1024) {
      const auto logits_8 = *reinterpret_cast<const pack<bf16, 8>*>(logits_row + 8 * i);
      #pragma unroll
      for (int k = 0; k < 8; ++k) state = merge_logsumexp(state, {float(logits_8.at[k]), 0.0f});
    }
    state = block_logsumexp<32>(state, state_by_warp);  // its barriers stand between the reads above and the stores

    const float log_rest = log1pf(state.rest);
    const float lse = state.max + log_rest;
    if (thread == 0) row_loss[token] = __fmaf_rn(z_scale, lse * lse, lse - target_logit);
    const float weight = __fmaf_rn(2.0f * z_scale, lse, 1.0f);

    for (int i = thread; i < 128256 / 8; i += 1024) {
      const auto logits_8 = *reinterpret_cast<const pack<bf16, 8>*>(logits_row + 8 * i);
      pack<bf16, 8> d_logits_8;
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float softmax = expf(float(logits_8.at[k]) - state.max - log_rest);
        const float hit = 8 * i + k == target_here ? 1.0f : 0.0f;
        d_logits_8.at[k] = bf16(__fmaf_rn(softmax, weight, -hit) * scale);
      }
      *reinterpret_cast<pack<bf16, 8>*>(logits_row + 8 * i) = d_logits_8;
    }
  }
}
