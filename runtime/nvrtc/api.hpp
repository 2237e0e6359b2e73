// The part of NVRTC's C API that Tigon uses, written by hand: one row per function, no CUDA header.
#pragma once
#include <cstddef>
#include <string>

#include "runtime/library.hpp"

namespace tigon::runtime::nvrtc_c {

struct Program;
using Result = int;  // 0 is success
inline constexpr Result success = 0;
inline constexpr Result error_compilation = 6;

// ROW(field, C name, type)
#define TIGON_NVRTC_API(ROW)                                                                                        \
  ROW(version, nvrtcVersion, Result(int* major, int* minor))                                                        \
  ROW(error_string, nvrtcGetErrorString, const char*(Result))                                                       \
  ROW(architecture_count, nvrtcGetNumSupportedArchs, Result(int*))                                                  \
  ROW(architectures, nvrtcGetSupportedArchs, Result(int*))                                                          \
  ROW(program_create, nvrtcCreateProgram,                                                                           \
      Result(Program**, const char* source, const char* name, int headers, const char* const*, const char* const*)) \
  ROW(program_destroy, nvrtcDestroyProgram, Result(Program**))                                                      \
  ROW(program_compile, nvrtcCompileProgram, Result(Program*, int count, const char* const* options))                \
  ROW(log_size, nvrtcGetProgramLogSize, Result(Program*, std::size_t*))                                             \
  ROW(log, nvrtcGetProgramLog, Result(Program*, char*))                                                             \
  ROW(ptx_size, nvrtcGetPTXSize, Result(Program*, std::size_t*))                                                    \
  ROW(ptx, nvrtcGetPTX, Result(Program*, char*))                                                                    \
  ROW(cubin_size, nvrtcGetCUBINSize, Result(Program*, std::size_t*))                                                \
  ROW(cubin, nvrtcGetCUBIN, Result(Program*, char*))

struct Api {
#define TIGON_NVRTC_FIELD(field, name, ...) std::add_pointer_t<__VA_ARGS__> field = nullptr;
  TIGON_NVRTC_API(TIGON_NVRTC_FIELD)
#undef TIGON_NVRTC_FIELD

  // Fills the table; returns the first function that the library lacks, or "".
  std::string bind(const Library& library);
};

}  // namespace tigon::runtime::nvrtc_c
