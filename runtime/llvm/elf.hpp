// Reads the symbols of a relocatable ELF object, to refuse kernels that call something outside themselves.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tigon::runtime {

struct ElfSymbol {
  std::string name;
  bool defined = false;
  bool global = false;  // visible to a lookup by name
  bool function = false;
  std::uint64_t size = 0;
};

struct ElfObject {
  std::uint16_t machine = 0;  // EM_X86_64 or EM_AARCH64
  std::vector<ElfSymbol> symbols;

  [[nodiscard]] std::vector<std::string> undefined() const;  // names, sorted
  [[nodiscard]] std::vector<std::string> functions() const;  // global, defined; sorted
};

// Throws Error{io} on anything but a whole 64-bit little-endian relocatable object.
ElfObject read_elf(std::span<const std::byte> object);
// Throws Error{compile} naming the undefined symbols, if there are any.
void require_self_contained(const ElfObject& object);

}  // namespace tigon::runtime
