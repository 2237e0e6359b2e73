// Spills, arrays and access widths are told apart in machine code, for every architecture that Tigon plans for.
#include "runtime/nvrtc/resources.hpp"

#include <catch2/catch.hpp>
#include <iostream>
#include <numeric>

#include "runtime/nvrtc/compiler.hpp"

using namespace tigon::runtime;

namespace {

constexpr const char* text = R"(
extern "C" __global__ void __launch_bounds__(256) exchanged(float* y, const float* x) {
  __shared__ float shared[256];
  shared[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = shared[255 - threadIdx.x];
}
// More values than a thread's 64 (or 32) registers can hold.
extern "C" __global__ void __launch_bounds__(1024, 2) spilled(float* y, const float* x) {
  float a[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) a[i] = x[threadIdx.x + i * 1024];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; ++i) y[threadIdx.x + i * 1024] = a[i] * a[95 - i] + a[i * 7 % 96];
}
extern "C" __global__ void __launch_bounds__(128) indexed(float* y, const float* x, const int* n) {
  float a[16];
  for (int i = 0; i < 16; ++i) a[n[i]] = x[i];
  y[threadIdx.x] = a[n[threadIdx.x]];
}
extern "C" __global__ void __launch_bounds__(64) copied(float4* y, const float4* x, short* z, const double* w) {
  y[threadIdx.x] = x[threadIdx.x];
  z[threadIdx.x] = (short)w[threadIdx.x];
}
)";

}  // namespace

TEST_CASE("machine code tells spills from arrays, and how wide accesses are") {
  const LibrarySearch search = NvrtcCompiler::search();
  if (!search.found()) {
    std::cout << "skipped, for there is no NVRTC: " << search.cure << "\n";
    return;
  }
  for (const char* architecture : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    INFO(architecture);
    const NvrtcBinary binary = NvrtcCompiler::get().compile(text, "resources", {.architecture = architecture});
    const auto all = cubin_resources(binary.cubin);
    REQUIRE(all.size() == 4);

    const KernelResources& exchanged = all.at("exchanged");
    CHECK(exchanged.threads == 256);
    CHECK(exchanged.barriers == 1);
    CHECK(exchanged.stack_bytes == 0);
    CHECK(exchanged.local_stores + exchanged.local_loads == 0);
    const bool reserves = std::atoi(architecture + 3) >= 90;
    CHECK(exchanged.shared_bytes == 1024 + (reserves ? 1024 : 0));
    CHECK(exchanged.global_loads == InstructionsByWidth{0, 0, 1, 0, 0});
    CHECK(exchanged.global_stores == InstructionsByWidth{0, 0, 1, 0, 0});
    CHECK(exchanged.instructions > 8);
    CHECK(exchanged.instructions < 40);

    const KernelResources& spilled = all.at("spilled");
    CHECK(spilled.threads == 1024);
    CHECK(spilled.stack_bytes > 0);
    CHECK(spilled.spill_stores >= spilled.stack_bytes);
    CHECK(spilled.spill_loads >= spilled.stack_bytes);
    CHECK(spilled.local_stores == spilled.spill_stores);
    CHECK(spilled.local_loads == spilled.spill_loads);

    const KernelResources& indexed = all.at("indexed");
    CHECK(indexed.threads == 128);
    CHECK(indexed.barriers == 0);
    CHECK(indexed.stack_bytes == 64);
    CHECK(indexed.local_stores == 64);
    CHECK(indexed.local_loads == 4);
    CHECK(indexed.spill_stores + indexed.spill_loads == 0);

    const KernelResources& copied = all.at("copied");
    CHECK(copied.global_loads == InstructionsByWidth{0, 0, 0, 1, 1});
    CHECK(copied.global_stores == InstructionsByWidth{0, 1, 0, 0, 1});
  }
}
