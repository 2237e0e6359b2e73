// A kernel decoded once: instructions with their handlers and the places of their operands in a warp's arena.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/emulator/ptx.hpp"

namespace tigon::emulator {

inline constexpr unsigned lanes_per_warp = 32;
using Mask = std::uint32_t;  // one bit per lane
inline constexpr Mask all_lanes = ~Mask{0};

struct Warp;
struct Instruction;
using Handler = void (*)(Warp&, const Instruction&);

// Rows (32 lanes of a register) and masks (a predicate register) are named by their offset in the arena.
struct Instruction {
  Handler run = nullptr;
  std::int64_t immediate = 0;  // the offset of an address, or what the family says
  std::array<std::uint32_t, 20> operand{};
  std::uint32_t guard = 0;   // offset of the predicate, 0 for none
  std::uint32_t target = 0;  // of a branch or a call
  std::uint32_t number = 0;  // in the program
  bool guard_negated = false;
  bool flush = false;  // .ftz
  bool saturate = false;
  std::uint8_t bytes = 0;   // of one element of a memory access
  std::uint8_t count = 1;   // elements of a vector access
  std::uint8_t stride = 0;  // bytes of the register that holds an element
  std::uint8_t mode = 0;    // rounding, comparison, or what the family says
  std::uint8_t option = 0;
  std::uint8_t negated = 0;  // bit i: predicate operand i is read negated
  bool sign = false;
  ptx::Space space = ptx::Space::generic;
};

// Which instructions use the special function unit, for the counters.
enum class SpecialFunction : std::uint8_t { none, ex2, lg2, rcp, sqrt, rsqrt, sin, cos, tanh };
inline constexpr std::size_t special_function_count = 9;

struct Source {
  ptx::Line line;
  std::string file;
  std::string text;    // the instruction as written
  std::string opcode;  // with its modifiers
  SpecialFunction special = SpecialFunction::none;
};

enum class SpecialRegister : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  lane,
  warp,
  warp_count,
  sm,
  sm_count,
  grid,
  mask_eq,
  mask_lt,
  mask_le,
  mask_gt,
  mask_ge,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  cluster_rank,
  cluster_size,
  dynamic_shared,
  total_shared,
  zero,
};

struct ConstantRow {
  std::uint32_t offset = 0;
  std::uint8_t bytes = 4;
  std::uint64_t value = 0;
};

struct SpecialRow {
  std::uint32_t offset = 0;
  std::uint8_t bytes = 4;
  SpecialRegister kind = SpecialRegister::zero;
};

struct SharedArray {
  std::string name;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;  // of a dynamic array: what the launch gives
  bool dynamic = false;
};

struct Parameter {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

struct Program {
  std::string name;
  std::vector<Instruction> code;
  std::vector<Source> sources;  // by instruction
  std::uint32_t entry = 0;      // functions that the kernel calls stand before it
  std::uint32_t arena_bytes = 0;
  std::vector<ConstantRow> constants;
  std::vector<SpecialRow> specials;
  std::vector<Parameter> parameters;
  std::uint32_t parameter_bytes = 0;
  std::vector<SharedArray> shared;
  std::uint64_t shared_bytes = 0;     // with the red zones between arrays
  std::uint64_t declared_shared = 0;  // what the text declares, as the driver reports it
  std::uint64_t local_bytes = 0;      // per thread
  std::uint64_t declared_local = 0;   // of those, what the text declares as .local
  std::uint32_t max_threads = 1024;
  std::array<std::uint32_t, 3> cluster{};  // the one that the text demands, or zeros
  std::uint32_t live_registers = 0;        // greatest number of 32-bit words alive at once, no promise about ptxas
};

}  // namespace tigon::emulator
