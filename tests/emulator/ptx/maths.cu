// What compilers make of ordinary CUDA: library functions, integer division, switches, local arrays, calls, atomics.
#include "prelude.cuh"

#define ELEMENT const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return

// Twelve results for each input.
extern "C" __global__ void float_functions(const float* x, float* y, int n) {
  ELEMENT;
  const float v = x[i];
  float* r = y + i * 12;
  r[0] = expf(v), r[1] = logf(fabsf(v) + 0.5f), r[2] = sinf(v), r[3] = cosf(v * 1000.0f), r[4] = tanhf(v), r[5] = erff(v);
  r[6] = powf(fabsf(v), 1.7f), r[7] = log1pf(fabsf(v)), r[8] = rsqrtf(fabsf(v) + 1.0f), r[9] = floorf(v) + rintf(v);
  r[10] = v / 3.0f + sqrtf(fabsf(v)), r[11] = fmodf(v, 0.7f);
}

extern "C" __global__ void double_functions(const double* x, double* y, int n) {
  ELEMENT;
  const double v = x[i];
  double* r = y + i * 6;
  r[0] = exp(v), r[1] = log(fabs(v) + 0.5), r[2] = sin(v), r[3] = pow(fabs(v), 1.7), r[4] = v / 3.0, r[5] = sqrt(fabs(v));
}

extern "C" __global__ void integer_functions(const int* x, int* y, int n, int divisor) {
  ELEMENT;
  const int v = x[i];
  int* r = y + i * 8;
  r[0] = v / divisor, r[1] = v % divisor, r[2] = static_cast<int>(static_cast<unsigned>(v) / 7u), r[3] = __popc(v);
  r[4] = __clz(v), r[5] = static_cast<int>((static_cast<long long>(v) * v) >> 20), r[6] = __brev(v), r[7] = __ffs(v);
}

__device__ __noinline__ float polynomial(float x, int degree) {
  float sum = 0.0f;
  for (int i = 0; i <= degree; ++i) sum = sum * x + static_cast<float>(i + 1);
  return sum;
}

// Lanes call with different degrees, take different branches of a switch and index a local array.
extern "C" __global__ void divergent(const int* x, float* y, int n) {
  ELEMENT;
  float table[8];
  for (int k = 0; k < 8; ++k) table[k] = static_cast<float>(k * k + x[(i + k) % n]);
  float result = 0.0f;
  switch (x[i] & 7) {
    case 0: result = polynomial(2.0f, 3); break;
    case 1: result = table[x[i] >> 3 & 7]; break;
    case 2: result = -1.0f; break;
    case 3: result = polynomial(0.5f, x[i] >> 3 & 15); break;
    case 4: for (int k = 0; k < (x[i] & 31); ++k) result += table[k & 7]; break;
    case 5: return;
    case 6: result = static_cast<float>(i) * 3.0f; break;
    default: result = 7.0f;
  }
  y[i] = result;
}

// Transposes 32 x 32 tiles through shared memory; width and height need not be multiples.
extern "C" __global__ void transpose(const bf16* x, bf16* y, int rows, int columns) {
  __shared__ bf16 tile[32][33];
  const int row0 = blockIdx.x * 32;
  const int lane = threadIdx.x % 32;
  for (int column0 = 0; column0 < columns; column0 += 32) {
    for (int k = threadIdx.x / 32; k < 32; k += blockDim.x / 32) {
      if (row0 + k < rows && column0 + lane < columns) tile[k][lane] = x[(row0 + k) * columns + column0 + lane];
    }
    __syncthreads();
    for (int k = threadIdx.x / 32; k < 32; k += blockDim.x / 32) {
      if (column0 + k < columns && row0 + lane < rows) y[(column0 + k) * rows + row0 + lane] = tile[lane][k];
    }
    __syncthreads();
  }
}

// Sums by atomics: in shared memory, then in global memory; and a histogram by the lanes that match.
extern "C" __global__ void histogram(const int* x, unsigned* bins, float* sum, unsigned long long* total, int n) {
  __shared__ unsigned local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&local[x[i] & 15], 1u);
    atomicAdd(sum, 0.5f);
    atomicMax(total, static_cast<unsigned long long>(x[i]));
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

// Every block stores a partial sum; the last one to arrive adds them in their order.
extern "C" __global__ void last_block_sum(const float* x, float* partials, unsigned* arrived, float* out, int n) {
  __shared__ float warps[8];
  __shared__ bool last;
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0.0f;
    for (int k = 0; k < static_cast<int>(blockDim.x) / 32; ++k) all += warps[k];
    partials[blockIdx.x] = all;
#ifndef BUG_NO_FENCE
    __threadfence();
#endif
    last = atomicAdd(arrived, 1u) == gridDim.x - 1;
#ifndef BUG_NO_FENCE
    __threadfence();
#endif
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float all = 0.0f;
    for (unsigned k = 0; k < gridDim.x; ++k) all += partials[k];
    *out = all;
  }
}
