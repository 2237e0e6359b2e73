// A module loaded into the emulated device: its variables in device memory and its kernels, decoded.
#include "runtime/emulator/module.hpp"

#include <cstring>

namespace tigon::emulator {

// Once the first constructor is through, the destructor frees the variables of a module that fails to load.
LoadedModule::LoadedModule(std::string_view ptx, Machine& machine) : LoadedModule(machine) {
  const auto module = ptx::parse(ptx);
  target_ = module.target;
  SymbolAddresses symbols;
  for (const auto& variable : module.variables) {
    if (variable.space == ptx::Space::shared) continue;
    auto& buffer = machine.memory.allocate(variable.bytes, variable.name);
    variables_[variable.name] = &buffer;
    symbols[variable.name] = buffer.address;
    buffer.read_only = variable.space == ptx::Space::constant;
    // A variable without a value starts with zeros.
    std::memset(buffer.data, 0, variable.bytes);
    std::fill(buffer.state.begin(), buffer.state.end(), state_initialized);
  }
  for (const auto& variable : module.variables) {
    if (variable.space == ptx::Space::shared) continue;
    auto& buffer = *variables_[variable.name];
    for (const auto& initializer : variable.initializers) {
      if (initializer.symbol.empty()) {
        std::memcpy(buffer.data + initializer.offset, initializer.bytes.data(), initializer.bytes.size());
        continue;
      }
      const auto at = symbols.find(initializer.symbol);
      if (at == symbols.end()) throw PtxError(fmt::format("unknown symbol {} in an initial value", initializer.symbol));
      std::uint64_t address = 0;
      std::memcpy(&address, initializer.bytes.data(), 8);
      address += at->second;
      std::memcpy(buffer.data + initializer.offset, &address, 8);
    }
  }
  Decoder decoder(module, symbols);
  for (const auto& function : module.functions) {
    if (!function.entry || function.declared_only) continue;
    kernels_[function.name] = std::make_unique<Program>(decoder.decode(function));
  }
}

LoadedModule::~LoadedModule() {
  for (const auto& [name, buffer] : variables_) machine_.memory.release(buffer->address);
}

const Program* LoadedModule::kernel(std::string_view name) const {
  const auto at = kernels_.find(name);
  return at == kernels_.end() ? nullptr : at->second.get();
}

const Buffer* LoadedModule::variable(std::string_view name) const {
  const auto at = variables_.find(name);
  return at == variables_.end() ? nullptr : at->second;
}

std::vector<std::uint8_t> gather_parameters(const Program& program, const void* const* arguments) {
  std::vector<std::uint8_t> bytes(program.parameter_bytes);
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    std::memcpy(bytes.data() + program.parameters[i].offset, arguments[i], program.parameters[i].bytes);
  }
  return bytes;
}

bool run_kernel(Machine& machine, const Program& program, const LaunchShape& shape,
                std::vector<std::uint8_t> parameters, Fault& first_fault) {
  auto result = run_launch(program, shape, std::move(parameters), machine.memory, machine.reports, machine.schedule,
                           machine.sm_count, machine.gangs);
  machine.counters.add(result.counters);
  first_fault = result.first_fault;
  return !result.failed;
}

}  // namespace tigon::emulator
