// Turns LLVM IR text into the bytes of an object file, with an LLVM found at run time.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cpu_features.hpp"
#include "runtime/library.hpp"

namespace tigon::runtime {

struct LlvmSession;

// How a module is optimised. The default was chosen by measurement; see compiler.cpp.
struct LlvmSettings {
  const char* passes = nullptr;  // null: the default list; the text is LLVM's pass pipeline syntax
  int codegen_level = -1;        // 0 to 3; -1: the default
};

class LlvmCompiler {
 public:
  // The newest LLVM, or the one that $TIGON_LLVM chooses. Loaded at the first call; throws Error if there is none.
  static const LlvmCompiler& get();
  // By path, folder or version ("19"); empty is as get(). Several may live in one process.
  static std::shared_ptr<const LlvmCompiler> load(const std::string& choice);
  // What a search for LLVM meets, without an exception.
  static LibrarySearch search(const std::string& choice = {});

  [[nodiscard]] const std::string& version() const;  // "19.1.7"; "15" where LLVM cannot tell more
  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] std::string identity()
      const;                          // version, build, passes, level: what the bytes depend on besides text and target
  [[nodiscard]] bool usable() const;  // false once LLVM met a fatal error

  // $TIGON_CPU if set, else this machine as this LLVM names it.
  [[nodiscard]] CpuTarget host_target() const;

  // Safe to call from many threads. Throws Error{compile} with LLVM's message and the numbered source around the line;
  // also when the object has undefined symbols.
  [[nodiscard]] std::vector<std::byte> compile(std::string_view ir_text, const CpuTarget& target,
                                               const LlvmSettings& settings = {}) const;

  explicit LlvmCompiler(std::shared_ptr<LlvmSession> session);  // internal: use load
  [[nodiscard]] const std::shared_ptr<LlvmSession>& session() const { return session_; }

 private:
  std::shared_ptr<LlvmSession> session_;
};

// LlvmCompiler::get().host_target().
CpuTarget host_target();

// Executable code made from an object file. Calls into it need -fno-sanitize=function under clang's UBSan, which reads
// a signature in front of a function; here that memory may be unmapped.
class LoadedObject {
 public:
  // The address of a global function. Throws Error{internal} for a name that the object does not define.
  [[nodiscard]] void* symbol(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> symbols() const;

  struct Code;
  explicit LoadedObject(std::shared_ptr<const Code> code);  // internal: use load_object

 private:
  std::shared_ptr<const Code> code_;
};

// Links the object into memory; all its functions are resolved on return. Throws Error if it is damaged, made for
// another machine, or has undefined symbols.
std::shared_ptr<LoadedObject> load_object(std::span<const std::byte> object);
std::shared_ptr<LoadedObject> load_object(std::span<const std::byte> object, const LlvmCompiler& compiler);

}  // namespace tigon::runtime
