// Reads ELF sections `.nv.info` (attributes by kernel) and `.nv.shared.KERNEL`.
#include "runtime/nvrtc/resources.hpp"

#include <elf.h>

#include <cstring>
#include <vector>

#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

// Attributes of `.nv.info` that hold {symbol, value}, and the formats of its records.
constexpr std::uint8_t attribute_frame_size = 0x11, attribute_min_stack = 0x12, attribute_registers = 0x2f;
constexpr std::uint8_t format_sized = 4;

class Cubin {
 public:
  explicit Cubin(std::span<const std::byte> bytes) : bytes_(bytes) {
    const auto header = at<Elf64_Ehdr>(0);
    constexpr Elf64_Half machine_cuda = 190;
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != machine_cuda) fail("is no cubin");
    for (std::uint64_t i = 0; i < header.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * header.e_shentsize));
    if (header.e_shstrndx >= sections_.size()) fail("has no section names");
    for (const Elf64_Shdr& section : sections_)
      names_.push_back(text(sections_[header.e_shstrndx].sh_offset + section.sh_name));
  }

  std::map<std::string, KernelResources> run() const {
    std::map<std::string, KernelResources> result;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (names_[i] == ".nv.info") attributes(sections_[i], result);
    }
    const std::string shared = ".nv.shared.";
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (!names_[i].starts_with(shared)) continue;
      const auto found = result.find(names_[i].substr(shared.size()));
      if (found != result.end()) found->second.shared_bytes = static_cast<int>(sections_[i].sh_size);
    }
    return result;
  }

 private:
  std::span<const std::byte> bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::string> names_;

  [[noreturn]] static void fail(const char* what) {
    throw Error({.kind = ErrorKind::compile, .function = "cubin_resources"}, fmt::format("a binary {}", what));
  }
  template <class T>
  T at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) fail("ends too early");
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::string text(std::uint64_t offset) const {
    std::string result;
    for (char c = at<char>(offset); c != '\0'; c = at<char>(++offset)) result += c;
    return result;
  }

  std::string symbol(std::uint32_t number) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections_.size()) continue;
      const auto entry = at<Elf64_Sym>(section.sh_offset + number * sizeof(Elf64_Sym));
      return text(sections_[section.sh_link].sh_offset + entry.st_name);
    }
    return {};
  }

  // Records of {format, attribute, 16-bit value or size[, payload]}.
  void attributes(const Elf64_Shdr& section, std::map<std::string, KernelResources>& result) const {
    const std::uint64_t end = section.sh_offset + section.sh_size;
    for (std::uint64_t offset = section.sh_offset; offset + 4 <= end;) {
      const auto format = at<std::uint8_t>(offset);
      const auto attribute = at<std::uint8_t>(offset + 1);
      const auto size = at<std::uint16_t>(offset + 2);
      offset += 4;
      if (format != format_sized) continue;
      if (size == 8) {
        const auto value = static_cast<int>(at<std::uint32_t>(offset + 4));
        if (attribute == attribute_registers) result[symbol(at<std::uint32_t>(offset))].registers = value;
        if (attribute == attribute_frame_size || attribute == attribute_min_stack) {
          int& stack = result[symbol(at<std::uint32_t>(offset))].stack_bytes;
          stack = std::max(stack, value);
        }
      }
      offset += size;
    }
  }
};

}  // namespace

std::map<std::string, KernelResources> cubin_resources(std::span<const std::byte> cubin) { return Cubin(cubin).run(); }

}  // namespace tigon::runtime
