// Chooses the device, by running a kernel on it.
#include "device.hpp"

#include <fmt/format.h>

#include "model.hpp"
#include "options.hpp"
#include "runtime/cuda/driver.hpp"

namespace language_model {
namespace {

// What keeps kernels from running on it; "" when one has run.
std::string trouble_with(tigon::Device device) {
  try {
    const tigon::Stream stream(device);
    const auto turn = tigon::compile(rotation(), tigon::extents<Time, Half>(8, 4), {.device = device});
    const auto angles = turn(stream, {.base = 10000.0F});
    stream.synchronize();
    return {};
  } catch (const tigon::Error& error) {
    const std::string words = error.what();
    return words.substr(0, words.find('\n'));
  }
}

}  // namespace

tigon::Device choose_device(const std::string& name, std::string& why) {
  const tigon::Device gpu = tigon::Device::cuda();
  if (name == "cpu") return tigon::Device::cpu();
  if (name == "cuda") {
    const std::string trouble = trouble_with(gpu);
    if (!trouble.empty()) throw UsageError("--device cuda: " + trouble);
    return gpu;
  }
  if (!tigon::runtime::CudaDriver::present()) return tigon::Device::cpu();
  why = tigon::runtime::CudaDriver::get().emulated() ? "the CUDA driver is the emulated one; --device cuda takes it"
                                                     : trouble_with(gpu);
  return why.empty() ? gpu : tigon::Device::cpu();
}

std::string describe(tigon::Device device) {
  if (device.kind() != tigon::Device::Kind::cuda) return device.name();
  const tigon::runtime::CudaDriver& driver = tigon::runtime::CudaDriver::get();
  return fmt::format("{} ({}{})", device.name(), driver.device(device.ordinal()).name,
                     driver.emulated() ? ", emulated" : "");
}

}  // namespace language_model
