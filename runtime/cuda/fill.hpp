// Setting a device's memory to one value, also where rows have gaps between them.
#pragma once
#include "runtime/cuda/driver.hpp"
#include "runtime/prepared.hpp"

namespace tigon::runtime {

// Enqueues it; the fill's own target is not looked at. The device's context is current.
void fill_memory(const PreparedFill& fill, cuda_c::Pointer target, cuda_c::Stream stream);

}  // namespace tigon::runtime
