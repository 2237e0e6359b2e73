// Reads CPUID, sysfs and the process' affinity, and holds the table of named targets.
#include "runtime/cpu_features.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tigon/error.hpp"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tigon::runtime {
namespace {

struct NamedTarget {
  const char* name;
  CpuTarget target;
  int vector_bytes;
};

const std::vector<NamedTarget>& named_targets() {
  static const std::vector<NamedTarget> targets{
      {"x86-64-v3", {"x86_64-unknown-linux-gnu", "x86-64-v3", ""}, 32},
      {"x86-64-v4", {"x86_64-unknown-linux-gnu", "x86-64-v4", ""}, 64},
      {"aarch64", {"aarch64-unknown-linux-gnu", "generic", "+neon"}, 16},
  };
  return targets;
}

bool has_feature(const std::string& features, std::string_view name) {
  const std::string padded = "," + features + ",";
  return padded.find(fmt::format(",+{},", name)) != std::string::npos;
}

// One line of a file below cpu0's cache folder, without its newline; empty when absent.
std::string read_cache_line(int index, const char* field) {
  const std::string path = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/{}", index, field);
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return {};
  char line[64] = {};
  if (std::fgets(line, sizeof line, file) == nullptr) line[0] = '\0';
  std::fclose(file);
  std::string text = line;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::size_t parse_size(const std::string& text) {  // "32K", "1M", "512"
  char* end = nullptr;
  std::size_t size = std::strtoull(text.c_str(), &end, 10);
  if (*end == 'K') size <<= 10;
  if (*end == 'M') size <<= 20;
  return size;
}

std::size_t cache_bytes(int level, int sysconf_name) {
  for (int index = 0; index < 8; ++index) {
    if (read_cache_line(index, "level") != std::to_string(level)) continue;
    if (read_cache_line(index, "type") == "Instruction") continue;
    if (std::size_t size = parse_size(read_cache_line(index, "size"))) return size;
  }
  const long size = ::sysconf(sysconf_name);
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  const int count = static_cast<int>(std::thread::hardware_concurrency());  // more CPUs than cpu_set_t holds
  return count > 0 ? count : 1;
}

int host_vector_bytes(const CpuFeatures& features) { return features.avx512 ? 64 : features.avx2 ? 32 : 16; }

}  // namespace

CpuTarget named_target(std::string_view name) {
  for (const NamedTarget& row : named_targets()) {
    if (name == row.name) return row.target;
  }
  std::string names;
  for (const std::string& known : target_names()) names += (names.empty() ? "" : ", ") + known;
  throw Error({.kind = ErrorKind::usage, .found = std::string(name), .expected = "one of " + names},
              "unknown CPU target");
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const NamedTarget& row : named_targets()) names.emplace_back(row.name);
  return names;
}

int vector_bytes(const CpuTarget& target) {
  for (const NamedTarget& row : named_targets()) {
    if (target == row.target) return row.vector_bytes;
  }
  if (target.triple.starts_with("aarch64")) return 16;
  bool avx512 = true;
  for (const char* part : {"avx512f", "avx512vl", "avx512bw", "avx512dq"}) {
    avx512 = avx512 && has_feature(target.features, part);
  }
  return avx512 ? 64 : 32;
}

std::optional<std::string> target_override() {
  const char* value = std::getenv("TIGON_CPU");
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

CpuFeatures detect_cpu_features() {
  CpuFeatures features;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return features;
  unsigned saved_low = 0, saved_high = 0;
  asm volatile("xgetbv" : "=a"(saved_low), "=d"(saved_high) : "c"(0));
  const bool saves_ymm = (saved_low & 0x06u) == 0x06u;
  const bool saves_zmm = (saved_low & 0xe6u) == 0xe6u;
  const bool avx = saves_ymm && (c & bit_AVX) != 0;
  features.fma = avx && (c & bit_FMA) != 0;
  features.f16c = avx && (c & bit_F16C) != 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    features.avx2 = avx && (b & bit_AVX2) != 0;
    features.bmi = (b & bit_BMI) != 0 && (b & bit_BMI2) != 0;
    const unsigned wide = bit_AVX512F | bit_AVX512VL | bit_AVX512BW | bit_AVX512DQ;
    features.avx512 = saves_zmm && (b & wide) == wide;
  }
#elif defined(__aarch64__)
  features.neon = true;  // part of the base architecture
#endif
  return features;
}

std::string below_floor(const CpuFeatures& features) {
  if (features.neon) return {};
  std::string missing;
  const auto need = [&](bool present, const char* name) {
    if (!present) missing += std::string(missing.empty() ? "" : ", ") + name;
  };
  need(features.avx2, "AVX2");
  need(features.fma, "FMA");
  need(features.f16c, "F16C");
  need(features.bmi, "BMI1 and BMI2");
  if (missing.empty()) return {};
  return fmt::format("this CPU is below the floor of x86-64-v3 or NEON: it lacks {}", missing);
}

void require_cpu_floor() {
  static const std::string refusal = below_floor(detect_cpu_features());
  if (refusal.empty()) return;
  throw Error(
      {.kind = ErrorKind::device,
       .cure = "Run on a CPU from Intel Haswell or AMD Zen on, or let the virtual machine pass the host's CPU through"},
      refusal);
}

Machine machine() {
  static const Machine host = [] {
    Machine found;
    found.vector_bytes = host_vector_bytes(detect_cpu_features());
    found.l1_bytes = cache_bytes(1, _SC_LEVEL1_DCACHE_SIZE);
    found.l2_bytes = cache_bytes(2, _SC_LEVEL2_CACHE_SIZE);
    found.l3_bytes = cache_bytes(3, _SC_LEVEL3_CACHE_SIZE);
    return found;
  }();
  Machine result = host;
  result.cores = usable_cores();
  if (const auto name = target_override())
    result.vector_bytes = std::min(vector_bytes(named_target(*name)), host.vector_bytes);
  return result;
}

}  // namespace tigon::runtime
