// What the emulated driver tells about itself, beyond what a real one has: asked for by symbol, since the command is
// not linked to it.
#pragma once
#include <cstdint>
#include <string>

namespace tigon::tools {

// Whether this process uses a CUDA driver, and that is the emulated one.
bool emulated();

// Everything that its checks found wrong in kernels so far; empty where the driver is not the emulated one.
std::string emulated_faults();

// Counts of everything launched since they were cleared; the names are in runtime/emulator/exports.cpp.
// Throws Error{device} where the driver is not the emulated one, or lacks the counter.
std::uint64_t emulated_counter(const char* name);
void clear_emulated_counters();

}  // namespace tigon::tools
