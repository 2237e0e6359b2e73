// What a kernel needs of a multiprocessor, read from its cubin.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace tigon::runtime {

struct KernelResources {
  int registers = 0;     // of a thread
  int stack_bytes = 0;   // of a thread: spilled registers and arrays indexed at run time
  int shared_bytes = 0;  // of a block, static; architectures from sm_90 on count 1024 reserved bytes in
};

// By kernel. Throws Error{compile} for bytes that are no cubin.
std::map<std::string, KernelResources> cubin_resources(std::span<const std::byte> cubin);

}  // namespace tigon::runtime
