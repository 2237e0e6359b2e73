// Turns a parsed kernel into a program: finds each instruction's family, which fills in its handler and operands.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/program.hpp"
#include "runtime/emulator/ptx.hpp"
#include "runtime/emulator/ptx_error.hpp"

namespace tigon::emulator {

using SymbolAddresses = std::map<std::string, std::uint64_t, std::less<>>;  // of a module's global variables

class Decoder;

// What a family sees of one instruction. A family takes every modifier that it understands; one that is left over is
// an error, so that nothing is ignored in silence.
class Encoder {
 public:
  Encoder(Decoder& decoder, const ptx::Function& function, const ptx::Instruction& source);

  Instruction out;
  SpecialFunction special = SpecialFunction::none;

  [[nodiscard]] const ptx::Instruction& source() const { return source_; }
  [[noreturn]] void fail(const std::string& sentence) const;

  bool take(std::string_view modifier);
  // Takes the first of the given modifiers that is present; its index, or -1.
  int take_any(std::initializer_list<std::string_view> modifiers);
  std::string take_next();  // the first modifier left; fails if there is none
  ptx::Type take_type();    // the first modifier that names a type; fails if there is none
  ptx::Space take_space();  // generic if none is named
  [[nodiscard]] bool has(std::string_view modifier) const;
  void finish() const;  // fails if a modifier is left

  [[nodiscard]] std::size_t size() const { return source_.operands.size(); }
  [[nodiscard]] const ptx::Operand& operand(std::size_t index) const;
  [[nodiscard]] bool is_sink(std::size_t index) const { return operand(index).kind == ptx::OperandKind::sink; }
  void expect_operands(std::size_t least, std::size_t most = 0) const;

  // The row of an operand whose register must have the type's size; an immediate becomes a row of constants.
  std::uint32_t row(std::size_t index, ptx::Type type) { return row(operand(index), type); }
  std::uint32_t row(const ptx::Operand& operand, ptx::Type type);
  // The row of a register of any size of at least `least` bytes, which is put into `bytes`.
  std::uint32_t any_row(const ptx::Operand& operand, unsigned least, std::uint8_t& bytes);
  std::uint32_t constant(std::uint64_t value, unsigned bytes);
  std::uint32_t constant_predicate(bool value);
  std::uint32_t sink_row();
  std::uint32_t carry_flag();  // the mask of add.cc and its like
  // The mask of a predicate operand; bit `bit` of out.negated says whether it is read negated.
  std::uint32_t predicate(const ptx::Operand& operand, int bit = -1);
  // q of p|q, or 0 if there is none.
  std::uint32_t second_predicate(std::size_t index);
  // Puts the address into out.operand[slot] (0 for none), out.immediate, and its register's size into out.stride.
  void address(std::size_t index, std::size_t slot, std::uint8_t& bytes);
  [[nodiscard]] bool is_register(const ptx::Operand& operand) const { return operand.kind == ptx::OperandKind::reg; }
  [[nodiscard]] unsigned register_bytes(const ptx::Operand& operand) const;
  [[nodiscard]] ptx::Type register_type(const ptx::Operand& operand) const;
  std::uint64_t symbol_value(const ptx::Operand& operand) const;
  [[nodiscard]] ptx::Space symbol_space(const ptx::Operand& operand) const;
  Decoder& decoder() { return decoder_; }

 private:
  Decoder& decoder_;
  const ptx::Function& function_;
  const ptx::Instruction& source_;
  std::vector<std::string> modifiers_;
};

using Family = void (*)(Encoder&);
using FamilyTable = std::unordered_map<std::string_view, Family>;

void add_integer_families(FamilyTable& table);
void add_bit_families(FamilyTable& table);
void add_arithmetic_families(FamilyTable& table);  // add, sub, mul, … of every type
void add_comparison_families(FamilyTable& table);
void add_approximate_families(FamilyTable& table);
void add_conversion_families(FamilyTable& table);
void add_move_families(FamilyTable& table);
void add_memory_families(FamilyTable& table);
void add_atomic_families(FamilyTable& table);
void add_copy_families(FamilyTable& table);
void add_warp_families(FamilyTable& table);
void add_barrier_families(FamilyTable& table);
void add_matrix_families(FamilyTable& table);

void decode_barrier(Encoder& encoder);  // bar and barrier without .warp

// Integer products, quotients and sums with carry, for the arithmetic families.
void decode_integer_product(Encoder& encoder, ptx::Type type);
void decode_integer_quotient(Encoder& encoder, ptx::Type type);
void decode_sum_with_carry(Encoder& encoder, ptx::Type type, bool subtract);

const FamilyTable& families();

class Decoder {
 public:
  Decoder(const ptx::Module& module, const SymbolAddresses& symbols) : module_(module), symbols_(symbols) {}
  // Throws PtxError that names the CUDA line of what it cannot decode.
  Program decode(const ptx::Function& entry);

 private:
  friend class Encoder;
  struct Frame {  // where a function's registers and variables are
    std::vector<std::uint32_t> registers;
    std::vector<std::uint64_t> variables;
    std::uint32_t begin = 0;
    std::vector<std::uint32_t> places;  // by instruction of the function: its first in the program
  };

  const ptx::Function* find_function(std::string_view name) const;
  void visit(const ptx::Function& function, std::vector<const ptx::Function*>& order, int depth) const;
  void lay_out(const ptx::Function& function);
  void assign_registers(const ptx::Function& function, Frame& frame);
  void decode_body(const ptx::Function& function);
  void decode_control(const ptx::Function& function, const ptx::Instruction& source);
  void decode_call(Encoder& encoder);
  void append(Encoder& encoder, SpecialFunction special);
  std::uint32_t allocate(unsigned bytes);
  std::uint32_t special_row(const std::string& name, unsigned bytes, const Encoder& encoder);

  const ptx::Module& module_;
  const SymbolAddresses& symbols_;
  Program program_;
  std::map<std::string, Frame> frames_;
  const ptx::Function* current_ = nullptr;
  std::map<std::pair<std::uint64_t, unsigned>, std::uint32_t> constants_;
  std::map<std::pair<int, unsigned>, std::uint32_t> specials_;
  std::map<unsigned, std::uint32_t> sinks_;
  struct Fixup {
    std::uint32_t instruction;
    const ptx::Function* function;
    std::uint32_t target;  // number of an instruction of the function
  };
  std::vector<Fixup> fixups_;
  std::vector<std::pair<std::uint32_t, const ptx::Function*>> calls_;
};

// One line for messages: "kernel.cu:47" or "PTX line 310".
std::string place_of(const ptx::Module& module, const ptx::Line& line);

}  // namespace tigon::emulator
