// The symbols that a loader of libcuda or libcublasLt looks up by name; the rest is reached through cuGetProcAddress.
// And what only an emulator can tell: counters and faults.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/emulator/emulator.hpp"

namespace {

template <class R, class... A>
R call(const char* name, A... arguments) {
  return reinterpret_cast<R (*)(A...)>(tigon::emulator::find_entry_point(name))(arguments...);
}

}  // namespace

#define TIGON_EXPORT extern "C" __attribute__((visibility("default")))

TIGON_EXPORT int cuInit(unsigned flags) { return call<int>("cuInit", flags); }
TIGON_EXPORT int cuDriverGetVersion(int* version) { return call<int>("cuDriverGetVersion", version); }
TIGON_EXPORT int cuGetProcAddress_v2(const char* name, void** address, int version, std::uint64_t flags, int* status) {
  return call<int>("cuGetProcAddress_v2", name, address, version, flags, status);
}

TIGON_EXPORT int cublasLtCreate(void** handle) { return call<int>("cublasLtCreate", handle); }
TIGON_EXPORT int cublasLtDestroy(void* handle) { return call<int>("cublasLtDestroy", handle); }
TIGON_EXPORT std::size_t cublasLtGetVersion() { return call<std::size_t>("cublasLtGetVersion"); }
TIGON_EXPORT const char* cublasLtGetStatusName(int status) {
  return call<const char*>("cublasLtGetStatusName", status);
}
TIGON_EXPORT const char* cublasLtGetStatusString(int status) {
  return call<const char*>("cublasLtGetStatusString", status);
}
TIGON_EXPORT int cublasLtMatmulDescCreate(void** operation, int compute, int scale) {
  return call<int>("cublasLtMatmulDescCreate", operation, compute, scale);
}
TIGON_EXPORT int cublasLtMatmulDescDestroy(void* operation) {
  return call<int>("cublasLtMatmulDescDestroy", operation);
}
TIGON_EXPORT int cublasLtMatmulDescSetAttribute(void* operation, int attribute, const void* value, std::size_t bytes) {
  return call<int>("cublasLtMatmulDescSetAttribute", operation, attribute, value, bytes);
}
TIGON_EXPORT int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                                            std::int64_t leading) {
  return call<int>("cublasLtMatrixLayoutCreate", layout, type, rows, columns, leading);
}
TIGON_EXPORT int cublasLtMatrixLayoutDestroy(void* layout) { return call<int>("cublasLtMatrixLayoutDestroy", layout); }
TIGON_EXPORT int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, std::size_t bytes) {
  return call<int>("cublasLtMatrixLayoutSetAttribute", layout, attribute, value, bytes);
}
TIGON_EXPORT int cublasLtMatmulPreferenceCreate(void** preference) {
  return call<int>("cublasLtMatmulPreferenceCreate", preference);
}
TIGON_EXPORT int cublasLtMatmulPreferenceDestroy(void* preference) {
  return call<int>("cublasLtMatmulPreferenceDestroy", preference);
}
TIGON_EXPORT int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value,
                                                      std::size_t bytes) {
  return call<int>("cublasLtMatmulPreferenceSetAttribute", preference, attribute, value, bytes);
}
TIGON_EXPORT int cublasLtMatmulAlgoGetHeuristic(void* handle, void* operation, void* a, void* b, void* c, void* d,
                                                void* preference, int wanted, void* choices, int* found) {
  return call<int>("cublasLtMatmulAlgoGetHeuristic", handle, operation, a, b, c, d, preference, wanted, choices, found);
}
TIGON_EXPORT int cublasLtMatmul(void* handle, void* operation, const void* alpha, const void* a, void* a_layout,
                                const void* b, void* b_layout, const void* beta, const void* c, void* c_layout, void* d,
                                void* d_layout, const void* algorithm, void* workspace, std::size_t workspace_bytes,
                                void* stream) {
  return call<int>("cublasLtMatmul", handle, operation, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
                   algorithm, workspace, workspace_bytes, stream);
}

// Counts of all launches since they were cleared; the host has waited for its streams. Returns 1 for a name that is
// none of these. Sectors are 32-byte pieces of global memory that each warp's access asks for: no cache stands before
// it.
TIGON_EXPORT int tigon_emulator_counter(const char* name, std::uint64_t* value) {
  using tigon::emulator::Counters;
  using tigon::emulator::SpecialFunction;
  struct Named {
    std::string_view name;
    std::uint64_t (*get)(const Counters&);
  };
  static constexpr Named all[] = {
      {"launches", [](const Counters& c) { return c.launches; }},
      {"warp_instructions", [](const Counters& c) { return c.warp_instructions; }},
      {"global_bytes", [](const Counters& c) { return c.global_bytes(); }},
      {"global_bytes_wide",  // of accesses that move 16 or more bytes per lane
       [](const Counters& c) {
         return c.global_loaded[4] + c.global_loaded[5] + c.global_stored[4] + c.global_stored[5];
       }},
      {"global_requests", [](const Counters& c) { return c.global_requests; }},
      {"global_sectors", [](const Counters& c) { return c.global_sectors; }},
      {"global_new_sectors", [](const Counters& c) { return c.global_new_sectors; }},
      {"global_ideal_sectors", [](const Counters& c) { return c.global_ideal_sectors; }},
      {"shared_requests", [](const Counters& c) { return c.shared_requests; }},
      {"shared_wavefronts", [](const Counters& c) { return c.shared_wavefronts; }},
      {"shared_ideal_wavefronts", [](const Counters& c) { return c.shared_ideal_wavefronts; }},
      {"atomics", [](const Counters& c) { return c.atomics; }},
      {"barriers", [](const Counters& c) { return c.barriers; }},
      {"exponentials",
       [](const Counters& c) { return c.special_functions[static_cast<std::size_t>(SpecialFunction::ex2)]; }},
  };
  for (const Named& named : all) {
    if (named.name != name) continue;
    *value = named.get(tigon::emulator::counters());
    return 0;
  }
  return 1;
}
TIGON_EXPORT void tigon_emulator_clear_counters() { tigon::emulator::clear_counters(); }
// What the checks found, a line each; valid until the thread's next call.
TIGON_EXPORT const char* tigon_emulator_reports() {
  thread_local std::string text;
  text = tigon::emulator::reports_text();
  return text.c_str();
}
