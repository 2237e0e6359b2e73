// The printed form of a plan: its steps in order, what each one fuses and moves, the strategies and the refusals.
#pragma once
#include <string>

#include "codegen/plan/plan.hpp"

namespace tigon::plan {

// "Touched" counts what the kernels' texts load and store, each buffer once per sweep, wherever it comes from; the
// minimum counts each buffer once.
std::string print(const Plan& plan);

// Numbers for people: "4.1 MiB", "201.3 MB" (10^6 bytes), "52.0 us", "1.08 TFLOP".
std::string memory_text(double bytes);
std::string traffic_text(double bytes);
std::string time_text(double nanoseconds);
std::string count_text(double count, std::string_view unit);

}  // namespace tigon::plan
