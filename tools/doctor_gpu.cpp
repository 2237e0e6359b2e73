// `tigon doctor` on what GPUs need: NVRTC, the driver and its devices, cuBLASLt, a disassembler.
#include <cstdlib>

#include "codegen/plan/print.hpp"
#include "disassembler.hpp"
#include "doctor.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/cuda/matmul.hpp"
#include "runtime/nvrtc/compiler.hpp"
#include "tigon/error.hpp"

namespace tigon::tools {
namespace {

void attempts(Findings& findings, const runtime::LibrarySearch& search) {
  for (const runtime::Attempt& attempt : search.attempts) {
    if (attempt.message != "used") findings.line("tried", attempt.path + ": " + attempt.message);
  }
  if (!search.found() && !search.missing_symbol.empty()) findings.line("lacks", search.missing_symbol);
}

bool nvrtc(Findings& findings) {
  findings.title("NVRTC (compiles GPU kernels)");
  const runtime::LibrarySearch search = runtime::NvrtcCompiler::search();
  if (!search.found()) {
    attempts(findings, search);
    findings.note("no usable NVRTC, so nothing can be compiled for a GPU", search.cure);
    return false;
  }
  const runtime::NvrtcCompiler& compiler = runtime::NvrtcCompiler::get();
  findings.line("in use", compiler.path());
  findings.line("version", compiler.version());
  findings.line("compiles for", fmt::format("sm_{}", fmt::join(compiler.architectures(), " sm_")));
  return true;
}

bool driver(Findings& findings, bool compiler) {
  findings.title("CUDA driver (runs GPU kernels)");
  const runtime::LibrarySearch search = runtime::CudaDriver::search();
  if (!search.found()) {
    attempts(findings, search);
    findings.note("no usable CUDA driver, so nothing runs on a GPU", search.cure);
    return false;
  }
  findings.line("in use", search.path);
  findings.line("version", search.version);
  int usable = 0;
  try {
    const runtime::CudaDriver& driver = runtime::CudaDriver::get();
    for (int i = 0; i < driver.device_count(); ++i) {
      try {
        const runtime::CudaDevice& device = driver.device(i);
        const std::string memory = plan::memory_text(static_cast<double>(device.memory_bytes));
        findings.line(fmt::format("cuda:{}", i),
                      fmt::format("{}, compute capability {}.{}, {} multiprocessors, {}", device.name, device.major,
                                  device.minor, device.multiprocessors, memory));
        if (compiler) {
          const std::string model(runtime::cuda_model(device).name);
          findings.line("", fmt::format("kernels for {}, planned as for {}", runtime::architecture_of(device), model));
        }
        ++usable;
      } catch (const Error& error) {
        findings.note(fmt::format("cuda:{} cannot be used: {}", i, error.what()), "");
      }
    }
    if (driver.device_count() == 0) {
      findings.note("the driver has no device", "TIGON_CUDA_DRIVER=emulated runs kernels on an emulated device");
    }
  } catch (const Error& error) {
    findings.note(error.what(), "TIGON_CUDA_DRIVER=emulated runs kernels on an emulated device");
  }
  return usable > 0;
}

void cublas(Findings& findings) {
  findings.title("cuBLASLt (multiplies matrices on GPUs)");
  const runtime::LibrarySearch search = runtime::search_cublas();
  if (!search.found()) {
    attempts(findings, search);
    findings.note("no usable cuBLASLt: matrix products on a GPU become ordinary kernels of Tigon's own", search.cure);
    return;
  }
  findings.line("in use", search.path);
  if (const int version = std::atoi(search.version.c_str()); version > 0)  // 130002 is 13.0.2
    findings.line("version", fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100));
}

void disassembler(Findings& findings) {
  findings.title("Disassembler (for tigon emit --what sass)");
  const DisassemblerSearch search = find_disassembler();
  if (!search.found()) {
    findings.line("tried", fmt::format("{}", fmt::join(search.tried, ", ")));
    findings.note("neither nvdisasm nor cuobjdump, so machine code of GPUs cannot be shown", search.cure);
    return;
  }
  findings.line("in use", search.path);
  try {
    if (const std::string version = disassembler_version(search.path); !version.empty())
      findings.line("version", version);
  } catch (const Error& error) {
    findings.note(error.what(), search.cure);
  }
}

}  // namespace

bool diagnose_gpu(Findings& findings) {
  const bool compiler = nvrtc(findings);
  const bool device = driver(findings, compiler);
  if (device) cublas(findings);
  disassembler(findings);
  return compiler && device;
}

}  // namespace tigon::tools
