// Turns CUDA text into PTX and a cubin in one call, with an NVRTC found at run time. Needs no GPU and no driver.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/library.hpp"

namespace tigon::runtime {

struct NvrtcSession;

struct NvrtcSettings {
  std::string architecture = "sm_80";  // "sm_90a": both forms are made for the `a` architecture
  bool line_info = false;              // CUDA lines in the binary, for profilers and the emulator
  bool warnings_are_errors = false;
};

struct NvrtcBinary {
  std::string ptx;
  std::vector<std::byte> cubin;
  std::string log;  // warnings; empty when there are none
};

class NvrtcCompiler {
 public:
  // The newest NVRTC, or the one that $TIGON_NVRTC chooses. Loaded at the first call; throws Error if there is none.
  static const NvrtcCompiler& get();
  // By path, folder or version ("13", "12.8"); empty is as get(). Several may live in one process.
  static std::shared_ptr<const NvrtcCompiler> load(const std::string& choice);
  // What a search for NVRTC meets, without an exception.
  static LibrarySearch search(const std::string& choice = {});

  [[nodiscard]] const std::string& version() const;  // "13.0"
  [[nodiscard]] const std::string& path() const;
  // What the bytes depend on besides text, architecture and line_info: version, build, options.
  [[nodiscard]] std::string identity() const;
  [[nodiscard]] const std::vector<int>& architectures() const;  // 75, 80, 86 ..., ascending
  // "sm_90", "sm_90a" and "sm_100f" are supported where 90 and 100 are.
  [[nodiscard]] bool supports(std::string_view architecture) const;

  // Safe to call from many threads. Throws Error{compile} with NVRTC's log, the numbered source around the first error,
  // the options and the version. `name` stands for the file in messages and line tables.
  [[nodiscard]] NvrtcBinary compile(const std::string& text, const std::string& name,
                                    const NvrtcSettings& settings = {}) const;

  explicit NvrtcCompiler(std::shared_ptr<const NvrtcSession> session);  // internal: use load

 private:
  std::shared_ptr<const NvrtcSession> session_;
};

}  // namespace tigon::runtime
