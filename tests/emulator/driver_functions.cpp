// The emulated driver's functions with their types, for tests that play the part of a program that uses CUDA.
#include "driver_functions.hpp"

namespace emulator_test {

Session::Session(tigon::emulator::Options options) {
  tigon::emulator::reset(options);
  api::Context* context = nullptr;
  if (call<unsigned>("cuInit", 0) != api::success ||
      call<api::Context**, int>("cuDevicePrimaryCtxRetain", &context, 0) != api::success ||
      call<api::Context*>("cuCtxSetCurrent", context) != api::success) {
    throw std::runtime_error("the emulated device does not start");
  }
}

Session::~Session() { tigon::emulator::reset(); }

api::Pointer Session::allocate(std::size_t bytes) {
  api::Pointer pointer = 0;
  if (call<api::Pointer*, std::size_t>("cuMemAlloc", &pointer, bytes) != api::success) {
    throw std::runtime_error(tigon::emulator::last_error());
  }
  return pointer;
}

void Session::put(api::Pointer to, const void* from, std::size_t bytes) {
  if (call<api::Pointer, const void*, std::size_t>("cuMemcpyHtoD", to, from, bytes) != api::success) {
    throw std::runtime_error(tigon::emulator::last_error());
  }
}

void Session::get(void* to, api::Pointer from, std::size_t bytes) {
  if (call<void*, api::Pointer, std::size_t>("cuMemcpyDtoH", to, from, bytes) != api::success) {
    throw std::runtime_error(tigon::emulator::last_error());
  }
}

api::Kernel* Session::load(const std::string& ptx, const char* kernel) {
  api::Library* library = nullptr;
  api::Kernel* result = nullptr;
  if (call<api::Library**, const void*, int*, void**, unsigned, int*, void**, unsigned>(
          "cuLibraryLoadData", &library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) != api::success ||
      call<api::Kernel**, api::Library*, const char*>("cuLibraryGetKernel", &result, library, kernel) != api::success) {
    throw std::runtime_error(tigon::emulator::last_error());
  }
  return result;
}

api::Result Session::launch(api::Kernel* kernel, unsigned blocks, unsigned threads, api::Stream* stream,
                            std::vector<void*> arguments) {
  api::LaunchConfig config{blocks, 1, 1, threads, 1, 1, 0, stream, nullptr, 0};
  return call<const api::LaunchConfig*, api::Kernel*, void**, void**>("cuLaunchKernelEx", &config, kernel,
                                                                      arguments.data(), nullptr);
}

api::Result Session::synchronize() { return call<>("cuCtxSynchronize"); }

api::Stream* Session::make_stream(bool blocking) {
  api::Stream* stream = nullptr;
  if (call<api::Stream**, unsigned>("cuStreamCreate", &stream, blocking ? 0 : 1) != api::success) {
    throw std::runtime_error(tigon::emulator::last_error());
  }
  return stream;
}

std::string Session::error_text(api::Result result) {
  const char* text = nullptr;
  call<api::Result, const char**>("cuGetErrorString", result, &text);
  return text == nullptr ? "" : text;
}

std::string increment_ptx() {
  return R"(.version 9.0
.target sm_90
.address_size 64
.file 1 "increment.cu"
.visible .global .align 4 .u32 step = 1;
.visible .entry test(.param .u64 out, .param .u64 in)
{
  .reg .b64 %rd<6>;
  .reg .b32 %r<6>;
  .loc 1 3 0
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [in];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r1, %r1, %r2, %r3;
  mul.wide.s32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  add.s64 %rd5, %rd1, %rd3;
  .loc 1 5 0
  ld.global.u32 %r4, [%rd4];
  ld.global.u32 %r5, [step];
  add.s32 %r4, %r4, %r5;
  .loc 1 6 0
  st.global.u32 [%rd5], %r4;
  ret;
}
)";
}

}  // namespace emulator_test
