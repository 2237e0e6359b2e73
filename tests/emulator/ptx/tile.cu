// A product C = A * B^T by tensor cores, tiles of 64 x 64 x 32 in two stages of asynchronous copies; faults that a
// definition plants: BUG_WAIT_TOO_LITTLE, BUG_NO_TRAILING_SYNC. PADDING is the number of bf16 between rows of a tile.
#include "prelude.cuh"

#ifndef PADDING
#define PADDING 8
#endif
#define PITCH (32 + PADDING)

__device__ __forceinline__ void copy_16(word to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void load_matrices(word address, word (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void multiply(float (&c)[4], const word (&a)[4], word b0, word b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// a is m x k, b is n x k, c is m x n, all row by row; m and n are multiples of 64, k of 32.
extern "C" __global__ void __launch_bounds__(128) multiply_tiles(const bf16* a, const bf16* b, float* c, int n, int k) {
  __shared__ __align__(16) bf16 tile_a[2][64 * PITCH];
  __shared__ __align__(16) bf16 tile_b[2][64 * PITCH];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int row0 = blockIdx.x / (n / 64) * 64;
  const int column0 = blockIdx.x % (n / 64) * 64;
  float sum[8][4] = {};
  auto fetch = [&](int stage, int k0) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int chunk = threadIdx.x + i * 128;
      const int row = chunk / 4;
      const int column = chunk % 4 * 8;
      copy_16(shared_address(&tile_a[stage][row * PITCH + column]),
              a + static_cast<long long>(row0 + row) * k + k0 + column);
      copy_16(shared_address(&tile_b[stage][row * PITCH + column]),
              b + static_cast<long long>(column0 + row) * k + k0 + column);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  fetch(0, 0);
  for (int k0 = 0, stage = 0; k0 < k; k0 += 32, stage ^= 1) {
    if (k0 + 32 < k) {
      fetch(stage ^ 1, k0 + 32);
#ifdef BUG_WAIT_TOO_LITTLE
      asm volatile("cp.async.wait_group 2;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 1;" ::: "memory");
#else
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < 32; step += 16) {
      word fragment_a[4];
      load_matrices(shared_address(&tile_a[stage][(warp * 16 + lane % 16) * PITCH + step + lane / 16 * 8]), fragment_a);
#pragma unroll
      for (int block = 0; block < 4; ++block) {
        word fragment_b[4];
        load_matrices(
            shared_address(&tile_b[stage][(block * 16 + lane % 8 + lane / 16 * 8) * PITCH + step + lane / 8 % 2 * 8]),
            fragment_b);
        multiply(sum[block * 2], fragment_a, fragment_b[0], fragment_b[1]);
        multiply(sum[block * 2 + 1], fragment_a, fragment_b[2], fragment_b[3]);
      }
    }
#ifndef BUG_NO_TRAILING_SYNC
    __syncthreads();
#endif
  }
#pragma unroll
  for (int block = 0; block < 8; ++block) {
    const int column = column0 + block * 8 + lane % 4 * 2;
    const long long row = row0 + warp * 16 + lane / 4;
    *reinterpret_cast<float2*>(c + row * n + column) = make_float2(sum[block][0], sum[block][1]);
    *reinterpret_cast<float2*>(c + (row + 8) * n + column) = make_float2(sum[block][2], sum[block][3]);
  }
}
