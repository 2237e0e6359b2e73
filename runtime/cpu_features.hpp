// What the host's CPU offers (instruction sets, vector width, caches, cores) and the CPUs that kernels can be compiled
// for.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tigon::runtime {

struct CpuTarget {
  std::string triple, cpu, features;
  friend bool operator==(const CpuTarget&, const CpuTarget&) = default;
};

// "x86-64-v3", "x86-64-v4" or "aarch64"; another name is an Error that lists these.
CpuTarget named_target(std::string_view name);
std::vector<std::string> target_names();
// Bytes of the widest vector that kernels for this target use: 64, 32 or 16. Empty features and an unknown CPU give the
// floor.
int vector_bytes(const CpuTarget& target);
// The value of $TIGON_CPU, if any: a name that replaces the host as the target.
std::optional<std::string> target_override();

struct CpuFeatures {
  bool avx2 = false, fma = false, f16c = false,
       bmi = false;     // usable: the CPU has it and the system saves its registers
  bool avx512 = false;  // F, VL, BW and DQ together
  bool neon = false;
  friend bool operator==(const CpuFeatures&, const CpuFeatures&) = default;
};

CpuFeatures detect_cpu_features();
// Empty when the features reach x86-64-v3 or NEON; else one sentence naming what is missing.
std::string below_floor(const CpuFeatures& features);
// Throws Error{device} on a CPU below the floor.
void require_cpu_floor();

struct Machine {
  int vector_bytes = 0;  // honours $TIGON_CPU
  std::size_t l1_bytes = 0, l2_bytes = 0,
              l3_bytes = 0;  // data caches as one core sees them; 0: there is none or it is hidden
  int cores = 0;             // usable by this process
};

Machine machine();

}  // namespace tigon::runtime
