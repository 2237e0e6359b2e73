// The state of one printing: printer.cpp spells structure and memory, expressions.cpp spells values, head.cpp what
// stands above the body.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/prelude.hpp"
#include "codegen/lower/lowered.hpp"

namespace tigon::cuda {

std::string_view type_text(DType dtype);
std::string literal(DType dtype, double number, std::int64_t integer);

// How tightly an expression's outermost operator binds; larger is tighter.
enum Precedence : int {
  by_question = 1,
  by_or,
  by_and,
  by_bit_or,
  by_bit_xor,
  by_bit_and,
  by_equality,
  by_order,
  by_shift,
  by_sum,
  by_product,
  by_prefix,
  by_nothing
};

class Printer {
 public:
  explicit Printer(const lower::Lowered& lowered);
  std::string run();

 private:
  // A value that is not spelled yet: it goes into the one expression that uses it, unless something changes what it
  // reads before that.
  struct Pending {
    std::string text;
    int precedence = by_nothing;
    std::set<lower::VariableId> reads;
    bool reads_memory = false;
    std::string row{}, offset{};  // of an address: what an index in brackets is made of
  };
  struct Use {
    int count = 0;
    const lower::Block* block = nullptr;  // of the last one
  };

  const lower::Lowered& lowered_;
  std::string body_;
  int indent_ = 1;
  std::vector<Use> uses_;                      // by value
  std::vector<std::string> spelled_;           // by value: a name or a literal; empty: pending
  std::map<lower::ValueId, Pending> pending_;  // in order of definition
  std::vector<loops::ParameterId> origin_;     // by value, of pointers: the parameter
  std::vector<bool> declared_;                 // by variable
  std::vector<std::string> variable_names_;    // by variable
  std::vector<std::set<std::string>> taken_;   // names by open scope
  std::vector<const lower::Block*> open_blocks_;
  std::set<std::string> used_;  // pieces of the prelude
  std::vector<std::string> parameter_names_, slot_names_, scalar_names_;
  std::map<std::pair<std::uint32_t, int>, std::string> merge_names_;  // by monoid and element
  std::set<std::pair<std::string, bool>> exchanges_;                  // merge name, over the block
  std::vector<std::string> shared_;                                   // declarations

  void line(const std::string& text) { body_ += std::string(static_cast<std::size_t>(2 * indent_), ' ') + text + "\n"; }
  std::string unique(const std::string& hint);
  void count_uses(const lower::Block& block);
  [[nodiscard]] const lower::Type& type(lower::ValueId v) const { return lowered_.values[v].type; }
  std::string type_of(lower::ValueId v) const;

  // printer.cpp
  void print_block(const lower::Block& block);
  void print(const lower::Block& block);
  void print(const lower::For& loop);
  void print(const lower::If& branch);
  void print(const lower::Instruction& i);
  void print(const lower::MergeState& merge);
  void print(const lower::Exchange& exchange);
  void define(const lower::Instruction& i, Pending value);  // pending where it has one user in this block
  void settle(lower::ValueId v, const Pending& value);      // writes it as a named constant
  void flush_readers(lower::VariableId variable);
  void flush_memory();
  void flush_changing();  // all that read variables or memory
  Pending take(lower::ValueId v);
  std::string text(lower::ValueId v, int precedence = 0);  // with brackets where its operator binds less
  static std::string place(const Pending& address);        // what the address points at
  std::string variable_place(const lower::Instruction& i, std::size_t number_at);

  // expressions.cpp
  Pending operation(const lower::Instruction& i);
  Pending conversion(const lower::Instruction& i);
  Pending operand(lower::ValueId v);
  static std::string bracketed(const Pending& value, int precedence);
  static void join(Pending& into, const Pending& from);

  // head.cpp
  void name_parameters();
  std::string head() const;
  std::string signature() const;
  std::string merge_functions();
};

}  // namespace tigon::cuda
