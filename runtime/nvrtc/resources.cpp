// Reads ELF sections: `.nv.info` (attributes by kernel), `.nv.info.KERNEL`, `.nv.shared.KERNEL` and the machine code
// in `.text.KERNEL`.
#include "runtime/nvrtc/resources.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

// Attributes of `.nv.info` that hold {symbol, value}.
constexpr std::uint8_t attribute_frame_size = 0x11, attribute_min_stack = 0x12, attribute_registers = 0x2f;
// Attributes of `.nv.info.KERNEL`: {x, y, z}; a count; pairs {1, offset of an instruction that spills or fills}.
constexpr std::uint8_t attribute_threads = 0x05, attribute_barriers = 0x4c, attribute_annotations = 0x55;
constexpr std::uint32_t annotated_spill = 1;
// Formats of their records: a byte, and bytes as many as the size says.
constexpr std::uint8_t format_byte = 2, format_sized = 4;

// Machine code of sm_70 and newer: 16 bytes an instruction, of which the lowest 9 bits are the operation without its
// operands' form, and bits 73 to 75 the width of an access to memory.
constexpr std::uint64_t instruction_bytes = 16;
constexpr std::uint64_t load_global = 0x181, load_local = 0x183, store_global = 0x186, store_local = 0x187;
constexpr std::uint64_t no_operation = 0x918;                                 // all 12 bits: nothing else has this form
constexpr std::array<std::size_t, 8> width_index = {0, 0, 1, 1, 2, 3, 4, 4};  // u8 s8 u16 s16 32 64 128

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
    for (auto& [name, kernel] : result) {
      if (const Elf64_Shdr* shared = section(".nv.shared." + name))
        kernel.shared_bytes = static_cast<int>(shared->sh_size);
      const Elf64_Shdr* info = section(".nv.info." + name);
      const Elf64_Shdr* text = section(".text." + name);
      const std::set<std::uint64_t> spills = info == nullptr ? std::set<std::uint64_t>() : details(*info, kernel);
      if (text != nullptr) instructions(*text, spills, kernel);
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

  const Elf64_Shdr* section(const std::string& name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    return found == names_.end() ? nullptr : &sections_[static_cast<std::size_t>(found - names_.begin())];
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
  template <class Visit>
  void each_record(const Elf64_Shdr& section, Visit visit) const {
    const std::uint64_t end = section.sh_offset + section.sh_size;
    for (std::uint64_t offset = section.sh_offset; offset + 4 <= end;) {
      const auto format = at<std::uint8_t>(offset);
      const auto value = at<std::uint16_t>(offset + 2);
      visit(format, at<std::uint8_t>(offset + 1), value, offset + 4);
      offset += 4 + (format == format_sized ? value : 0u);
    }
  }

  void attributes(const Elf64_Shdr& section, std::map<std::string, KernelResources>& result) const {
    each_record(section, [&](std::uint8_t format, std::uint8_t attribute, std::uint16_t size, std::uint64_t payload) {
      if (format != format_sized || size != 8) return;
      const auto value = static_cast<int>(at<std::uint32_t>(payload + 4));
      if (attribute == attribute_registers) result[symbol(at<std::uint32_t>(payload))].registers = value;
      if (attribute == attribute_frame_size || attribute == attribute_min_stack) {
        int& stack = result[symbol(at<std::uint32_t>(payload))].stack_bytes;
        stack = std::max(stack, value);
      }
    });
  }

  // Returns the offsets of instructions that spill or fill a register.
  std::set<std::uint64_t> details(const Elf64_Shdr& section, KernelResources& kernel) const {
    std::set<std::uint64_t> spills;
    each_record(section, [&](std::uint8_t format, std::uint8_t attribute, std::uint16_t size, std::uint64_t payload) {
      if (format == format_byte && attribute == attribute_barriers) kernel.barriers = size & 0xff;
      if (format != format_sized) return;
      if (attribute == attribute_threads && size == 12) {
        kernel.threads = 1;
        for (std::uint64_t i = 0; i < 3; ++i) kernel.threads *= static_cast<int>(at<std::uint32_t>(payload + 4 * i));
      }
      for (std::uint64_t i = 0; attribute == attribute_annotations && i + 8 <= size; i += 8) {
        if (at<std::uint32_t>(payload + i) == annotated_spill) spills.insert(at<std::uint32_t>(payload + i + 4));
      }
    });
    return spills;
  }

  void instructions(const Elf64_Shdr& text, const std::set<std::uint64_t>& spills, KernelResources& kernel) const {
    for (std::uint64_t offset = 0; offset + instruction_bytes <= text.sh_size; offset += instruction_bytes) {
      const auto low = at<std::uint64_t>(text.sh_offset + offset);
      const auto high = at<std::uint64_t>(text.sh_offset + offset + 8);
      kernel.instructions += (low & 0xfff) == no_operation ? 0 : 1;
      const std::size_t width = width_index[(high >> 9) & 7];
      const int bytes = 1 << width;
      const bool spill = spills.contains(offset);
      switch (low & 0x1ff) {
        case load_global:
          ++kernel.global_loads[width];
          break;
        case store_global:
          ++kernel.global_stores[width];
          break;
        case load_local:
          kernel.local_loads += bytes;
          kernel.spill_loads += spill ? bytes : 0;
          break;
        case store_local:
          kernel.local_stores += bytes;
          kernel.spill_stores += spill ? bytes : 0;
          break;
        default:
          break;
      }
    }
  }
};

}  // namespace

std::map<std::string, KernelResources> cubin_resources(std::span<const std::byte> cubin) { return Cubin(cubin).run(); }

}  // namespace tigon::runtime
