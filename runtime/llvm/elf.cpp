// Walks the section headers to the symbol table, checking every offset against the object's size.
#include "runtime/llvm/elf.hpp"

#include <elf.h>

#include <cstring>

#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

[[noreturn]] void malformed(const char* what) {
  throw Error({.kind = ErrorKind::io, .cure = "Delete the cache entry it came from; it will be compiled again"},
              fmt::format("this is no usable object file: {}", what));
}

template <typename T>
T read_at(std::span<const std::byte> bytes, std::uint64_t offset, const char* what) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) malformed(what);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string string_at(std::span<const std::byte> bytes, const Elf64_Shdr& table, std::uint32_t index) {
  if (table.sh_offset > bytes.size() || table.sh_size > bytes.size() - table.sh_offset)
    malformed("string table cut off");
  if (index >= table.sh_size) malformed("symbol name outside its table");
  const char* start = reinterpret_cast<const char*>(bytes.data() + table.sh_offset + index);
  return {start, ::strnlen(start, table.sh_size - index)};
}

}  // namespace

ElfObject read_elf(std::span<const std::byte> bytes) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0, "header cut off");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) malformed("not ELF");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    malformed("not 64-bit little-endian");
  if (header.e_type != ET_REL) malformed("not relocatable");
  if (header.e_shentsize != sizeof(Elf64_Shdr)) malformed("unknown section header size");

  ElfObject object;
  object.machine = header.e_machine;
  const auto section = [&](std::uint64_t index) {
    if (index >= header.e_shnum) malformed("section outside the table");
    return read_at<Elf64_Shdr>(bytes, header.e_shoff + index * sizeof(Elf64_Shdr), "section headers cut off");
  };
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr table = section(i);
    if (table.sh_type != SHT_SYMTAB) {
      if (table.sh_type != SHT_NOBITS &&
          (table.sh_offset > bytes.size() || table.sh_size > bytes.size() - table.sh_offset)) {
        malformed("section cut off");
      }
      continue;
    }
    const Elf64_Shdr strings = section(table.sh_link);
    for (std::uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(bytes, table.sh_offset + at, "symbol table cut off");
      const int type = ELF64_ST_TYPE(symbol.st_info);
      if (type == STT_FILE || type == STT_SECTION) continue;
      object.symbols.push_back({.name = string_at(bytes, strings, symbol.st_name),
                                .defined = symbol.st_shndx != SHN_UNDEF,
                                .global = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL,
                                .function = type == STT_FUNC,
                                .size = symbol.st_size});
    }
  }
  return object;
}

std::vector<std::string> ElfObject::undefined() const {
  std::vector<std::string> names;
  for (const ElfSymbol& symbol : symbols) {
    if (!symbol.defined) names.push_back(symbol.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> ElfObject::functions() const {
  std::vector<std::string> names;
  for (const ElfSymbol& symbol : symbols) {
    if (symbol.defined && symbol.global && symbol.function) names.push_back(symbol.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void require_self_contained(const ElfObject& object) {
  const std::vector<std::string> names = object.undefined();
  if (names.empty()) return;
  throw Error({.kind = ErrorKind::compile,
               .found = fmt::format("{}", fmt::join(names, ", ")),
               .expected = "none",
               .cure = "A kernel may use only the written IR subset, which never becomes a library call"},
              "the compiled kernel has undefined symbols");
}

}  // namespace tigon::runtime
