// The part of cuBLASLt that Tigon uses, written by hand: one row per function, no CUDA header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/cuda/api.hpp"

namespace tigon::runtime::blas_c {

using Status = int;
inline constexpr Status success = 0;

struct HandleState;
struct OperationState;
struct LayoutState;
struct PreferenceState;
using Handle = HandleState*;
using Operation = OperationState*;
using Layout = LayoutState*;
using Preference = PreferenceState*;

// As in cublasLt.h.
struct Algorithm {
  std::uint64_t data[8] = {};
};
struct Choice {
  Algorithm algorithm;
  std::size_t workspace = 0;
  Status state = 0;
  float waves = 0;
  int reserved[4] = {};
};

inline constexpr int real_f32 = 0, real_f64 = 1, real_f16 = 2, real_bf16 = 14;
inline constexpr int compute_f32 = 68, compute_f64 = 70;
inline constexpr int operation_transpose_a = 3, operation_transpose_b = 4;
inline constexpr int layout_batches = 5, layout_batch_stride = 6;
inline constexpr int preference_workspace = 1, preference_reductions = 3, preference_alignment_a = 5;
// Partial sums are added in a fixed order, in memory of their own: neither in place nor by atomic additions.
inline constexpr std::uint32_t reduction_in_compute_type = 2;

// ROW(field, C name, type)
#define TIGON_BLAS_API(ROW)                                                                                          \
  ROW(create, cublasLtCreate, Status(Handle*))                                                                       \
  ROW(version, cublasLtGetVersion, std::size_t())                                                                    \
  ROW(status_text, cublasLtGetStatusString, const char*(Status))                                                     \
  ROW(operation_create, cublasLtMatmulDescCreate, Status(Operation*, int compute, int scale))                        \
  ROW(operation_destroy, cublasLtMatmulDescDestroy, Status(Operation))                                               \
  ROW(operation_set, cublasLtMatmulDescSetAttribute, Status(Operation, int, const void*, std::size_t))               \
  ROW(layout_create, cublasLtMatrixLayoutCreate,                                                                     \
      Status(Layout*, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading))                    \
  ROW(layout_destroy, cublasLtMatrixLayoutDestroy, Status(Layout))                                                   \
  ROW(layout_set, cublasLtMatrixLayoutSetAttribute, Status(Layout, int, const void*, std::size_t))                   \
  ROW(preference_create, cublasLtMatmulPreferenceCreate, Status(Preference*))                                        \
  ROW(preference_destroy, cublasLtMatmulPreferenceDestroy, Status(Preference))                                       \
  ROW(preference_set, cublasLtMatmulPreferenceSetAttribute, Status(Preference, int, const void*, std::size_t))       \
  ROW(heuristic, cublasLtMatmulAlgoGetHeuristic,                                                                     \
      Status(Handle, Operation, Layout, Layout, Layout, Layout, Preference, int wanted, Choice*, int* found))        \
  ROW(matmul, cublasLtMatmul,                                                                                        \
      Status(Handle, Operation, const void* alpha, const void* a, Layout, const void* b, Layout, const void* beta,   \
             const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace, std::size_t workspace_bytes, \
             cuda_c::Stream))

struct Api {
#define TIGON_BLAS_FIELD(field, name, ...) std::add_pointer_t<__VA_ARGS__> field = nullptr;
  TIGON_BLAS_API(TIGON_BLAS_FIELD)
#undef TIGON_BLAS_FIELD
};

}  // namespace tigon::runtime::blas_c
