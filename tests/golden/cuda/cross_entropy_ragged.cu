// cross_entropy · value_and_grad · step 1 of 2
//
//   row_loss = lse - logits[target],  lse = logsumexp<vocab>(logits)                           f32[tokens]
//   d_logits = (softmax<vocab>(logits) - one_hot(target)) * scale, 0 where ignored             bf16[tokens, vocab]
//
//   vocab = 32003 fixed, tokens at run time. One block of 512 threads per row. A row is 64006 bytes: its start is a
//   multiple of 2 bytes only, so each row has a head of up to 7 values before the first 16-byte vector and a tail of up
//   to 7 after the last. Reads logits twice (the second time from L2) and overwrites them: 187.5 KiB per row. Written
//   at loss/cross_entropy.cpp:14
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

// Values of 2 bytes from `at` to the next multiple of 16 bytes, at most `limit`.
int head_of(const bf16* at, int limit) {
  const int missing = static_cast<int>(-reinterpret_cast<i64>(at) & 15) / 2;
  return missing < limit ? missing : limit;
}

extern "C" __global__ void __launch_bounds__(512)
cross_entropy_value_and_grad_bf16_row512(bf16* __restrict__ logits,        // [tokens, vocab], overwritten by d_logits
                                         const int* __restrict__ target,   // [tokens], -100 is ignored
                                         float* __restrict__ row_loss,     // [tokens]
                                         int tokens, int partitions, float scale)
{
  __shared__ logsumexp_state state_by_warp[16];
  const int thread = threadIdx.x;
  const i64 first = static_cast<i64>(blockIdx.x) * tokens / partitions;  // this block's rows
  const i64 last = (static_cast<i64>(blockIdx.x) + 1) * tokens / partitions;

  for (i64 token = first; token < last; ++token) {
    bf16* const logits_row = logits + token * 32003;
    const int head = head_of(logits_row, 32003);
    const int vectors = (32003 - head) / 8;
    const int tail = head + 8 * vectors;           // first value after the last vector
    const int ragged = head + 32003 - tail;        // values outside vectors, at most 14
    const int target_here = target[token];
    const bool ignored = target_here == -100;
    const float target_logit = float(logits_row[min(max(target_here, 0), 32002)]);

    logsumexp_state state;  // logsumexp<vocab>
    for (int i = thread; i < vectors; i += 512) {
      const auto logits_8 = *reinterpret_cast<const pack<bf16, 8>*>(logits_row + head + 8 * i);
      #pragma unroll
      for (int k = 0; k < 8; ++k) state = merge_logsumexp(state, {float(logits_8.at[k]), 0.0f});
    }
    for (int i = thread; i < ragged; i += 512) {
      const int vocab = i < head ? i : tail + i - head;
      state = merge_logsumexp(state, {float(logits_row[vocab]), 0.0f});
    }
    state = block_logsumexp<16>(state, state_by_warp);  // its barriers stand between the reads above and the stores

    const float log_rest = log1pf(state.rest);
    if (thread == 0) row_loss[token] = ignored ? 0.0f : state.max + log_rest - target_logit;

    for (int i = thread; i < vectors; i += 512) {
      const auto logits_8 = *reinterpret_cast<const pack<bf16, 8>*>(logits_row + head + 8 * i);
      pack<bf16, 8> d_logits_8;
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float softmax = expf(float(logits_8.at[k]) - state.max - log_rest);
        const float hit = head + 8 * i + k == target_here ? 1.0f : 0.0f;
        d_logits_8.at[k] = bf16(ignored ? 0.0f : (softmax - hit) * scale);
      }
      *reinterpret_cast<pack<bf16, 8>*>(logits_row + head + 8 * i) = d_logits_8;
    }
    for (int i = thread; i < ragged; i += 512) {
      const int vocab = i < head ? i : tail + i - head;
      const float softmax = expf(float(logits_row[vocab]) - state.max - log_rest);
      const float hit = vocab == target_here ? 1.0f : 0.0f;
      logits_row[vocab] = bf16(ignored ? 0.0f : (softmax - hit) * scale);
    }
  }
}
