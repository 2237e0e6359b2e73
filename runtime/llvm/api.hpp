// The part of LLVM's C API that Tigon uses, written by hand: one row per function, no LLVM header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "runtime/library.hpp"

namespace tigon::runtime::llvm_c {

struct Context;
struct Module;
struct MemoryBuffer;
struct DiagnosticInfo;
struct Target;
struct TargetMachine;
struct TargetData;
struct PassOptions;
struct Failure;  // LLVMErrorRef; null is success
struct Jit;
struct JitBuilder;
struct JitDylib;
struct JitSession;

using Bool = int;  // 0 is success wherever it is a status
using DiagnosticHandler = void(DiagnosticInfo*, void*);
using FatalHandler = void(const char* reason);
using SessionReporter = void(void*, Failure*);

// Values of LLVM's enumerations, stable since LLVM 3.
inline constexpr int diagnostic_error = 0;
inline constexpr int verify_and_return = 2;
inline constexpr int codegen_default = 2;
inline constexpr int relocation_pic = 2;
inline constexpr int code_model_small = 3;
inline constexpr int emit_object = 1;

// ROW(field, C name, required, type). LLVMOrcExecutionSessionLookup is never called: LLVM 14 lacks it, 15 has it, so it
// marks the minimum version where LLVMGetVersion (from 16 on) is absent.
#define TIGON_LLVM_API(ROW)                                                                                        \
  ROW(get_version, LLVMGetVersion, false, void(unsigned*, unsigned*, unsigned*))                                   \
  ROW(marks_15, LLVMOrcExecutionSessionLookup, true, void())                                                       \
  ROW(context_create, LLVMContextCreate, true, Context*())                                                         \
  ROW(context_dispose, LLVMContextDispose, true, void(Context*))                                                   \
  ROW(context_set_diagnostic_handler, LLVMContextSetDiagnosticHandler, true,                                       \
      void(Context*, DiagnosticHandler*, void*))                                                                   \
  ROW(diagnostic_description, LLVMGetDiagInfoDescription, true, char*(DiagnosticInfo*))                            \
  ROW(diagnostic_severity, LLVMGetDiagInfoSeverity, true, int(DiagnosticInfo*))                                    \
  ROW(dispose_message, LLVMDisposeMessage, true, void(char*))                                                      \
  ROW(install_fatal_handler, LLVMInstallFatalErrorHandler, true, void(FatalHandler*))                              \
  ROW(buffer_create, LLVMCreateMemoryBufferWithMemoryRangeCopy, true,                                              \
      MemoryBuffer*(const char*, std::size_t, const char*))                                                        \
  ROW(buffer_start, LLVMGetBufferStart, true, const char*(MemoryBuffer*))                                          \
  ROW(buffer_size, LLVMGetBufferSize, true, std::size_t(MemoryBuffer*))                                            \
  ROW(buffer_dispose, LLVMDisposeMemoryBuffer, true, void(MemoryBuffer*))                                          \
  ROW(parse_ir, LLVMParseIRInContext, true, Bool(Context*, MemoryBuffer*, Module**, char**))                       \
  ROW(module_dispose, LLVMDisposeModule, true, void(Module*))                                                      \
  ROW(module_verify, LLVMVerifyModule, true, Bool(Module*, int, char**))                                           \
  ROW(module_set_triple, LLVMSetTarget, true, void(Module*, const char*))                                          \
  ROW(module_set_layout, LLVMSetModuleDataLayout, true, void(Module*, TargetData*))                                \
  ROW(layout_dispose, LLVMDisposeTargetData, true, void(TargetData*))                                              \
  ROW(default_triple, LLVMGetDefaultTargetTriple, true, char*())                                                   \
  ROW(host_cpu, LLVMGetHostCPUName, true, char*())                                                                 \
  ROW(host_features, LLVMGetHostCPUFeatures, true, char*())                                                        \
  ROW(target_from_triple, LLVMGetTargetFromTriple, true, Bool(const char*, Target**, char**))                      \
  ROW(machine_create, LLVMCreateTargetMachine, true,                                                               \
      TargetMachine*(Target*, const char*, const char*, const char*, int, int, int))                               \
  ROW(machine_dispose, LLVMDisposeTargetMachine, true, void(TargetMachine*))                                       \
  ROW(machine_layout, LLVMCreateTargetDataLayout, true, TargetData*(TargetMachine*))                               \
  ROW(machine_emit, LLVMTargetMachineEmitToMemoryBuffer, true,                                                     \
      Bool(TargetMachine*, Module*, int, char**, MemoryBuffer**))                                                  \
  ROW(pass_options_create, LLVMCreatePassBuilderOptions, true, PassOptions*())                                     \
  ROW(pass_options_dispose, LLVMDisposePassBuilderOptions, true, void(PassOptions*))                               \
  ROW(pass_options_loop_vectorize, LLVMPassBuilderOptionsSetLoopVectorization, true, void(PassOptions*, Bool))     \
  ROW(pass_options_slp_vectorize, LLVMPassBuilderOptionsSetSLPVectorization, true, void(PassOptions*, Bool))       \
  ROW(run_passes, LLVMRunPasses, true, Failure*(Module*, const char*, TargetMachine*, PassOptions*))               \
  ROW(failure_message, LLVMGetErrorMessage, true, char*(Failure*))                                                 \
  ROW(failure_dispose_message, LLVMDisposeErrorMessage, true, void(char*))                                         \
  ROW(failure_consume, LLVMConsumeError, true, void(Failure*))                                                     \
  ROW(jit_create, LLVMOrcCreateLLJIT, true, Failure*(Jit**, JitBuilder*))                                          \
  ROW(jit_dispose, LLVMOrcDisposeLLJIT, true, Failure*(Jit*))                                                      \
  ROW(jit_session, LLVMOrcLLJITGetExecutionSession, true, JitSession*(Jit*))                                       \
  ROW(jit_set_reporter, LLVMOrcExecutionSessionSetErrorReporter, true, void(JitSession*, SessionReporter*, void*)) \
  ROW(jit_main, LLVMOrcLLJITGetMainJITDylib, true, JitDylib*(Jit*))                                                \
  ROW(jit_add_object, LLVMOrcLLJITAddObjectFile, true, Failure*(Jit*, JitDylib*, MemoryBuffer*))                   \
  ROW(jit_lookup, LLVMOrcLLJITLookup, true, Failure*(Jit*, std::uint64_t*, const char*))                           \
  ROW(x86_target_info, LLVMInitializeX86TargetInfo, false, void())                                                 \
  ROW(x86_target, LLVMInitializeX86Target, false, void())                                                          \
  ROW(x86_target_mc, LLVMInitializeX86TargetMC, false, void())                                                     \
  ROW(x86_printer, LLVMInitializeX86AsmPrinter, false, void())                                                     \
  ROW(aarch64_target_info, LLVMInitializeAArch64TargetInfo, false, void())                                         \
  ROW(aarch64_target, LLVMInitializeAArch64Target, false, void())                                                  \
  ROW(aarch64_target_mc, LLVMInitializeAArch64TargetMC, false, void())                                             \
  ROW(aarch64_printer, LLVMInitializeAArch64AsmPrinter, false, void())

struct Api {
#define TIGON_LLVM_FIELD(field, name, required, ...) std::add_pointer_t<__VA_ARGS__> field = nullptr;
  TIGON_LLVM_API(TIGON_LLVM_FIELD)
#undef TIGON_LLVM_FIELD

  // Fills every field from the library; returns the first absent required name, or "".
  std::string bind(const Library& library);
};

}  // namespace tigon::runtime::llvm_c
