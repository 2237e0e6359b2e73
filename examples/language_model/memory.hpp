// The memory of training, on the device, and whether there is enough of it.
#pragma once
#include <string>

#include "weights.hpp"

namespace language_model {

// Throws UsageError where the host has too little: the system gives more memory than there is, and ends the program
// when it is touched. Devices refuse by themselves.
void require_memory(double bytes, const std::string& what);

// Updates write over the weights and the running means.
struct State {
  State(const ModelSize& size, Random& random, const tigon::Stream& stream);
  Weights<tigon::Owned> weights, first, second, gradients;
};

template <class Compiled>
tigon::Storage workspace_for(const Compiled& compiled, tigon::Device device) {
  if (device == tigon::Device::cpu())
    require_memory(static_cast<double>(compiled.workspace_bytes()), "intermediate values");
  return tigon::Storage(std::max<std::size_t>(compiled.workspace_bytes(), 64), device);
}

}  // namespace language_model
