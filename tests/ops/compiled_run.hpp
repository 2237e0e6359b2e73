// Compiles an op's graph for the CPU through the public path, runs it, and holds it to the reference's bounds.
#pragma once
#include <string>

#include "pairwise.hpp"

namespace tigon::ops {

struct CompiledRun {
  bool passed = true;
  std::string sentence;    // the first output outside its bound
  double worst_ratio = 0;  // largest |computed - value| / allowed over all outputs
};

CompiledRun run_compiled(const OpCase& one, bool gradient, std::uint64_t seed);

}  // namespace tigon::ops
