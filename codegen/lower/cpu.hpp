// Lowers a nest for CPUs: lanes become vectors with tails, folds become accumulators, parts share out the partition
// range.
#pragma once
#include "codegen/loops/nest.hpp"
#include "codegen/lower/lowered.hpp"

namespace tigon::lower {

struct CpuMachine {
  int vector_bytes = 32;   // 64, 32 or 16
  bool has_masks = false;  // masked loads and stores are cheap: ragged ends are one masked vector, else a scalar loop
};

// The machine that a target with vectors of this size is.
constexpr CpuMachine cpu_machine(int vector_bytes) { return {vector_bytes, vector_bytes == 64}; }

Lowered lower_cpu(const loops::Nest& nest, const CpuMachine& machine);

}  // namespace tigon::lower
