// A sum over a cluster of four blocks through each other's shared memory; faults that a definition plants:
// BUG_NO_BARRIER_BEFORE_READ, BUG_NO_BARRIER_BEFORE_EXIT.
#include "prelude.cuh"

__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}
__device__ __forceinline__ float load_remote(word address, word rank) {
  float result;
  asm volatile(
      "{\n\t.reg .b32 remote;\n\tmapa.shared::cluster.u32 remote, %1, %2;\n\tld.shared::cluster.f32 %0, [remote];\n\t}"
      : "=f"(result)
      : "r"(address), "r"(rank)
      : "memory");
  return result;
}

// out[cluster] = the sum of `count` values for each block of it; every block writes its share of copies.
extern "C" __global__ void __cluster_dims__(4) __launch_bounds__(64) sum_cluster(const float* x, float* out, int count) {
  __shared__ float partial[2];
  __shared__ float total;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += x[static_cast<long long>(blockIdx.x) * count + i];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) total = partial[0] + partial[1];
#ifdef BUG_NO_BARRIER_BEFORE_READ
  __syncthreads();
#else
  cluster_barrier();
#endif
  if (threadIdx.x == 0) {
    float all = 0.0f;
    for (word rank = 0; rank < 4; ++rank) all += load_remote(shared_address(&total), rank);
    out[blockIdx.x] = all;
  }
#ifndef BUG_NO_BARRIER_BEFORE_EXIT
  cluster_barrier();
#endif
}
