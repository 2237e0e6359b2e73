// From a nest to a lowered nest for GPUs: one thread's scalar code, vectors in memory, exchanges and barriers.
#pragma once
#include "codegen/loops/nest.hpp"
#include "codegen/lower/lowered.hpp"

namespace tigon::lower {

// Longest axis that a binary may be launched with: sums of an index and a block's length stay in 32 bits.
inline constexpr std::int64_t largest_cuda_extent = (std::int64_t{1} << 31) - (std::int64_t{1} << 20);

// What the host promises of the buffers that a binary is launched with.
struct CudaClass {
  bool aligned = true;  // every buffer starts at a multiple of 16 bytes
  bool dense = true;    // rows follow each other without gaps, so that pitches follow from the extents
  friend bool operator==(const CudaClass&, const CudaClass&) = default;
};

// Parts must say their threads (loops::Part). Verifies the nest first.
Lowered lower_cuda(const loops::Nest& nest, const CudaClass& buffers = {});

}  // namespace tigon::lower
