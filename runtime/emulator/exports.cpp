// The symbols that a loader of libcuda or libcublasLt looks up by name; the rest is reached through cuGetProcAddress.
#include <cstddef>
#include <cstdint>

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
