// Programs of the CPU as compile and launch see them.
#pragma once
#include "runtime/device_program.hpp"
#include "runtime/program.hpp"

namespace tigon::runtime {

std::shared_ptr<const DeviceProgram> cpu_program(std::shared_ptr<const Program> program);

}  // namespace tigon::runtime
