// Parses, verifies, optimises and emits one module; every failure becomes an Error that shows the source.
#include "runtime/llvm/compiler.hpp"

#include <cstring>

#include "runtime/llvm/elf.hpp"
#include "runtime/llvm/session.hpp"

namespace tigon::runtime {
namespace {

using namespace llvm_c;

// From 18 on, instcombine aborts the process' use of LLVM when one round is not enough, unless told not to check.
constexpr const char* default_passes =
    "always-inline,function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,early-cse)";
constexpr const char* passes_before_18 = "always-inline,function(sroa,early-cse,instcombine,simplifycfg,early-cse)";

const char* passes_of(const LlvmSession& session) {
  const int major = std::atoi(session.version.c_str());
  return major < 18 ? passes_before_18 : default_passes;
}

// The line that a message such as "kernel:12:5: error: ..." points at; 0 if it points at none.
size_t line_in(const std::string& message) {
  for (size_t colon = message.find(':'); colon != std::string::npos; colon = message.find(':', colon + 1)) {
    size_t end = colon + 1, line = 0;
    for (; end < message.size() && message[end] >= '0' && message[end] <= '9'; ++end)
      line = line * 10 + (message[end] - '0');
    if (end > colon + 1 && end < message.size() && message[end] == ':') return line;
  }
  return 0;
}

// Numbered source: `radius` lines around `line`, or the first 40 where no line is known.
std::string numbered_source(std::string_view text, size_t line) {
  constexpr size_t radius = 4, head = 40;
  const size_t first = line > radius ? line - radius : 1;
  const size_t last = line > 0 ? line + radius : head;
  std::string result;
  size_t number = 1;
  for (size_t start = 0; start < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', start), text.size());
    if (number >= first && number <= last) {
      result += fmt::format("{}{:5} | {}\n", number == line ? '>' : ' ', number, text.substr(start, end - start));
    }
    start = end + 1;
  }
  return result;
}

struct Diagnostics {
  const LlvmSession* session;
  std::string errors{};
};

// LLVM prints through its own default handler unless one is set; ours keeps errors and drops remarks and warnings.
void on_diagnostic(DiagnosticInfo* info, void* data) {
  auto& diagnostics = *static_cast<Diagnostics*>(data);
  const Api& api = diagnostics.session->api;
  if (api.diagnostic_severity(info) != diagnostic_error) return;
  if (!diagnostics.errors.empty()) diagnostics.errors += '\n';
  diagnostics.errors += diagnostics.session->take(api.diagnostic_description(info));
}

class Compilation {
 public:
  Compilation(LlvmSession& session, std::string_view text, const CpuTarget& target, const LlvmSettings& settings)
      : session_(session), api_(session.api), text_(text), target_(target), settings_(settings) {}

  std::vector<std::byte> run() {
    Diagnostics diagnostics{&session_};
    LlvmOwned<Context> context(session_, api_.context_dispose, api_.context_create());
    api_.context_set_diagnostic_handler(context.get(), on_diagnostic, &diagnostics);

    LlvmOwned<Module> module(session_, api_.module_dispose);
    char* message = nullptr;
    MemoryBuffer* source = api_.buffer_create(text_.data(), text_.size(), "kernel");  // parse_ir takes it over
    if (api_.parse_ir(context.get(), source, module.out(), &message) != 0) fail("parse", session_.take(message));
    const bool broken = api_.module_verify(module.get(), verify_and_return, &message) != 0;
    const std::string verdict = session_.take(std::exchange(message, nullptr));  // allocated, if empty, on success too
    if (broken) fail("verify", verdict);

    Target* found = nullptr;
    if (api_.target_from_triple(target_.triple.c_str(), &found, &message) != 0) fail("target", session_.take(message));
    const int level = settings_.codegen_level < 0 ? codegen_default : settings_.codegen_level;
    LlvmOwned<TargetMachine> machine(
        session_, api_.machine_dispose,
        api_.machine_create(found, target_.triple.c_str(), target_.cpu.c_str(), target_.features.c_str(), level,
                            relocation_pic, code_model_small));
    if (machine.get() == nullptr) fail("target", "LLVM refused " + target_.triple);
    api_.module_set_triple(module.get(), target_.triple.c_str());
    {
      LlvmOwned<TargetData> layout(session_, api_.layout_dispose, api_.machine_layout(machine.get()));
      api_.module_set_layout(module.get(), layout.get());
    }

    const char* passes = settings_.passes == nullptr ? passes_of(session_) : settings_.passes;
    if (*passes != '\0') {
      LlvmOwned<PassOptions> options(session_, api_.pass_options_dispose, api_.pass_options_create());
      api_.pass_options_loop_vectorize(options.get(), 0);
      api_.pass_options_slp_vectorize(options.get(), 0);
      if (Failure* failure = api_.run_passes(module.get(), passes, machine.get(), options.get())) {
        fail("optimise", session_.take(failure));
      }
    }
    LlvmOwned<MemoryBuffer> object(session_, api_.buffer_dispose);
    if (api_.machine_emit(machine.get(), module.get(), emit_object, &message, object.out()) != 0) {
      fail("emit", session_.take(message));
    }
    if (!diagnostics.errors.empty()) fail("emit", diagnostics.errors);
    const auto* bytes = reinterpret_cast<const std::byte*>(api_.buffer_start(object.get()));
    return {bytes, bytes + api_.buffer_size(object.get())};
  }

  [[noreturn]] void fail(const char* stage, const std::string& message) const {
    throw Error({.kind = ErrorKind::compile,
                 .function = "LLVM " + session_.version,
                 .log = fmt::format("stage: {}; target: {} {} {}\n{}\n{}", stage, target_.triple, target_.cpu,
                                    target_.features, message, numbered_source(text_, line_in(message)))},
                fmt::format("a generated kernel did not compile ({})", stage));
  }

 private:
  LlvmSession& session_;
  const Api& api_;
  std::string_view text_;
  const CpuTarget& target_;
  const LlvmSettings& settings_;
};

}  // namespace

LlvmCompiler::LlvmCompiler(std::shared_ptr<LlvmSession> session) : session_(std::move(session)) {}

const LlvmCompiler& LlvmCompiler::get() {
  // Never destroyed: other static objects may hold kernels.
  static const auto& compiler = *new std::shared_ptr<const LlvmCompiler>(load({}));
  return *compiler;
}

std::shared_ptr<const LlvmCompiler> LlvmCompiler::load(const std::string& choice) {
  return std::make_shared<const LlvmCompiler>(open_llvm(choice));
}

LibrarySearch LlvmCompiler::search(const std::string& choice) { return search_llvm(choice); }

const std::string& LlvmCompiler::version() const { return session_->version; }
const std::string& LlvmCompiler::path() const { return session_->library.path(); }
bool LlvmCompiler::usable() const { return !session_->unusable.load(); }

std::string LlvmCompiler::identity() const {
  return fmt::format("LLVM {} build {} passes {} level {}", session_->version, session_->build_id, passes_of(*session_),
                     codegen_default);
}

CpuTarget LlvmCompiler::host_target() const {
  if (const auto name = target_override()) return named_target(*name);
  session_->require_usable();
  LlvmCall call(*session_);
  const Api& api = session_->api;
  return {session_->take(api.default_triple()), session_->take(api.host_cpu()), session_->take(api.host_features())};
}

CpuTarget host_target() { return LlvmCompiler::get().host_target(); }

std::vector<std::byte> LlvmCompiler::compile(std::string_view ir_text, const CpuTarget& target,
                                             const LlvmSettings& settings) const {
  session_->require_usable();
  Compilation compilation(*session_, ir_text, target, settings);
  std::vector<std::byte> object;
  try {
    LlvmCall call(*session_);
    object = compilation.run();
  } catch (const LlvmFatalError&) {
    compilation.fail("fatal error; this LLVM is not used again in this process", session_->fatal_reason());
  }
  const ElfObject elf = read_elf(object);
  if (!elf.undefined().empty()) require_self_contained(elf);
  return object;
}

}  // namespace tigon::runtime
