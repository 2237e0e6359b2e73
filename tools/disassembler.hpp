// NVIDIA's disassemblers, separate programs that turn a cubin into text: found on $PATH, in CUDA's folders and in
// Python packages.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tigon::tools {

struct DisassemblerSearch {
  std::string path{};                // of nvdisasm or cuobjdump; empty where there is neither
  std::vector<std::string> tried{};  // folders
  std::string cure{};
  [[nodiscard]] bool found() const { return !path.empty(); }
};
DisassemblerSearch find_disassembler();

// "13.0.85"; empty where the program does not say.
std::string disassembler_version(const std::string& path);

// The cubin's machine code as text. Throws Error{device} where no disassembler is installed, and Error{compile} with
// the program's own words where it does not take the cubin.
std::string disassemble(std::span<const std::byte> cubin);

}  // namespace tigon::tools
