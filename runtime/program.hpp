// A plan with its kernels compiled and loaded: what is left is to bind extents and to launch.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "codegen/plan/plan.hpp"
#include "runtime/build_kernels.hpp"
#include "runtime/cpu_features.hpp"

namespace tigon::runtime {

class LoadedObject;

// void NAME(parameter block, first partition, last partition, scratch)
using KernelEntry = void (*)(const void* parameters, std::int64_t first, std::int64_t last, void* scratch);

struct LoadedKernel {
  KernelEntry entry = nullptr;
  std::int64_t scratch_bytes = 0;  // per worker
  std::shared_ptr<LoadedObject> object;
};

struct Program {
  plan::Plan plan;
  std::vector<LoadedKernel> kernels;  // by plan kernel
};

// The text of one kernel for a machine, and the scratch that each worker needs.
struct KernelText {
  std::string text;
  std::int64_t scratch_bytes = 0;
};
KernelText llvm_text(const loops::Nest& nest, int vector_bytes);

// Throws Error{device} where this machine cannot run kernels made for the CPU of this name, which `argument` asked for.
void require_runnable(const std::string& target, const std::string& argument);

// Compiles (or finds in the cache) every kernel, on all cores. Throws Error{compile} or Error{device}.
std::shared_ptr<const Program> build_program(plan::Plan plan, const Progress& progress = {});

// How often anything was launched in this process; compiles are counted by the kernel cache.
std::uint64_t launch_count();
void count_launches(std::uint64_t launches);

}  // namespace tigon::runtime
