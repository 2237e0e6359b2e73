// swiglu · forward · step 1 of 1
//
//   y = gate * sigmoid(gate) * up                                             bf16[tokens, width]
//
//   width = 14336 fixed, tokens at run time. Pointwise: a block of 256 threads walks its rows, 7 vectors of 8 values
//   per thread and row. Reads gate and up once, writes y once: 84 KiB per row, the minimum. Written at
//   model/mlp.cpp:12
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

float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

static_assert(14336 == 256 * 7 * 8, "host planned: threads x vectors x width covers width");

extern "C" __global__ void __launch_bounds__(256)
swiglu_forward_bf16_pointwise256(const bf16* __restrict__ gate,  // [tokens, width], 16-byte aligned, dense
                                 const bf16* __restrict__ up,    // [tokens, width], 16-byte aligned, dense
                                 bf16* __restrict__ y,           // [tokens, width], 16-byte aligned, dense
                                 int tokens, int partitions)
{
  const int thread = threadIdx.x;
  const i64 first = static_cast<i64>(blockIdx.x) * tokens / partitions;  // this block's rows
  const i64 last = (static_cast<i64>(blockIdx.x) + 1) * tokens / partitions;

  for (i64 token = first; token < last; ++token) {
    const bf16* const gate_row = gate + token * 14336;
    const bf16* const up_row = up + token * 14336;
    bf16* const y_row = y + token * 14336;

    #pragma unroll
    for (int i = 0; i < 7; ++i) {
      const int width = 8 * (thread + 256 * i);
      const auto gate_8 = *reinterpret_cast<const pack<bf16, 8>*>(gate_row + width);
      const auto up_8 = *reinterpret_cast<const pack<bf16, 8>*>(up_row + width);
      pack<bf16, 8> y_8;
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float gate = float(gate_8.at[k]);
        y_8.at[k] = bf16(gate * sigmoid(gate) * float(up_8.at[k]));
      }
      *reinterpret_cast<pack<bf16, 8>*>(y_row + width) = y_8;
    }
  }
}
