// Where NVIDIA's headers are found, the emulated functions are called with the types that they declare.
#if __has_include(<cuda.h>)
#include <cuda.h>

#include "driver_functions.hpp"

using namespace emulator_test;

static_assert(sizeof(CUlaunchConfig) == sizeof(api::LaunchConfig));
static_assert(offsetof(CUlaunchConfig, sharedMemBytes) == offsetof(api::LaunchConfig, shared_bytes));
static_assert(offsetof(CUlaunchConfig, hStream) == offsetof(api::LaunchConfig, stream));
static_assert(offsetof(CUlaunchConfig, attrs) == offsetof(api::LaunchConfig, attributes));
static_assert(offsetof(CUlaunchConfig, numAttrs) == offsetof(api::LaunchConfig, attribute_count));
static_assert(sizeof(CUlaunchAttribute) == sizeof(api::LaunchAttribute));
static_assert(offsetof(CUlaunchAttribute, value) == offsetof(api::LaunchAttribute, value));
static_assert(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION == api::attribute_cluster_dimension);
static_assert(sizeof(CUuuid) == sizeof(api::Uuid));
static_assert(CUDA_ERROR_ILLEGAL_ADDRESS == static_cast<int>(api::illegal_address));
static_assert(CUDA_ERROR_NO_BINARY_FOR_GPU == static_cast<int>(api::no_binary_for_gpu));
static_assert(CUDA_ERROR_INVALID_PTX == static_cast<int>(api::invalid_ptx));
static_assert(CUDA_ERROR_INVALID_CLUSTER_SIZE == static_cast<int>(api::invalid_cluster_size));
static_assert(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED == static_cast<int>(api::stream_capture_unsupported));

#define NAMED(function) NAMED_TEXT(function)
#define NAMED_TEXT(function) entry<std::remove_pointer_t<decltype(&function)>>(#function)

TEST_CASE("a program written against cuda.h runs") {
  tigon::emulator::reset();
  REQUIRE(NAMED(cuInit)(0) == CUDA_SUCCESS);
  CUdevice device = -1;
  CUcontext context = nullptr;
  REQUIRE(NAMED(cuDeviceGet)(&device, 0) == CUDA_SUCCESS);
  REQUIRE(NAMED(cuDevicePrimaryCtxRetain)(&context, device) == CUDA_SUCCESS);
  REQUIRE(NAMED(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
  int value = 0;
  NAMED(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
  CHECK(value == 227 * 1024);
  NAMED(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  CHECK(value == 9);
  NAMED(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device);
  CHECK(value == 1);

  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  const auto text = read_fixture("cluster_sm_90a.ptx");
  REQUIRE(NAMED(cuLibraryLoadData)(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
  REQUIRE(NAMED(cuLibraryGetKernel)(&kernel, library, "sum_cluster") == CUDA_SUCCESS);
  CUdeviceptr x = 0;
  CUdeviceptr out = 0;
  REQUIRE(NAMED(cuMemAlloc)(&x, 8 * 64 * 4) == CUDA_SUCCESS);
  REQUIRE(NAMED(cuMemAlloc)(&out, 32) == CUDA_SUCCESS);
  std::vector<float> ones(8 * 64, 1.0F);
  CUstream stream = nullptr;
  REQUIRE(NAMED(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  REQUIRE(NAMED(cuMemcpyHtoDAsync)(x, ones.data(), ones.size() * 4, stream) == CUDA_SUCCESS);
  int count = 64;
  void* parameters[] = {&x, &out, &count};
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {4, 1, 1};
  CUlaunchConfig config{};
  config.gridDimX = 8;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 64;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  REQUIRE(NAMED(cuLaunchKernelEx)(&config, reinterpret_cast<CUfunction>(kernel), parameters, nullptr) == CUDA_SUCCESS);
  float result[8] = {};
  REQUIRE(NAMED(cuMemcpyDtoHAsync)(result, out, 32, stream) == CUDA_SUCCESS);
  REQUIRE(NAMED(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(result[5] == 256);
  const char* name = nullptr;
  CHECK(NAMED(cuGetErrorName)(CUDA_ERROR_ILLEGAL_ADDRESS, &name) == CUDA_SUCCESS);
  CHECK(std::string(name) == "CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK(NAMED(cuLibraryUnload)(library) == CUDA_SUCCESS);
  tigon::emulator::reset();
}
#else
#include "driver_functions.hpp"
TEST_CASE("NVIDIA's headers are not installed, the emulated functions still exist") {
  CHECK(tigon::emulator::find_entry_point("cuLaunchKernelEx") != nullptr);
}
#endif
