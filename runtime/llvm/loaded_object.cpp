// Links an object into executable memory by LLVM's ORC, one JIT per object so that dropping it frees everything.
#include <elf.h>

#include "runtime/llvm/compiler.hpp"
#include "runtime/llvm/elf.hpp"
#include "runtime/llvm/session.hpp"

namespace tigon::runtime {
namespace {

using namespace llvm_c;

#if defined(__x86_64__)
constexpr int host_elf_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int host_elf_machine = EM_AARCH64;
#endif

struct SessionErrors {
  const LlvmSession* session;
  std::string text{};
};

// ORC prints what it cannot return unless a reporter is set.
void on_session_error(void* data, Failure* failure) {
  auto& errors = *static_cast<SessionErrors*>(data);
  errors.text += errors.session->take(failure) + "\n";
}

[[noreturn]] void fail(const LlvmSession& session, const std::string& message) {
  throw Error({.kind = ErrorKind::compile, .function = "LLVM " + session.version, .log = message},
              "a compiled kernel could not be loaded");
}

}  // namespace

struct LoadedObject::Code {
  std::shared_ptr<LlvmSession> session;
  SessionErrors errors{};
  Jit* jit = nullptr;
  std::map<std::string, void*, std::less<>> addresses{};

  ~Code() {
    if (jit == nullptr || session->unusable.load()) return;
    try {
      LlvmCall call(*session);
      if (Failure* failure = session->api.jit_dispose(jit)) session->api.failure_consume(failure);
    } catch (const LlvmFatalError&) {
      jit = nullptr;  // the session is marked; the code's memory leaks
    }
  }
};

LoadedObject::LoadedObject(std::shared_ptr<const Code> code) : code_(std::move(code)) {}

void* LoadedObject::symbol(std::string_view name) const {
  const auto found = code_->addresses.find(name);
  if (found != code_->addresses.end()) return found->second;
  throw Error({.kind = ErrorKind::internal,
               .found = std::string(name),
               .expected = fmt::format("one of {}", fmt::join(symbols(), ", "))},
              "a loaded kernel does not define this function");
}

std::vector<std::string> LoadedObject::symbols() const {
  std::vector<std::string> names;
  for (const auto& [name, address] : code_->addresses) names.push_back(name);
  return names;
}

std::shared_ptr<LoadedObject> load_object(std::span<const std::byte> object) {
  return load_object(object, LlvmCompiler::get());
}

std::shared_ptr<LoadedObject> load_object(std::span<const std::byte> object, const LlvmCompiler& compiler) {
  const ElfObject elf = read_elf(object);
  if (elf.machine != host_elf_machine) {
    throw Error({.kind = ErrorKind::compile,
                 .found = fmt::format("ELF machine {}", elf.machine),
                 .expected = fmt::format("{}", host_elf_machine),
                 .cure = "Compile for this machine's target to run the kernel"},
                "this object was compiled for another kind of CPU");
  }
  require_self_contained(elf);

  auto code = std::make_shared<LoadedObject::Code>();
  code->session = compiler.session();
  LlvmSession& session = *code->session;
  code->errors.session = &session;
  session.require_usable();
  const Api& api = session.api;
  try {
    LlvmCall call(session);
    if (Failure* failure = api.jit_create(&code->jit, nullptr)) fail(session, session.take(failure));
    api.jit_set_reporter(api.jit_session(code->jit), on_session_error, &code->errors);
    MemoryBuffer* bytes = api.buffer_create(reinterpret_cast<const char*>(object.data()), object.size(), "kernel");
    if (Failure* failure = api.jit_add_object(code->jit, api.jit_main(code->jit), bytes))
      fail(session, session.take(failure));
    for (const std::string& name : elf.functions()) {
      std::uint64_t address = 0;
      if (Failure* failure = api.jit_lookup(code->jit, &address, name.c_str())) {
        fail(session, session.take(failure) + "\n" + code->errors.text);
      }
      code->addresses.emplace(name, reinterpret_cast<void*>(address));
    }
  } catch (const LlvmFatalError&) {
    fail(session, "fatal error; this LLVM is not used again in this process: " + session.fatal_reason());
  }
  return std::make_shared<LoadedObject>(std::move(code));
}

}  // namespace tigon::runtime
