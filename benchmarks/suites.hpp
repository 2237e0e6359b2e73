// The groups of rows.
#pragma once
#include "benchmarks/report.hpp"

namespace tigon::benchmarks {

// Norm, softmax and cross entropy against a plain copy of the bytes that they must move.
void measure_memory_bound(Report& report, const Settings& settings);
// Fused linear cross entropy with gradients against its three matmuls.
void measure_linear_loss(Report& report, const Settings& settings);
// Compiling, binding a new extent, launching.
void measure_latency(Report& report, const Settings& settings);

// Compiles one function as the first act of a process and prints "milliseconds kernels compiled".
void compile_once();

}  // namespace tigon::benchmarks
