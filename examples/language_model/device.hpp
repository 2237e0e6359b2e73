// Which device the model runs on.
#pragma once
#include <string>

#include "tigon/device.hpp"

namespace language_model {

// "cpu"; "cuda": the first CUDA device, the emulated one where TIGON_CUDA_DRIVER asks for it; "best": a GPU if a kernel
// runs on it, else the CPU. `why` says what speaks against a GPU that is there. Throws UsageError where there is no
// CUDA device, or none that works, for "cuda".
tigon::Device choose_device(const std::string& name, std::string& why);

// For people: "cpu", "cuda:0 (NVIDIA H200)".
std::string describe(tigon::Device device);

}  // namespace language_model
