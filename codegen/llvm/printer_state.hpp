// The state of one printing; printer.cpp spells structure and memory, printer_operations.cpp spells arithmetic.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "codegen/llvm/prelude.hpp"
#include "codegen/lower/lowered.hpp"

namespace tigon::llvm {

std::string type_text(const lower::Type& type);
std::string_view memory_text(DType dtype);  // of an element in memory
std::string literal(DType dtype, double number, std::int64_t integer);

class Printer {
 public:
  explicit Printer(const lower::Lowered& lowered);
  std::string run();

 private:
  // The operands and names of one instruction being spelled in several lines.
  struct Spelling {
    std::string result;  // "%name"
    int temporaries = 0;
    lower::Type type;
  };

  const lower::Lowered& lowered_;
  std::string body_;
  std::string label_ = "entry";         // of the basic block being written
  std::vector<std::string> spelled_;    // by value
  std::vector<bool> is_constant_;       // by value
  std::vector<std::int64_t> integers_;  // by value, of constants
  std::set<std::string> declarations_;
  std::vector<PreludeUse> prelude_;
  std::set<std::string> prelude_names_;
  bool nontemporal_ = false;
  int branches_ = 0;
  int bytes_ = 0;

  void line(const std::string& text) { body_ += "  " + text + "\n"; }
  void start(const std::string& label);
  [[nodiscard]] const lower::Type& type(lower::ValueId v) const { return lowered_.values[v].type; }
  [[nodiscard]] const std::string& text(lower::ValueId v) const { return spelled_[v]; }
  [[nodiscard]] std::string typed(lower::ValueId v) const { return type_text(type(v)) + " " + text(v); }

  std::string head() const;
  void print(const lower::Block& block);
  void print(const lower::For& loop);
  void print(const lower::If& branch);
  void print(const lower::Instruction& i);
  void print_memory(const lower::Instruction& i);
  void print_cell(const lower::Instruction& i, std::uint32_t cell);

  // printer_operations.cpp
  void print_operation(const lower::Instruction& i);
  void print_float(const lower::Instruction& i);
  void print_whole(const lower::Instruction& i);
  void print_division(const lower::Instruction& i);
  void print_to_integer(Spelling s, const lower::Type& from, const std::string& value);
  void print_cast(const lower::Instruction& i);
  // Each writes one line and returns the new name; the last line of an instruction takes the result's.
  std::string temporary(Spelling& s, const std::string& right);
  void finish(const Spelling& s, const std::string& right);
  std::string call_prelude(std::string_view function, DType dtype, int lanes, const std::string& args);
  std::string call_intrinsic(std::string_view name, const lower::Type& type, const std::vector<std::string>& args);
  std::string constant(const lower::Type& type, double number, std::int64_t integer);
  std::string splat(const lower::Type& type, const std::string& element);
};

}  // namespace tigon::llvm
