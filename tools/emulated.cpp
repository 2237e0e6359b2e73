// Looks the emulator's own functions up in the driver's library.
#include "emulated.hpp"

#include "runtime/cuda/driver.hpp"
#include "tigon/error.hpp"

namespace tigon::tools {
namespace {

template <class Function>
Function function_named(const char* name) {
  return reinterpret_cast<Function>(runtime::CudaDriver::get().library().symbol(name));
}

template <class Function>
Function required(const char* name) {
  const auto function = function_named<Function>(name);
  if (function == nullptr) {
    throw Error({.kind = ErrorKind::device,
                 .found = runtime::CudaDriver::get().library().path(),
                 .expected = std::string("an emulated driver that has ") + name,
                 .cure = "Set TIGON_CUDA_DRIVER=emulated; build tigon_emulated_cuda of the same version"},
                "only the emulated driver counts what kernels do");
  }
  return function;
}

}  // namespace

bool emulated() {
  return runtime::CudaDriver::present() && function_named<void (*)()>("tigon_emulator_clear_counters") != nullptr;
}

std::string emulated_faults() {
  if (!emulated()) return {};
  return required<const char* (*)()>("tigon_emulator_reports")();
}

std::uint64_t emulated_counter(const char* name) {
  std::uint64_t value = 0;
  if (required<int (*)(const char*, std::uint64_t*)>("tigon_emulator_counter")(name, &value) == 0) return value;
  throw Error({.kind = ErrorKind::device,
               .found = runtime::CudaDriver::get().library().path(),
               .cure = "Build tigon_emulated_cuda of the same version"},
              std::string("the emulated driver has no counter ") + name);
}

void clear_emulated_counters() { required<void (*)()>("tigon_emulator_clear_counters")(); }

}  // namespace tigon::tools
